"""``logmfu schema``: columns, events, facts, and the JSON report's schema."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Part(StrEnum):
    """What to list."""

    steps = "steps"
    events = "events"
    timers = "timers"
    facts = "facts"
    report = "report"


def schema(
    part: Annotated[
        Part | None, typer.Argument(help="Only this; `report` is the JSON schema of the report.")
    ] = None,
) -> None:
    """List the columns of the tables, event and fact names; or print the JSON report's schema."""
    from logmfu.render import columns

    typer.echo(columns.render(part.value if part else None), nl=False)
