"""From when to when: files, attempts, and step lines that others stamp.

Within a file the order of the lines decides, not the stamps: a clock may be set back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from logmfu.stamps import AnyStamps, Between
from logmfu.tables import strays
from logmfu.tables.rows import numbers
from logmfu.tables.strays import Span, Strays

LIFE = (
    "process_start", "startup", "training_start", "exit",
    "time_limit", "preempted", "cancelled", "node_failure",
)  # fmt: skip
"""Events whose text may carry a time stamp of the moment itself: it counts like a stamp before the line."""
REPORT_NEAR = 60
"""Lines within which a second program's report of a step stands beside the step line itself."""


def of_files(
    stamps: Mapping[str, AnyStamps],
    offsets: Mapping[str, float],
    between: Mapping[str, Between],
    steps: pd.DataFrame,
    events: pd.DataFrame,
) -> tuple[dict[str, Span], Strays]:
    """First and last stamp of each file in the order of its lines, on one clock; and whose other lines are on another."""
    found: dict[str, Span] = {}
    for path, marks in stamps.items():
        ends = [
            both[0] if both[0] is not None else (both[1] or 0.0) + offsets[path]
            for both in (marks.first, marks.last)
            if both is not None
        ]
        found[path] = (ends[0], ends[-1])
    outermost = _outermost(steps, ("path",)).groupby("path", sort=False, observed=True)
    stepped = {str(path): _ends(rows) for path, rows in outermost}
    strange = strays.find(found, stepped, between, offsets)
    if strange.ahead:
        said = {*stepped, *events["path"][events["clock"].notna()]}
        found = {path: span for path, span in found.items() if path in said}
        for path in strange.ahead:
            read = [_is_read(path, line, (steps, events)) for line in stamps[path].lines]
            found[path] = strange.moved(path, found[path], stepped[path], (not read[0], not read[1]))
    for path, (first, last) in stepped.items():
        begin, end = found.get(path, (first, last))
        found[path] = (min(begin, first), max(end, last))
    _live(found, steps, events)
    return found, strange


def _is_read(path: str, line: int, frames: Iterable[pd.DataFrame]) -> bool:
    """Whether a line of a file gave a row with a clock."""
    return any(
        bool(((frame["line"] == line) & (frame["path"] == path) & frame["clock"].notna()).any())
        for frame in frames
    )


def _live(found: dict[str, Span], steps: pd.DataFrame, events: pd.DataFrame) -> None:
    """Let the life of a process begin and end with the lines that tell of it."""
    life = events[events["event"].isin(LIFE) & events["clock"].notna()] if len(events) else events
    if not len(life):
        return
    stamped, line = steps["clock"].notna().to_numpy(), numbers(steps, "line")
    for path in life["path"].drop_duplicates():
        mine = life[life["path"] == path]
        first, last = _ends(mine)
        begin, end = found.get(path, (first, last))
        stepped = line[stamped & (steps["path"] == path).to_numpy()]
        early, late = stepped.min(initial=np.inf), stepped.max(initial=-np.inf)
        found[path] = (
            min(first, begin) if mine["line"].min() < early else begin,
            max(last, end) if mine["line"].max() > late else end,
        )


def _ends(rows: pd.DataFrame) -> Span:
    """Clock of the first and of the last line."""
    clock, line = numbers(rows, "clock"), numbers(rows, "line")
    return float(clock[np.argmin(line)]), float(clock[np.argmax(line)])


def _outermost(frame: pd.DataFrame, by: Sequence[str] = ("attempt", "path")) -> pd.DataFrame:
    """First and last line with a clock, of each attempt in each file, or of each file."""
    columns = [*by, "line", "clock"]
    if not (stamped := frame["clock"].notna()).all():
        frame = frame.loc[stamped, columns]
    known = frame.take(_borders(frame, by))[columns]  # few rows of all columns, not all rows of few
    lines = known["line"].groupby([known[name] for name in by], sort=False)
    return known.loc[pd.unique(np.concatenate([lines.idxmin().to_numpy(), lines.idxmax().to_numpy()]))]


def _borders(frame: pd.DataFrame, by: Sequence[str]) -> npt.NDArray[np.intp]:
    """First and last row of every stretch in which these columns stay as they are and the line goes up."""
    line = frame["line"].to_numpy()
    border = np.ones(len(frame) + 1, dtype=bool)
    border[1:-1] = line[1:] <= line[:-1]
    for name in by:
        key = frame[name].cat.codes.to_numpy() if name == "path" else frame[name].to_numpy()
        border[1:-1] |= key[1:] != key[:-1]
    return np.flatnonzero(border[1:] | border[:-1])


def of_attempts(
    steps: pd.DataFrame, events: pd.DataFrame, borders: pd.DataFrame, files: Mapping[str, Span]
) -> tuple[tuple[float | None, ...], tuple[float | None, ...]]:
    """First and last time stamp of each attempt; those of its files at the files' ends."""
    count = int(max([1, *borders["attempt"]]))
    firsts: list[list[float]] = [[] for _ in range(count)]
    lasts: list[list[float]] = [[] for _ in range(count)]
    outermost = pd.concat([_outermost(frame) for frame in (steps, events)])
    for _, rows in outermost.groupby(["attempt", "path"], sort=False):
        (first, last), number = _ends(rows), int(rows["attempt"].iloc[0])
        firsts[number - 1].append(first)
        lasts[number - 1].append(last)
    for path, span in files.items():
        touched = borders.loc[borders["path"] == path, "attempt"].tolist() or [1, count]
        first_of, last_of = int(touched[0]), int(touched[-1])
        firsts[first_of - 1].append(span[0])
        lasts[last_of - 1].append(span[1])
    starts: list[float | None] = [min(times, default=None) for times in firsts]
    ends: list[float | None] = [max(times, default=None) for times in lasts]
    _place_last_stamps(events, starts, ends)
    return tuple(starts), tuple(ends)


def _place_last_stamps(events: pd.DataFrame, starts: list[float | None], ends: list[float | None]) -> None:
    """The last stamped line before a start belongs to the attempt it is nearer to in time.

    Launchers print before the program says that it starts, and dying processes after its last step. What
    stands before a line that tells of a failure is of the attempt that failed.
    """
    if "silent_since" not in events:
        return
    starting = events["event"] == "process_start"
    failed = events[~starting & events["silent_since"].notna()].groupby("attempt")["silent_since"].max()
    for attempt, at in zip(failed.index.tolist(), failed.tolist(), strict=True):
        ends[attempt - 1] = _later(ends[attempt - 1], at)
    begins = events[starting].groupby("attempt")["silent_since"].min()
    for attempt, before in zip(begins.index.tolist(), begins.tolist(), strict=True):
        if attempt < 2 or before != before:
            continue
        ended, begun = ends[attempt - 2], starts[attempt - 1]
        if ended is not None and begun is not None and before - ended > begun - before:
            starts[attempt - 1] = min(begun, before)
        else:
            ends[attempt - 2] = _later(ended, before)


def _later(one: float | None, other: float) -> float:
    return other if one is None else max(one, other)


def reported(steps: pd.DataFrame, events: pd.DataFrame) -> pd.Series:
    """Clock of each row; of a step line without a stamp that of the nearest stamped report of the same step."""
    reports = (
        events[(events["event"] == "engine_report") & events["clock"].notna()] if len(events) else events
    )
    if not len(reports) or steps["clock"].notna().all():
        return steps["clock"]
    own = numbers(steps, "clock").copy()
    for path, group in reports.groupby("path", sort=False):
        mine = np.flatnonzero((steps["path"] == path).to_numpy() & np.isnan(own))
        bare = pd.DataFrame({name: numbers(steps, name)[mine] for name in ("step", "line")}).dropna()
        told = pd.DataFrame({name: numbers(group, name) for name in ("step", "line", "clock")}).dropna()
        bare, told = bare.sort_values("line"), told.sort_values("line")
        near = pd.merge_asof(bare, told, on="line", by="step", direction="nearest", tolerance=REPORT_NEAR)
        own[mine[bare.index]] = near["clock"].to_numpy()
    return pd.Series(own, index=steps.index, copy=False)
