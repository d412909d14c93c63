"""From when to when: files, attempts, and step lines that others stamp.

Within a file the order of the lines decides, not the stamps: a clock may be set back.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from logmfu.stamps import AnyStamps
from logmfu.tables.clock import Times

LIFE = (
    "process_start", "startup", "training_start", "exit",
    "time_limit", "preempted", "cancelled", "node_failure",
)  # fmt: skip
"""Events whose text may carry a time stamp of the moment itself: it counts like a stamp before the line."""
REPORT_NEAR = 60
"""Lines within which a second program's report of a step stands beside the step line itself."""

Span = tuple[float, float]


def of_files(
    stamps: Mapping[str, AnyStamps], offsets: Mapping[str, float], steps: pd.DataFrame, events: pd.DataFrame
) -> dict[str, Span]:
    """First and last stamp of each file in the order of its lines, on one clock."""
    found: dict[str, Span] = {}
    for path, marks in stamps.items():
        ends = [
            both[0] if both[0] is not None else (both[1] or 0.0) + offsets[path]
            for both in (marks.first, marks.last)
            if both is not None
        ]
        found[path] = (ends[0], ends[-1])
    life = events[events["event"].isin(LIFE) & events["clock"].notna()] if len(events) else events
    if not len(life):
        return found
    stamped = steps.loc[steps["clock"].notna(), ["path", "line"]]
    stepped = stamped.groupby("path", sort=False)["line"].agg(["min", "max"])
    for path in life["path"].drop_duplicates():
        mine = life[life["path"] == path]
        first, last = _ends(mine)
        begin, end = found.get(path, (first, last))
        early, late = stepped.loc[path] if path in stepped.index else (np.inf, -np.inf)
        found[path] = (
            min(first, begin) if mine["line"].min() < early else begin,
            max(last, end) if mine["line"].max() > late else end,
        )
    return found


def _ends(rows: pd.DataFrame) -> Span:
    """Clock of the first and of the last line."""
    clock = rows["clock"].to_numpy(dtype=float)
    line = rows["line"].to_numpy(dtype=float)
    return float(clock[np.argmin(line)]), float(clock[np.argmax(line)])


def _outermost(frame: pd.DataFrame) -> pd.DataFrame:
    """First and last line with a clock, of each attempt in each file."""
    stamped = frame.loc[frame["clock"].notna(), "line"]
    lines = stamped.groupby([frame["attempt"], frame["path"]], sort=False)
    rows = pd.unique(np.concatenate([lines.idxmin().to_numpy(), lines.idxmax().to_numpy()]))
    return frame.loc[rows, ["attempt", "path", "line", "clock"]]


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
        numbers = borders.loc[borders["path"] == path, "attempt"].tolist() or [1, count]
        first_of, last_of = int(numbers[0]), int(numbers[-1])
        firsts[first_of - 1].append(span[0])
        lasts[last_of - 1].append(span[1])
    starts: list[float | None] = [min(times, default=None) for times in firsts]
    ends: list[float | None] = [max(times, default=None) for times in lasts]
    _place_last_stamps(events, starts, ends)
    return tuple(starts), tuple(ends)


def _place_last_stamps(events: pd.DataFrame, starts: list[float | None], ends: list[float | None]) -> None:
    """The last stamped line before a start belongs to the attempt it is nearer to in time.

    Launchers print before the program says that it starts, and dying processes after its last step.
    """
    if "silent_since" not in events:
        return
    begins = events[events["event"] == "process_start"].groupby("attempt")["silent_since"].min()
    for attempt, before in zip(begins.index.tolist(), begins.tolist(), strict=True):
        if attempt < 2 or before != before:
            continue
        ended, begun = ends[attempt - 2], starts[attempt - 1]
        if ended is not None and begun is not None and before - ended > begun - before:
            starts[attempt - 1] = min(begun, before)
        else:
            ends[attempt - 2] = before if ended is None else max(ended, before)


def reported(steps: pd.DataFrame, events: pd.DataFrame) -> Times:
    """Clock of step lines without a stamp: that of the nearest stamped report of the same step."""
    own = steps["clock"].to_numpy(dtype=float, copy=True)
    reports = (
        events[(events["event"] == "engine_report") & events["clock"].notna()] if len(events) else events
    )
    if not len(reports) or not np.isnan(own).any():
        return own
    step = pd.to_numeric(steps["step"], errors="coerce").to_numpy(dtype=float)
    line = steps["line"].to_numpy(dtype=float)
    for path, group in reports.groupby("path", sort=False):
        lines, stamps = group["line"].to_numpy(dtype=float), group["clock"].to_numpy(dtype=float)
        of_step = pd.to_numeric(group["step"], errors="coerce").to_numpy(dtype=float)
        for row in np.flatnonzero((steps["path"] == path).to_numpy() & np.isnan(own)):
            low, high = np.searchsorted(lines, (line[row] - REPORT_NEAR, line[row] + REPORT_NEAR))
            same = low + np.flatnonzero(of_step[low:high] == step[row])
            if len(same):
                own[row] = stamps[same[np.argmin(np.abs(lines[same] - line[row]))]]
    return own
