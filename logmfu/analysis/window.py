"""A part of a run: from a step or time to a step or time."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from logmfu.tables import Run


def window(run: Run, since: float | int | None, until: float | int | None) -> Run:
    """The run between two bounds. An ``int`` is a step, a ``float`` a time (seconds since 1970 of the log's clock)."""
    if since is None and until is None:
        return run
    steps, events, timers = (
        _cut(frame, run, since, until) for frame in (run.steps, run.events, run.timers)
    )
    attempts = sorted(set(steps["attempt"]) | set(events["attempt"]))
    order = {old: new for new, old in enumerate(attempts, start=1)}
    for frame in (steps, events, timers):
        frame["attempt"] = frame["attempt"].map(order).astype("Int64")
    start, end = _bound(run, steps, events, since, min), _bound(run, steps, events, until, max)
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
        notes=(*run.notes, "only a part of the run was analysed (--since/--until)"),
    )


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
            values, limit = (
                frame["elapsed_s"].astype("float64") if "elapsed_s" in frame else _clock(frame, run),
                bound - (run.start or 0.0),
            )
        keep &= (values >= limit) if later else (values <= limit)
    return frame[keep].copy()


def _clock(frame: pd.DataFrame, run: Run) -> pd.Series:
    return frame["time"].astype("int64") / 1e6 - (run.start or 0.0)


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
