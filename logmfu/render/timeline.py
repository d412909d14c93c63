"""What happened when: attempts, first signs, changes and long stalls on one clock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from logmfu.render.quantities import count, duration, plural, words
from logmfu.report import Attempt, Change, Evidence, Incident, Report, Stall

if TYPE_CHECKING:
    import pandas as pd

SAME_TIME_S = 1e-3
"""Times this close are one: they were added up on different ways."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One entry. ``rank`` orders what to leave out last; ``seconds`` is how long it took, where known.

    A ``closing`` entry stands after others of the same second.
    """

    time: float
    what: str
    rank: int
    kind: str = ""
    seconds: float = 0.0
    evidence: tuple[Evidence, ...] = ()
    closing: bool = False


def timeline(report: Report, limit: int) -> tuple[list[Moment], int]:
    """The ``limit`` most telling moments in the order of the clock, and how many were left out."""
    moments = list(_moments(report))
    ranked = sorted(moments, key=lambda moment: (moment.rank, -moment.seconds, moment.time))
    return sorted(ranked[:limit], key=lambda moment: (moment.time, moment.closing)), max(
        0, len(moments) - limit
    )


def _moments(report: Report) -> Iterator[Moment]:
    for attempt in report.attempts:
        rows = report.series.loc[report.series["attempt"] == attempt.number]
        yield from _of_attempt(attempt, rows, report.start)
    for incident in report.incidents:
        yield from _of_incident(incident)
    for change in report.changes:
        yield from _of_change(change, report.start)
    for stall in report.stalls:
        yield from _of_stall(stall)


def _of_attempt(attempt: Attempt, rows: pd.DataFrame, origin: float | None) -> Iterator[Moment]:
    if attempt.start is not None:
        first = "" if attempt.first_step is None else f", first printed step {count(attempt.first_step)}"
        yield Moment(
            attempt.start, f"Attempt {attempt.number} starts{first}", rank=0, evidence=_line(rows.head(1))
        )
        if attempt.catch_up_s is not None and attempt.number > 1:
            at = attempt.start + attempt.catch_up_s
            until = rows.loc[rows["elapsed_s"] <= at - (origin or 0.0) + SAME_TIME_S].tail(1)
            what = f"Attempt {attempt.number} passes the furthest step again"
            yield Moment(at, what, rank=1, evidence=_line(until))
    if attempt.end is not None:
        evidence = attempt.evidence or _line(rows.tail(1))
        yield Moment(attempt.end, _ending(attempt), rank=0, evidence=evidence, closing=True)


def _line(rows: pd.DataFrame) -> tuple[Evidence, ...]:
    """The step line of a table of at most one row."""
    return tuple(
        Evidence(str(path), int(line), "") for path, line in zip(rows["path"], rows["line"], strict=True)
    )


def _ending(attempt: Attempt) -> str:
    last = "" if attempt.last_step is None else f" at step {count(attempt.last_step)}"
    if attempt.exit == "running":
        return f"The log ends while attempt {attempt.number} is running{last}"
    lost = f"; {plural(attempt.lost_steps, 'step')} lost" if attempt.lost_steps else ""
    why = f" ({attempt.exit_text})" if attempt.exit_text else ""
    return f"Attempt {attempt.number} ends{last}: {words(attempt.exit)}{why}{lost}"


def _of_incident(incident: Incident) -> Iterator[Moment]:
    if incident.time is None:
        return
    lead = {"first": "First sign of trouble", "cascade": "Follows", "sign": "Sign"}.get(
        incident.role, "Sign"
    )
    many = f" ({plural(incident.count, 'line')})" if incident.count > 1 else ""
    what = f"{lead}: {words(incident.kind)}{place(incident)}{many}: {incident.text}"
    yield Moment(incident.time, what, rank=0 if incident.role == "first" else 3, evidence=incident.evidence)


def place(incident: Incident) -> str:
    """Where an incident was seen, as the end of a phrase: `` on rank 3, host a``."""
    rank = None if incident.rank is None else f"rank {incident.rank}"
    host = f"host {incident.host}" if incident.host else None
    known = ", ".join(part for part in (rank, host) if part)
    return f" on {known}" if known else ""


def _of_change(change: Change, start: float | None) -> Iterator[Moment]:
    if start is None or change.elapsed_s is None:
        return
    what = what_changed(change)
    yield Moment(start + change.elapsed_s, what, rank=1, evidence=change.evidence)


def what_changed(change: Change) -> str:
    """The change in words, with its step once."""
    if str(change.step) in change.text or count(change.step) in change.text:
        return change.text[:1].upper() + change.text[1:]
    return f"From step {count(change.step)} on: {change.text}"


def _of_stall(stall: Stall) -> Iterator[Moment]:
    if stall.start is None:
        return
    after = "" if stall.step is None else f" after step {count(stall.step)}"
    what = f"{words(stall.kind).capitalize()}{after}: {duration(stall.seconds)}"
    yield Moment(stall.start, what, rank=2, kind=stall.kind, seconds=stall.seconds, evidence=stall.evidence)
