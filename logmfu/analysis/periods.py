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


def name_by_period(book: Account, facts: Mapping[str, object], named: Collection[str]) -> None:
    """Give unnamed pauses the name of what is due at their steps, when only one thing is.

    ``named``: classes that have lines of their own in this log; a pause without a line is then not theirs.
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
    _collections(book, due)


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


def _collections(book: Account, due: Sequence[Interval]) -> None:
    """Short dips at one constant period that nothing else explains look like Python's garbage collection."""
    line = book.line
    n = line.iterations
    noise = SIGMAS * book.pace.noise * n * book.pace.baseline
    free = {pause.row: pause for pause in book.pauses}
    named = {row for row, pause in free.items() if pause.kind != "slow_steps"}
    named |= set(np.flatnonzero(book.pace.in_slow_span).tolist())
    dips = np.array([row for row in np.flatnonzero(book.excess > noise) if row not in named and row > 0])
    inner = ~line.first
    dips = dips[inner[dips]] if len(dips) else dips
    found = _regular(dips)
    if found is None or np.nanmax(n[found]) != np.nanmin(n[found]):
        return
    steps = line.step
    period = int(np.median(np.diff(steps[found])))
    if any(period % interval.every == 0 for interval in due):
        return
    text = f"comes back every {period} steps and nothing else does: looks like garbage collection"
    for row in found:
        at = int(row)
        if at in free:
            book.pauses[book.pauses.index(free[at])] = replace(free[at], kind="gc", text=text)
        else:
            evidence = step_lines(book, at)[1:]
            book.give(
                Pause(
                    "gc", at, float(book.excess[at]), "inferred", evidence, int(steps[at]), None, True, text
                )
            )


def _regular(
    rows: npt.NDArray[np.intp],
) -> npt.NDArray[np.intp] | None:
    """The rows that lie on one grid, when most of the grid is hit and it is hit often enough."""
    if len(rows) < LEAST_COLLECTIONS:
        return None
    distances, counts = np.unique(np.diff(rows), return_counts=True)
    period = int(distances[np.argmax(counts)])
    if period < 2:
        return None
    phases, hits = np.unique(rows % period, return_counts=True)
    on_grid = rows[rows % period == phases[np.argmax(hits)]]
    expected = (on_grid[-1] - on_grid[0]) // period + 1
    regular = len(on_grid) >= LEAST_COLLECTIONS and len(on_grid) >= HIT_SHARE * expected
    return on_grid if regular and len(on_grid) >= len(rows) / 2 else None
