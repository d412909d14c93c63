"""Where the intervals lie on the wall clock: by their time stamps, else one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Placed:
    """Start and end of every interval and attempt, in seconds since the run's first time stamp."""

    start_s: Array
    end_s: Array
    starts: tuple[float, ...]
    ends: tuple[float, ...]
    jumps: int
    """How often the log's clock went back (zone change, clock skew) and was bridged by the step clock."""


def rebuilt(attempt: npt.NDArray[np.int64], printed: Array, attempts: int) -> Placed:
    """No time stamps: attempts one after the other, each as long as its printed steps."""
    seconds = np.maximum(np.nan_to_num(printed), 0.0)
    end = np.cumsum(seconds)
    starts, ends, at = [], [], 0.0
    for number in range(1, attempts + 1):
        mine = end[attempt == number]
        starts.append(at)
        at = float(mine[-1]) if len(mine) else at
        ends.append(at)
    return Placed(end - seconds, end, tuple(starts), tuple(ends), 0)


def stamped(
    attempt: npt.NDArray[np.int64],
    stamp: Array,
    printed: Array,
    spans: list[tuple[float, float]],
    *,
    begun: Mapping[int, float],
    tolerance_s: float,
) -> Placed:
    """Place the intervals by their time stamps.

    ``spans``: first and last stamp of each attempt; ``begun``: start of its training loop where step
    lines have no stamp and are placed from there by their printed time.

    Stamps that go back by less than ``tolerance_s`` are rounding; by more, the clock was set back, and
    everything after is moved on by what the step clock says passed.
    """
    start = np.empty(len(stamp))
    parts, starts, ends = [], [], []
    shift, before, jumps = 0.0, 0.0, 0
    borders = np.searchsorted(attempt, np.arange(1, len(spans) + 2))
    for number, (first, last) in enumerate(spans, start=1):
        rows = slice(borders[number - 1], borders[number])
        begin = first + shift
        if begin < before:
            jumps += begin < before - tolerance_s
            shift += before - begin
            begin = before
        at = begin
        if rows.stop > rows.start:
            anchor = max(begin, begun.get(number, begin - shift) + shift)
            moved_stamp = stamp[rows] + shift if shift else stamp[rows]
            end, moved, more = _ends(moved_stamp, printed[rows], anchor, tolerance_s)
            start[rows.start], start[rows.start + 1 : rows.stop] = begin, end[:-1]
            shift, jumps, at = shift + moved, jumps + more, float(end[-1])
            parts.append(end)
        starts.append(begin)
        before = max(at, last + shift, begin)
        ends.append(before)
    end = parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else start
    return Placed(start, end, tuple(starts), tuple(ends), int(jumps))


def _ends(stamp: Array, printed: Array, anchor: float, tolerance_s: float) -> tuple[Array, float, int]:
    """End of each interval of an attempt, how far its clock had to be moved on, and how often."""
    if stamp[0] >= anchor and np.all(stamp[1:] >= stamp[:-1]):
        return stamp, 0.0, 0
    highest = np.maximum.accumulate(np.concatenate([[anchor], stamp]))[1:]
    if np.isfinite(stamp).all() and (highest - stamp <= tolerance_s).all():
        return highest, 0.0, 0
    ends, at, shift, jumps = np.empty(len(stamp)), anchor, 0.0, 0
    for row, (here, took) in enumerate(zip(stamp + 0.0, np.nan_to_num(printed), strict=True)):
        moved = here + shift
        if np.isnan(moved):
            moved = at + took
        elif moved < at - tolerance_s:
            jumps += 1
            shift += at + took - moved
            moved = at + took
        at = ends[row] = max(at, moved)
    return ends, shift, jumps
