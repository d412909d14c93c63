"""A part of a run: from a step or time to a step or time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from logmfu.errors import OptionError
from logmfu.tables import Run

HALF_A_MICRO = 5e-7
"""Seconds since 1970 as floats are not finer; the stamp of a line is inside its own bound."""


def window(run: Run, since: float | int | None, until: float | int | None) -> Run:
    """The run between two bounds. An ``int`` is a step, a ``float`` a time (seconds since 1970 of the log's clock).

    Raises ``OptionError`` when no step is left.
    """
    if since is None and until is None:
        return run
    steps, events, timers = (
        _cut(frame, run, since, until) for frame in (run.steps, run.events, run.timers)
    )
    if run.steps["step"].notna().any() and not len(steps):
        raise OptionError(
            "no step is between --since and --until",
            facts=[f"the log has steps {run.steps['step'].min()} to {run.steps['step'].max()}"],
        )
    attempts = sorted(set(steps["attempt"]) | set(events["attempt"]))
    order = {old: new for new, old in enumerate(attempts, start=1)}
    for frame in (steps, events, timers):
        frame["attempt"] = frame["attempt"].map(order).astype("Int64")
    start, end = _bound(run, steps, events, since, min), _bound(run, steps, events, until, max)
    if isinstance(since, float) and attempts and _begun(run, attempts[0], since):
        start = since
    shift = 0.0 if start is None or run.start is None else start - run.start
    for frame in (steps, events, timers):
        for name in ("elapsed_s", "silent_since"):
            if name in frame:
                frame[name] = frame[name] - shift
    spans = [
        (_later(run.attempt_starts, old, start, max), _later(run.attempt_ends, old, end, min))
        for old in attempts
    ]
    return replace(
        run,
        steps=steps.reset_index(drop=True),
        events=events.reset_index(drop=True),
        timers=timers.reset_index(drop=True),
        start=start,
        end=end,
        attempt_starts=tuple(span[0] for span in spans),
        attempt_ends=tuple(span[1] for span in spans),
        going_on=bool(attempts) and _going_on(run, attempts[0], steps),
        notes=(*run.notes, "only a part of the run was analysed (--since/--until)"),
    )


def _begun(run: Run, attempt: int, time: float) -> bool:
    """Whether an attempt had begun by a time (seconds since 1970)."""
    start = run.attempt_starts[attempt - 1]
    return start is not None and start <= time


def _going_on(run: Run, attempt: int, steps: pd.DataFrame) -> bool:
    """Whether an attempt had done steps before those that are left."""
    rows = run.steps.index[run.steps["attempt"] == attempt]
    return len(rows) > 0 and rows[0] not in steps.index


def _cut(
    frame: pd.DataFrame, run: Run, since: float | int | None, until: float | int | None
) -> pd.DataFrame:
    keep = pd.Series(True, index=frame.index)
    for bound, later in ((since, True), (until, False)):
        if bound is None:
            continue
        if isinstance(bound, int):
            values, limit = frame["step"].astype("float64"), float(bound)
        else:
            values, limit = _elapsed(frame, run), bound - (run.start or 0.0)
        keep &= (values >= limit - HALF_A_MICRO) if later else (values <= limit + HALF_A_MICRO)
        if later and isinstance(bound, float) and frame is not run.steps:
            keep |= frame["time"].isna() & (_latest(frame, run) > limit + HALF_A_MICRO)
    return frame[keep].copy()


def _elapsed(frame: pd.DataFrame, run: Run) -> pd.Series:
    """Seconds since the start; a row without a stamp stands at the step before it, else where its attempt starts."""
    own = (frame["time"] - pd.Timestamp(run.start or 0.0, unit="s")).dt.total_seconds()
    steps = run.steps[["attempt", "step", "elapsed_s"]].drop_duplicates(["attempt", "step"])
    before = frame[["attempt", "step"]].merge(steps, on=["attempt", "step"], how="left")["elapsed_s"]
    begun = {
        number: start - (run.start or 0.0)
        for number, start in enumerate(run.attempt_starts, start=1)
        if start is not None
    }
    return own.fillna(before.set_axis(frame.index)).fillna(frame["attempt"].map(begun).astype("float64"))


def _latest(frame: pd.DataFrame, run: Run) -> pd.Series:
    """Seconds since the start at which rows without a stamp stand at the latest: the next step, else the attempt's end."""
    ends = {
        number: end - (run.start or 0.0)
        for number, end in enumerate(run.attempt_ends, start=1)
        if end is not None
    }
    latest = frame["attempt"].map(ends).to_numpy(dtype=float, na_value=np.nan, copy=True)
    for attempt, steps in run.steps[run.steps["step"].notna()].groupby("attempt"):
        mine = np.flatnonzero(frame["attempt"] == attempt)
        before = frame["step"].to_numpy(dtype=float, na_value=-1.0)[mine]
        after = np.searchsorted(steps["step"].to_numpy(dtype=float), before, side="right")
        known = after < len(steps)
        latest[mine[known]] = steps["elapsed_s"].to_numpy(dtype=float)[after[known]]
    return pd.Series(latest, index=frame.index)


def _bound(
    run: Run, steps: pd.DataFrame, events: pd.DataFrame, bound: float | int | None, pick: object
) -> float | None:
    known = pd.concat([steps["elapsed_s"], events["elapsed_s"]]).dropna()
    whole = run.start if pick is min else run.end
    if bound is None or run.start is None or not len(known):
        return whole
    return run.start + float(known.min() if pick is min else known.max())


def _later(
    times: tuple[float | None, ...], attempt: int, bound: float | None, pick: object
) -> float | None:
    own = times[attempt - 1] if attempt <= len(times) else None
    if own is None or bound is None:
        return own if bound is None else bound
    return max(own, bound) if pick is max else min(own, bound)
