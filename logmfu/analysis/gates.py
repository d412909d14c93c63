"""Gates: what the caller asked to hold."""

from __future__ import annotations

from collections.abc import Sequence

from logmfu.analysis.options import Options
from logmfu.report import Attempt, Incident, Stall


def tripped(
    options: Options, median: float | None, why_not: str | None,
    found: Sequence[Stall], trouble: Sequence[Incident], tries: Sequence[Attempt],
) -> tuple[str, ...]:  # fmt: skip
    """Gates that were asked for and not met. An MFU that is not known does not pass."""
    out = []
    if options.min_mfu is not None and (median is None or median < options.min_mfu):
        shown = f"not known ({why_not})" if median is None else f"{100 * median:.1f} %"
        out.append(f"MFU is {shown}, --min-mfu asks for {100 * options.min_mfu:.1f} %")
    for kind in options.fail_on:
        seen = (
            sum(stall.kind == kind for stall in found),
            sum(incident.kind == kind for incident in trouble),
            sum(attempt.exit == kind for attempt in tries),
        )
        count = max(seen)  # a hang is a stall, an incident and an exit at once
        if count:
            out.append(
                f"{kind} was found {count} {'time' if count == 1 else 'times'}, --fail-on asks for none"
            )
    return tuple(out)
