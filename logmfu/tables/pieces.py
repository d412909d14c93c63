"""Files that are pieces of one log: each goes on where another one stops, as log rotation cuts them.

A file goes on inside an attempt when its first lines, up to the first line of a start, belong to a process
that started in the file before. The step numbers tell, the time stamps, and, where a file has neither, the
order in which the files were given. Ranks that print side by side, and a file for each attempt, stay apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from logmfu.tables.attempts import AGAIN_S, ENDS
from logmfu.tables.rows import Floats, categories, numbers

Span = tuple[float, float]
Who = tuple[str, float | None]
"""Rule and rank of a line: each prints a start once."""

STARTS = ("process_start", "startup", "training_start", "load_start", "load_end", "load_none")
"""Lines that a process prints before its first step."""
PAUSES = ("save_start", "save_scheduled", "save_end", "save_failed", "eval_start", "eval_end")
COLUMNS = ["path", "line", "rank", "rule", "clock", "step", "event"]
"""What is looked at of every row."""
OPENS = ("save_start", "eval_start")
"""Those of them that a pause begins with."""
SLACK_S = 2.0
"""Lines of several ranks stand in a wrong order by up to this much."""
SOON_S = 120.0
"""A large run does not start, load and step again within this time: a pause up to here is no restart."""
LINES = 2
"""Intervals between two step lines within which the next one comes directly after, in steps and in time."""


@dataclass(frozen=True, slots=True)
class File:
    """What the beginning and the end of a file say."""

    path: str
    order: int
    span: Span | None
    """First and last time stamp."""
    lines: int
    """Number of its last line that was understood."""
    opening: str
    """What its lines before the first start are: ``steps``, ``failure`` or ``pause``; else the event of that start."""
    closing: str
    """What its last lines are: ``steps``, ``start`` or nothing."""
    began_by: Who | None
    """What printed the first process start."""
    begun_by: frozenset[Who]
    """What printed process starts after its last step and failure."""
    ended: bool
    """A line after them says that something went wrong or ended."""
    first: tuple[float, float]
    """Number and clock of the first step line."""
    last: tuple[float, float]
    """Number and clock of the last step line."""
    interval: tuple[float, float]
    """Steps and seconds from one step line to the next, the usual ones."""
    pausing: bool
    """A save or an evaluation begins after its last step line, and its end is not there."""
    paused: bool
    """Before its first step line stands the end of a save or evaluation that did not begin there."""


@dataclass(frozen=True, slots=True)
class Logs:
    """Which files are pieces of which log; a log has the name of its first file."""

    pieces: Mapping[str, Sequence[File]] = field(default_factory=dict)
    """Of each log that has several, in the order of its lines."""

    def joined(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Rows with the log for a file and the line counted through its pieces, in that order."""
        if not self.pieces:
            return frame
        order = {path: index for index, path in enumerate(frame["path"].drop_duplicates())}
        frame = frame.assign(path=frame["path"].astype(object))
        for log, files in self.pieces.items():
            for file, before in zip(files, _before(files), strict=True):
                mine = frame["path"] == file.path
                frame.loc[mine, "line"] += before
                frame.loc[mine, "path"] = log
            order[log] = min(order.get(file.path, len(order)) for file in files)
        rank = frame["path"].map(order)
        frame["path"] = categories(frame["path"].to_numpy())
        return frame.iloc[np.lexsort((frame["line"], rank))].reset_index(drop=True)

    def parted(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The same rows with the files and lines they were read from."""
        for log, files in self.pieces.items():
            before = np.array(_before(files))
            mine = np.flatnonzero(frame["path"] == log)
            line = frame["line"].to_numpy()[mine]
            piece = np.searchsorted(before, line, side="left") - 1
            path, number = (
                frame["path"].to_numpy(dtype=object, copy=True),
                frame["line"].to_numpy(copy=True),
            )
            path[mine] = np.array([file.path for file in files], dtype=object)[piece]
            number[mine] = line - before[piece]
            frame = frame.assign(path=path, line=number)
        return frame

    def spans(self, files: Mapping[str, Span]) -> dict[str, Span]:
        """First and last stamp of each log, from those of the files."""
        found = dict(files)
        for log, pieces in self.pieces.items():
            known = [found.pop(file.path) for file in pieces if file.path in found]
            if known:
                found[log] = (known[0][0], known[-1][1])
        return found

    def continued(self) -> set[str]:
        """Files that another one goes on from."""
        return {file.path for files in self.pieces.values() for file in files[:-1]}


def _before(files: Sequence[File]) -> list[int]:
    """Lines before each piece."""
    return [sum(file.lines for file in files[:index]) for index in range(len(files))]


def logs(
    given: Sequence[str],
    steps: pd.DataFrame,
    events: pd.DataFrame,
    timers: pd.DataFrame,
    files: Mapping[str, Span],
) -> Logs:
    """Put the pieces of each log together. ``given``: all files; ``files``: first and last stamp of each."""
    if len(given) < 2:
        return Logs()
    tables = [frame.reindex(columns=COLUMNS) for frame in (steps, events, timers)]
    rows = [{str(path): part for path, part in table.groupby("path", sort=False)} for table in tables]
    read = [path for path in given if any(path in parts for parts in rows)]
    known = [
        _file(
            path,
            order,
            files.get(path),
            *(parts.get(path, table[:0]) for parts, table in zip(rows, tables, strict=True)),
        )
        for order, path in enumerate(read)
    ]
    after: dict[str, File] = {}
    for index, file in enumerate(known):
        before = _gone_on_from(file, known, after) if file.opening else None
        if before:
            after[before.path] = file
            known[index] = _with_end_of(before, file)
    heads = [file for file in known if all(file.path != later.path for later in after.values())]
    return Logs({head.path: _chain(head, after) for head in heads if head.path in after})


def _with_end_of(before: File, file: File) -> File:
    """A piece without a step and a start ends as the one before it does."""
    if file.closing:
        return file
    return replace(
        before,
        path=file.path,
        order=file.order,
        lines=file.lines,
        span=file.span or before.span,
        ended=before.ended or file.ended,
    )


def _chain(head: File, after: Mapping[str, File]) -> list[File]:
    chain = [head]
    while chain[-1].path in after:
        chain.append(after[chain[-1].path])
    return chain


def _file(
    path: str,
    order: int,
    span: Span | None,
    steps: pd.DataFrame,
    events: pd.DataFrame,
    timers: pd.DataFrame,
) -> File:
    line, number, clock = (numbers(steps, name) for name in ("line", "step", "clock"))
    starts, ends, pauses = (
        numbers(events[events["event"].isin(names)], "line") for names in (STARTS, ENDS, PAUSES)
    )
    first_start = starts.min(initial=np.inf)
    last_start, last_step = starts.max(initial=-1.0), line.max(initial=-1.0)
    closed = max(last_start, last_step)
    about = events[events["event"].isin(PAUSES)]
    late, early = (
        about.loc[(about["line"] > last_step).to_numpy(), "event"].tolist(),
        about.loc[(about["line"] < line.min(initial=np.inf)).to_numpy(), "event"].tolist(),
    )
    before = (
        ("steps", line),
        ("failure", ends),
        ("pause", np.concatenate([pauses, numbers(timers, "line")])),
    )
    start = next((str(event) for event in events["event"] if event in STARTS), "")
    who = _who(events[events["event"] == "process_start"])
    return File(
        path=path,
        order=order,
        span=span,
        lines=int(max(frame["line"].max() for frame in (steps, events, timers) if len(frame))),
        opening=next((kind for kind, at in before if (at < first_start).any()), start),
        closing="" if closed < 0 else "steps" if last_step == closed else "start",
        began_by=who[0][0] if who else None,
        begun_by=frozenset(one for one, at in who if at > max(last_step, ends.max(initial=-1.0))),
        ended=bool((ends > closed).any()),
        first=(number[0], clock[0]) if len(line) else (np.nan, np.nan),
        last=(number[-1], clock[-1]) if len(line) else (np.nan, np.nan),
        interval=(_usual(number), _usual(clock)),
        pausing=bool(late) and late[-1] in OPENS,
        paused=bool(early) and early[0] not in OPENS,
    )


def _who(starts: pd.DataFrame) -> list[tuple[Who, int]]:
    """Rule and rank of start lines, and their line."""
    columns = (starts[name].tolist() for name in ("rule", "rank", "line"))
    return [
        ((rule, None if rank != rank else rank), line) for rule, rank, line in zip(*columns, strict=True)
    ]


def _usual(values: Floats) -> float:
    """Median of the steps forward."""
    between = np.diff(values)
    between = between[between > 0]
    return float(np.median(between)) if len(between) else 0.0


def _gone_on_from(file: File, known: Sequence[File], after: Mapping[str, File]) -> File | None:
    """The file that another one is the next piece of: of several the one that stops last before it."""
    free = (other for other in known if other.path not in after)
    fitting = [other for other in free if _goes_on(other, file) and not _follows(other, file, after)]
    return max(fitting, key=_stops, default=None)


def _stops(file: File) -> tuple[float, float, int]:
    """When a file stops: by its clock, its steps, and the order given."""
    return file.span[1] if file.span else -np.inf, float(np.nan_to_num(file.last[0], nan=-1.0)), file.order


def _follows(file: File, other: File, after: Mapping[str, File]) -> bool:
    """Whether a file is, or is a piece after, another one."""
    return any(file.path == piece.path for piece in _chain(other, after))


def _goes_on(before: File, file: File) -> bool:
    """Whether the first lines of a file belong to the process that the last lines of another one are of."""
    if before.closing == "steps" and file.opening == "steps":
        return _next_step(before, file)
    if before.closing == "start":
        return not before.ended and _later(before, file) and _starts_on(before, file)
    if before.closing == "steps" and file.opening in ("failure", "pause"):
        late = before.ended and not (file.opening == "failure" and _pause_s(before, file) <= AGAIN_S)
        return not late and _later(before, file)
    return False


def _starts_on(before: File, file: File) -> bool:
    """Whether a start goes on: with anything but a line of it that was there, a while ago or not."""
    if file.opening != "process_start":
        return True
    return file.began_by not in before.begun_by and _pause_s(before, file) <= AGAIN_S


def _next_step(before: File, file: File) -> bool:
    """Whether the first step line of a file comes directly after the last one of another, with no pause for a start.

    It may be about the same step: some programs print two lines for each. A save that begins in one and ends
    in the other lasts as long as it does.
    """
    steps = file.first[0] - before.last[0]
    seconds = file.first[1] - before.last[1]
    if not 0 <= steps <= LINES * max(before.interval[0], file.interval[0], 1.0):
        return False
    at_once = before.ended or steps == 0
    if np.isnan(seconds):
        return not at_once
    soon = LINES * max(before.interval[1], file.interval[1]) + (0.0 if at_once else SOON_S)
    if not at_once and (before.pausing or file.paused):
        soon = np.inf
    return bool(seconds <= soon) and not _wholly_before(file, before)


def _wholly_before(file: File, other: File) -> bool:
    return file.span is not None and other.span is not None and file.span[1] < other.span[0]


def _pause_s(before: File, file: File) -> float:
    """Seconds between the stamps of two files; zero where one has none."""
    return file.span[0] - before.span[1] if before.span and file.span else 0.0


def _later(before: File, file: File) -> bool:
    """Whether a file begins after another one ends: by its clock, else as the next one that was given."""
    if before.span and file.span:
        return _pause_s(before, file) >= -SLACK_S
    return file.order == before.order + 1
