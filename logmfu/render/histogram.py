"""Step times before and after a change, as bars on one scale."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from logmfu.render.reduction import Floats, floats
from logmfu.report import Change, Report

BINS = 40
WIDTH, HEIGHT = 640.0, 150.0
"""Size of the drawing area in the units of its picture."""
_KINDS = ("step_time", "trend")


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar; ``side`` is ``before`` or ``after``."""

    side: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Histogram:
    """Shares of steps by step time. The outermost bins hold everything beyond them."""

    change: Change
    low_s: float
    high_s: float
    before: int
    after: int
    bars: tuple[Bar, ...]
    """Heights relative to the fullest bin of either side."""


def histograms(report: Report, most: int = 6) -> Iterator[Histogram]:
    """One for each of the first changes of pace that has step times on both sides."""
    changes = sorted(
        (change for change in report.changes if change.kind in _KINDS), key=lambda change: change.step
    )
    if not changes or "step_time_s" not in report.series:
        return
    steps = floats(report.series["step"])
    times = floats(report.series["step_time_s"])
    borders = [-np.inf, *(float(change.step) for change in changes), np.inf]
    for place, change in list(enumerate(changes, start=1))[:most]:
        before = _between(steps, times, borders[place - 1], borders[place])
        after = _between(steps, times, borders[place], borders[place + 1])
        if len(before) and len(after):
            yield _histogram(change, before, after)


def _between(steps: Floats, times: Floats, first: float, end: float) -> Floats:
    chosen = times[(steps >= first) & (steps < end)]
    return chosen[np.isfinite(chosen)]


def _histogram(change: Change, before: Floats, after: Floats) -> Histogram:
    both = np.concatenate([before, after])
    low, high = (float(edge) for edge in np.percentile(both, [0.5, 99.5]))
    if high <= low:
        low, high = low * 0.95, high * 1.05 or 1.0
    edges = np.linspace(low, high, BINS + 1)
    shares = {side: _shares(times, edges) for side, times in (("before", before), ("after", after))}
    fullest = max(float(each.max()) for each in shares.values())
    bars = tuple(bar for side, each in shares.items() for bar in _bars(side, each / fullest))
    return Histogram(change, low, high, len(before), len(after), bars)


def _shares(times: Floats, edges: Floats) -> Floats:
    counts, _ = np.histogram(np.clip(times, edges[0], edges[-1]), bins=edges)
    return np.asarray(counts / len(times), dtype=np.float64)


def _bars(side: str, heights: Floats) -> Iterator[Bar]:
    step = WIDTH / BINS
    for n, height in enumerate(heights.tolist()):
        if height:
            tall = round(height * HEIGHT, 1)
            yield Bar(side, round(n * step, 1), round(HEIGHT - tall, 1), round(step, 1), tall)
