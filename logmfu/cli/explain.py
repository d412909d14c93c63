"""``logmfu explain``: how a log is read."""

from __future__ import annotations

from typing import Annotated

import typer

from logmfu.cli.inputs import Paths


def explain(
    paths: Paths,
    parser: Annotated[
        str | None, typer.Option(metavar="NAME", help="Explain this parser instead of the best one.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every fact, the raw arguments too.")] = False,
) -> None:
    """Which parser reads the log and why, what was read where, and which lines were not understood."""
    import sys

    from logmfu import reading
    from logmfu.bulk.crew import crew
    from logmfu.masking import mask
    from logmfu.render import explanation
    from logmfu.source import open_sources

    sources = open_sources(list(paths), stdin=sys.stdin.buffer)
    with crew(sources) as helpers:
        choice = reading.choose(sources, parser=parser)
        run = reading.read_with(choice.parser, sources, helpers)
    for line in explanation.render(choice, run, every=every).splitlines():
        typer.echo(mask(line))
