"""What changed for good: pace, batch size, loss, and how the program counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

import numpy as np
import numpy.typing as npt
import pandas as pd

from logmfu.analysis.intervals import Array, Bools, Timeline
from logmfu.analysis.pace import Pace, Regime, slow_spans
from logmfu.analysis.rates import column
from logmfu.analysis.rows import Timers
from logmfu.report import Change

LEAST_SHIFT = 0.02
SPIKE = 0.5
"""A loss spike is at least this far above the running level, relative to it."""
SPIKE_SIGMAS = 12.0
WINDOW = 50
TELLING = 0.2
"""Part of a change in step time that a timer must account for to be named."""


def changes(
    line: Timeline, pace: Pace, steps: pd.DataFrame, timers: Timers, recounted: Sequence[Recount]
) -> tuple[Change, ...]:
    """All changes in the order of steps."""
    found = [
        *_pace_changes(line, pace, timers),
        *_batch_changes(line),
        *_accounting_changes(line, recounted),
        *_loss_changes(line, steps),
    ]
    return tuple(sorted(found, key=lambda change: (change.elapsed_s or 0.0, change.step)))


def _change(
    line: Timeline, row: int, kind: str, before: float, after: float, unit: str, text: str
) -> Change:
    rows = [row - 1, row] if row else [row]
    evidence = tuple(line.evidence(at) for at in rows)
    return Change(int(line.step[row]), kind, before, after, unit, text, evidence, float(line.end_s[row]))


def _pace_changes(line: Timeline, pace: Pace, timers: Timers) -> Iterator[Change]:
    spans = {span.first for span, _ in slow_spans(pace.regimes, pace.noise)}
    steady = [regime for regime in pace.regimes if regime.first not in spans]
    for regime in steady:
        if regime.kind == "trend":
            yield _trend(line, pace, regime)
    for before, after in pairwise(steady):
        ratio = after.level / before.level
        if abs(ratio - 1.0) < LEAST_SHIFT:
            continue
        row = after.first
        usual = float(pace.baseline[before.first])
        slower = "slower" if ratio > 1 else "faster"
        moved = _moved(line, timers, before, after, change_s=usual * (ratio - 1.0))
        text = f"from iteration {int(line.step[row])} on steps take {100 * abs(ratio - 1):.1f} % {'longer' if ratio > 1 else 'less'} ({slower}){moved}"
        yield _change(line, row, "step_time", usual, usual * ratio, "s", text)


def _trend(line: Timeline, pace: Pace, regime: Regime) -> Change:
    first, last = float(pace.baseline[regime.first]), float(pace.baseline[regime.last])
    span = int(line.step[regime.last] - line.step[regime.first])
    per_thousand = (last - first) / max(span, 1) * 1000
    text = f"step time drifts from {first:.4g} s to {last:.4g} s over {span} iterations ({per_thousand:+.3g} s per 1000)"
    return _change(line, regime.first, "trend", first, last, "s", text)


def _moved(line: Timeline, timers: Timers, before: Regime, after: Regime, *, change_s: float) -> str:
    """The timers that account for at least a fifth of the change."""
    borders = [int(line.step[row]) for row in (before.first, before.last, after.first, after.last)]
    earlier = (borders[0] <= timers.step) & (timers.step <= borders[1])
    later = (borders[2] <= timers.step) & (timers.step <= borders[3]) & ~earlier
    old, new = _medians(timers, earlier), _medians(timers, later)
    medians = {name: (old[name], new[name]) for name in timers.names if name in old and name in new}
    if not medians:
        return "; no timers in the log say which part"
    shift = change_s
    part = {name: (new - old) / shift for name, (old, new) in medians.items()}
    told = sorted((name for name in part if part[name] >= TELLING), key=lambda name: -part[name])[:3]
    if not told:
        return "; no timer accounts for it"
    return "; moved: " + ", ".join(f"`{name}` {part[name] * shift:+.3g} s" for name in told)


def _medians(timers: Timers, chosen: Bools) -> dict[str, float]:
    """The median of each timer among some, if there are three at least."""
    seconds = pd.Series(timers.longest_s[chosen]).groupby(timers.code[chosen])
    middle = seconds.median()[seconds.size() > 2]
    return {
        timers.names[code]: value
        for code, value in zip(middle.index.tolist(), middle.tolist(), strict=True)
    }


def _batch_changes(line: Timeline) -> Iterator[Change]:
    known = np.flatnonzero(np.isfinite(line.batch))
    if len(known) < 2:
        return
    sizes = line.batch[known]
    moved = known[1:][sizes[1:] != sizes[:-1]]
    if not len(moved):
        return
    first, last = line.batch[known[0]], line.batch[known[-1]]
    text = (
        f"global batch size goes from {first:.0f} to {last:.0f} in {len(moved)} change{'s' * (len(moved) > 1)}; "
        "longer iterations there are no slowdown"
    )
    yield _change(line, int(moved[0]), "batch_size", float(first), float(last), "samples", text)


@dataclass(frozen=True, slots=True)
class Recount:
    """A row from which on the program counts other FLOPs per iteration; logarithms of what it counted before and after."""

    row: int
    before: float
    after: float


def recounts(line: Timeline, steps: pd.DataFrame) -> list[Recount]:
    """Where the printed FLOPs per iteration (printed rate x step time) jump for good, far beyond their noise."""
    counted, known = _counted(line, steps)
    ratio = counted[1:] / counted[:-1]
    found = []
    for at in (
        np.flatnonzero((ratio < 1 - 0.9 * LEAST_SHIFT) | (ratio > 1 + 0.9 * LEAST_SHIFT)) + 1
    ).tolist():
        before, after = np.log(counted[max(0, at - 20) : at]), np.log(counted[at : at + 20])
        if len(after) < 5 or len(before) < 5 or abs(after[0] - before[-1]) <= LEAST_SHIFT:
            continue
        old, new = float(np.median(before)), float(np.median(after))
        noise = float(np.median(np.abs(before - old))) + 1e-3
        if abs(new - old) > max(LEAST_SHIFT, 8 * noise):
            found.append(Recount(_row(line, int(np.flatnonzero(known)[at])), old, new))
    return found


def _row(line: Timeline, row: int) -> int:
    """A row, or the one before it: the first line of an attempt, left out for its warm-up, belongs to what follows."""
    return row - 1 if row and line.first[row - 1] else row


def _counted(line: Timeline, steps: pd.DataFrame) -> tuple[Array, Bools]:
    """The printed FLOPs per sample and device, and the rows that have them."""
    rate, times = column(steps, "tflops_per_gpu_logged"), column(steps, "step_time_s")
    with np.errstate(invalid="ignore", over="ignore"):  # a printed inf is left out below
        per_step = rate * times
        per_step /= np.where(np.isfinite(line.batch), line.batch, 1.0)
    known = np.isfinite(per_step) & (per_step > 0) & ~line.first
    return per_step[known], known


def _accounting_changes(line: Timeline, found: Sequence[Recount]) -> Iterator[Change]:
    for recount in found:
        row, before, after = recount.row, float(np.exp(recount.before)), float(np.exp(recount.after))
        text = (
            f"from iteration {int(line.begun[row]) + 1} on the program counts {np.exp(recount.after - recount.before):.3f} times "
            "the FLOPs per iteration at the same step time: an accounting change, not a speed-up"
        )
        yield _change(line, row, "accounting", before, after, "TFLOP per sample and device", text)


def _loss_changes(line: Timeline, steps: pd.DataFrame) -> Iterator[Change]:
    loss = column(steps, "loss")
    if not np.isfinite(loss).any():
        return
    yield from _vanished(line, steps)
    known = np.isfinite(loss)
    values = loss[known]
    for at, level in islice(_spikes(values), 20):
        row = int(np.flatnonzero(known)[at])
        text = f"loss spike at iteration {int(line.step[row])}: {values[at]:.4g} against {level:.4g}"
        yield _change(line, row, "loss_spike", level, float(values[at]), "", text)


def _spikes(values: Array) -> Iterator[tuple[int, float]]:
    """Where values begin to be far above the level of the values before them, and that level.

    A median is no less than the least value: only what is far above that can be a spike, and needs medians.
    """
    possible = _tall(values)
    borders = np.flatnonzero(np.diff(possible) > 2 * WINDOW) + 1
    for near in np.split(possible, borders) if len(possible) else ():
        part = slice(max(0, int(near[0]) - 2 * WINDOW), int(near[-1]) + 1)
        smooth = _level_before(values[part])
        deviation = 1.4826 * _level_before(np.abs(values[part] - smooth))
        far = values[part] - smooth > np.maximum(SPIKE_SIGMAS * deviation, SPIKE * np.abs(smooth))
        far[: near[0] - part.start] = False
        far[1:] &= ~far[:-1]
        for at in np.flatnonzero(far).tolist():
            yield part.start + at, float(smooth[at])


def _tall(values: Array) -> npt.NDArray[np.intp]:
    """Every value that may be far above the least of the values before it, and others beside it."""
    starts = np.arange(0, len(values), WINDOW)
    least, most = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    least[1:] = np.minimum(least[1:], least[:-1])
    blocks = starts[most - least > SPIKE * np.abs(least)]
    rows = (blocks[:, np.newaxis] + np.arange(WINDOW)).ravel()
    return rows[rows < len(values)]


def _level_before(values: Array) -> Array:
    """Median of the values before each one."""
    return pd.Series(values).rolling(WINDOW, min_periods=10).median().shift(1).to_numpy()


def _vanished(line: Timeline, steps: pd.DataFrame) -> Iterator[Change]:
    missing = without_loss(line, steps)
    starts = np.flatnonzero(missing & ~np.concatenate([[False], missing[:-1]]))
    for row in starts[:10]:
        run = _length(missing, int(row))
        text = f"no loss printed from iteration {int(line.step[row])} on for {run} {'line' if run == 1 else 'lines'}: the loss is not a number"
        yield _change(line, int(row), "nan", float("nan"), float("nan"), "", text)


def without_loss(line: Timeline, steps: pd.DataFrame) -> Bools:
    """Rows whose loss is not a number: the field is there and no number, or it vanished.

    Where all iterations of the interval were skipped there is no loss to print: no NaN.
    """
    loss = column(steps, "loss")
    if np.isfinite(loss).all():
        return np.zeros(len(loss), dtype=bool)
    skipped = np.nan_to_num(column(steps, "skipped"))
    all_skipped = skipped >= np.maximum(line.iterations, 1)
    seen = np.maximum.accumulate(np.isfinite(loss)) if len(loss) else np.isfinite(loss)
    return ~np.isfinite(loss) & seen & ~all_skipped & ~_torn(steps)


def _torn(steps: pd.DataFrame) -> Bools:
    """Rows whose line was cut off before its last fields: what is missing there says nothing."""
    last = np.isfinite(column(steps, "nan")) | np.isfinite(column(steps, "skipped"))
    return ~last if len(last) and last.mean() > 0.5 else np.zeros(len(steps), dtype=bool)


def _length(flags: npt.NDArray[np.bool_], start: int) -> int:
    after = np.flatnonzero(~flags[start:])
    return int(after[0]) if len(after) else len(flags) - start
