"""``logmfu parsers``: what can be read."""

from __future__ import annotations

from typing import Annotated

import typer


def parsers(
    check: Annotated[
        bool, typer.Option("--check", help="Prove each parser against its own samples.")
    ] = False,
) -> None:
    """List the installed parsers."""
    from logmfu import registry

    known, broken = registry.load()
    failed = False
    for name, parser in known.items():
        typer.echo(f"{name:<20} {parser.title}")
        if check:
            from logmfu.testing import problems

            found = problems(parser)
            failed |= bool(found)
            typer.echo("".join(f"  problem: {text}\n" for text in found) or "  no problems\n", nl=False)
    for plugin in broken:
        typer.echo(f"{plugin.name:<20} broken: {plugin.reason}", err=True)
    if failed or (check and broken):
        raise typer.Exit(1)
