"""Waiting for data, from the timers that measure it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from logmfu.analysis.intervals import Array, Timeline
from logmfu.analysis.marks import Places, is_data_timer
from logmfu.analysis.rows import Timer
from logmfu.report import Evidence


@dataclass(frozen=True, slots=True)
class Waits:
    """Seconds per step each interval waited for data (NaN: no timer), and the lines that say it.

    ``usual`` is the wait of an undisturbed step, the median.
    """

    per_step_s: Array
    usual: float
    lines: dict[int, Evidence]

    @property
    def known(self) -> bool:
        """Whether the log has data timers at all."""
        return bool(self.lines)

    def excess(self) -> Array:
        """Seconds per step beyond the usual wait; 0 where there is no timer."""
        return np.nan_to_num(np.maximum(self.per_step_s - self.usual, 0.0))


def data_waits(line: Timeline, timers: Iterable[Timer]) -> Waits:
    """The data timers of a run, laid onto its intervals.

    With several data timers in one interval the longest counts: they nest.
    """
    per_step = np.full(len(line), np.nan)
    lines: dict[int, Evidence] = {}
    places = Places(line)
    for timer in timers:
        if not is_data_timer(timer.timer) or timer.longest_s is None:
            continue
        at = places.ending_at(timer.attempt, timer.step)
        if at is not None and not per_step[at] >= timer.longest_s:
            per_step[at] = timer.longest_s
            lines[at] = timer.evidence
    known = per_step[~np.isnan(per_step)]
    return Waits(per_step, float(np.median(known)) if len(known) else float("nan"), lines)
