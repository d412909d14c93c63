"""Failure lines as incidents: one for each kind and attempt, the first symptom told from the cascade."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from logmfu.analysis.intervals import Timeline
from logmfu.analysis.ledger import Signs
from logmfu.analysis.marks import Mark
from logmfu.analysis.rows import Event
from logmfu.report import Incident
from logmfu.schema import INCIDENTS

WATCHDOG = (
    "a collective was stuck this long when the watchdog ended it; who was missing first is not in that line"
)


def incidents(events: Sequence[Event], *, origin: float | None) -> tuple[Incident, ...]:
    """Incidents in the order of the log.

    Of each attempt one is ``first``: the earliest line that names a cause, if any does; else the earliest
    sign is only a ``sign``. The others are its ``cascade``.
    """
    groups: dict[tuple[int, str], list[Event]] = {}
    for event in events:
        if event.event in INCIDENTS:
            groups.setdefault((event.attempt, event.event), []).append(event)
    leading = _leading(groups)
    found: list[Incident] = []
    for (attempt, kind), lines in groups.items():
        first = _earliest(lines)
        found.append(
            Incident(
                kind=kind,
                time=None if origin is None or first.at_s is None else origin + first.at_s,
                rank=first.rank,
                host=first.host,
                step=first.step,
                text=first.text,
                role=_role(first) if leading[attempt] == kind else "cascade",
                attempt=attempt,
                evidence=tuple(line.evidence for line in _distinct(lines))[:4],
                count=len(lines),
                elapsed_s=first.at_s,
            )
        )
    return tuple(found)


def _leading(groups: Mapping[tuple[int, str], Sequence[Event]]) -> dict[int, str]:
    """Kind of incident that leads each attempt: the most telling role, and of equals the earliest line."""
    best: dict[int, tuple[tuple[int, int], str]] = {}
    for (attempt, kind), lines in groups.items():
        rank = (min(_telling(line) for line in lines), lines[0].line)
        if attempt not in best or rank < best[attempt][0]:
            best[attempt] = (rank, kind)
    return {attempt: kind for attempt, (_, kind) in best.items()}


def _telling(event: Event) -> int:
    """Causes first, then exceptions, then symptoms; the head of a traceback and teardown tell nothing."""
    role = event.details.get("role")
    if event.event == "traceback" or role == "teardown":
        return 3
    return 0 if role == "cause" else 1 if event.event == "exception" else 2


def _earliest(lines: Sequence[Event]) -> Event:
    stamped = [line for line in lines if line.at_s is not None]
    return min(stamped, key=lambda line: line.at_s or 0.0) if stamped else lines[0]


def _role(event: Event) -> str:
    return "first" if _telling(event) <= 1 else "sign"


def _distinct(lines: Iterable[Event]) -> list[Event]:
    """One line per rank: a cascade of a thousand equal lines is one piece of evidence."""
    return list({(line.rank, line.host): line for line in reversed(list(lines))}.values())[::-1]


def watchdog_hangs(events: Iterable[Event]) -> dict[int, Mark]:
    """Per attempt, the longest time a watchdog says a collective had been running: the hang it ended."""
    hangs: dict[int, Mark] = {}
    for event in events:
        ran = event.details.get("ran_for_s")
        if event.event != "nccl_timeout" or not isinstance(ran, int | float):
            continue
        before = hangs.get(event.attempt)
        if before is None or before.seconds is None or ran > before.seconds:
            hangs[event.attempt] = Mark(
                "hang",
                event.attempt,
                "after",
                -1,
                event.step,
                float(ran),
                None,
                (event.evidence,),
                WATCHDOG,
            )
    return hangs


def signs(events: Sequence[Event], line: Timeline) -> dict[int, Signs]:
    """Per attempt: when its training loop started, when the first failure and the first good end were printed, and a watchdog's word."""
    hangs = watchdog_hangs(events)
    found = {}
    for number in range(1, max(len(line.starts), 1) + 1):
        mine = [event for event in events if event.attempt == number and event.at_s is not None]
        stepped = line.end_s[line.rows(number)]
        last = float(stepped[-1]) if len(stepped) else 0.0
        begun = [event.at_s for event in mine if event.event == "training_start"]
        failed = [event.at_s for event in mine if event.event in INCIDENTS and (event.at_s or 0.0) >= last]
        closed = [
            event.at_s for event in mine if event.event == "process_exit" and (event.at_s or 0.0) >= last
        ]
        found[number] = Signs(
            hangs.get(number),
            max(filter(None, begun), default=None),
            min(filter(None, failed), default=None),
            min(filter(None, closed), default=None),
        )
    return found
