"""Pauses that come back: a save or evaluation whose lines are elsewhere, and garbage collection."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from logmfu.analysis.account import Account, Pause, step_lines
from logmfu.analysis.pace import SIGMAS

LEAST_HITS = 2
LEAST_COLLECTIONS = 5
HIT_SHARE = 0.7
"""Part of the expected multiples at which the pause must be seen."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Something that is due every ``every`` steps."""

    kind: str
    every: int


def name_by_period(
    book: Account, facts: Mapping[str, object], named: Collection[str], inside: Collection[str]
) -> None:
    """Give unnamed pauses the name of what is due at their steps, when only one thing is.

    ``named``: classes that have lines of their own in this log; a pause without a line is then not theirs.
    ``inside``: classes that the step time contains.
    """
    due = [
        Interval(kind, every)
        for kind, fact in (("checkpoint", "save_interval"), ("evaluation", "eval_interval"))
        if isinstance(every := facts.get(fact), int) and every > 0 and kind not in named
    ]
    unnamed = [pause for pause in book.pauses if pause.confidence == "inferred"]
    hits = {interval: [p for p in unnamed if _contains(book, p, interval.every)] for interval in due}
    regular = [interval for interval, pauses in hits.items() if _often(book, interval.every, pauses)]
    for interval in regular:
        for pause in hits[interval]:
            others = [other for other in due if other != interval and _contains(book, pause, other.every)]
            if not others:
                _rename(
                    book,
                    pause,
                    interval.kind,
                    f"comes every {interval.every} steps, the {interval.kind} interval",
                )
    _collections(
        book,
        due,
        explained="evaluation" in named
        or "evaluation" not in inside
        or isinstance(facts.get("eval_interval"), int),
    )


def _contains(book: Account, pause: Pause, every: int) -> bool:
    """Whether a multiple of ``every`` lies in the steps the pause may follow, and that is telling."""
    line = book.line
    begun, step = int(line.begun[pause.row]), int(line.step[pause.row])
    return every > 2 * (step - begun) and -(-begun // every) * every < step and begun > 0


def _often(book: Account, every: int, pauses: Sequence[Pause]) -> bool:
    steps = book.line.step
    expected = int(np.sum(np.diff(np.floor((steps - 1) / every)) > 0))
    return len(pauses) >= LEAST_HITS and len(pauses) >= HIT_SHARE * expected


def _rename(book: Account, pause: Pause, kind: str, text: str) -> None:
    book.pauses[book.pauses.index(pause)] = replace(
        pause, kind=kind, text=text, step=int(book.line.begun[pause.row])
    )


def _collections(book: Account, due: Sequence[Interval], *, explained: bool) -> None:
    """Short dips at one constant period that nothing else explains look like Python's garbage collection.

    ``explained``: evaluations would be seen elsewhere, so a periodic dip is none.
    """
    line = book.line
    n = line.iterations
    noise = SIGMAS * book.pace.noise * n * book.pace.baseline
    free = {pause.row: pause for pause in book.pauses}
    named = {row for row, pause in free.items() if pause.kind != "slow_steps"}
    named |= set(np.flatnonzero(book.pace.in_slow_span).tolist())
    inner = ~line.first
    dips = np.array([row for row in np.flatnonzero(inner & (book.excess > noise)) if row not in named])
    found = _regular(book, dips) if len(dips) >= LEAST_COLLECTIONS else None
    if found is None:
        return
    rows, period = found
    if any(period % interval.every == 0 for interval in due):
        return
    text = f"comes back every {period} steps"
    kind = "slow_steps"
    if explained:
        kind, text = "gc", f"{text} and nothing else does: looks like garbage collection"
    for at in rows:
        if at in free:
            book.pauses[book.pauses.index(free[at])] = replace(free[at], kind=kind, text=text)
        elif explained:
            evidence = step_lines(book, at)[1:]
            book.give(
                Pause(
                    kind,
                    at,
                    float(book.excess[at]),
                    "inferred",
                    evidence,
                    int(line.step[at]),
                    None,
                    True,
                    text,
                )
            )


def _regular(book: Account, dips: npt.NDArray[np.intp]) -> tuple[list[int], int] | None:
    """Rows on the one grid of steps that most dips lie on, and its period; ``None`` without such a grid.

    Periods tried are the distances between near dips; a dip is on a grid when one of the steps it
    covers is. At least ``HIT_SHARE`` of the grid must be hit, and half of the dips explained.
    """
    line = book.line
    ends, begun = line.step[dips], line.begun[dips]
    tried = {int(ends[i + d] - ends[i]) for d in range(1, 4) for i in range(len(dips) - d)}
    spells = 1 + int((np.diff(dips) > 1).sum())
    best: tuple[list[int], int] | None = None
    for period in sorted(every for every in tried if every > 2 * float(np.median(line.iterations[dips])))[
        :200
    ]:
        phases, counts = np.unique(ends % period, return_counts=True)
        phase = int(phases[np.argmax(counts)])
        on_grid = (ends - phase) // period > (begun - phase) // period
        multiples = np.unique((ends[on_grid] - phase) // period)
        regular = len(multiples) >= max(LEAST_COLLECTIONS, HIT_SHARE * (multiples[-1] - multiples[0] + 1))
        if regular and 2 * on_grid.sum() >= spells and (best is None or on_grid.sum() > len(best[0])):
            best = [int(row) for row in dips[on_grid]], period
    return best
