"""Failure lines as incidents: one for each kind and attempt, the first symptom told from the cascade."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from logmfu.analysis.marks import Mark
from logmfu.analysis.rows import Event
from logmfu.report import Incident
from logmfu.schema import INCIDENTS

WATCHDOG = (
    "a collective was stuck this long when the watchdog ended it; who was missing first is not in that line"
)
CASCADE = ("teardown", "symptom")


def incidents(events: Sequence[Event], *, origin: float | None) -> tuple[Incident, ...]:
    """Incidents in the order of the log.

    The first line of trouble in an attempt is ``first`` unless it is of a kind that always follows
    from something else; everything after a first one is ``cascade``.
    """
    found: list[Incident] = []
    groups: dict[tuple[int, str], list[Event]] = {}
    for event in events:
        if event.event in INCIDENTS:
            groups.setdefault((event.attempt, event.event), []).append(event)
    firsts: set[int] = set()
    for (attempt, kind), lines in groups.items():
        first = _earliest(lines)
        role = _role(first, attempt in firsts)
        firsts.add(attempt)
        found.append(
            Incident(
                kind=kind,
                time=None if origin is None or first.at_s is None else origin + first.at_s,
                rank=first.rank,
                host=first.host,
                step=first.step,
                text=first.text,
                role=role,
                attempt=attempt,
                evidence=tuple(line.evidence for line in _distinct(lines))[:4],
                count=len(lines),
                elapsed_s=first.at_s,
            )
        )
    return tuple(found)


def _earliest(lines: Sequence[Event]) -> Event:
    stamped = [line for line in lines if line.at_s is not None]
    return min(stamped, key=lambda line: line.at_s or 0.0) if stamped else lines[0]


def _role(event: Event, trouble_before: bool) -> str:
    if trouble_before:
        return "cascade"
    return "sign" if event.details.get("role") in CASCADE else "first"


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
