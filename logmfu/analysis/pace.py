"""The run's own pace: what a step takes when nothing is wrong, and which steps were slow.

A *regime* is a stretch with one level; levels are found by change-point detection on binned medians,
when a cheap look says that there is something to find.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from logmfu.analysis.intervals import held_once

Array = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

BINS = 200
"""Bins of medians that change points are looked for in: bounds the work at any length."""
SMALLEST_CHANGE = 0.02
"""Relative change of level below which nothing is reported."""
SHORTEST_REGIME = 0.04
"""Part of the run below which a stretch is no regime of its own."""
MOST_REGIMES = 6
"""A pace that changes more often than this is described by its largest changes only."""
NOISE_FLOOR = 0.002
"""Least relative noise assumed: printed times are rounded."""
MANY = 5
"""Rows of a batch size from which on their median is its level."""
SIGMAS = 6.0
OUTLIER_EVERY = 500
OUTLIER_SIZE = 0.5
"""In healthy runs one step in 500 or so takes up to half as long again: that alone is no finding."""


@dataclass(frozen=True, slots=True)
class Regime:
    """Rows ``first`` to ``last`` (inclusive) at one relative ``level``."""

    first: int
    last: int
    level: float
    end_level: float
    """Level at the end; differs from ``level`` in a trend only."""
    kind: Literal["steady", "trend"] = "steady"


@dataclass(frozen=True, slots=True)
class Pace:
    """``baseline``: expected step time of each row, seconds. ``noise``: relative spread of one row."""

    baseline: Array
    noise: float
    regimes: tuple[Regime, ...]
    slow: Bools
    """Rows whose step time is far above the baseline."""
    in_slow_span: Bools
    """Rows of a stretch that was slower and went back to the level before it."""


def pace(step_time: Array, batch: Array, iterations: Array, clean: Bools) -> Pace:
    """Baseline and slow rows. ``clean`` marks rows that nothing known disturbs."""
    usable = clean & np.isfinite(step_time) & (step_time > 0)
    if not usable.any():
        usable = np.isfinite(step_time) & (step_time > 0)
    per_batch = _batch_factor(step_time, batch, usable)
    relative = np.where(usable, step_time / per_batch, np.nan)
    noise = spread(relative)
    regimes = find_regimes(relative, noise)
    del relative  # of the length of the log
    baseline, in_span = levels(regimes, len(step_time)), np.zeros(len(step_time), dtype=bool)
    for span, usual in slow_spans(regimes, noise):
        baseline[span.first : span.last + 1] = usual
        in_span[span.first : span.last + 1] = True
    baseline *= per_batch
    baseline = held_once(baseline)
    slow = slow_rows(step_time, baseline, iterations, noise)
    return Pace(baseline, noise, tuple(regimes), slow, in_span & usable)


def levels(regimes: Sequence[Regime], rows: int) -> Array:
    """Level of each row by its regime."""
    level = np.ones(rows)
    for regime in regimes:
        length = regime.last + 1 - regime.first
        level[regime.first : regime.last + 1] = np.linspace(regime.level, regime.end_level, length)
    return level


def slow_spans(regimes: Sequence[Regime], noise: float) -> list[tuple[Regime, float]]:
    """Stretches that were slower than both neighbours, which are alike; with the neighbours' level."""
    found = []
    for before, here, after in zip(regimes, regimes[1:], regimes[2:], strict=False):
        usual = (before.level + after.level) / 2
        alike = abs(before.level - after.level) <= max(SMALLEST_CHANGE, 3 * noise) * usual
        if alike and here.level > max(before.level, after.level):
            found.append((here, usual))
    return found


def slow_rows(step_time: Array, baseline: Array, iterations: Array, noise: float) -> Bools:
    """Rows whose excess neither noise nor the usual outliers explain."""
    with np.errstate(invalid="ignore", divide="ignore"):
        excess = step_time / baseline - 1.0
    rows = np.flatnonzero(excess > SIGMAS * noise)
    excess, n = excess[rows], iterations[rows]
    far = excess > SIGMAS * relative_noise(noise, iterations, rows)
    slow = np.zeros(len(step_time), dtype=bool)
    slow[rows] = far & (excess * n > unremarkable_steps(n))
    return slow


def relative_noise(noise: float, iterations: Array, rows: npt.NDArray[np.intp] | slice) -> Array:
    """Relative noise of some rows: ``noise`` is that of a usual one, and the mean of fewer steps has more."""
    return noise * np.sqrt(np.maximum(_median(iterations) / np.maximum(iterations[rows], 1.0), 1.0))


def unremarkable_steps(iterations: Array) -> Array:
    """Excess, in whole steps, that the outliers of a healthy run reach in an interval of this length.

    The number of outliers is Poisson with mean n / 500; the count with a tail below 1e-5 is allowed.
    """
    whole = np.maximum(np.nan_to_num(iterations, nan=1.0), 1.0)
    lengths, where = np.unique(whole, return_inverse=True)
    allowed = np.array([_poisson_bound(length / OUTLIER_EVERY) for length in lengths])
    return (0.1 + OUTLIER_SIZE * allowed)[where]


def _poisson_bound(mean: float) -> int:
    term = tail = math.exp(-mean)
    count = 0
    while 1.0 - tail > 1e-5 and count < 10_000:
        count += 1
        term *= mean / count
        tail += term
    return max(count, 1)


def spread(relative: Array) -> float:
    """Noise of one row: median absolute difference of neighbours, blind to slow drifts and levels."""
    known = _known(relative)
    if len(known) < 3:
        return 0.02
    middle = np.median(known)
    differences = np.diff(known)
    np.abs(differences, out=differences)
    differences /= middle
    return max(float(np.median(differences, overwrite_input=True)) * 1.4826 / math.sqrt(2.0), NOISE_FLOOR)


def _batch_factor(step_time: Array, batch: Array, usable: Bools) -> Array:
    """Expected step time by batch size: during a batch-size ramp-up a longer step is no slow step.

    One level for a constant batch; else the median of each batch size. For sizes with few rows, and where the
    size is not printed, a straight line through the medians of the others, but no less than what these rows
    took themselves: nothing says that they were slow.
    """
    overall = float(np.median(step_time[usable], overwrite_input=True)) if usable.any() else np.nan
    known = batch[usable & np.isfinite(batch)]
    if not len(known) or known.min() == known.max():
        return np.broadcast_to(overall, len(step_time))
    sizes, counts = np.unique(known, return_counts=True)
    medians = np.array([np.median(step_time[usable & (batch == size)]) for size in sizes])
    line = np.polyfit(sizes, medians, 1, w=np.sqrt(counts))
    factor = np.polyval(line, np.where(np.isfinite(batch), batch, np.median(sizes)))
    unknown = ~np.isfinite(batch)
    factor[unknown] = np.fmax(factor[unknown], step_time[unknown])
    for size, median, count in zip(sizes, medians, counts, strict=True):
        mine = batch == size
        factor[mine] = median if count >= MANY else np.maximum(factor[mine], median)
    return np.where(factor > 0, factor, overall)


def find_regimes(relative: Array, noise: float) -> list[Regime]:
    """Stretches of one level, or one trend, over all rows."""
    middle = _median(relative)
    whole = Regime(0, len(relative) - 1, middle, middle)
    values = _known(relative)
    if len(values) < 20:
        return [whole] if len(relative) else []
    size = max(5, -(-len(values) // BINS))
    bins = len(values) // size
    medians = _medians(values, bins)
    deviation = max(1.2533 * noise / np.sqrt(size), spread(medians) if bins >= 8 else 0.0, NOISE_FLOOR / 2)
    reach = float(medians.max() - medians.min()) / whole.level
    if bins < 4 or reach < max(SMALLEST_CHANGE, 5.0 * deviation):
        return [whole]
    if trend := _trend(medians, deviation, whole):
        return [trend]
    borders = _change_points(medians, deviation)
    starts = [0, *(_refine(values, border * len(values) // bins, 2 * size) for border in borders)]
    rows = np.flatnonzero(np.isfinite(relative))
    return _levels(relative, rows, sorted(set(starts)), noise)


def _known(values: Array) -> Array:
    """Those that are numbers; the array itself where all are."""
    known = np.isfinite(values)
    return values if known.all() else values[known]


def _median(values: Array) -> float:
    known = _known(values)
    if not len(known):
        return 1.0
    same = known.min() == known.max()
    return float(known[0] if same else np.median(known))


def _medians(values: Array, bins: int) -> Array:
    """Median of each of so many parts, the first ones longer by one value where they are not all as long."""
    size, longer = divmod(len(values), bins)
    border = longer * (size + 1)
    parts = values[:border].reshape(-1, size + 1), values[border:].reshape(-1, size)
    return np.concatenate([np.median(part, axis=1) for part in parts])


def _trend(medians: Array, deviation: float, whole: Regime) -> Regime | None:
    """One straight line through all bins, when it explains them as well as noise allows."""
    at = np.arange(len(medians), dtype=float)
    slope, offset = np.polyfit(at, medians, 1)
    rest = medians - (slope * at + offset)
    drift = slope * (len(medians) - 1)
    straight = float(np.std(rest)) <= 2.0 * deviation * whole.level
    if len(medians) < 8 or not straight or abs(drift) < max(SMALLEST_CHANGE, 6 * deviation) * whole.level:
        return None
    return Regime(whole.first, whole.last, float(offset), float(offset + drift), "trend")


def _change_points(medians: Array, deviation: float) -> list[int]:
    """Where levels change: the partition with the least squared error plus a penalty for each part.

    Found exactly, by optimal partitioning (Jackson et al. 2005, IEEE Signal Processing Letters 12(2), eq. 3), with
    the Bayesian information criterion's penalty; there are so few bins that nothing has to be pruned.
    """
    penalty = (deviation * float(np.median(medians))) ** 2 * 6.0 * np.log(len(medians))
    least = int(max(2, -(-len(medians) * SHORTEST_REGIME // 1)))
    best = np.full(len(medians) + 1, np.inf)
    best[0] = -penalty
    before = np.zeros(len(medians) + 1, dtype=np.int64)
    for end in range(least, len(medians) + 1):
        total = best[: end - least + 1] + _errors(medians[:end])[: end - least + 1] + penalty
        before[end] = np.argmin(total)
        best[end] = total[before[end]]
    borders: list[int] = []
    while border := int(before[borders[-1] if borders else -1]):
        borders.append(border)
    return borders[::-1]


def _errors(values: Array) -> Array:
    """Squared error of the last values about their mean: of all of them, all but the first, and so on.

    Summed from the end, relative to the last one: what is far off does not spoil the sums of those behind it.
    """
    back = values[::-1] - values[-1]
    errors: Array = np.cumsum(back**2) - np.cumsum(back) ** 2 / np.arange(1, len(back) + 1)
    return errors[::-1]


def _refine(values: Array, near: int, reach: int) -> int:
    """The split within ``reach`` rows of ``near`` that leaves the least absolute deviation."""
    low, high = max(0, near - 2 * reach), min(len(values), near + 2 * reach)
    left, right = (
        _median(values[low : max(near - reach // 2, low + 1)]),
        _median(values[min(near + reach // 2, high - 1) : high]),
    )
    cost_left = np.concatenate(
        [[0.0], np.cumsum(np.minimum(np.abs(values[low:high] - left), abs(left - right)))]
    )
    cost_right = np.concatenate(
        [[0.0], np.cumsum(np.minimum(np.abs(values[low:high] - right), abs(left - right)))]
    )
    total = cost_left + (cost_right[-1] - cost_right)
    return low + int(np.argmin(total))


def _levels(relative: Array, rows: npt.NDArray[np.intp], starts: list[int], noise: float) -> list[Regime]:
    """Regimes between the starts; neighbours that differ too little are one."""
    regimes: list[Regime] = []
    for index, start in enumerate(starts):
        stop = starts[index + 1] if index + 1 < len(starts) else len(rows)
        part = relative[rows[start:stop]]
        if not len(part):
            continue
        first = int(rows[start]) if index else 0
        last = int(rows[stop]) - 1 if stop < len(rows) else len(relative) - 1
        level = _median(part)
        if regimes:
            before = regimes[-1]
            least = max(
                SMALLEST_CHANGE, 5 * noise / np.sqrt(min(len(part), before.last + 1 - before.first))
            )
            if abs(level / before.level - 1) < least:
                merged = _median(relative[before.first : last + 1])
                regimes[-1] = Regime(before.first, last, merged, merged)
                continue
        regimes.append(Regime(first, last, level, level))
    while len(regimes) > MOST_REGIMES:
        regimes = _without_smallest(relative, regimes)
    return regimes


def _without_smallest(relative: Array, regimes: list[Regime]) -> list[Regime]:
    """The regimes with the two neighbours that differ least made one."""
    shifts = [abs(math.log(after.level / before.level)) for before, after in pairwise(regimes)]
    at = shifts.index(min(shifts))
    first, last = regimes[at].first, regimes[at + 1].last
    level = _median(relative[first : last + 1])
    return [*regimes[:at], Regime(first, last, level, level), *regimes[at + 2 :]]
