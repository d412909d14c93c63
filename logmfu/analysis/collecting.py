"""Python's garbage collection: no line names it, only its period, and only where nothing else explains it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from logmfu.analysis.account import Account, Pause, step_lines, taken
from logmfu.analysis.folding import DIP_SIGMAS, HIT_SHARE, Fold, Grid, grids, on_grid
from logmfu.analysis.intervals import ALL, Array, Bools, Timeline, held_once
from logmfu.analysis.marks import Mark
from logmfu.analysis.pace import relative_noise, spread

LONGEST_S = 60.0
"""A collection does not take longer, on any heap."""
SLOW_STRETCH = 3.0
"""Standard deviations of an interval from which on the level around is that of a slow stretch."""


def name_collections(
    book: Account, marks: Sequence[Mark], due: Collection[int], *, explained: bool
) -> None:
    """Give long steps that come back at one period the name ``gc``, when nothing else is due then.

    ``due``: steps between saves and between evaluations, as stated and as seen: what comes as often, or
    with every few of them, may be theirs. ``explained``: an evaluation would be seen outside the step time,
    so that what is inside is none. Where it would not, the printed time of single steps tells, if there is one.
    """
    causes = [pause for pause in book.pauses if not _unexplained(pause)]
    beyond = book.excess_s()
    for row, seconds in taken(book, causes)[1].items():
        beyond[row] -= seconds
    seen = (beyond, _interval_noise(book)) if explained else _last_steps(book)
    if seen is None:
        return
    pausing = _pausing(marks, len(beyond))
    free = ~book.line.first & ~pausing
    free[[pause.row for pause in causes]] = False
    above = _without_stretches(*seen, free)
    for grid, fold in _found(book.line, Fold(book.line.begun, book.line.step, above, seen[1], free)):
        before_pause = np.append(pausing[1:], False)[on_grid(fold, grid, free)]
        expected = before_pause.mean() >= HIT_SHARE or any(grid.period % every == 0 for every in due)
        if not expected and grid.usual_s <= LONGEST_S:
            rows = on_grid(fold, grid, ~book.line.first)
            _name(book, rows, np.minimum(above[rows], beyond[rows]), grid.period)
            return


def _unexplained(pause: Pause) -> bool:
    return pause.confidence == "inferred" and pause.kind in ("slow_steps", "unknown")


def _interval_noise(book: Account) -> Array:
    """Standard deviation of each interval, seconds."""
    n = book.line.iterations
    noise = relative_noise(book.pace.noise, n, ALL)
    noise *= n
    noise *= book.pace.baseline
    return held_once(noise)


def _last_steps(book: Account) -> tuple[Array, Array] | None:
    """Seconds beyond the baseline of the last step of each interval, and their noise, where it is printed alone."""
    alone = book.line.last_step_s
    if not np.isfinite(alone).any():
        return None
    return np.nan_to_num(alone - book.pace.baseline), spread(alone) * book.pace.baseline


def _pausing(marks: Sequence[Mark], rows: int) -> Bools:
    """Intervals with a save or an evaluation."""
    kinds = ("checkpoint", "evaluation")
    pausing = np.zeros(rows, dtype=bool)
    pausing[[mark.row for mark in marks if mark.place == "interval" and mark.kind in kinds]] = True
    return pausing


def _without_stretches(excess: Array, noise: Array, free: Bools) -> Array:
    """The excess, less that of the stretch around where an interval is long: three of the four next to it are as slow."""
    long = np.flatnonzero(excess > DIP_SIGMAS * noise)
    near = long + np.array([[-2], [-1], [1], [2]])
    inside = (near >= 0) & (near < len(excess))
    near[~inside] = 0
    known = inside & free[near] & (noise[near] > 0)
    around = np.divide(excess[near], noise[near], out=np.full(near.shape, np.nan), where=known)
    around.sort(axis=0)
    level = np.where(np.isfinite(around[2]), np.nan_to_num(around[1]), 0.0)
    above = excess.copy()
    above[long] -= np.where(level > SLOW_STRETCH, level, 0.0) * noise[long]
    return above


def _found(line: Timeline, fold: Fold) -> list[tuple[Grid, Fold]]:
    """Grids of step numbers, and of steps since the start of each process; the least likely by chance first."""
    folds = [fold]
    if line.first.sum() > 1:
        origin = line.begun[line.first][np.cumsum(line.first) - 1]
        folds.append(replace(fold, begun=fold.begun - origin, end=fold.end - origin))
    found = [(grid, each) for each in folds for grid in grids(each)]
    return sorted(found, key=lambda pair: pair[0].log_chance)


def _name(book: Account, rows: npt.NDArray[np.intp], seconds: Array, period: int) -> None:
    """The seconds of a collection in each of the rows; slow steps keep what is beyond them."""
    text = f"comes back every {period} steps and nothing else does: looks like garbage collection"
    least = SLOW_STRETCH * _interval_noise(book)
    mine = set(rows.tolist())
    slow = {p.row: p for p in book.pauses if p.row in mine and p.kind == "slow_steps" and _unexplained(p)}
    book.withdraw(slow.values())
    for row, taking in zip(rows.tolist(), seconds.tolist(), strict=True):
        evidence, step = step_lines(book, row)[1:], int(book.line.step[row])
        book.give(Pause("gc", row, taking, "inferred", evidence, step, text=text))
        if row in slow and (rest := slow[row].seconds - taking) > least[row]:
            book.give(replace(slow[row], seconds=rest))
