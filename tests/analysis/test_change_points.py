"""The partition that explains levels best is found, not a good one."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest

from logmfu.analysis.pace import _change_points


def cost(values: np.ndarray, borders: tuple[int, ...], penalty: float) -> float:
    """Squared error about the mean of each part, and a penalty for each."""
    ends = [0, *borders, len(values)]
    parts = [values[start:end] for start, end in pairwise(ends)]
    return sum(float(((part - part.mean()) ** 2).sum()) + penalty for part in parts)


@pytest.mark.parametrize("seed", range(30))
def test_no_other_partition_is_cheaper(seed: int):
    """All partitions of twelve values into parts of two at least, by hand."""
    draw = np.random.default_rng(seed)
    values = 1.0 + 0.02 * draw.normal(size=12) + np.repeat(draw.normal(size=3) * 0.1, 4)
    if seed % 3 == 0:
        values[draw.integers(12)] = 1e6  # far off, and no reason to see less of the others
    penalty = (0.02 * float(np.median(values))) ** 2 * 6.0 * np.log(12)
    possible = [
        borders
        for many in range(6)
        for borders in combinations(range(2, 11), many)
        if all(after - before >= 2 for before, after in zip((0, *borders), (*borders, 12), strict=True))
    ]
    found = tuple(_change_points(values, 0.02))
    assert found in possible
    best = min(cost(values, borders, penalty) for borders in possible)
    assert cost(values, found, penalty) == pytest.approx(best, rel=1e-9)


def test_a_level_that_doubles_is_one_border():
    """Fifty bins at 1, fifty at 2."""
    assert _change_points(np.repeat([1.0, 2.0], 50), 0.01) == [50]
