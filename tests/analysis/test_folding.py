"""Long intervals at one period of steps, among long intervals that come by chance.

Unless a test says otherwise an interval is one step of 2 s, its noise is 0.01 s, and the long ones take 1 s more.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import pytest

from logmfu.analysis.folding import Fold, grids, on_grid

OTHERS = (13, 27, 58, 91)
"""Steps that are long for no reason, at no period."""


def fold(long: Collection[int], last: int = 200, every: int = 1, excess: float = 1.0) -> Fold:
    """Intervals of ``every`` steps; those that contain one of the ``long`` steps have the excess."""
    end = np.arange(every, last + 1, every)
    seconds = np.zeros(len(end))
    seconds[[(step - 1) // every for step in long]] = excess
    return Fold(end - every, end, seconds, np.full(len(end), 0.01), np.ones(len(end), dtype=bool))


def periods(rows: Fold) -> list[int]:
    """The periods that are believed."""
    return [grid.period for grid in grids(rows)]


def test_every_twentieth_step_is_a_grid():
    """20, 40 ... 200 among four others: period 20, and the ten rows are those."""
    rows = fold([*range(20, 201, 20), *OTHERS])
    best = grids(rows)[0]
    assert (best.period, best.phase, best.usual_s) == (20, 0, 1.0)
    assert rows.end[on_grid(rows, best, rows.free)].tolist() == list(range(20, 201, 20))


def test_a_grid_may_begin_anywhere():
    """7, 27, 47 ... are every twentieth step as well."""
    best = grids(fold(range(7, 200, 20)))[0]
    assert (best.period, best.phase) == (20, 7)


def test_four_are_no_period():
    """40, 80, 120 and 160 may be chance."""
    assert periods(fold([40, 80, 120, 160])) == []


def test_a_grid_that_is_missed_as_often_as_hit_is_none():
    """Of ten steps of the grid five are long."""
    assert 20 not in periods(fold([20, 60, 80, 140, 200]))


@pytest.mark.parametrize("rate", [0.01, 0.03, 0.1, 0.3])
def test_chance_makes_no_grid(rate):
    """100 runs with long intervals thrown in at random: no period is found in any."""
    random = np.random.default_rng(7)
    found = [periods(fold(1 + np.flatnonzero(random.random(300) < rate), last=300)) for _ in range(100)]
    assert [one for one in found if one] == []


def test_a_period_is_found_among_chance():
    """1 step in 20 is long by chance, 50 are at the period of 20: those are found all the same."""
    random = np.random.default_rng(7)
    rows = fold([*range(20, 1001, 20), *(1 + np.flatnonzero(random.random(1000) < 0.05))], last=1000)
    assert grids(rows)[0].period == 20


def test_what_is_much_longer_is_not_of_the_grid():
    """A wait of 30 s that falls on the grid is something else; the nine others stay."""
    rows = fold(range(20, 201, 20))
    rows.excess[59] = 30.0
    best = grids(rows)[0]
    assert rows.end[on_grid(rows, best, rows.free)].tolist() == [
        20, 40, 80, 100, 120, 140, 160, 180, 200
    ]  # fmt: skip


def test_a_wait_does_not_fill_a_grid():
    """Four at a period of 40 and a wait of 30 s at 100 are no five at a period of 20 or 40."""
    rows = fold([40, 80, 120, 160])
    rows.excess[99] = 30.0
    assert periods(rows) == []


def test_intervals_that_something_explains_are_no_misses():
    """At 60, 80, 120 and 180 a save hides what is there: the six others are hit."""
    rows = fold([20, 40, 100, 140, 160, 200])
    free = rows.free.copy()
    free[[59, 79, 119, 179]] = False
    assert 20 not in periods(rows)
    assert grids(replace(rows, free=free))[0].period == 20


def test_a_period_between_the_lines():
    """A line every 10 steps, a pause every 25: the lines 30, 50, 80, 100 ... show a period of 25."""
    rows = fold(range(25, 1001, 25), last=1000, every=10)
    assert grids(rows)[0].period == 25


def test_missing_lines_are_no_misses():
    """Every twentieth of the steps 1 to 100 and 301 to 400; what the lines between said is not known."""
    rows = fold([*range(20, 101, 20), *range(320, 401, 20)], last=400)
    kept = (rows.end <= 100) | (rows.end > 300)
    parts = {name: getattr(rows, name)[kept] for name in ("begun", "end", "excess", "noise", "free")}
    assert grids(Fold(**parts))[0].period == 20


def test_a_million_intervals():
    """With 1 in 500 long by chance and 1 in 1000 at a period: found, with all its thousand rows."""
    random = np.random.default_rng(7)
    chance = 1 + np.flatnonzero(random.random(1_000_000) < 0.002)
    rows = fold([*chance, *range(1000, 1_000_001, 1000)], last=1_000_000)
    best = grids(rows)[0]
    assert (best.period, best.phase) == (1000, 0)
    assert len(on_grid(rows, best, rows.free)) == 1000
