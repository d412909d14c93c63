"""Which process start each row belongs to.

A log file is cut into *epochs* where a process starts again, and each epoch into *segments* where
its step number goes back. Rows of one rank and rule form a stream; streams run side by side. Files
of the same job (one per rank or node) run side by side too: their segments are one attempt when
they overlap in time, or, without time stamps, when they print the same steps with the same values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from logmfu.schema import INCIDENTS
from logmfu.tables.clock import Times
from logmfu.tables.rows import numbers

ENDS = INCIDENTS - {"overflow", "nan_loss", "connection_lost"} | {"exit"}
"""Events after which a process start is a new one even when no step was printed between."""
READY = ("load_end", "load_none", "training_start")
"""Events that all ranks reach together: a start line after them that was there before is of another process."""
STARTING = ("startup", "training_start", "load_start", "load_end", "load_none")
"""Lines between the start of a process and its first step."""
_START = ("line", "clock", "rule", "rank")
AGAIN_S = 30.0
"""Two equal start lines of one rank this far apart, with nothing between, are two starts."""


@dataclass(slots=True, eq=False)
class Segment:
    """A stretch of one file that is (part of) one attempt."""

    path: str
    order: int
    first_line: int
    rows: npt.NDArray[np.intp]
    """Positions in the table of steps."""
    start: float
    end: float
    after: float = np.nan
    """The latest start up to here in its file: segments of a file keep their order when its clock goes back."""
    failed: bool = False
    """A line in it says that something went wrong or ended."""
    attempt: int = 0


def epochs(
    path_events: pd.DataFrame, step_lines: npt.NDArray[np.int64], steps: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """First lines of the epochs of one file; the first one is 0.

    Every rank may print its own start, so a start counts only after a step or an end since the last,
    or, where it was printed before, once all ranks were ready or a while after.
    Steps after the program said that it ends are another process too, unless they just go on: then
    another rank's lines came late.
    """
    borders = [0]
    seen_start = False
    ends = path_events["line"].to_numpy()[path_events["event"].isin(ENDS).to_numpy()]
    ready = path_events["line"].to_numpy()[path_events["event"].isin(READY).to_numpy()]
    since: dict[object, tuple[int, float]] = {}  # the first start of each kind and rank in this epoch
    starts = path_events[path_events["event"] == "process_start"]
    for line, clock, rule, rank in zip(*(starts[name].tolist() for name in _START), strict=True):
        last = borders[-1]
        stepped = np.searchsorted(step_lines, line) > np.searchsorted(step_lines, last)
        ended = seen_start and ((ends > last) & (ends < line)).any()
        who = (rule, None if rank != rank else rank)
        began, at = since.get(who, (line, clock))
        if stepped or ended or clock - at > AGAIN_S or ((ready > began) & (ready < line)).any():
            borders.append(int(line))
            since.clear()
        since.setdefault(who, (line, clock))
        seen_start = True
    said = path_events.loc[path_events["event"] == "exit", "line"].to_numpy()
    borders.extend(int(line) + 1 for line in said if _goes_elsewhere(int(line), step_lines, steps, borders))
    return np.array(sorted(borders), dtype=np.int64)


def _goes_elsewhere(
    line: int, step_lines: npt.NDArray[np.int64], steps: npt.NDArray[np.float64], borders: list[int]
) -> bool:
    """Whether the step after a line is not one of the next after the step before it."""
    at = int(np.searchsorted(step_lines, line))
    if not 0 < at < len(steps) or any(line <= border <= step_lines[at] for border in borders):
        return False
    usual = float(np.median(np.abs(np.diff(steps)))) if len(steps) > 1 else 1.0
    return not 0 <= steps[at] - steps[at - 1] <= 2 * usual


def number(
    steps: pd.DataFrame, events: pd.DataFrame, step_times: Times, event_times: Times
) -> tuple[npt.NDArray[np.int64], pd.DataFrame]:
    """Attempt number of each step row, and the segments' borders.

    The times hold the clock of each row (NaN where unknown). The second result has one row per
    segment: ``path, first_line, attempt, start, end`` by file and line; an event belongs to the last
    segment of its file that begins before it.
    """
    paths = list(dict.fromkeys([*_column(steps, "path"), *_column(events, "path")]))
    segments: list[Segment] = []
    for order, path in enumerate(paths):
        lines, about = _lines(steps, path, step_times), _of(events, path, event_times)
        segments.extend(_file_segments(path, order, lines, about))
    _join(segments, steps)
    attempt = np.zeros(len(steps), dtype=np.int64)
    for segment in segments:
        attempt[segment.rows] = segment.attempt
    borders = pd.DataFrame(
        [(s.path, s.first_line, s.attempt, s.start, s.end) for s in segments],
        columns=["path", "first_line", "attempt", "start", "end"],
    )
    return attempt, borders.sort_values(["path", "first_line"], kind="stable")


def _column(frame: pd.DataFrame, name: str) -> list[str]:
    return frame[name].drop_duplicates().tolist() if name in frame else []


def _of(frame: pd.DataFrame, path: str, times: Times) -> pd.DataFrame:
    """Events of one file, with their clock."""
    names = ["line", "rule", "rank", "event"]
    if not len(frame):
        return pd.DataFrame({name: [] for name in ("clock", *names)})
    mine = (frame["path"] == path).to_numpy()
    return frame.loc[mine, names].assign(clock=times[mine])


@dataclass(frozen=True, slots=True, eq=False)
class _Lines:
    """The step lines of one file: where they stand in the table, and what they say."""

    rows: npt.NDArray[np.intp]
    line: npt.NDArray[np.int64]
    step: npt.NDArray[np.float64]
    clock: npt.NDArray[np.float64]
    rank: npt.NDArray[np.float64]
    rule: pd.Series


def _lines(steps: pd.DataFrame, path: str, times: Times) -> _Lines:
    rows = np.flatnonzero(steps["path"] == path)
    if len(rows) < len(steps):
        steps, times = steps[["line", "step", "rank", "rule"]].take(rows), times[rows]
    line = steps["line"].to_numpy(dtype=np.int64)
    return _Lines(rows, line, numbers(steps, "step"), times, numbers(steps, "rank"), steps["rule"])


def _file_segments(path: str, order: int, steps: _Lines, events: pd.DataFrame) -> list[Segment]:
    borders = epochs(events, steps.line, steps.step)
    parts = _parts(steps, borders)
    firsts: list[tuple[int, npt.NDArray[np.intp]]] = []
    for index, border in enumerate(borders.tolist()):
        beginning, *others = parts.get(index, [np.empty(0, dtype=np.intp)])
        firsts.append((border, beginning))
        firsts.extend(
            (_beginning(int(steps.line[chosen].min()), steps, events), chosen) for chosen in others
        )
    found: list[Segment] = []
    ends = [first for first, _ in firsts[1:]] + [np.iinfo(np.int64).max]
    for (first, chosen), end_line in zip(firsts, ends, strict=True):
        about = events[(events["line"] >= first) & (events["line"] < end_line)]
        clock = np.concatenate([steps.clock[chosen], numbers(about, "clock")])
        start, end = (float(pick.reduce(clock, initial=np.nan)) for pick in (np.fmin, np.fmax))
        started = bool((about["event"] == "process_start").any())
        if len(chosen) or started or len(firsts) == 1:
            failed = not np.isnan(start) and bool(about["event"].isin(ENDS).any())
            found.append(Segment(path, order, first, steps.rows[chosen], start, end, failed=failed))
    return found


def _beginning(first: int, steps: _Lines, events: pd.DataFrame) -> int:
    """Where a process begins whose first step line is known: with the first line of a start since the step line before."""
    before = steps.line[steps.line < first].max(initial=0)
    starts = events["line"].to_numpy()[events["event"].isin(STARTING).to_numpy()]
    return int(starts[(starts > before) & (starts < first)].min(initial=first))


def _parts(steps: _Lines, borders: npt.NDArray[np.int64]) -> dict[int, list[npt.NDArray[np.intp]]]:
    """Rows of each epoch, apart by how often their stream went back."""
    epoch = np.searchsorted(borders, steps.line, side="right") - 1
    back = _times_back(steps, epoch)
    most = int(back.max(initial=0)) + 1
    key = epoch * most + back if most > 1 else epoch
    order = _sorted(key)
    key = key[order]
    found: dict[int, list[npt.NDArray[np.intp]]] = {}
    for rows in np.split(order, np.flatnonzero(key[1:] != key[:-1]) + 1) if len(order) else ():
        found.setdefault(int(epoch[rows[0]]), []).append(rows)
    return found


def _sorted(key: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
    """Rows by their key, and as they stand where it is the same."""
    return np.arange(len(key)) if np.all(key[1:] >= key[:-1]) else np.argsort(key, kind="stable")


def _times_back(steps: _Lines, epoch: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """How often the step of a row's stream (rank and rule) went back since its epoch began."""
    if np.all(steps.step[1:] >= steps.step[:-1]):
        return np.broadcast_to(0, len(epoch))
    rank, rule = (pd.factorize(column, use_na_sentinel=False)[0] for column in (steps.rank, steps.rule))
    stream = (epoch * (rank.max() + 1) + rank) * (rule.max() + 1) + rule
    order = _sorted(stream)
    step, stream = steps.step[order], stream[order]
    goes_on = stream[1:] == stream[:-1]
    earlier = np.concatenate([[False], (step[1:] < step[:-1]) & goes_on])
    swapped = np.zeros(len(step), dtype=bool)  # two lines in the wrong order are no restart
    if len(step) > 3:
        swapped[2:-1] = (
            (step[2:-1] > step[:-3]) & (step[3:] > step[1:-2]) & goes_on[:-2] & goes_on[1:-1] & goes_on[2:]
        )
    back = np.cumsum(earlier & ~swapped)
    starts = np.flatnonzero(np.concatenate([[True], ~goes_on]))
    found = np.empty(len(back), dtype=np.int64)
    found[order] = back - np.repeat(back[starts], np.diff([*starts, len(back)]))
    return found


def _join(segments: list[Segment], steps: pd.DataFrame) -> None:
    """Give the segments their attempt numbers, joining those of files that ran side by side."""
    stepping = {segment.path for segment in segments if len(segment.rows)}
    main = [s for s in segments if s.path in stepping] or segments
    timed = all(not np.isnan(segment.start) for segment in main)
    latest: dict[str, float] = {}
    for segment in main:
        segment.after = latest[segment.path] = max(segment.start, latest.get(segment.path, segment.start))
    groups: list[list[Segment]] = []
    for segment in sorted(main, key=lambda s: (s.after if timed else 0.0, s.order, s.first_line)):
        home = next((g for g in reversed(groups) if _together(g, segment, steps, timed)), None)
        if home is None:
            groups.append([segment])
        else:
            home.append(segment)
    side = [s for s in segments if s not in main]
    alone = [s for s in side if timed and s.failed and not any(_overlap(g, s) for g in groups)]
    groups.extend(
        [segment] for segment in alone
    )  # starts that never came to a step, in a file of their own
    if alone:
        groups.sort(key=lambda group: min(segment.start for segment in group))
    for index, group in enumerate(groups, start=1):
        for segment in group:
            segment.attempt = index
    _join_side_files([s for s in side if s not in alone], groups)


def _join_side_files(side: list[Segment], groups: list[list[Segment]]) -> None:
    """Files without steps: by time where they have one, else first start to first attempt, and so on."""
    for path in dict.fromkeys(segment.path for segment in side):
        for index, segment in enumerate(s for s in side if s.path == path):
            by_time = [number for number, group in enumerate(groups, start=1) if _overlap(group, segment)]
            segment.attempt = by_time[0] if by_time else min(index + 1, len(groups))


def _overlap(group: list[Segment], segment: Segment) -> bool:
    """Whether a segment ran at the same time as one of a group."""
    return any(other.start <= segment.end and segment.start <= other.end for other in group)


def _together(group: list[Segment], segment: Segment, steps: pd.DataFrame, timed: bool) -> bool:
    if any(other.path == segment.path for other in group):
        return False
    if timed:
        return _overlap(group, segment)
    return any(_same_values(steps.loc[other.rows], steps.loc[segment.rows]) for other in group)


def _same_values(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    """Whether two stretches print the same steps with the same step time or loss."""
    shared = [name for name in ("step_time_s", "loss") if name in one and name in other]
    left, right = one.drop_duplicates("step"), other.drop_duplicates("step")
    both = left.merge(right, on="step", suffixes=("", "_other"))
    return bool(len(both)) and all(
        np.allclose(both[name].astype(float), both[f"{name}_other"].astype(float), equal_nan=True)
        for name in shared
    )
