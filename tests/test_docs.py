"""Generated pages say what the program says: ``pytest --update-docs`` rewrites them, the diff is the review."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from typer.models import ArgumentInfo

from logmfu import schema
from logmfu.cli.app import app
from logmfu.report import EXITS, LEDGER_KINDS
from logmfu.schema import Column

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
COMMANDS = {command.callback.__name__: command.callback for command in app.registered_commands}


def commands_page() -> str:
    """Every command: its text, its arguments, its options."""
    parts = ["# Commands", "", "What `logmfu COMMAND --help` says. Made by `pytest --update-docs`."]
    for name, command in COMMANDS.items():
        parts += [
            "",
            f"## logmfu {name}",
            "",
            *paragraphs(inspect.getdoc(command)),
            *parameters(command),
        ]
    return "\n".join(parts) + "\n"


def paragraphs(text: str) -> Iterator[str]:
    """Paragraphs of a help text; those that keep their line breaks become code."""
    for number, paragraph in enumerate(re.split(r"\n{2,}", text)):
        kept = paragraph.startswith("\b")
        yield from [""] * bool(number)
        yield from (["```text", *paragraph.splitlines()[1:], "```"] if kept else paragraph.splitlines())


def taken(command: Callable[..., None]) -> Iterator[tuple[inspect.Parameter, Any]]:
    """What a command takes: each parameter with what Typer was told about it."""
    hints = get_type_hints(command, include_extras=True)
    for name, parameter in inspect.signature(command).parameters.items():
        yield parameter, hints[name].__metadata__[0]


def parameters(command: Callable[..., None]) -> Iterator[str]:
    """Rows of a table of arguments and options."""
    yield from ("", "| argument or option | meaning |", "|---|---|")
    for parameter, told in taken(command):
        plain = parameter.name.replace("_", "-")
        if isinstance(told, ArgumentInfo):
            yield f"| `{told.metavar or plain.upper()}` | {cell(told.help)} |"
            continue
        # Inside Annotated the first name is where Typer otherwise has the default.
        first = [told.default] if isinstance(told.default, str) else []
        names = ", ".join(f"`{name}`" for name in [*first, *(told.param_decls or ())] or [f"--{plain}"])
        default = getattr(parameter.default, "value", parameter.default)
        shown = f" (default: {default})" if default not in (None, False, True) else ""
        yield f"| {names} {cell(told.metavar or '')} | {cell(told.help)}{shown} |".replace("  |", " |")


def tables_page() -> str:
    """The schema: columns, events, facts, classes."""
    parts = [
        "# Tables",
        "",
        "What `run.steps`, `run.events`, `run.timers` and `run.facts` hold. Made from `logmfu.schema` by",
        "`pytest --update-docs`; `logmfu schema` prints the same. Times are the log's own clock, without a zone.",
        "",
        "`run.steps` has one row per printed step and attempt. Columns ending in `_logged` are what the program printed;",
        "what `logmfu` computes never ends so. A field nobody declared is kept as a column under its own name.",
        *section("`run.steps`, always there", columns(schema.STEPS)),
        *section("`run.steps`, when the log prints them", columns(schema.MORE_STEPS)),
        *section("`run.events`", columns(schema.EVENT_COLUMNS)),
        *section("Event names", names("event", schema.EVENTS, also=incident)),
        *section("`run.timers`", columns(schema.TIMER_COLUMNS)),
        *section("`run.facts`", names("fact", schema.FACTS)),
        "",
        "Raw arguments are kept beside them as `arg.<name>`.",
        *section("Classes of the ledger", names("class", LEDGER_KINDS)),
        "",
        "## How an attempt can end",
        "",
        ", ".join(f"`{way}`" for way in EXITS) + ".",
    ]
    return "\n".join(parts) + "\n"


def section(title: str, rows: Iterator[str]) -> list[str]:
    """A heading and a table."""
    return ["", f"## {title}", "", *rows]


def columns(table: Sequence[Column]) -> Iterator[str]:
    """Rows of a table of columns."""
    yield from ("| column | type | unit | meaning |", "|---|---|---|---|")
    for column in table:
        yield f"| `{column.name}` | {column.dtype} | {column.unit} | {cell(column.meaning)} |"


def names(what: str, table: Mapping[str, str], *, also=lambda name: "") -> Iterator[str]:
    """Rows of a table of names."""
    yield from (f"| {what} | meaning |", "|---|---|")
    for name, meaning in table.items():
        yield f"| `{name}`{also(name)} | {cell(meaning)} |"


def incident(event: str) -> str:
    """A mark for the events that say something went wrong."""
    return " (incident)" if event in schema.INCIDENTS else ""


def cell(text: str) -> str:
    """Text that does not break a row."""
    return text.replace("|", "\\|")


PAGES = {"commands.md": commands_page, "tables.md": tables_page}


@pytest.mark.parametrize("page", PAGES)
def test_generated_page_is_up_to_date(page: str, update_docs: bool):
    """The page is what the program says now."""
    made = PAGES[page]()
    if update_docs:
        (DOCS / page).write_text(made, encoding="utf-8")
    assert (DOCS / page).read_text(encoding="utf-8") == made


@pytest.mark.parametrize("name", COMMANDS)
def test_command_is_explained(name: str):
    """A sentence about the command and one about everything it takes; the README or the page of commands names it."""
    assert inspect.getdoc(COMMANDS[name])[0].isupper()
    assert not [parameter.name for parameter, told in taken(COMMANDS[name]) if not told.help]
    known = (ROOT / "README.md").read_text(encoding="utf-8") + (DOCS / "commands.md").read_text(
        encoding="utf-8"
    )
    assert f"logmfu {name}" in known


def links() -> Iterator[tuple[Path, str]]:
    """Links of the README and the pages to files of the repository."""
    for page in [ROOT / "README.md", *DOCS.glob("*.md")]:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if "://" not in target:
                yield page, target


def test_links_lead_somewhere():
    """A file that is linked exists, and a heading that is linked too."""
    broken = []
    for page, target in links():
        name, _, anchor = target.partition("#")
        file = (page.parent / name) if name else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(f"{page.name}: {target}")
    assert not broken


def anchors(page: Path) -> set[str]:
    """Anchors of headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_every_page_is_on_the_map():
    """docs/index.md links every page beside it."""
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    assert {page.name for page in DOCS.glob("*.md")} - {"index.md"} <= set(
        re.findall(r"\]\(([\w-]+\.md)", text)
    )
