"""Fewer points for drawing, without losing a single extreme."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]
Positions = npt.NDArray[np.intp]
_VISIBLE = 0.001
"""Share of the whole time below which a pause is not wide enough to see."""
_RESOLUTION_S = 1.5
"""Time stamps are often whole seconds: a shorter pause may be rounding."""


@dataclass(frozen=True, slots=True)
class Band:
    """A series in buckets: where each begins, and lowest, middle and highest value in it."""

    x: Floats
    low: Floats
    middle: Floats
    high: Floats


def floats(column: pd.Series[Any]) -> Floats:
    """The column's numbers, missing ones as NaN."""
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def begins(table: pd.DataFrame) -> dict[int, float]:
    """Rows that do not follow on the row before: their position, and when their own steps began.

    These are the first rows of attempts and the rows after a visible pause, where the printed step
    times do not reach back to the line before. Elapsed seconds.
    """
    elapsed, took = floats(table["elapsed_s"]), floats(table["step_time_s"]) * floats(table["iterations"])
    known = elapsed[np.isfinite(elapsed)]
    if not len(known):
        return {}
    before = np.concatenate([[0.0], elapsed[:-1]])
    reach = elapsed - took
    start = np.where(np.isfinite(reach), np.fmax(reach, np.fmin(before, elapsed)), elapsed)
    paused = reach - before > max((known.max() - known.min()) * _VISIBLE, _RESOLUTION_S)
    first = np.concatenate([[True], np.diff(floats(table["attempt"])) != 0])
    return {int(n): float(start[n]) for n in np.flatnonzero((paused | first) & np.isfinite(start))}


def kept_rows(
    table: pd.DataFrame, columns: Sequence[str], limit: int, *, also: Sequence[int] = ()
) -> Positions:
    """Positions of about ``limit`` rows to draw, in order.

    Of every stretch of rows the lowest and highest value of each column stay; so do the first and
    last row of every attempt and of every run of lost steps, and the rows ``also`` asked for.
    """
    rows = len(table)
    if rows <= limit:
        return np.arange(rows)
    size = int(np.ceil(rows * (2 * len(columns) + 1) / limit))
    starts = np.arange(0, rows, size)
    picked = [starts, np.array([rows - 1]), _borders(table), np.array(also, dtype=np.intp)]
    for column in columns:
        picked += _extremes(floats(table[column]), size)
    return np.unique(np.concatenate(picked))


def _borders(table: pd.DataFrame) -> Positions:
    """Rows beside a change of attempt or of being lost."""
    state = np.asarray(table["attempt"], dtype=np.int64) * 2 + np.asarray(table["lost"], dtype=bool)
    after = np.flatnonzero(np.diff(state)) + 1
    return np.concatenate([after - 1, after])


def _extremes(values: Floats, size: int) -> list[Positions]:
    """Positions of the lowest and the highest value of every ``size`` values."""
    found = []
    for filler, pick in ((np.inf, np.argmin), (-np.inf, np.argmax)):
        table = _buckets(np.where(np.isnan(values), filler, values), size, filler)
        positions = pick(table, axis=1) + np.arange(len(table)) * size
        positions = positions[positions < len(values)]
        found.append(positions[~np.isnan(values[positions])])
    return found


def _buckets(values: Floats, size: int, filler: float) -> Floats:
    pad = -len(values) % size
    return np.pad(values, (0, pad), constant_values=filler).reshape(-1, size)


def band(x: Floats, y: Floats, buckets: int) -> Band:
    """The series in at most ``buckets`` buckets; every extreme is some bucket's low or high."""
    known = ~np.isnan(y)
    x, y = x[known], y[known]
    size = max(1, int(np.ceil(len(y) / max(1, buckets))))
    if size == 1:
        return Band(x, y, y, y)
    starts = np.arange(0, len(y), size)
    return Band(
        x[starts],
        np.minimum.reduceat(y, starts),
        np.array([np.median(y[start : start + size]) for start in starts]),
        np.maximum.reduceat(y, starts),
    )


def runs(*columns: Any) -> list[slice]:
    """Stretches of rows in which none of the columns changes."""
    changed = np.zeros(len(columns[0]), dtype=bool)
    for column in columns:
        values = np.asarray(column)
        changed[1:] |= values[1:] != values[:-1]
    borders = [0, *np.flatnonzero(changed).tolist(), len(changed)]
    return [slice(a, b) for a, b in pairwise(borders) if b > a]


def spans_decades(values: Floats) -> bool:
    """Whether the highest value would squash all others on a linear axis."""
    known = values[np.isfinite(values)]
    return bool(len(known)) and bool(known.min() > 0) and bool(known.max() > 8 * np.median(known))
