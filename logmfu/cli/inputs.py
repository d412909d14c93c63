"""From the paths of a command line to a run, with a progress bar."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from logmfu.tables import Run

AHEAD = ("logmfu.analysis", "logmfu.redaction", "logmfu.render.terminal")
"""What every command needs after the log is read: loaded while other processes read it, if there are any."""
Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH...", help="File, glob, directory, or - for standard input; several are one run."
    ),
]


def load(paths: Sequence[str], *, parser: str | None) -> Run:
    """Read the logs of one run; say on standard error which parsers are broken."""
    from logmfu.bulk.crew import crew
    from logmfu.cli.progress import progress_bar
    from logmfu.source import open_sources

    sources = open_sources(list(paths), stdin=sys.stdin.buffer)
    with crew(sources) as helpers, progress_bar(sources):
        from logmfu import reading  # takes a while, in which the crew gets ready

        choice = reading.choose(sources, parser=parser)
        for plugin in choice.broken:
            typer.echo(
                f"warning: the parser {plugin.name!r} is broken and left out: {plugin.reason}", err=True
            )
        return reading.read_with(choice.parser, sources, helpers, ahead=AHEAD)


def terminal_width() -> int:
    """Columns of the terminal; 80 where there is none."""
    import shutil

    return shutil.get_terminal_size((80, 24)).columns


def colours(no_color: bool) -> bool:
    """Whether standard output is a terminal that wants colours (https://no-color.org)."""
    import os

    return (
        sys.stdout.isatty()
        and not no_color
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )


def stems(paths: list[str], *, redact: bool = False) -> list[str]:
    """A name for the files of each run: the log's; with the folders above it, or a number, where two are alike.

    Redacted reports are numbered, because a name may be a user's or a host's.
    """
    if redact:
        return ["run"] if len(paths) == 1 else [f"run-{number}" for number, _ in enumerate(paths, start=1)]
    parts = [(*Path(path).parent.parts, _bare(path)) for path in paths]
    names: list[str] = []
    for mine in parts:
        depth = 1
        while depth < len(mine) and sum(other[-depth:] == mine[-depth:] for other in parts) > 1:
            depth += 1
        name = "-".join(part for part in mine[-depth:] if part.strip("/."))
        name, number = name or "run", 1
        while name in names:
            number += 1
            name = f"{mine[-1]}-{number}"
        names.append(name)
    return names


def _bare(path: str) -> str:
    return "stdin" if path == "-" else Path(path).name.removesuffix(Path(path).suffix) or "run"
