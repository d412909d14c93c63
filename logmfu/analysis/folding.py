"""Do the long intervals of a run come back at one period of steps? The run is folded on candidate periods.

A *grid* is every ``period``-th step from a phase on. The intervals on it are held against all others: were
the long ones spread by chance, how likely would so many lie on the best of all the grids there are?
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from logmfu.analysis.intervals import Array, Bools, Whole

Rows = npt.NDArray[np.intp]

DIP_SIGMAS = 4.0
"""Noise a single interval must exceed to count: the fold decides, not the one interval."""
LEAST_HITS = 5
HIT_SHARE = 0.7
"""Part of a grid, or of what is due, that must be hit."""
CHANCE = 1e-3
"""Chance, over all grids of a run, below which a grid is believed."""
ALIKE = 2.0
"""Pauses of one cause differ by less than this factor from their median."""
REACH = 4
"""Periods are read off the distances between a long interval and the next ones, up to this many further on."""
MOST_PERIODS = 100
MOST_DIPS = 5000
"""Bounds the work: long intervals that periods are searched in; what is found is held against all."""


@dataclass(frozen=True, slots=True)
class Fold:
    """The intervals to fold, in order. ``begun`` and ``end``: steps, from an origin that the grid shares."""

    begun: Whole
    end: Whole
    excess: Array
    """Seconds above the intervals around."""
    noise: Array
    """Standard deviation of an interval, seconds."""
    free: Bools
    """Intervals whose excess nothing else explains."""

    def until(self, row: int) -> Fold:
        """The intervals before a row."""
        return Fold(self.begun[:row], self.end[:row], self.excess[:row], self.noise[:row], self.free[:row])

    def dips(self, among: Bools) -> Rows:
        """Which of some intervals took longer than noise explains."""
        return np.flatnonzero(among & (self.excess > DIP_SIGMAS * self.noise))


@dataclass(frozen=True, slots=True)
class Ground:
    """What every grid of a fold is held against."""

    first: Whole
    last: Whole
    """Where stretches of intervals that meet begin and end."""
    taken: Rows
    """Intervals that are not free."""
    free: int


def _ground(fold: Fold) -> Ground:
    breaks = np.flatnonzero(fold.begun[1:] != fold.end[:-1]) + 1
    first = fold.begun[np.concatenate([[0], breaks])]
    last = fold.end[np.concatenate([breaks, [len(fold.end)]]) - 1]
    taken = np.flatnonzero(~fold.free)
    return Ground(first, last, taken, len(fold.free) - len(taken))


@dataclass(frozen=True, slots=True)
class Grid:
    """Every ``period``-th step, at ``phase`` modulo the period. ``usual_s``: median excess of what lies on it."""

    period: int
    phase: int
    usual_s: float
    log_chance: float
    """Natural logarithm of the chance that some grid of the run is hit as often."""


def grids(fold: Fold) -> list[Grid]:
    """The grids that chance does not explain, the one it explains least first."""
    dips = fold.dips(fold.free)
    if len(dips) < LEAST_HITS:
        return []
    part = fold.until(int(dips[MOST_DIPS])) if len(dips) > MOST_DIPS else fold
    found = _grids(part, dips[:MOST_DIPS])
    if part is not fold:
        ground = _ground(fold)
        found = (grid for each in found if (grid := _grid(fold, ground, dips, each.period)))
    believed = [grid for grid in found if grid.log_chance < math.log(CHANCE)]
    return sorted(believed, key=lambda grid: grid.log_chance)


def _grids(fold: Fold, dips: Rows) -> Iterator[Grid]:
    ground = _ground(fold)
    least = 2 * float(np.median(fold.end[dips] - fold.begun[dips]))
    for period in _periods(fold.end[dips], least):
        if grid := _grid(fold, ground, dips, period):
            yield grid


def _periods(end: Whole, least: float) -> list[int]:
    """Distances between near dips, whole and in equal parts; the most frequent ones."""
    distances = [
        (end[ahead:] - end[:-ahead]) / parts
        for ahead in range(1, min(REACH, len(end) - 1) + 1)
        for parts in range(1, ahead + 1)
    ]
    tried = np.concatenate(distances)
    periods, counts = np.unique(tried[(tried > least) & (tried == np.rint(tried))], return_counts=True)
    return [int(period) for period in periods[np.argsort(-counts, kind="stable")][:MOST_PERIODS]]


def _grid(fold: Fold, ground: Ground, dips: Rows, period: int) -> Grid | None:
    """The grid of a period that most dips lie on, if it is hit often and alike."""
    phase = _phase(fold.begun[dips], fold.end[dips], period)
    excess = fold.excess[dips[_contain(fold, dips, period, phase)]]
    usual = float(np.median(excess))
    anywhere = int(_alike(fold.excess[dips], usual).sum())
    hits = int(_alike(excess, usual).sum())
    hidden = int(_contain(fold, ground.taken, period, phase).sum() + (excess > ALIKE * usual).sum())
    points = max(_points(ground, period, phase) - hidden, hits)
    if hits < max(LEAST_HITS, HIT_SHARE * points):
        return None
    chance = _log_chance(hits, points, anywhere, ground.free)
    return Grid(period, phase, usual, chance + math.log(len(dips)))


def on_grid(fold: Fold, grid: Grid, among: Bools) -> Rows:
    """Of some intervals the long ones on a grid that are alike."""
    dips = fold.dips(among)
    on = dips[_contain(fold, dips, grid.period, grid.phase)]
    return on[_alike(fold.excess[on], grid.usual_s)]


def _alike(excess: Array, usual: float) -> Bools:
    return (excess >= usual / ALIKE) & (excess <= usual * ALIKE)


def _phase(begun: Whole, end: Whole, period: int) -> int:
    """The step, modulo the period, that lies in most of the intervals."""
    close = end % period
    opened = close - (end - begun)
    opens = np.sort(np.concatenate([opened, opened + period]))
    closes = np.sort(np.concatenate([close, close + period]))
    covering = np.searchsorted(opens, close) - np.searchsorted(closes, close)
    return int(close[np.argmax(covering)])


def _contain(fold: Fold, rows: Rows, period: int, phase: int) -> Bools:
    """Which of the intervals contain a step of the grid."""
    return (fold.end[rows] - phase) // period > (fold.begun[rows] - phase) // period


def _points(ground: Ground, period: int, phase: int) -> int:
    """Steps of the grid in all intervals; between two that do not meet there is none."""
    return int(((ground.last - phase) // period - (ground.first - phase) // period).sum())


def _log_chance(hits: int, points: int, anywhere: int, intervals: int) -> float:
    """Chernoff's bound for ``hits`` of ``points`` when intervals are long by chance, ``anywhere`` of them, times the grids there are.

    In n intervals there are about (n / 5)^2 / 2 pairs of period and phase with five points or more.
    """
    rate, share = anywhere / intervals, hits / points
    if rate >= share:
        return 0.0
    gain = share * math.log(share / rate)
    if share < 1:
        gain += (1 - share) * math.log((1 - share) / (1 - rate))
    return 2 * math.log(intervals / LEAST_HITS) - math.log(2) - points * gain
