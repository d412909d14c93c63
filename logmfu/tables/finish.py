"""Rows as they were read to the tables of a run: one clock, attempts, one row per step and attempt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from logmfu.schema import EVENT_COLUMNS, MORE_STEPS, STEPS, TIMER_COLUMNS, Column
from logmfu.tables import attempts, clock, pieces, spans
from logmfu.tables.builder import TableBuilder
from logmfu.tables.facts import Facts
from logmfu.tables.rows import KEYS, numbers
from logmfu.tables.run import Coverage, ReadFile, Run

_TEXT = pd.StringDtype("python")
"""Texts as references: a column of one path or host costs eight bytes a row."""
_EXACT = 2**53
"""Integers below are exact as floats."""
_HIDDEN = ("inner", "outer", "before_inner", "before_outer", "rule", "clock")
_BEGINS = ("process_start", "load_end")
_SAME_LINE_TWICE = ("step_time_s", "loss", "grad_norm", "samples_per_s", "inner", "path", "rule", "step")
"""What two printed lines are the same by; what tells most of them apart comes first."""


def finish(builder: TableBuilder, *, inputs: Sequence[ReadFile], parser: str, title: str) -> Run:
    """The run, from everything the builder was given."""
    steps, events, timers = (rows.frame() for rows in (builder.steps, builder.events, builder.timers))
    steps, events, timers = _with_places(steps), _with_places(events), _with_places(timers)
    offsets = _offsets(builder.stamps, (steps, events, timers))
    for frame in (steps, events, timers):
        frame["clock"] = _clock(frame, "inner", "outer", offsets)
    if "before_inner" in events:
        events["silent_since"] = _clock(events, "before_inner", "before_outer", offsets)
    files, strange = spans.of_files(builder.stamps, offsets, builder.between, steps, events)
    if strange.ahead and "silent_since" in events:
        events["silent_since"] = strange.before(events, steps)
    logs = pieces.logs([file.path for file in inputs], steps, events, timers, files)
    steps, events, timers = logs.joined(steps), logs.joined(events), logs.joined(timers)
    steps = _once(steps, events).drop(columns=["inner", "outer"])
    steps["clock"] = spans.reported(steps, events)
    steps["attempt"], borders = attempts.number(
        steps, events, numbers(steps, "clock"), numbers(events, "clock")
    )
    for frame in (events, timers):
        frame["attempt"] = _attempt_of(frame, borders)
        frame["step"] = _step_before(frame, steps)
    steps, conflicts = _one_row_per_step(steps)
    start = min((first for first, _ in files.values()), default=None)
    end = max((last for _, last in files.values()), default=None)
    starts, ends = spans.of_attempts(steps, events, borders, logs.spans(files))
    steps, events, timers = logs.parted(steps), logs.parted(events), logs.parted(timers)
    continued = logs.continued()
    resolution_s = min(clock.resolution(numbers(frame, "clock")) for frame in (steps, events, timers))
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
        notes=(*conflicts, *strange.notes()),
    )


def _with_places(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns every later step counts on, also in an empty table."""
    for name in ("path", "line", "inner", "outer", "rank", "step", "rule"):
        if name not in frame:
            frame[name] = pd.Series(dtype="category" if name in KEYS else "float64", index=frame.index)
    return frame


def _only(frame: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
    """Some columns, not copied."""
    return pd.DataFrame({name: frame[name] for name in names}, index=frame.index, copy=False)


def _offsets(paths: Iterable[str], frames: Sequence[pd.DataFrame]) -> dict[str, float]:
    """What is added to the outer stamps of each file to have them on the clock of its inner ones."""
    if not any(frame["outer"].notna().any() for frame in frames):
        return dict.fromkeys(paths, 0.0)
    return {path: _offset([frame[frame["path"] == path] for frame in frames]) for path in paths}


def _offset(frames: Sequence[pd.DataFrame]) -> float:
    inner, outer = (
        np.concatenate([numbers(frame, name) for frame in frames]) for name in ("inner", "outer")
    )
    return clock.one_clock(inner, outer)[1]


def _clock(frame: pd.DataFrame, inner: str, outer: str, offsets: dict[str, float]) -> pd.Series:
    own = pd.Series(numbers(frame, inner), index=frame.index, copy=False)
    if own.notna().all():
        return own
    other = numbers(frame, outer)
    if any(offsets.values()):
        other = other + frame["path"].map(offsets).astype("float64").fillna(0.0).to_numpy()
    return own.where(own.notna(), other)


def _once(steps: pd.DataFrame, events: pd.DataFrame) -> pd.DataFrame:
    """Drop lines that were printed twice: same file, process start, rule, step and values."""
    if _in_order([numbers(steps, "step")], strictly=True):
        return steps
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
    if _in_order([numbers(steps, name) for name in key], strictly=True):
        return steps, []
    several = steps.duplicated(key, keep=False) & steps["step"].notna()
    notes: list[str] = []
    if several.any():
        merged = steps[several].groupby(key, sort=False, as_index=False).first()
        notes = _conflicts(steps[several])
        steps = pd.concat([steps[~several], merged], ignore_index=True)
    if not _in_order([numbers(steps, name) for name in ("attempt", "step", "line")]):
        steps = steps.sort_values(["attempt", "step", "line"], kind="stable").reset_index(drop=True)
    return steps, notes


def _in_order(keys: Sequence[clock.Times], *, strictly: bool = False) -> bool:
    """Whether rows are in the order of their keys, the first one the most important; strictly: no two are alike."""
    same = np.ones(max(len(keys[0]) - 1, 0), dtype=bool)
    for key in keys:
        if not np.all(~same | (key[1:] >= key[:-1])):  # also where a key is missing
            return False
        same &= key[1:] == key[:-1]
    return not (strictly and same.any())


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
    own = numbers(frame, "step").copy()
    for path in frame["path"].drop_duplicates():
        rows = np.flatnonzero(steps["path"] == path)
        mine = (frame["path"] == path).to_numpy() & np.isnan(own)
        if not len(rows) or not mine.any():
            continue
        line = steps["line"].to_numpy()[rows]
        order = np.argsort(line, kind="stable")
        at = np.searchsorted(line, frame["line"].to_numpy()[mine], side="right", sorter=order) - 1
        printed = rows[order[np.maximum(at, 0)]]
        same = steps["attempt"].to_numpy()[printed] == frame["attempt"].to_numpy()[mine]
        own[mine] = np.where((at >= 0) & same, numbers(steps, "step")[printed], np.nan)
    return own


def _iterations(steps: pd.DataFrame, facts: Facts, events: pd.DataFrame) -> pd.Series:
    """Steps a line is averaged over: as printed, else from the steps around it."""
    step, attempt = numbers(steps, "step"), steps["attempt"].to_numpy()
    between = np.diff(step, prepend=np.nan)
    between[1:][attempt[1:] != attempt[:-1]] = np.nan
    first = np.isnan(between)
    begun = steps["attempt"][first].map(_resumed_at(events)).to_numpy(dtype=float)
    between[first] = step[first] - begun
    stated = facts.get("log_interval")
    interval = stated if isinstance(stated, int) and stated > 0 else None
    if interval:
        open_ = np.flatnonzero(~(between > 0))
        rest = step[open_] % interval
        between[open_] = np.where(rest > 0, rest, interval)
    usual = float(np.median(between[~first], overwrite_input=True)) if not first.all() else np.nan
    # a line is a mean since the line before, even a lost one
    between[~first & (between > max(usual, interval or 0))] = interval or usual
    from_scratch = first & np.isnan(between) & (step <= (usual if usual == usual else 1))
    between[from_scratch] = np.maximum(step[from_scratch], 1)
    between[~(between > 0)] = np.nan
    found = pd.Series(between, index=steps.index, copy=False)
    own = steps.get("iterations")
    return found if own is None else own.where(own.notna(), found)


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
    times = frame.pop("clock")
    frame["time"] = _stamps(times)
    frame["elapsed_s"] = times - (start if start is not None else np.nan)
    out: dict[str, pd.Series] = {}
    for index, column in enumerate(columns):
        values = frame.pop(column.name) if column.name in frame else None
        known = values is not None and values.notna().any()
        if known or index < always:
            out[column.name] = _shared(_cast(values, column, frame.index), out)
    for name in list(map(str, frame.columns)):
        if name not in _HIDDEN and frame[name].notna().any():
            out[name] = _series(_own(frame.pop(name)), frame.index).infer_objects()
    if "silent_since" in out:
        out["silent_since"] = out["silent_since"] - (start or 0.0)
    return pd.DataFrame(out, index=frame.index, copy=False)


def _stamps(times: pd.Series) -> pd.Series:
    """Seconds since 1970 as moments of whole microseconds; what is less than half a nanosecond off one is that."""
    micros = times.to_numpy() * 1e6 + 0.0005
    unknown = np.isnan(micros)
    micros[unknown] = 0.0
    moments = np.floor(micros, out=micros).astype("int64").view("datetime64[us]")
    moments[unknown] = np.datetime64("NaT")
    return _series(moments, times.index)


def _cast(values: pd.Series | None, column: Column, index: pd.Index) -> pd.Series:
    dtype = _TEXT if column.dtype == "string" else column.dtype
    if values is None:
        return pd.Series(None, index=index, dtype=dtype)
    if dtype == "Int64":
        return _whole(values)
    if dtype == "float64":
        return _series(_own(pd.to_numeric(values, errors="coerce").astype("float64")), index)
    return values.astype(_TEXT) if dtype == _TEXT else values


def _whole(values: pd.Series) -> pd.Series:
    """Integers where the values are such that floats hold exactly."""
    if values.dtype == np.int64:
        whole = _own(values)
        if not len(whole) or (whole.min() > -_EXACT and whole.max() < _EXACT):
            return _series(pd.arrays.IntegerArray(whole, np.zeros(len(whole), dtype=bool)), values.index)
    floats = pd.to_numeric(values, errors="coerce").to_numpy(dtype=np.float64)
    exact = np.abs(floats) < _EXACT
    whole = np.rint(np.where(exact, floats, 0.0)).astype(np.int64)
    return _series(pd.arrays.IntegerArray(whole, ~exact), values.index)


def _own(values: pd.Series) -> np.ndarray[Any, Any]:
    """The array of a column that nothing else refers to any more, to be written to, with room for every row."""
    array = values.to_numpy()
    if not array.flags.c_contiguous:
        return array.copy()
    array.flags.writeable = True
    return array


def _series(values: Any, index: pd.Index) -> pd.Series:
    return pd.Series(values, index=index, copy=False)


def _shared(values: pd.Series, table: Mapping[str, pd.Series]) -> pd.Series:
    """The column of the table that is the same, if there is one: it is held once, and copied when it is written to."""
    if values.dtype != np.float64 or not len(values):
        return values
    bits = values.to_numpy().view(np.int64)
    for other in table.values():
        if other.dtype == np.float64:
            theirs = other.to_numpy().view(np.int64)
            if bits[0] == theirs[0] and bits[-1] == theirs[-1] and np.array_equal(bits, theirs):
                return other
    return values
