"""Every block of the README, and the package that docs/parsers.md makes, are run; what they print is what stands there.

A fence that follows a command or a program holds what it prints. ``pytest --update-docs`` writes it anew; the diff is
the review. Commands that set up an environment need a network and are run by ``.ci/run`` instead.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PARSERS = ROOT / "docs" / "parsers.md"
FENCE = re.compile(r"^```(?P<language>\w+)(?: (?P<name>\S+))?\n(?P<text>.*?)^```$", flags=re.M | re.S)
SET_UP = re.compile(
    r"(?:\S*python3? -m venv \S+|\S*pip install [^&\n]+|\.venv/bin/pytest)(?: && |$)", flags=re.M
)
"""Parts of a command that make an environment: not run here."""


@dataclass(frozen=True, slots=True)
class Block:
    """One fence of a page. ``shows``: the span of the fence after it, where its output stands."""

    language: str
    name: str
    text: str
    line: int
    shows: tuple[int, int] | None = None


def blocks(page: Path) -> list[Block]:
    """The fences of a page, in order."""
    text = page.read_text(encoding="utf-8")
    matches = list(FENCE.finditer(text))
    return [
        Block(
            match["language"],
            match["name"] or "",
            match["text"],
            text.count("\n", 0, match.start()) + 1,
            _output(text, match, following),
        )
        for match, following in zip(matches, [*matches[1:], None], strict=True)
    ]


def _output(text: str, match: re.Match[str], following: re.Match[str] | None) -> tuple[int, int] | None:
    """Where the output of a block stands: in a text fence right after it."""
    if match["language"] not in ("sh", "python") or match["name"] or following is None:
        return None
    if (
        following["language"] != "text"
        or following["name"]
        or text[match.end() : following.start()].strip()
    ):
        return None
    return following.span("text")


def check_output(page: Path, block: Block, printed: str, update: bool) -> None:
    """What was printed stands in the page."""
    assert block.shows is not None
    text = page.read_text(encoding="utf-8")
    start, end = block.shows
    printed = "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
    if update:
        page.write_text(text[:start] + printed + text[end:], encoding="utf-8")
        return
    assert text[start:end] == printed


def runnable(page: Path) -> list[int]:
    """Numbers of the blocks that are run."""
    return [
        number
        for number, block in enumerate(blocks(page))
        if block.language in ("sh", "python") and not block.name
    ]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder that looks like a clone in which the first command was run."""
    for name in ("fixtures", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "logmfu").symlink_to(Path(sys.executable).parent / "logmfu")
    return tmp_path


def environment(clone: Path) -> dict[str, str]:
    """The variables of a plain terminal of 80 columns in which no credentials are set."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LOGMFU_")}
    path = os.pathsep.join([str(clone / ".venv" / "bin"), os.environ.get("PATH", os.defpath)])
    return {**kept, "PATH": path, "COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1", "MPLBACKEND": "Agg"}


def run(command: list[str], folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a person would, both outputs together."""
    return subprocess.run(
        command,
        cwd=folder,
        env={**environment(folder), **environ},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_every_block_is_run_or_is_output():
    """A fence is a command, a program, what one of them prints, or the drawing of the layers."""
    found = blocks(README)
    shown = sum(block.shows is not None for block in found)
    drawings = [block for block in found if block.language == "text" and "->" in block.text]
    assert sum(block.language == "text" for block in found) == shown + len(drawings)
    assert {block.language for block in found} <= {"sh", "python", "text"}


@pytest.mark.parametrize(
    "number", runnable(README), ids=lambda number: f"line-{blocks(README)[number].line}"
)
def test_block_of_the_readme(number: int, clone: Path, update_docs: bool):
    """The block works, and prints what stands below it."""
    block = blocks(README)[number]
    text = SET_UP.sub("", block.text)
    if not text.strip():
        return
    program = ["bash", "-euo", "pipefail", "-c"] if block.language == "sh" else [sys.executable, "-c"]
    if (
        "echo" in text or "| head" in text
    ):  # an exit code that is shown, or a pipe that is closed early, is no failure
        program = ["bash", "-c"]
    done = run([*program, text], clone)
    assert done.returncode == 0, done.stdout
    if block.shows:
        check_output(README, block, done.stdout, update_docs)


def test_picture_is_small():
    """The picture of the README is there and loads quickly."""
    assert 20_000 < (ROOT / "docs" / "example.png").stat().st_size < 200_000


def test_two_commands_set_everything_up():
    """One runs the main job, one the tests; each makes its own environment."""
    first, second = [block.text for block in blocks(README) if block.language == "sh"][:2]
    assert all(
        text.startswith("python3 -m venv .venv && ") and text.count("\n") == 1 for text in (first, second)
    )
    assert ".venv/bin/logmfu analyze fixtures/" in first
    assert second.rstrip().endswith(".venv/bin/pytest")


@pytest.fixture
def package(clone: Path) -> Path:
    """The package of docs/parsers.md: its files, and what an installer would write about it."""
    for block in blocks(PARSERS):
        if block.name:
            (clone / block.name).write_text(block.text, encoding="utf-8")
    project = tomllib.loads((clone / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    info = clone / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n", encoding="utf-8"
    )
    points = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(points), encoding="utf-8")
    return clone


@pytest.mark.parametrize(
    "number", runnable(PARSERS), ids=lambda number: f"line-{blocks(PARSERS)[number].line}"
)
def test_package_of_somebody_else(number: int, package: Path, update_docs: bool):
    """Its parser is installed, conforms, is chosen for its log, and the log is accounted for."""
    block = blocks(PARSERS)[number]
    done = run(["bash", "-euo", "pipefail", "-c", block.text], package, PYTHONPATH=str(package))
    assert done.returncode == 0, done.stdout
    if block.shows:
        check_output(PARSERS, block, done.stdout, update_docs)


def test_its_own_test_passes(package: Path):
    """The test that the page suggests passes."""
    code = "import test_ember; test_ember.test_ember_conforms(); print('conforms')"
    done = run([sys.executable, "-c", code], package, PYTHONPATH=str(package))
    assert done.stdout.strip() == "conforms"


def test_extras_of_the_readme_exist():
    """An extra that the README installs is one that the package has."""
    extras = set(re.findall(r"'\.\[(\w+)\]'", README.read_text(encoding="utf-8")))
    assert extras
    assert extras <= set(distribution("logmfu").metadata.get_all("Provides-Extra"))
