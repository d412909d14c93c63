"""The run as a row of intervals: from one step line to the next, on the wall clock.

Two clocks meet here. The *wall clock* is the time stamps; the *step clock* is printed time per step
times steps covered. Where no step line has a stamp the wall clock is rebuilt from the step clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from logmfu.analysis import placement
from logmfu.report import Clock, Evidence
from logmfu.tables import Facts, Run, resolution

Array = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]
ALL = slice(None)
"""Every row."""


def median(values: Array) -> float:
    """Median of the known values; NaN when there is none."""
    known = values[np.isfinite(values)]
    return float(np.median(known, overwrite_input=True)) if len(known) else float("nan")


def held_once(values: Array) -> Array:
    """The array, without room for every element where all are the same; not to be written to."""
    same = len(values) and values.min() == values.max()
    return np.broadcast_to(values[:1].copy(), len(values)) if same else values


@dataclass(frozen=True, slots=True)
class Timeline:
    """Intervals of all attempts in order: one array element per step line.

    Times are seconds since the run's first time stamp.
    """

    attempt: Whole
    step: Whole
    begun: Whole
    """Step before the interval."""
    iterations: Array
    """Steps this line adds to the one before."""
    step_time_s: Array
    """Mean time of those steps; NaN where not printed."""
    printed_s: Array
    """Their sum: what the step clock saw of the interval."""
    last_step_s: Array
    """Time of the last of those steps alone, where the program prints only that; NaN elsewhere."""
    start_s: Array
    end_s: Array
    first: Bools
    """The first line of its attempt, unless that was going on before."""
    missing: Bools
    """More than one step line before this one is missing: not a torn line, an excerpt."""
    batch: Array
    path: npt.NDArray[np.object_]
    line: Whole
    clock: Clock
    step_clock: str
    """``printed``, ``stamps`` (time between lines) or ``none``."""
    starts: tuple[float, ...]
    """Start of each attempt."""
    ends: tuple[float, ...]
    """End of each attempt."""
    resolution_s: float
    going_on: bool
    """The first attempt had done steps before: a part of a run."""
    notes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.step)

    def wall_s(self, rows: Rows | slice = ALL) -> Array:
        """Wall clock of some intervals."""
        return self.end_s[rows] - self.start_s[rows]

    def rows(self, attempt: int) -> slice:
        """Intervals of an attempt."""
        first, end = np.searchsorted(self.attempt, (attempt, attempt + 1)).tolist()
        return slice(first, end)

    def length_s(self, row: int) -> float:
        """Wall clock of one interval."""
        return float(self.end_s[row] - self.start_s[row])

    @property
    def total_s(self) -> float:
        """Wall clock from the first to the last time stamp."""
        return self.ends[-1] if self.ends else 0.0

    def evidence(self, row: int) -> Evidence:
        """The step line that ends an interval."""
        return Evidence(self.path[row], int(self.line[row]))


def stepping(run: Run) -> pd.DataFrame:
    """Rows with a step number; rows without any are numbered in their order when no row has one."""
    steps = run.steps
    if len(steps) and steps["step"].isna().all():
        steps = steps.assign(step=pd.array(range(1, len(steps) + 1), dtype="Int64"))
    stepped = steps["step"].notna()
    return steps if stepped.all() else steps[stepped].reset_index(drop=True)


@dataclass(slots=True)
class _Lines:
    """What the step lines say, one array element per line."""

    attempt: Whole
    step: Whole
    mean_s: Array
    """Printed time per step."""
    stamp: Array
    covered: Array
    """Steps the printed numbers are averaged over."""
    first: Bools
    cut: Rows
    """The first line of a part of a run, which is not the program's first."""

    def diff(self, values: Array | Whole, rows: Rows) -> Array:
        """Difference to the line before, in some rows; NaN in the first line of an attempt."""
        return np.where(self.first[rows], np.nan, values[rows] - values[rows - 1])


@np.errstate(divide="ignore", invalid="ignore")
def timeline(run: Run) -> Timeline:
    """Intervals of a run."""
    steps = stepping(run)
    attempt = _whole(steps, "attempt")
    first = np.append(True, attempt[1:] != attempt[:-1])[: len(attempt)]
    lines = _Lines(
        attempt,
        _whole(steps, "step"),
        _step_time(steps, run.facts),
        _floats(steps, "elapsed_s"),
        held_once(steps["iterations"].to_numpy(dtype=float, na_value=1.0)),
        first,
        np.flatnonzero(first & (attempt == 1)) if run.going_on else np.empty(0, dtype=np.intp),
    )
    new, step_time_s, missing = _new_iterations(lines, bool(run.facts.get("first_line_repeated")))
    new, printed_s = held_once(new), step_time_s if np.all(new == 1.0) else step_time_s * new
    notes: list[str] = []
    stamped = bool(len(steps)) and bool(np.mean(np.isfinite(lines.stamp)) >= 0.5)
    resolution_s = _resolution(lines.stamp, run)
    buffered = stamped and _in_bursts(lines, printed_s, resolution_s)
    if buffered:
        stamped, lines.stamp = False, np.full(len(steps), np.nan)
    anchored = not stamped and bool(len(steps)) and _anchored(run, lines, new, printed_s)
    if len(steps) and not stamped and not anchored:
        placed = placement.rebuilt(attempt, printed_s, max(len(run.attempt_starts), 1))
        clock: Clock = "reconstructed" if np.isfinite(printed_s).any() else "none"
    else:
        placed = placement.stamped(
            attempt,
            lines.stamp,
            printed_s,
            _spans(run),
            begun=_training_starts(run) if anchored else {},
            tolerance_s=max(resolution_s, 1.0),
        )
        clock = "timestamps" if run.start is not None else "none"
    if buffered:
        notes.append(BUFFERED)
    elif clock == "reconstructed":
        notes.append(REBUILT)
    elif anchored:
        notes.append(ANCHORED)
    if placed.jumps and _goes_on_in_every_file(steps, lines.stamp):
        notes.append(INTERLEAVED)
    elif placed.jumps:
        notes.append(
            f"the clock of the log goes back {placed.jumps} time{'s' * (placed.jumps > 1)}: {BRIDGED}"
        )
    cut = lines.cut
    if len(cut):
        printed_s = printed_s.copy()
        printed_s[cut] = np.minimum(printed_s[cut], placed.end_s[cut] - placed.start_s[cut])
    step_clock = _step_clock(step_time_s, placed, first)
    if step_clock == "stamps":
        step_time_s = np.where(first, np.nan, (placed.end_s - placed.start_s) / new)
        printed_s = step_time_s * new
    if step_clock == "none" and len(steps) > 1 and clock == "timestamps":
        notes.append(BURSTS)
    first[cut] = False
    return Timeline(
        attempt=attempt,
        step=lines.step,
        begun=lines.step - new.astype(np.int64),
        iterations=new,
        step_time_s=step_time_s,
        printed_s=printed_s,
        last_step_s=_last_step(steps, run.facts),
        start_s=placed.start_s,
        end_s=placed.end_s,
        first=first,
        missing=missing,
        batch=held_once(_batch(steps)),
        path=steps["path"].to_numpy(dtype=object),
        line=_whole(steps, "line"),
        clock=clock,
        step_clock=step_clock,
        starts=placed.starts,
        ends=placed.ends,
        resolution_s=resolution_s,
        going_on=run.going_on,
        notes=tuple(notes),
    )


BURST_SHARE = 0.25
"""Part of the intervals without any length above which the stamps are those of bursts."""
LEAST_LINES = 8
"""Intervals below which bursts are not told from chance."""
BURSTS = (
    "many step lines share one time stamp: the log was written in bursts, "
    "and its clock says nothing about single steps"
)
BUFFERED = (
    "the stamps of the step lines are those of a buffer that was emptied now and then, not of the steps: "
    "the steps are placed by their printed times, and pauses outside these are not visible"
)
REBUILT = (
    "no time stamps on the step lines: the wall clock is rebuilt from the printed step times; "
    "pauses outside them are not visible"
)
INTERLEAVED = (
    "the clock of every file goes on, and that of the steps in their order goes back: lines of several runs or processes "
    "are mixed; they are counted one after the other, so the wall clock is too long; give the log of one run"
)
BRIDGED = "zone change or clock skew, bridged by the printed step times"
ANCHORED = (
    "no time stamps on the step lines: they are placed by the printed step times, "
    "counted from the stamps at the start of each attempt"
)


def _in_bursts(lines: _Lines, printed_s: Array, resolution_s: float) -> bool:
    """Whether many lines come at once, in far less time than the steps they report took."""
    wall, printed_s = np.diff(lines.stamp), printed_s[1:]
    told = ~np.isnan(wall) & ~lines.first[1:] & (printed_s >= 2 * resolution_s)
    count = int(told.sum())
    return count >= LEAST_LINES and int((told & (wall < 0.1 * printed_s)).sum()) > BURST_SHARE * count


def _goes_on_in_every_file(steps: pd.DataFrame, stamp: Array) -> bool:
    """Whether the stamps never go back in the order of the lines."""
    frame = pd.DataFrame({"path": steps["path"], "line": steps["line"], "stamp": stamp})
    by_line = frame.sort_values("line", kind="stable").groupby("path", sort=False)["stamp"]
    return bool((by_line.diff().fillna(0.0) >= 0).all())


def _anchored(run: Run, lines: _Lines, new: Array, printed_s: Array) -> bool:
    """Whether unstamped steps can be placed: each attempt starts with a stamp, and its step times have no holes.

    Step times that leave out evaluation and checkpoints have such holes.
    """
    whole = set(str(run.facts.get("step_time_includes", "")).split(",")) >= {"evaluation", "checkpoint"}
    begun = all(start is not None for start in run.attempt_starts) and bool(_training_starts(run))
    return whole and begun and bool((new <= lines.covered).all()) and not np.isnan(printed_s).any()


def _training_starts(run: Run) -> dict[int, float]:
    """Seconds at which the training loop of each attempt starts, where a stamp says it."""
    begins = run.events[run.events["event"].isin(("training_start", "startup", "process_start"))]
    latest = begins.groupby("attempt")["elapsed_s"].max().dropna()
    return dict(zip(latest.index.tolist(), latest.tolist(), strict=True))


LONGEST_STEP_S = 1e7
"""A printed time per step from here on (116 days) is no time: ``inf``, a wrong unit, a hostile log."""


def _whole(steps: pd.DataFrame, name: str) -> Whole:
    """A column without gaps, not copied."""
    values = steps[name].to_numpy(dtype=np.int64).view()
    values.flags.writeable = False
    return values


def _floats(steps: pd.DataFrame, name: str) -> Array:
    """A column as floats, NaN where there is no value."""
    return steps[name].to_numpy(dtype=np.float64, na_value=np.nan)


def _step_time(steps: pd.DataFrame, facts: Facts) -> Array:
    """Printed seconds per step; from samples per second and batch size where only those are printed."""
    printed = _possible(_floats(steps, "step_time_s"))
    if np.isfinite(printed).any() or facts.get("step_time_kind") == "running_mean":
        return printed
    interval_mean = facts.get("step_time_kind") == "interval_mean"
    return _by_rate(steps, facts) if interval_mean else printed


def _last_step(steps: pd.DataFrame, facts: Facts) -> Array:
    """Seconds of the last step of each interval, where its samples per second are printed."""
    if facts.get("step_time_kind") != "single_step":
        return np.broadcast_to(np.nan, len(steps))
    return _possible(_by_rate(steps, facts))


def _possible(times: Array) -> Array:
    impossible = (times <= 0) | (times >= LONGEST_STEP_S)
    return np.where(impossible, np.nan, times) if impossible.any() else times


def _batch(steps: pd.DataFrame) -> Array:
    sizes = _floats(steps, "global_batch_size")
    usable = sizes > 0
    return sizes if usable.all() else np.where(usable, sizes, np.nan)


@np.errstate(divide="ignore", invalid="ignore")
def _by_rate(steps: pd.DataFrame, facts: Facts) -> Array:
    """Seconds per step from samples per second and batch size."""
    stated = _number(facts.get("global_batch_size"))
    batch = steps["global_batch_size"].to_numpy(dtype=float, na_value=stated)
    return batch / _floats(steps, "samples_per_s")


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else np.nan


@np.errstate(divide="ignore", invalid="ignore")
def _new_iterations(lines: _Lines, first_repeated: bool) -> tuple[Array, Array, Bools]:
    """Steps each line adds, their own mean time, and before which lines several are missing.

    Where the program prints its first step alone and counts it again in the second line (Megatron
    core 0.16 and later), the second line's mean is taken apart: (n*mean - first) / (n - 1).
    """
    covered, mean = lines.covered, lines.mean_s
    new = np.diff(lines.step, prepend=lines.step[:1]).astype(float)
    new[lines.first] = covered[lines.first]
    missing = new > 2.01 * covered
    not_told = _lines_are_missing(lines, new)
    new[not_told] = covered[not_told]
    second = np.flatnonzero(lines.first[:-1] & ~lines.first[1:]) + 1
    second = second[~np.isin(second - 1, lines.cut)]
    if first_repeated and len(second):
        alone = covered[second - 1]
        whole = (new[second] + alone) * mean[second]
        mean = mean.copy()
        mean[second] = (whole - alone * lines.mean_s[second - 1]) / new[second]
    return new, mean, missing


def _resolution(stamp: Array, run: Run) -> float:
    """Resolution of the step lines' own stamps: other lines of the log may be finer."""
    if run.resolution_s >= 1.0 or not np.isfinite(stamp).any():
        return run.resolution_s
    return resolution(stamp + (run.start or 0.0))


def _lines_are_missing(lines: _Lines, new: Array) -> Rows:
    """Rows before which lines are missing (torn, cut out) and the time between does not say the steps were done."""
    rows = np.flatnonzero(new > 1.01 * lines.covered)
    wall, usual = lines.diff(lines.stamp, rows), new[rows] * lines.mean_s[rows]
    return rows[~((wall > 0.75 * usual) & (wall < 1.5 * usual))]


def _spans(run: Run) -> list[tuple[float, float]]:
    """First and last time stamp of each attempt, seconds since the run's start."""
    origin = run.start or 0.0
    return [
        ((origin if first is None else first) - origin, (origin if last is None else last) - origin)
        for first, last in zip(run.attempt_starts, run.attempt_ends, strict=True)
    ] or [(0.0, 0.0)]


def _step_clock(step_time_s: Array, placed: placement.Placed, first: Bools) -> str:
    """What step times come from; without printed ones, the time between two stamped lines.

    Many lines with one stamp were written in a burst: their stamps say nothing about the steps.
    """
    if not np.isnan(step_time_s).all():
        return "printed"
    wall = (placed.end_s - placed.start_s)[~first]
    return "none" if not len(wall) or (wall <= 0).mean() > BURST_SHARE else "stamps"
