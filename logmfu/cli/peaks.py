"""``logmfu peaks``: the table of accelerator peaks."""

from __future__ import annotations

from typing import Annotated

import typer

from logmfu.cli.options import Format
from logmfu.errors import MissingFactError


def peaks(
    name: Annotated[str | None, typer.Argument(help="Accelerator, as logs print it.")] = None,
    precision: Annotated[str | None, typer.Option(help="Only this precision.")] = None,
    form: Annotated[Format, typer.Option("--format", help="json, csv or table.")] = Format.table,
) -> None:
    """Dense TFLOP/s per device and precision, with what was seen for each number."""
    from logmfu import hardware
    from logmfu.render import evaluation

    device = hardware.find(name) if name else None
    if name and device is None:
        raise MissingFactError(hardware.explain(name), hint="logmfu peaks, or --peak-tflops X")
    rows = [
        row
        for row in hardware.rows()
        if device in {None, row.device}
        and (precision is None or row.precision == hardware.precision_of(precision))
    ]
    if not rows:
        raise MissingFactError(
            f"no {precision} peak is known" + (f" for {device}" if device else ""), hint="logmfu peaks"
        )
    typer.echo(evaluation.peaks(rows, form.value, names=hardware.aliases(device) if device else ()))
