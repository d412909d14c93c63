"""Rows as they were read to the tables of a run: one clock, attempts, one row per step and attempt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from logmfu.schema import EVENT_COLUMNS, MORE_STEPS, STEPS, TIMER_COLUMNS, Column
from logmfu.tables import attempts, clock, pieces, spans
from logmfu.tables.builder import TableBuilder
from logmfu.tables.facts import Facts
from logmfu.tables.run import Coverage, ReadFile, Run

_TEXT = pd.StringDtype("python")
"""Texts as references: a column of one path or host costs eight bytes a row."""
_HIDDEN = ("inner", "outer", "before_inner", "before_outer", "rule", "clock")
_BEGINS = ("process_start", "load_end")
_SAME_LINE_TWICE = ("path", "rule", "step", "step_time_s", "loss", "grad_norm", "samples_per_s", "inner")


def finish(builder: TableBuilder, *, inputs: Sequence[ReadFile], parser: str, title: str) -> Run:
    """The run, from everything the builder was given."""
    steps, events, timers = (rows.frame() for rows in (builder.steps, builder.events, builder.timers))
    steps, events, timers = _with_places(steps), _with_places(events), _with_places(timers)
    offsets = {path: _offset(path, (steps, events, timers)) for path in builder.stamps}
    for frame in (steps, events, timers):
        frame["clock"] = _clock(frame, "inner", "outer", offsets)
    if "before_inner" in events:
        events["silent_since"] = _clock(events, "before_inner", "before_outer", offsets)
    files = spans.of_files(builder.stamps, offsets, steps, events)
    logs = pieces.logs([file.path for file in inputs], steps, events, timers, files)
    steps, events, timers = logs.joined(steps), logs.joined(events), logs.joined(timers)
    steps = _once(steps, events).drop(columns=["inner", "outer"])
    steps["clock"] = spans.reported(steps, events)
    numbers, borders = attempts.number(
        steps, events, steps["clock"].to_numpy(dtype=float), events["clock"].to_numpy(dtype=float)
    )
    steps["attempt"] = numbers
    printed = _only(steps, ("path", "line", "step", "attempt"))
    steps, conflicts = _one_row_per_step(steps)
    for frame in (events, timers):
        frame["attempt"] = _attempt_of(frame, borders)
        frame["step"] = _step_before(frame, printed)
    start = min((first for first, _ in files.values()), default=None)
    end = max((last for _, last in files.values()), default=None)
    starts, ends = spans.of_attempts(steps, events, borders, logs.spans(files))
    steps, events, timers = logs.parted(steps), logs.parted(events), logs.parted(timers)
    continued = logs.continued()
    resolution_s = min(
        clock.resolution(frame["clock"].to_numpy(dtype=float)) for frame in (steps, events, timers)
    )
    steps["iterations"] = _iterations(steps, builder.facts, events)
    return Run(
        steps=_typed(steps, (*STEPS, *MORE_STEPS), start, len(STEPS)),
        events=_typed(events, EVENT_COLUMNS, start, len(EVENT_COLUMNS)),
        timers=_typed(timers, TIMER_COLUMNS, start, len(TIMER_COLUMNS)),
        facts=builder.facts,
        profiles=tuple(builder.profiles),
        inputs=tuple(
            replace(file, last_s=files[file.path][1])
            if file.path in files and file.path not in continued
            else file
            for file in inputs
        ),
        coverage=_coverage(builder, inputs),
        parser=parser,
        parser_title=title,
        start=start,
        end=end,
        utc_offset=builder.utc_offset,
        resolution_s=resolution_s,
        attempt_starts=starts,
        attempt_ends=ends,
        notes=tuple(conflicts),
    )


def _with_places(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns every later step counts on, also in an empty table."""
    for name in ("path", "line", "inner", "outer", "rank", "step", "rule"):
        if name not in frame:
            frame[name] = pd.Series(
                dtype="object" if name in ("path", "rule") else "float64", index=frame.index
            )
    return frame


def _numbers(frame: pd.DataFrame, name: str) -> clock.Times:
    return pd.to_numeric(frame[name], errors="coerce").to_numpy(dtype=float, copy=True)


def _only(frame: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
    """Some columns, not copied."""
    return pd.DataFrame({name: frame[name] for name in names}, index=frame.index, copy=False)


def _offset(path: str, frames: Sequence[pd.DataFrame]) -> float:
    if not any(frame["outer"].notna().any() for frame in frames):
        return 0.0
    inner, outer = (
        np.concatenate([_numbers(frame[frame["path"] == path], name) for frame in frames])
        for name in ("inner", "outer")
    )
    return clock.one_clock(inner, outer)[1]


def _clock(frame: pd.DataFrame, inner: str, outer: str, offsets: dict[str, float]) -> clock.Times:
    own = _numbers(frame, inner)
    if not np.isnan(own).any():
        return own
    shift: clock.Times = np.zeros(len(frame))
    if any(offsets.values()):
        shift = np.asarray(frame["path"].map(offsets).fillna(0.0), dtype=np.float64)
    return np.asarray(np.where(np.isnan(own), _numbers(frame, outer) + shift, own), dtype=np.float64)


def _once(steps: pd.DataFrame, events: pd.DataFrame) -> pd.DataFrame:
    """Drop lines that were printed twice: same file, process start, rule, step and values."""
    values = [name for name in _SAME_LINE_TWICE if name in steps]
    alike = np.flatnonzero(steps.duplicated("step", keep=False))
    for name in values:  # one by one: a restart does many steps again, and few of them in the same time
        alike = alike[steps[["step", name]].take(alike).duplicated(keep=False)]
    maybe = _only(steps, [*values, "line"]).take(alike)
    telling = [name for name in values if name not in ("path", "rule", "step")]
    known = maybe[telling].notna().any(axis=1) if telling else pd.Series(False, index=maybe.index)
    begins = events.loc[events["event"].isin(_BEGINS), ["path", "line"]] if len(events) else None
    started = maybe.assign(begun=_starts_before(maybe, begins))
    twice = maybe.index[known & started.duplicated([*values, "begun"])]
    return steps.drop(index=twice).reset_index(drop=True) if len(twice) else steps


def _starts_before(rows: pd.DataFrame, begins: pd.DataFrame | None) -> np.ndarray[Any, Any]:
    """How many processes had started or resumed in a row's file before it."""
    count = np.zeros(len(rows), dtype=np.int64)
    for path, lines in begins.groupby("path", sort=False)["line"] if begins is not None else ():
        mine = (rows["path"] == path).to_numpy()
        count[mine] = np.searchsorted(np.sort(lines.to_numpy()), rows["line"].to_numpy()[mine])
    return count


def _one_row_per_step(steps: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Several lines about one step of one attempt become one row; the first value of each column holds.

    The second result says when one rank printed a step several times with different times.
    """
    key = ["attempt", "step"]
    several = steps.duplicated(key, keep=False) & steps["step"].notna()
    notes: list[str] = []
    if several.any():
        merged = steps[several].groupby(key, sort=False, as_index=False).first()
        notes = _conflicts(steps[several])
        steps = pd.concat([steps[~several], merged], ignore_index=True)
    if not _in_order([_numbers(steps, name) for name in ("attempt", "step", "line")]):
        steps = steps.sort_values(["attempt", "step", "line"], kind="stable").reset_index(drop=True)
    return steps, notes


def _in_order(keys: Sequence[clock.Times]) -> bool:
    """Whether rows are in the order of their keys, the first one the most important."""
    same = np.ones(max(len(keys[0]) - 1, 0), dtype=bool)
    for key in keys:
        if not np.all(~same | (key[1:] >= key[:-1])):  # also where a key is missing
            return False
        same &= key[1:] == key[:-1]
    return True


def _conflicts(several: pd.DataFrame) -> list[str]:
    if "step_time_s" not in several:
        return []
    same_rank = several.groupby(["path", "rule", "rank", "attempt", "step"], dropna=False)["step_time_s"]
    times = same_rank.nunique()
    lines = int(same_rank.size()[times > 1].sum())
    if not lines:
        return []
    return [
        f"{lines} lines repeat a step with other times (several runs, or ranks without a prefix, in one file): "
        "of each step the first line is used"
    ]


def _attempt_of(frame: pd.DataFrame, borders: pd.DataFrame) -> np.ndarray[Any, Any]:
    """Attempt of rows that are no steps: that of the last segment that begins before the line."""
    found = np.ones(len(frame), dtype=np.int64)
    for path, group in borders.groupby("path", sort=False):
        mine = (frame["path"] == path).to_numpy()
        at = np.searchsorted(group["first_line"].to_numpy(), frame["line"].to_numpy()[mine], side="right")
        found[mine] = group["attempt"].to_numpy()[np.maximum(at - 1, 0)]
    return found


def _step_before(frame: pd.DataFrame, steps: pd.DataFrame) -> clock.Times:
    """The step a row names, else the last step of its attempt printed before it in the same file."""
    own = _numbers(frame, "step")
    for path in frame["path"].drop_duplicates():
        printed = steps[steps["path"] == path].sort_values("line")
        mine = (frame["path"] == path).to_numpy() & np.isnan(own)
        if not len(printed) or not mine.any():
            continue
        at = np.searchsorted(printed["line"].to_numpy(), frame["line"].to_numpy()[mine], side="right") - 1
        step = _numbers(printed, "step")[np.maximum(at, 0)]
        same = printed["attempt"].to_numpy()[np.maximum(at, 0)] == frame["attempt"].to_numpy()[mine]
        own[mine] = np.where((at >= 0) & same, step, np.nan)
    return own


def _iterations(steps: pd.DataFrame, facts: Facts, events: pd.DataFrame) -> pd.Series:
    """Steps a line is averaged over: as printed, else from the steps around it."""
    step = pd.Series(_numbers(steps, "step"), index=steps.index)
    between = step.groupby(steps["attempt"]).diff()
    first = between.isna()
    begun = steps["attempt"].map(_resumed_at(events))
    if not begun.isna().all():
        between = between.where(~first, step - begun)
    stated = facts.get("log_interval")
    interval = stated if isinstance(stated, int) and stated > 0 else None
    if interval:
        partial = step.mod(interval).where(lambda rest: rest > 0, interval)
        between = between.where(between.notna() & (between > 0), partial)
    usual = between[~first].median() if (~first).any() else np.nan
    lost = ~first & (between > max(usual, interval or 0))
    between = between.where(
        ~lost, interval or usual
    )  # a line is a mean since the line before, even a lost one
    from_scratch = first & (step <= (usual if usual == usual else 1))
    between = between.where(~(from_scratch & between.isna()), step.clip(lower=1))
    own = steps["iterations"] if "iterations" in steps else pd.Series(np.nan, index=steps.index)
    return own.where(own.notna(), between.where(between > 0))


def _resumed_at(events: pd.DataFrame) -> dict[int, float]:
    """Step from which each attempt went on, where a load or resume line says it."""
    if not len(events):
        return {}
    loads = events[(events["event"] == "load_end") & events["step"].notna()]
    return dict(zip(loads["attempt"].tolist(), loads["step"].astype(float).tolist(), strict=True))


def _coverage(builder: TableBuilder, inputs: Sequence[ReadFile]) -> Coverage:
    lines = sum(file.lines for file in inputs)
    other = max(0, lines - builder.matched - builder.near_misses)
    return Coverage(lines, builder.matched, builder.near_misses, other, tuple(builder.misses))


def _typed(
    frame: pd.DataFrame, columns: Sequence[Column], start: float | None, always: int
) -> pd.DataFrame:
    """Schema columns first and with their types; unknown ones after them, as they are.

    The frame is used up, column by column: a large table is not held twice.
    """
    times = frame.pop("clock").astype("float64")
    frame["time"] = pd.to_datetime(times * 1e6, unit="us").astype("datetime64[us]")
    frame["elapsed_s"] = times - (start if start is not None else np.nan)
    out: dict[str, pd.Series] = {}
    for index, column in enumerate(columns):
        if column.name in frame:
            values = frame.pop(column.name)
            if index < always or values.notna().any():
                out[column.name] = _cast(values, column)
        elif index < always:
            out[column.name] = _cast(pd.Series(None, index=frame.index, dtype="object"), column)
    for name in map(str, frame.columns):
        if name not in _HIDDEN and frame[name].notna().any():
            out[name] = frame[name].infer_objects()
    if "silent_since" in out:
        out["silent_since"] = out["silent_since"] - (start or 0.0)
    return pd.DataFrame(out, index=frame.index, copy=False)


def _cast(values: pd.Series, column: Column) -> pd.Series:
    if column.dtype == "Int64":
        whole = values
        if values.dtype != np.int64:
            whole = pd.to_numeric(values, errors="coerce").astype("float64").round()
        exact = whole.abs() < 2**53
        return (whole if exact.all() else whole.where(exact)).astype("Int64")
    if column.dtype == "float64":
        return pd.to_numeric(values, errors="coerce").astype("float64")
    if column.dtype == "string":
        return values.astype(_TEXT)
    return values
