"""Rows of the event and timer tables as plain values: ``None`` where the log says nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd

from logmfu.report import Evidence


class Event(NamedTuple):
    """One row of ``run.events``; ``at_s`` is seconds since the run's first time stamp."""

    event: str
    step: int | None
    at_s: float | None
    seconds: float | None
    rank: int | None
    host: str | None
    text: str
    details: Mapping[str, Any]
    attempt: int
    path: str
    line: int
    silent_since: float | None
    """Seconds since the run's start of the last stamped line before it; failure and start lines only."""

    @property
    def evidence(self) -> Evidence:
        """The line itself."""
        return Evidence(self.path, self.line, self.text)


class Timer(NamedTuple):
    """One row of ``run.timers``; ``longest_s`` is the maximum over ranks where a range is printed."""

    timer: str
    step: int | None
    shortest_s: float | None
    longest_s: float | None
    attempt: int
    path: str
    line: int

    @property
    def evidence(self) -> Evidence:
        """The line, in words."""
        return Evidence(self.path, self.line, f"{self.timer}: {self.longest_s:.3f} s")


def events(frame: pd.DataFrame) -> list[Event]:
    """All events, in the order of the log."""
    details = [value if isinstance(value, Mapping) else {} for value in _values(frame, "details")]
    columns = [
        _values(frame, "event"), _whole(frame, "step"), _values(frame, "elapsed_s"), _values(frame, "seconds"),
        _whole(frame, "rank"), _values(frame, "host"), [text or "" for text in _values(frame, "text")], details,
        _whole(frame, "attempt"), _values(frame, "path"), _whole(frame, "line"), _values(frame, "silent_since"),
    ]  # fmt: skip
    return [Event(*values) for values in zip(*columns, strict=True)]


def timers(frame: pd.DataFrame) -> list[Timer]:
    """Timers with a duration, in the order of the log."""
    seconds, longest = _values(frame, "seconds"), _values(frame, "max_s")
    best = [high if high is not None else value for high, value in zip(longest, seconds, strict=True)]
    columns = [
        _values(frame, "timer"), _whole(frame, "step"), _values(frame, "min_s"), best,
        _whole(frame, "attempt"), _values(frame, "path"), _whole(frame, "line"),
    ]  # fmt: skip
    return [Timer(*values) for values in zip(*columns, strict=True) if values[3] is not None]


def _values(frame: pd.DataFrame, name: str) -> list[Any]:
    if name not in frame:
        return [None] * len(frame)
    column = frame[name]
    return column.astype(object).where(column.notna(), None).tolist()


def _whole(frame: pd.DataFrame, name: str) -> list[Any]:
    return [None if value is None else int(value) for value in _values(frame, name)]
