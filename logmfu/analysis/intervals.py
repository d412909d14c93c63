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


def median(values: Array) -> float:
    """Median of the known values; NaN when there is none."""
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) else float("nan")


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
    path: tuple[str, ...]
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

    @property
    def wall_s(self) -> Array:
        """Wall clock of each interval."""
        return self.end_s - self.start_s

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


def timeline(run: Run) -> Timeline:
    """Intervals of a run."""
    steps = stepping(run)
    frame = pd.DataFrame(
        {
            "attempt": steps["attempt"].astype("int64"),
            "step": steps["step"].astype("float64"),
            "printed_mean_s": _step_time(steps, run.facts),
            "last_step_s": _last_step(steps, run.facts),
            "stamp": steps["elapsed_s"].astype("float64"),
            "covered": steps["iterations"].astype("float64").fillna(1.0),
            "batch": steps["global_batch_size"].astype("float64").where(lambda sizes: sizes > 0),
            "path": steps["path"],
            "line": steps["line"].astype("int64"),
        },
        copy=False,
    )
    frame["first"] = ~frame.duplicated("attempt")
    cut = frame["first"].to_numpy(dtype=bool) & (frame["attempt"] == 1).to_numpy() & run.going_on
    _new_iterations(frame, bool(run.facts.get("first_line_repeated")), cut)
    notes: list[str] = []
    stamped = bool(len(frame)) and bool(frame["stamp"].notna().mean() >= 0.5)
    resolution_s = _resolution(steps, run)
    buffered = stamped and _in_bursts(frame, resolution_s)
    if buffered:
        stamped, frame["stamp"] = False, np.nan
    anchored = not stamped and bool(len(frame)) and _anchored(run, frame)
    attempt, printed = frame["attempt"].to_numpy(), frame["printed_s"].to_numpy(dtype=float)
    if len(frame) and not stamped and not anchored:
        placed = placement.rebuilt(attempt, printed, max(len(run.attempt_starts), 1))
        clock: Clock = "reconstructed" if np.isfinite(printed).any() else "none"
    else:
        placed = placement.stamped(
            attempt,
            frame["stamp"].to_numpy(dtype=float),
            printed,
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
    if placed.jumps and _goes_on_in_every_file(frame):
        notes.append(INTERLEAVED)
    elif placed.jumps:
        notes.append(
            f"the clock of the log goes back {placed.jumps} time{'s' * (placed.jumps > 1)}: {BRIDGED}"
        )
    frame["start_s"], frame["end_s"] = placed.start_s, placed.end_s
    frame.loc[cut, "printed_s"] = np.minimum(printed, placed.end_s - placed.start_s)[cut]
    step_clock = _step_clock(frame)
    if step_clock == "none" and len(frame) > 1 and clock == "timestamps":
        notes.append(BURSTS)
    return Timeline(
        **{name: frame[name].to_numpy(dtype=np.int64) for name in ("attempt", "step", "begun", "line")},
        **{name: frame[name].to_numpy(dtype=float) for name in _FLOATS},
        first=frame["first"].to_numpy(dtype=bool) & ~cut,
        missing=frame["missing"].to_numpy(dtype=bool),
        path=tuple(frame["path"].tolist()),
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


def _in_bursts(frame: pd.DataFrame, resolution_s: float) -> bool:
    """Whether many lines come at once, in far less time than the steps they report took."""
    wall = frame.groupby("attempt")["stamp"].diff()
    told = wall.notna() & (frame["printed_s"] >= 2 * resolution_s)
    if told.sum() < LEAST_LINES:
        return False
    return bool((wall[told] < 0.1 * frame["printed_s"][told]).mean() > BURST_SHARE)


def _goes_on_in_every_file(frame: pd.DataFrame) -> bool:
    """Whether the stamps never go back in the order of the lines."""
    by_line = frame.sort_values("line", kind="stable").groupby("path", sort=False)["stamp"]
    return bool((by_line.diff().fillna(0.0) >= 0).all())


def _anchored(run: Run, frame: pd.DataFrame) -> bool:
    """Whether unstamped steps can be placed: each attempt starts with a stamp, and its step times have no holes.

    Step times that leave out evaluation and checkpoints have such holes.
    """
    whole = set(str(run.facts.get("step_time_includes", "")).split(",")) >= {"evaluation", "checkpoint"}
    begun = all(start is not None for start in run.attempt_starts) and bool(_training_starts(run))
    no_holes = bool((frame["iterations"] <= frame["covered"].fillna(np.inf)).all())
    return whole and begun and no_holes and bool(frame["printed_s"].notna().all())


def _training_starts(run: Run) -> dict[int, float]:
    """Seconds at which the training loop of each attempt starts, where a stamp says it."""
    begins = run.events[run.events["event"].isin(("training_start", "startup", "process_start"))]
    latest = begins.groupby("attempt")["elapsed_s"].max().dropna()
    return dict(zip(latest.index.tolist(), latest.tolist(), strict=True))


LONGEST_STEP_S = 1e7
"""A printed time per step from here on (116 days) is no time: ``inf``, a wrong unit, a hostile log."""
_FLOATS = ("iterations", "step_time_s", "printed_s", "last_step_s", "start_s", "end_s", "batch")


def _step_time(steps: pd.DataFrame, facts: Facts) -> pd.Series:
    """Printed seconds per step; from samples per second and batch size where only those are printed."""
    printed = _possible(steps["step_time_s"].astype("float64"))
    if printed.notna().any() or facts.get("step_time_kind") == "running_mean":
        return printed
    interval_mean = facts.get("step_time_kind") == "interval_mean"
    return _by_rate(steps, facts) if interval_mean else printed


def _last_step(steps: pd.DataFrame, facts: Facts) -> pd.Series:
    """Seconds of the last step of each interval, where its samples per second are printed."""
    if facts.get("step_time_kind") != "single_step":
        return pd.Series(np.nan, index=steps.index)
    return _possible(_by_rate(steps, facts))


def _possible(times: pd.Series) -> pd.Series:
    return times.where((times > 0) & (times < LONGEST_STEP_S))


def _by_rate(steps: pd.DataFrame, facts: Facts) -> pd.Series:
    """Seconds per step from samples per second and batch size."""
    batch = steps["global_batch_size"].astype("float64").fillna(_number(facts.get("global_batch_size")))
    return batch / steps["samples_per_s"].astype("float64")


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else np.nan


def _new_iterations(frame: pd.DataFrame, first_repeated: bool, cut: Bools) -> None:
    """Steps each line adds, and their own mean time.

    Where the program prints its first step alone and counts it again in the second line (Megatron
    core 0.16 and later), the second line's mean is taken apart: (n*mean - first) / (n - 1). ``cut``: the
    first line of a part of a run, which is not the program's first.
    """
    before = frame.groupby("attempt")["step"].shift()
    new = (frame["step"] - before).where(before.notna(), frame["covered"])
    mean = frame["printed_mean_s"].copy()
    frame["missing"] = new > 2.01 * frame["covered"]
    new = new.where(~_lines_are_missing(frame, new, mean), frame["covered"])
    second = (
        before.notna()
        & ~before.groupby(frame["attempt"]).shift().notna()
        & (frame.groupby("attempt").cumcount() == 1)
        & ~pd.Series(cut, index=frame.index).shift(fill_value=False)
    )
    if first_repeated and second.any():
        first_step = before[second]
        alone = frame.groupby("attempt")["covered"].transform("first")[second]
        covered = new[second] + alone
        first_mean = frame.groupby("attempt")["printed_mean_s"].shift()[second]
        mean[second] = ((covered * mean[second] - alone * first_mean) / new[second]).where(
            first_step.notna()
        )
    frame["iterations"] = new
    frame["begun"] = (frame["step"] - new).fillna(frame["step"])
    frame["step_time_s"] = mean
    frame["printed_s"] = mean * new


def _resolution(steps: pd.DataFrame, run: Run) -> float:
    """Resolution of the step lines' own stamps: other lines of the log may be finer."""
    times = steps["elapsed_s"].to_numpy(dtype=float, na_value=np.nan) + (run.start or 0.0)
    return resolution(times) if np.isfinite(times).any() else run.resolution_s


def _lines_are_missing(frame: pd.DataFrame, new: pd.Series, mean: pd.Series) -> pd.Series:
    """Rows before which lines are missing (torn, cut out) and the time between does not say the steps were done."""
    wall = frame.groupby("attempt")["stamp"].diff()
    as_usual = (wall > 0.75 * new * mean) & (wall < 1.5 * new * mean)
    return (new > 1.01 * frame["covered"]) & ~as_usual


def _spans(run: Run) -> list[tuple[float, float]]:
    """First and last time stamp of each attempt, seconds since the run's start."""
    origin = run.start or 0.0
    return [
        ((origin if first is None else first) - origin, (origin if last is None else last) - origin)
        for first, last in zip(run.attempt_starts, run.attempt_ends, strict=True)
    ] or [(0.0, 0.0)]


def _step_clock(frame: pd.DataFrame) -> str:
    """What step times come from; without printed ones, the time between two stamped lines.

    Many lines with one stamp were written in a burst: their stamps say nothing about the steps.
    """
    if frame["step_time_s"].notna().any():
        return "printed"
    wall = (frame["end_s"] - frame["start_s"])[~frame["first"]]
    if not len(wall) or (wall <= 0).mean() > BURST_SHARE:
        return "none"
    wall = frame["end_s"] - frame["start_s"]
    frame["step_time_s"] = (wall / frame["iterations"]).where(~frame["first"])
    frame["printed_s"] = frame["step_time_s"] * frame["iterations"]
    return "stamps"
