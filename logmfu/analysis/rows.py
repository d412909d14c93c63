"""Rows of the event and timer tables as plain values: ``None`` where the log says nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from logmfu.analysis.rates import column
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
    longest_s: float
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


class Timers:
    """Timers with a duration, in the order of the log: as columns, and as rows where somebody looks at each."""

    def __init__(self, frame: pd.DataFrame) -> None:
        longest, seconds = column(frame, "max_s"), column(frame, "seconds")
        longest = np.where(np.isnan(longest), seconds, longest)
        self._rows = np.flatnonzero(~np.isnan(longest))
        self._frame = frame
        self.longest_s = longest[self._rows]
        """The maximum over ranks where a range is printed."""
        self.shortest_s = column(frame, "min_s")[self._rows]
        self.step = column(frame, "step")[self._rows]
        self.attempt = frame["attempt"].to_numpy(dtype=np.int64)[self._rows]
        codes, names = pd.factorize(frame["timer"].to_numpy(dtype=object)[self._rows])
        self.code, self.names = codes, tuple(map(str, names))
        """The name of each, as its position among the names, which are in the order of their first lines."""

    def __len__(self) -> int:
        return len(self.code)

    def which(self, wanted: Callable[[str], bool]) -> npt.NDArray[np.intp]:
        """Positions of the timers with such names."""
        chosen = np.array([wanted(name) for name in self.names], dtype=bool)
        return np.flatnonzero(chosen[self.code]) if chosen.any() else np.empty(0, dtype=np.intp)

    def rows(self, positions: npt.NDArray[np.intp]) -> list[Timer]:
        """Some of them."""
        frame = self._frame.take(self._rows[positions])
        columns = [
            _values(frame, "timer"), _whole(frame, "step"), self.longest_s[positions].tolist(),
            _whole(frame, "attempt"), _values(frame, "path"), _whole(frame, "line"),
        ]  # fmt: skip
        return [Timer(*values) for values in zip(*columns, strict=True)]


def _values(frame: pd.DataFrame, name: str) -> list[Any]:
    if name not in frame:
        return [None] * len(frame)
    column = frame[name]
    return column.astype(object).where(column.notna(), None).tolist()


def _whole(frame: pd.DataFrame, name: str) -> list[Any]:
    return [None if value is None else int(value) for value in _values(frame, name)]
