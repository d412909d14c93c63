"""One clock out of two: stamps in the text, and stamps a collector put before it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.float64]
QUARTER_HOUR = 900.0
"""Zones differ by multiples of it, so an offset between two clocks is rounded to it."""


def one_clock(inner: Times, outer: Times) -> tuple[Times, float]:
    """The inner stamps, with the outer ones moved onto their clock where an inner one is missing.

    Both arrays hold seconds, NaN where there is no stamp. The offset (inner minus outer) is the
    median over lines that have both, rounded to a quarter of an hour: collectors print UTC,
    programs local time, and lines arrive a little late.
    """
    both = ~np.isnan(inner) & ~np.isnan(outer)
    offset = 0.0
    if both.any():
        offset = round(float(np.median(inner[both] - outer[both])) / QUARTER_HOUR) * QUARTER_HOUR
    return np.where(np.isnan(inner), outer + offset, inner), offset


def resolution(times: Times) -> float:
    """Finest decimal step among the stamps: 1.0, 1e-3 or 1e-6 seconds."""
    for step in (1.0, 1e-3):
        if _whole(times[:1000], step) and _whole(times, step):
            return step
    return 1e-6


def _whole(times: Times, step: float) -> bool:
    """Whether all known times are whole steps."""
    off = times / step
    off -= np.round(off)
    return not np.any(np.abs(off, out=off) >= 1e-3)
