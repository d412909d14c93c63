"""Every second between two step lines into one class, and the pauses that stand out.

For each interval there are two amounts beyond the run's own pace: the *gap* (wall clock outside the
printed step time) and the *excess* (printed step time above the baseline). Which of the two a pause sits
in depends on the program: that is a fact of its parser (``step_time_includes``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from logmfu.analysis.intervals import ALL, Array, Bools, Rows, Timeline
from logmfu.analysis.marks import Mark
from logmfu.analysis.pace import SIGMAS, Pace, relative_noise, unremarkable_steps
from logmfu.analysis.waits import Waits
from logmfu.report import Confidence, Evidence

EVERYTHING = frozenset(("checkpoint", "evaluation"))
"""Pauses that step times may contain, when the step clock is the wall clock or the log does not say."""
PAUSES = ("checkpoint", "evaluation", "restore", "gc")
Taken = dict[int, float]
"""Seconds by row."""
RESOLUTIONS = 3.0
"""A gap is only seen when it is this many times the resolution of the time stamps."""
LEAST_SHARE = 0.05
"""A pause is only a finding when it is this part of its interval."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Seconds of one interval that belong to one class. ``shown``: large enough to be a finding."""

    kind: str
    row: int
    seconds: float
    confidence: Confidence
    evidence: tuple[Evidence, ...]
    step: int | None
    start_s: float | None = None
    shown: bool = True
    text: str = ""


@dataclass(slots=True)
class Account:
    """What is known of each interval: seconds by class; the rest of its wall clock is productive."""

    line: Timeline
    pace: Pace
    gap_limit: float
    """Gaps up to here are rounding and logging."""
    pauses: list[Pause] = field(default_factory=list)
    unseen: list[Pause] = field(default_factory=list)
    """Pauses that a timer measured and that a rebuilt wall clock does not contain."""
    _left: dict[int, float] = field(default_factory=dict)
    """Wall clock not yet given to a class, of intervals of which something was."""

    def excess_s(self, rows: Rows | slice = ALL) -> Array:
        """Printed step time of some intervals above the baseline."""
        line = self.line
        excess = _seen(line, rows)
        excess -= line.iterations[rows] * self.pace.baseline[rows]
        return np.nan_to_num(np.maximum(excess, 0.0, out=excess), copy=False)

    def gap_at(self, row: int) -> float:
        """Wall clock of one interval outside the printed step time."""
        return float(gap_s(self.line, slice(row, row + 1))[0])

    def excess_at(self, row: int) -> float:
        """Printed step time of one interval above the baseline."""
        return float(self.excess_s(slice(row, row + 1))[0])

    def left(self, rows: slice) -> Array:
        """Wall clock of some intervals not yet given to a class."""
        left = np.maximum(self.line.wall_s(rows), 0.0)
        for row, seconds in self._left.items():
            if rows.start <= row < rows.stop:
                left[row - rows.start] = seconds
        return left

    def give(self, pause: Pause) -> None:
        """Take a pause's seconds out of its interval."""
        left = self._left.get(pause.row, max(self.line.length_s(pause.row), 0.0))
        seconds = min(pause.seconds, left)
        if seconds <= 0:
            return
        self._left[pause.row] = left - seconds
        self.pauses.append(replace(pause, seconds=seconds))

    def withdraw(self, pauses: Iterable[Pause]) -> None:
        """Put the seconds of pauses back into their intervals."""
        gone = {id(pause) for pause in pauses}
        for pause in self.pauses:
            if id(pause) in gone:
                self._left[pause.row] += pause.seconds
        self.pauses = [pause for pause in self.pauses if id(pause) not in gone]


def account(
    line: Timeline, pace: Pace, marks: Sequence[Mark], waits: Waits, includes: frozenset[str]
) -> Account:
    """Account for all intervals but the first of each attempt, whose excess is start-up."""
    book = Account(line, pace, _gap_limit(line))
    inner = ~line.first
    named = _by_interval(marks, inner)
    for row, kinds in named.items():
        _named_pauses(book, row, kinds, EVERYTHING if line.step_clock == "stamps" else includes)
    _waits_in_steps(book, waits, inner)
    _unnamed(book, inner)
    return book


def _seen(line: Timeline, rows: Rows | slice) -> Array:
    """What the step clock saw of some intervals; all of the wall clock where nothing is printed."""
    printed = line.printed_s[rows]
    return np.where(np.isnan(printed), line.wall_s(rows), printed)


def gap_s(line: Timeline, rows: Rows | slice = ALL) -> Array:
    """Wall clock of some intervals outside the printed step time."""
    gap = line.wall_s(rows)
    if line.step_clock == "stamps" or line.clock == "reconstructed":
        return np.broadcast_to(0.0, len(gap))
    gap -= _seen(line, rows)
    return np.maximum(gap, 0.0, out=gap)


def _gap_limit(line: Timeline) -> float:
    """Largest gap that rounding of stamps, printed times and logging explain."""
    usual = gap_s(line)[~line.first]
    if not len(usual):
        return RESOLUTIONS * line.resolution_s
    middle = float(np.median(usual))
    usual -= middle
    np.abs(usual, out=usual)
    deviation = 1.4826 * float(np.median(usual, overwrite_input=True))
    return max(
        RESOLUTIONS * line.resolution_s if line.resolution_s >= 1 else 0.01, middle + 8.0 * deviation
    )


def _by_interval(marks: Iterable[Mark], inner: Bools) -> dict[int, dict[str, list[Mark]]]:
    named: dict[int, dict[str, list[Mark]]] = defaultdict(lambda: defaultdict(list))
    for mark in marks:
        if mark.place == "interval" and inner[mark.row]:
            named[mark.row][mark.kind].append(mark)
    return named


def best(marks: Sequence[Mark]) -> Mark:
    """One mark for several lines about the same pause: the longest measured one, with all evidence."""
    measured = [mark for mark in marks if mark.seconds is not None]
    first = (
        max(measured, key=lambda mark: (mark.text.startswith("timer"), mark.seconds))
        if measured
        else marks[0]
    )
    lines = dict.fromkeys(item for mark in (first, *marks) for item in mark.evidence)
    starts = [mark.start_s for mark in marks if mark.start_s is not None]
    return Mark(
        first.kind, first.attempt, first.place, first.row, first.step, _total(measured),
        min(starts) if starts else None, tuple(lines)[:4], first.text,
    )  # fmt: skip


def _total(measured: Sequence[Mark]) -> float | None:
    """Seconds of all pauses of one kind in one place, each counted once: by timers, else by its lines."""
    if not measured:
        return None
    if measured[0].kind == "restore":
        return max(mark.seconds or 0.0 for mark in measured)
    timers = {round(mark.seconds or 0.0, 3) for mark in measured if mark.text.startswith("timer")}
    return sum(timers) if timers else sum({mark.step: mark.seconds or 0.0 for mark in measured}.values())


def _named_pauses(book: Account, row: int, kinds: dict[str, list[Mark]], includes: frozenset[str]) -> None:
    """Pauses that lines name: measured ones take their seconds, the others share what is left."""
    merged = {kind: best(marks) for kind, marks in kinds.items()}
    interval = book.line.length_s(row)
    room = book.gap_at(row) + (book.excess_at(row) if includes else 0.0)
    for kind, mark in merged.items():
        if mark.seconds is not None:
            resolution = 0.0 if mark.text.startswith("timer") else book.line.resolution_s
            shown = mark.seconds >= max(RESOLUTIONS * resolution, LEAST_SHARE * interval)
            pause = Pause(
                kind,
                row,
                mark.seconds,
                "measured",
                mark.evidence,
                mark.step,
                mark.start_s,
                shown,
                mark.text,
            )
            if book.line.clock == "reconstructed" and kind not in includes:
                book.unseen.append(pause)
                continue
            book.give(pause)
            room -= mark.seconds
    sized = [mark for mark in merged.values() if mark.seconds is None and mark.kind in PAUSES]
    slow = [mark for mark in merged.values() if mark.seconds is None and mark.kind not in PAUSES]
    if sized:
        _size_from_gap(book, row, sized, room, includes)
    elif slow and book.excess_at(row) > _excess_limit(book, row):
        mark = slow[0]
        book.give(
            Pause(
                mark.kind,
                row,
                book.excess_at(row),
                "marked",
                mark.evidence,
                mark.step,
                None,
                True,
                mark.text,
            )
        )


def _size_from_gap(
    book: Account, row: int, sized: list[Mark], room: float, includes: frozenset[str]
) -> None:
    """Marks without a duration: the gap is theirs. Of several, none can be told apart."""
    inside = any(mark.kind in includes for mark in sized)
    limit = max(book.gap_limit, _excess_limit(book, row) if inside else 0.0)
    seconds = min(room if inside else book.gap_at(row), room)
    interval = book.line.length_s(row)
    if seconds <= limit or seconds < LEAST_SHARE * interval:
        return
    lines = tuple(item for mark in sized for item in mark.evidence)[:4]
    start = next((mark.start_s for mark in sized if mark.start_s is not None), None)
    names = sorted({mark.kind for mark in sized})
    kind = names[0] if len(names) == 1 else "unknown"
    text = sized[0].text if len(names) == 1 else f"{' and '.join(names)} in one interval, neither timed"
    book.give(Pause(kind, row, seconds, "marked", lines, sized[0].step, start, True, text))


def _excess_limit(book: Account, row: int) -> float:
    """Printed time above the baseline that noise alone does not reach, seconds."""
    n = float(book.line.iterations[row])
    return SIGMAS * book.pace.noise * n * float(book.pace.baseline[row])


def _waits_in_steps(book: Account, waits: Waits, inner: Bools) -> None:
    """Waits that data timers measure: what they have beyond their usual value, as far as the step is longer."""
    if not waits.known:
        return
    line = book.line
    n = line.iterations
    seconds = np.minimum(waits.excess() * n, book.excess_s())
    wall = line.wall_s()
    limit = SIGMAS * book.pace.noise * n * book.pace.baseline
    for row in np.flatnonzero(inner & (seconds > np.maximum(limit, LEAST_SHARE * wall))):
        at = int(row)
        if at in waits.lines:
            evidence = (waits.lines[at], Evidence(line.path[at], int(line.line[at])))
            book.give(Pause("data_wait", at, float(seconds[at]), "measured", evidence, int(line.step[at])))


def _unnamed(book: Account, inner: Bools) -> None:
    """What no line names: large gaps, and steps far above the baseline."""
    line = book.line
    gap, excess = taken(book, book.pauses)
    rows = np.flatnonzero(inner & (gap_s(line) > book.gap_limit))
    rest = _less(gap_s(line, rows), gap, rows)
    large = (rest > np.maximum(book.gap_limit, 0.1 * book.pace.baseline[rows])) & (
        rest > LEAST_SHARE * line.wall_s(rows)
    )
    for at, seconds in zip(rows[large].tolist(), rest[large].tolist(), strict=True):
        book.give(Pause("unknown", at, seconds, "inferred", step_lines(book, at), int(line.begun[at])))
    rows = np.flatnonzero(inner & (book.pace.slow | book.pace.in_slow_span))
    rest = _less(book.excess_s(rows), excess, rows)
    far = _far(book, rows, rest)
    for at, seconds in zip(rows[far].tolist(), rest[far].tolist(), strict=True):
        evidence = step_lines(book, at)[1:]
        book.give(Pause("slow_steps", at, seconds, "inferred", evidence, int(line.step[at])))


def _far(book: Account, rows: Rows, rest: Array) -> Bools:
    """Which rows are far above the pace by what is left of their excess; in a slow span half of that is enough."""
    pace, baseline = book.pace, book.pace.baseline[rows]
    n, in_span = book.line.iterations[rows], pace.in_slow_span[rows]
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = rest / baseline
    limit = SIGMAS * relative_noise(pace.noise, book.line.iterations, rows) * n
    far = np.where(in_span, steps > limit / 2, (steps > unremarkable_steps(n)) & (steps > limit))
    return far & (rest > 0) & (baseline > 0)


def taken(book: Account, pauses: Iterable[Pause]) -> tuple[Taken, Taken]:
    """Seconds that pauses took out of gap and excess of their intervals; a pause empties the gap first."""
    gap: Taken = defaultdict(float)
    excess: Taken = defaultdict(float)
    for pause in pauses:
        inside = pause.kind in ("data_wait", "slow_steps")
        from_gap = 0.0 if inside else min(pause.seconds, book.gap_at(pause.row) - gap[pause.row])
        gap[pause.row] += from_gap
        excess[pause.row] += pause.seconds - from_gap
    return gap, excess


def _less(seconds: Array, taken: Taken, rows: Rows) -> Array:
    """What is left of the seconds of some rows."""
    gone: Array = np.array([taken.get(row, 0.0) for row in rows.tolist()])
    return seconds - gone


def step_lines(book: Account, row: int) -> tuple[Evidence, ...]:
    """The step lines before and after an interval."""
    line = book.line
    rows = [row - 1, row] if row else [row]
    return tuple(Evidence(line.path[at], int(line.line[at])) for at in rows)
