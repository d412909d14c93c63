"""Lines that name a pause, and where on the timeline they stand.

A mark says *what* (checkpoint, evaluation ...), in which interval, and, when a timer or two time stamps
say it, for how long. A mark without a duration is sized from the gap it stands in.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal, TypeVar

import numpy as np

from logmfu.analysis.intervals import Timeline
from logmfu.analysis.rows import Event, Timers
from logmfu.report import Evidence

Place = Literal["interval", "before", "after"]
Row = TypeVar("Row")
BEFORE: tuple[Place, int] = ("before", -1)

DATA_WORDS = ("batch-generator", "batch-input", "data-loading", "dataloader", "data-wait", "load-batch")
EVIDENCE_LINES = 4

MARKING = {
    "eval_start": "evaluation",
    "eval_end": "evaluation",
    "load_start": "restore",
    "load_end": "restore",
    "gc": "gc",
    "profiler": "slow_steps",
    "memory_pressure": "slow_steps",
}
"""Events that name a pause beside the saves, and the ledger class they name."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One named pause. ``row``: the interval it stands in; ``before``/``after`` the steps of its attempt."""

    kind: str
    attempt: int
    place: Place
    row: int
    step: int | None
    seconds: float | None
    """Measured duration."""
    start_s: float | None
    evidence: tuple[Evidence, ...]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Save:
    """One checkpoint save."""

    attempt: int
    step: int | None
    start_s: float | None
    scheduled_s: float | None
    end_s: float | None
    """When it was announced complete: from then on it is durable."""
    started: bool
    complete: bool
    asynchronous: bool
    evidence: tuple[Evidence, ...]

    @property
    def blocking_s(self) -> float | None:
        """How long training stood still, as far as two time stamps say it."""
        until = self.scheduled_s if self.asynchronous else self.end_s
        return None if until is None or self.start_s is None else max(until - self.start_s, 0.0)


@lru_cache(maxsize=1024)
def timer_kind(name: str) -> str | None:
    """Ledger class of a timer that measures a pause, else ``None``."""
    plain = spelled(name)
    if "checkpoint" in plain:
        return "restore" if "load" in plain else "checkpoint" if "save" in plain else None
    return "evaluation" if "evaluat" in plain else None


@lru_cache(maxsize=1024)
def is_data_timer(name: str) -> bool:
    """Whether a timer measures the wait for the next batch."""
    plain = spelled(name)
    return any(word in plain for word in DATA_WORDS)


def spelled(name: str) -> str:
    """A timer's name with small letters and dashes, as names are compared."""
    return name.lower().replace("_", "-").replace(" ", "-")


class Places:
    """Finds the interval something stands in, by the last step before it."""

    def __init__(self, line: Timeline) -> None:
        self._line = line
        self._rows = cache(line.rows)

    def find(self, attempt: int, step: float | None) -> tuple[Place, int]:
        """Place and row for what happened after ``step`` was done (``None``: before all)."""
        rows = self._rows(attempt)
        steps = self._line.step[rows]
        if not len(steps):
            return "before", -1
        if step is None or step < steps[0]:
            return "interval" if self._line.going_on and attempt == 1 else "before", rows.start
        at = rows.start + int(np.searchsorted(steps, step, side="right"))
        return ("after", rows.stop - 1) if at >= rows.stop else ("interval", at)

    def ending_at(self, attempt: int, step: float | None) -> int | None:
        """Row of the interval that ends at ``step``: where a per-step timer belongs."""
        if step is None:
            return None
        rows = self._rows(attempt)
        at = rows.start + int(np.searchsorted(self._line.step[rows], step, side="left"))
        return at if at < rows.stop and self._line.step[at] == step else None


def saves(events: Iterable[Event]) -> list[Save]:
    """Checkpoint saves, put together from their start, hand-over and end lines."""
    about = (e for e in events if e.event in ("save_start", "save_scheduled", "save_end", "save_failed"))
    found: list[Save] = []
    for lines in _grouped(about, lambda event: (event.attempt, event.step)).values():
        named = {
            name: [e for e in lines if e.event == name]
            for name in ("save_start", "save_scheduled", "save_end")
        }
        found.append(
            Save(
                attempt=lines[0].attempt,
                step=lines[0].step,
                start_s=_time(named["save_start"], min),
                scheduled_s=_time(named["save_scheduled"], max),
                end_s=_time(named["save_end"], max),
                started=bool(named["save_start"]),
                complete=bool(named["save_end"]),
                asynchronous=bool(named["save_scheduled"]),
                evidence=_evidence(lines),
            )
        )
    return found


def pause_marks(
    line: Timeline, events: Iterable[Event], timers: Timers, found: Iterable[Save]
) -> list[Mark]:
    """All marks of a run: saves, evaluations, loads, garbage collections, profiler traces."""
    places = Places(line)
    marks = [*_save_marks(found, places), *_event_marks(events, places), *_timer_marks(timers, places)]
    return sorted(marks, key=lambda mark: (mark.attempt, mark.row))


def _grouped(rows: Iterable[Row], key: Callable[[Row], Hashable]) -> dict[Hashable, list[Row]]:
    groups: dict[Hashable, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def _evidence(lines: Iterable[Event]) -> tuple[Evidence, ...]:
    return tuple(event.evidence for event in lines)[:EVIDENCE_LINES]


def _time(lines: Iterable[Event], pick: Callable[[list[float]], float]) -> float | None:
    times = [event.at_s for event in lines if event.at_s is not None]
    return pick(times) if times else None


def _save_marks(found: Iterable[Save], places: Places) -> Iterator[Mark]:
    for save in found:
        if save.started or not save.asynchronous:
            place, row = places.find(save.attempt, save.step)
            text = "asynchronous save" if save.asynchronous else "save"
            yield Mark(
                "checkpoint",
                save.attempt,
                place,
                row,
                save.step,
                save.blocking_s,
                save.start_s,
                save.evidence,
                text,
            )


def _event_marks(events: Iterable[Event], places: Places) -> Iterator[Mark]:
    about = (event for event in events if event.event in MARKING)
    for lines in _grouped(about, lambda e: (e.attempt, e.step, MARKING[e.event])).values():
        first = lines[0]
        kind = MARKING[first.event]
        place, row = BEFORE if kind == "restore" else places.find(first.attempt, first.step)
        yield Mark(
            kind, first.attempt, place, row, first.step, _measured(lines), _time(lines, min), _evidence(lines), first.event
        )  # fmt: skip


def _measured(lines: list[Event]) -> float | None:
    """Seconds that lines about one pause state, else the time from its first to its last line."""
    stated = [event.seconds for event in lines if event.seconds is not None]
    if stated:
        return max(stated)
    begin, end = _time(lines, min), _time(lines, max)
    several = len({event.event for event in lines}) > 1
    return end - begin if several and begin is not None and end is not None else None


def _timer_marks(timers: Timers, places: Places) -> Iterator[Mark]:
    for timer in timers.rows(timers.which(lambda name: timer_kind(name) is not None)):
        kind = timer_kind(timer.timer) or ""
        place, row = BEFORE if kind == "restore" else places.find(timer.attempt, timer.step)
        yield Mark(
            kind, timer.attempt, place, row, timer.step, timer.longest_s, None, (timer.evidence,), f"timer {timer.timer}"
        )  # fmt: skip
