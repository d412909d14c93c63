"""The command attaches, updates, rehearses, and documents itself."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from ticket_desk import TICKETS, start
from typer.testing import CliRunner

from logmfu.cli import attach as command
from logmfu.errors import TicketError
from logmfu.tickets import SYSTEMS, Parcel, System


@pytest.fixture
def app(parcel: Parcel, monkeypatch: pytest.MonkeyPatch) -> typer.Typer:
    """The command with a parcel in place of a log that is read."""
    monkeypatch.setattr(command, "packed", lambda *_, **__: parcel)
    made = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    made.command()(command.attach)
    return made


def run(app: typer.Typer, environ: dict[str, str], *arguments: str) -> Any:
    """Run the command in an environment."""
    return CliRunner().invoke(app, list(arguments), env=environ)


def test_the_command_attaches_and_updates(app: typer.Typer, servers: ExitStack) -> None:
    """The first time it says attached, the second time updated, each with the address."""
    server, environ = start(servers, "jira")
    first, second = (run(app, environ, "OPS-7", "train.log") for _ in range(2))
    assert first.stdout.startswith(f"attached: {server.url}/browse/OPS-7")
    assert second.stdout.startswith(f"updated: {server.url}/browse/OPS-7")
    assert (first.exit_code, second.exit_code) == (0, 0)


def test_the_command_without_files_posts_the_text(app: typer.Typer, servers: ExitStack) -> None:
    """--no-files leaves the attachments alone."""
    server, environ = start(servers, "jira")
    assert run(app, environ, "OPS-7", "train.log", "--no-files").exit_code == 0
    assert server.system.attachments == []


def test_the_command_in_a_dry_run_sends_nothing(app: typer.Typer, servers: ExitStack) -> None:
    """The dry run prints the requests, and the server saw none."""
    server, environ = start(servers, "github")
    result = run(app, environ, TICKETS["github"], "train.log", "--dry-run")
    assert result.exit_code == 0
    assert "POST " in result.stdout
    assert server.requests == []


def test_missing_credentials_are_told_before_the_log_is_read(
    app: typer.Typer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log of ten gigabytes is not read in vain."""
    monkeypatch.setattr(command, "packed", lambda *_, **__: pytest.fail("the log was read"))
    result = run(app, {"LOGMFU_GITHUB_TOKEN": ""}, TICKETS["github"], "train.log")
    assert isinstance(result.exception, TicketError)


def test_help_names_every_variable_and_every_system(app: typer.Typer) -> None:
    """What can be configured is in --help."""
    text = run(app, {"COLUMNS": "200"}, "--help").stdout
    for system in SYSTEMS.values():
        assert system.variable("URL") in text
        assert system.variable("TOKEN") in text
        assert f"logmfu[{system.name}]" in text
    assert "LOGMFU_JIRA_EMAIL" in text
    assert "LOGMFU_ALLOW_HTTP" in text


def test_the_page_documents_every_variable_and_every_system() -> None:
    """So does docs/attach.md, with the permissions a token needs."""
    text = (Path(__file__).parents[2] / "docs" / "attach.md").read_text()

    def facts(system: System) -> list[str]:
        return [system.variable("URL"), system.variable("TOKEN"), f"logmfu[{system.name}]", *system.shapes]

    assert [fact for system in SYSTEMS.values() for fact in facts(system) if fact not in text] == []


def test_a_run_becomes_a_parcel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report is made by the same call as `logmfu report`, and its key is the run and its start."""
    report = SimpleNamespace(name="train.log", start=0.0, to_markdown=lambda dialect: f"in {dialect}")
    wrote = [tmp_path / "train.report.html"]
    monkeypatch.setattr(command, "made", lambda paths, place, **_: (report, wrote))
    parcel = command.packed(["train.log"], tmp_path, redact=False, analysis={})
    assert parcel.files == tuple(wrote)
    assert (parcel.key, parcel.body_by_dialect("jira")) == ("train.log 0.0", "in jira")
    assert json.dumps(parcel.title) == '"Training run train.log"'


def test_the_same_command_works_again(tmp_path: Path) -> None:
    """The files of the first time are written over; there is no --force to forget."""
    log = Path(__file__).parents[2] / "fixtures" / "megatron" / "2.5-64gpu-crash-resume.log"
    none = (
        "parser",
        "gpu",
        "precision",
        "peak_tflops",
        "world_size",
        "seq_len",
        "model",
        "facts",
        "since",
        "until",
    )
    options = dict.fromkeys((*none, "timezone", "gpu_hour_price", "grade_bands", "min_mfu", "fail_on"))
    options["attention"] = "logged"
    first = command.packed([str(log)], tmp_path, redact=True, analysis=options)
    again = command.packed([str(log)], tmp_path, redact=True, analysis=options)
    assert first.files == again.files
    assert [path.name for path in again.files] == ["run.report.html", "run.report.md", "run.mfu.png"]


def test_the_command_line_starts_without_any_network_library() -> None:
    """`logmfu --help` waits for no HTTP client, and a core without extras can still show it."""
    code = "import sys, logmfu.tickets; print(sorted({'requests', 'urllib3', 'jira', 'keyring'} & set(sys.modules)))"
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert shown.stdout == "[]\n"
