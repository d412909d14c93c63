"""The ledger: every second of the wall clock in exactly one class.

Amounts are whole microseconds, and each stretch of the wall clock (start-up, interval, end of an attempt,
time between attempts) is handed out completely, so that the classes add up exactly.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from logmfu.analysis.account import PAUSES, Account, best
from logmfu.analysis.intervals import Array, Bools, Timeline, median
from logmfu.analysis.marks import EVIDENCE_LINES, Mark
from logmfu.analysis.waits import Waits
from logmfu.report import LEDGER_KINDS, Attempt, LedgerEntry

FAILED = frozenset(("crash", "oom", "hang", "nan", "preempted", "time_limit", "node_failure", "killed", "interrupted", "unknown"))  # fmt: skip


ENDED_FROM_OUTSIDE = frozenset(("hang", "preempted", "time_limit", "node_failure", "killed"))
"""Ends that do not come from the program itself: silence before them is a hang."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Seconds outside the intervals that belong to one class, with the mark that says so."""

    kind: str
    attempt: int
    start_s: float
    seconds: float
    mark: Mark | None = None
    counted: bool = True
    """Part of the wall clock; a rebuilt one has no room for what no step time contains."""


def ledger(
    seconds: Mapping[str, float], wall_s: float, *, devices: int | None, price: float | None
) -> tuple[LedgerEntry, ...]:
    """Entries of all classes that occur; what is missing to the wall clock is ``unknown``."""
    total = round(wall_s * 1e6)
    micros = {kind: max(0, round(seconds.get(kind, 0.0) * 1e6)) for kind in LEDGER_KINDS}
    rest = total - sum(value for kind, value in micros.items() if kind != "unknown")
    micros["unknown"] = max(rest, 0)
    if rest < 0:  # rounding of many small amounts: the largest class gives it back
        largest = max(micros, key=lambda kind: micros[kind])
        micros[largest] += rest
    entries = []
    for kind, value in micros.items():
        if value:
            amount = value / 1e6
            hours = None if devices is None else amount * devices / 3600
            cost = None if hours is None or price is None else hours * price
            entries.append(LedgerEntry(kind, amount, value / total, hours, cost))
    return tuple(entries)


def totals(book: Account, attempts: Sequence[Attempt], stretches: Sequence[Stretch]) -> dict[str, float]:
    """Seconds by class over intervals and everything around them."""
    line = book.line
    seconds: dict[str, float] = defaultdict(float)
    for pause in book.pauses:
        seconds[pause.kind] += pause.seconds
    for stretch in stretches:
        seconds[stretch.kind] += stretch.seconds if stretch.counted else 0.0
    for attempt in attempts:
        rows = line.rows(attempt.number)
        inner = ~line.first[rows]
        outside = _outside(book, rows, inner)
        left = book.left(rows)[inner]
        total = float(left.sum())
        if line.step_clock == "none":  # nothing says what a step takes: all of it stays unknown
            seconds["unknown"] += total
            continue
        seconds["unknown"] += outside
        scale = 1.0 - outside / total if total > 0 else 1.0
        lost = left * lost_share(line, attempt, rows)[inner]
        seconds["lost_work"] += float(lost.sum()) * scale
        left -= lost
        seconds["productive"] += float(left.sum()) * scale
    return seconds


def _outside(book: Account, rows: slice, inner: Bools) -> float:
    """Wall clock of ordinary intervals outside the printed steps: summed up, so that rounding evens out."""
    line = book.line
    if line.step_clock != "printed" or line.clock != "timestamps":
        return 0.0
    taken: dict[int, float] = defaultdict(float)
    for pause in book.pauses:
        if rows.start <= pause.row < rows.stop:
            taken[pause.row] += pause.seconds
    printed = line.printed_s[rows]
    outside = line.wall_s(rows)
    outside -= printed
    for row, seconds in taken.items():
        wall = line.length_s(row)
        work = np.minimum(np.minimum(line.printed_s[row], wall), wall - seconds)
        outside[row - rows.start] = wall - seconds - work
    return max(0.0, float(np.sum(outside[inner & ~np.isnan(printed)])))


def lost_share(line: Timeline, attempt: Attempt, rows: slice) -> Array:
    """Part of the steps of some intervals of an attempt that were done again or never counted."""
    if not attempt.lost_steps or attempt.last_step is None:
        return np.broadcast_to(0.0, rows.stop - rows.start)
    safe = attempt.last_step - attempt.lost_steps
    done: Array = (line.step[rows] - safe) / np.maximum(line.iterations[rows], 1)
    return np.clip(done, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Signs:
    """What the lines of an attempt say about its beginning and end."""

    hang: Mark | None
    """What a watchdog says about how long a collective had been running."""
    trained_s: float | None
    """When the training loop started."""
    failed_s: float | None
    """When the first failure line after the last step line was printed."""
    closed_s: float | None
    """When a launcher saw the first process end well after the last step line."""


def surroundings(
    book: Account,
    attempts: Sequence[Attempt],
    marks: Sequence[Mark],
    signs: Mapping[int, Signs],
    waits: Waits,
) -> list[Stretch]:
    """What lies before the first step line, after the last one, and between attempts."""
    line = book.line
    found: list[Stretch] = []
    for index, attempt in enumerate(attempts):
        number = attempt.number
        start, end = line.starts[index], line.ends[index]
        if index:
            found.append(Stretch("restart_gap", number, line.ends[index - 1], start - line.ends[index - 1]))
        rows = line.rows(number)
        about = [mark for mark in marks if mark.attempt == number]
        if line.clock == "reconstructed":
            found.extend(_without_room(about, start, end))
        if rows.start == rows.stop:
            begins = not (line.going_on and number == 1)
            found.extend(_no_step(attempt, start, end, about, signs[number], begins=begins))
            continue
        if line.first[rows.start]:
            before = [mark for mark in about if mark.place == "before"]
            found.extend(_before(book, attempt, rows.start, before, waits))
        after = [mark for mark in about if mark.place == "after"]
        found.extend(_after(book, attempt, rows.stop - 1, end, after, signs[number]))
    return [stretch for stretch in found if stretch.seconds > 0]


def _without_room(marks: Sequence[Mark], start: float, end: float) -> list[Stretch]:
    """Measured pauses before and after the steps of a rebuilt wall clock, which does not contain them."""
    outside = [mark for mark in marks if mark.place != "interval" and mark.kind in PAUSES]
    return [
        Stretch(
            mark.kind,
            mark.attempt,
            start if mark.place == "before" else end,
            mark.seconds,
            mark,
            counted=False,
        )
        for mark in _one_per_pause(outside)
        if mark.seconds
    ]


def _no_step(
    attempt: Attempt, start: float, end: float, marks: Sequence[Mark], signs: Signs, *, begins: bool
) -> list[Stretch]:
    """An attempt without a step line is start-up (if it ``begins`` here), a restore, or a hang.

    Once its training loop runs, its steps are in the log of another rank: what they took is not known here.
    """
    out, rest = _hand_out(attempt.number, start, end - start, marks)
    stuck = min((signs.hang.seconds or 0.0) if signs.hang else 0.0, rest)
    begun = rest - stuck
    if signs.trained_s is not None:
        begun = min(begun, max(signs.trained_s - start, 0.0))
    return [
        *out,
        Stretch("startup" if begins else "unknown", attempt.number, start, begun),
        Stretch("unknown", attempt.number, start + begun, rest - stuck - begun),
        Stretch("hang", attempt.number, end - stuck, stuck, signs.hang),
    ]


def _hand_out(number: int, start: float, room: float, marks: Sequence[Mark]) -> tuple[list[Stretch], float]:
    """Measured marks take their seconds one after the other; the second result is what they leave."""
    out = []
    for mark in _one_per_pause(marks):
        seconds = min(mark.seconds or 0.0, room)
        room -= seconds
        out.append(
            Stretch(mark.kind, number, start if mark.start_s is None else mark.start_s, seconds, mark)
        )
    return out, room


def _one_per_pause(marks: Sequence[Mark]) -> list[Mark]:
    """Several lines about one pause (its start and end, its timer) are one mark."""
    pauses: dict[tuple[str, int | None], list[Mark]] = {}
    for mark in marks:
        step = None if mark.kind == "restore" else mark.step
        if step is not None and (mark.kind, step) not in pauses:
            step = next(
                (near for near in (step - 1, step + 1) if _halves(mark, pauses.get((mark.kind, near)))),
                step,
            )
        pauses.setdefault((mark.kind, step), []).append(mark)
    return [best(group) for group in pauses.values()]


def _halves(mark: Mark, others: Sequence[Mark] | None) -> bool:
    """A timer and the lines of what it timed: Megatron's save at its exit counts one step on, its timer does not."""
    return others is not None and (mark.seconds is None) != all(other.seconds is None for other in others)


def _before(
    book: Account, attempt: Attempt, row: int, marks: Sequence[Mark], waits: Waits
) -> list[Stretch]:
    """Start-up, restore, and the first interval: its own pace is productive, waits are waits, the rest is warm-up."""
    line, number = book.line, attempt.number
    start = float(line.start_s[row])
    wall = line.length_s(row)
    usual = float(book.pace.baseline[row] * line.iterations[row]) if len(book.pace.baseline) else 0.0
    printed = float(line.printed_s[row])
    inside = min(wall, printed if printed == printed else usual if usual == usual else 0.0)
    productive = min(inside, usual) if usual == usual else inside
    lost = float(lost_share(line, attempt, slice(row, row + 1))[0]) * productive
    out, rest = _hand_out(number, start, wall - inside, marks)
    begun = start + wall - inside
    waited = min(float(waits.excess(row) * line.iterations[row]), inside - productive)
    waited = waited if waited > 0.05 * inside and row in waits.lines else 0.0
    wait = (
        Mark("data_wait", number, "before", row, int(line.step[row]), waited, None, (waits.lines[row],))
        if waited
        else None
    )
    return [
        *out,
        Stretch("startup", number, start, rest),
        Stretch("warmup", number, begun, inside - productive - waited),
        Stretch("data_wait", number, begun, waited, wait),
        Stretch("lost_work", number, begun, lost),
        Stretch("productive", number, begun, productive - lost),
    ]


def _cut_off(mark: Mark, end: float) -> Mark:
    """A save that the end of its attempt cut off lasted until then."""
    if mark.kind != "checkpoint" or mark.seconds is not None or mark.start_s is None:
        return mark
    return replace(mark, seconds=max(end - mark.start_s, 0.0), text="save that never finished")


def _after(
    book: Account, attempt: Attempt, row: int, end: float, marks: Sequence[Mark], signs: Signs
) -> list[Stretch]:
    """The end of an attempt: final pauses, steps that were never printed, silence before a kill."""
    line, number = book.line, attempt.number
    start = float(line.end_s[row])
    failed = attempt.exit in FAILED
    out, rest = _hand_out(
        number, start, end - start, [_cut_off(mark, end) if failed else mark for mark in marks]
    )
    at = end - rest
    if not failed:
        return [*out, *_final(number, at, rest, marks, signs.closed_s)]
    if signs.hang is not None:
        stuck = min(signs.hang.seconds or 0.0, rest)
        return [
            *out,
            Stretch("lost_work", number, at, rest - stuck),
            Stretch("hang", number, end - stuck, stuck, signs.hang),
        ]
    return [*out, *_cut_short(book, attempt, row, at, end, signs.failed_s)]


def _final(
    number: int, at: float, rest: float, marks: Sequence[Mark], closed_s: float | None
) -> list[Stretch]:
    """What follows the last step of a run that ended well: the pause its lines name, until its processes end.

    Of several without a size none can be told apart.
    """
    named = {
        mark.kind: mark for mark in _one_per_pause(marks) if mark.seconds is None and mark.kind in PAUSES
    }
    if not named:
        return [Stretch("unknown", number, at, rest)]
    until = at + rest if closed_s is None else min(max(closed_s, at), at + rest)
    mark = next(iter(named.values()))
    if len(named) > 1:
        evidence = tuple(item for one in named.values() for item in one.evidence)[:EVIDENCE_LINES]
        text = f"{' and '.join(sorted(named))} after the last step, neither timed"
        mark = replace(mark, kind="unknown", evidence=evidence, text=text)
    return [
        Stretch(mark.kind, number, at, until - at, mark),
        Stretch("unknown", number, until, at + rest - until),
    ]


def _cut_short(
    book: Account, attempt: Attempt, row: int, at: float, end: float, failed_s: float | None
) -> list[Stretch]:
    """The rest of an attempt that failed: steps nobody printed, then silence until the first failure line.

    A long silence is a hang only when something ended it from outside; else nobody knows what it was.
    """
    until = min(max(failed_s, at), end) if failed_s is not None else end
    interval = median(book.line.iterations) * float(book.pace.baseline[row])
    unprinted = min(until - at, interval) if interval == interval else until - at
    silent = until - at - unprinted
    quiet = attempt.exit in ENDED_FROM_OUTSIDE and silent > max(2 * interval, 60.0)
    return [
        Stretch("lost_work", attempt.number, at, unprinted),
        Stretch("hang" if quiet else "unknown", attempt.number, at + unprinted, silent),
        Stretch("unknown", attempt.number, until, end - until),
    ]
