"""Waiting for data, from the timers that measure it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from logmfu.analysis.intervals import ALL, Array, Timeline, median
from logmfu.analysis.marks import Places, is_data_timer
from logmfu.analysis.pace import find_regimes, levels, spread
from logmfu.analysis.rows import Timer, Timers
from logmfu.report import Evidence


@dataclass(frozen=True, slots=True)
class Waits:
    """Seconds per step each interval waited for data (NaN: no timer), and the lines that say it.

    ``usual_s`` is the wait of an undisturbed step there: the median, or one on each side of a change for good.
    """

    per_step_s: Array
    usual_s: Array
    lines: dict[int, Evidence]

    @property
    def known(self) -> bool:
        """Whether the log has data timers at all."""
        return bool(self.lines)

    def excess(self, rows: int | slice = ALL) -> Array:
        """Seconds per step beyond the usual wait; 0 where there is no timer."""
        return np.nan_to_num(np.maximum(self.per_step_s[rows] - self.usual_s[rows], 0.0))


def data_waits(line: Timeline, timers: Timers) -> Waits:
    """The data timers of a run, laid onto its intervals.

    With several data timers in one interval the longest counts: they nest.
    """
    longest: dict[int, Timer] = {}
    places = Places(line)
    for timer in timers.rows(timers.which(is_data_timer)):
        at = places.ending_at(timer.attempt, timer.step)
        if at is not None and (at not in longest or not longest[at].longest_s >= timer.longest_s):
            longest[at] = timer
    if not longest:
        unknown = np.broadcast_to(np.nan, len(line))
        return Waits(unknown, unknown, {})
    per_step = np.full(len(line), np.nan)
    per_step[list(longest)] = [timer.longest_s for timer in longest.values()]
    lines = {at: timer.evidence for at, timer in longest.items()}
    return Waits(per_step, _usual(per_step, median(line.step_time_s)), lines)


def _usual(per_step: Array, step_s: float) -> Array:
    """The usual wait of each interval, as high as it stays until the end or was from the beginning.

    Its changes are looked for, and weighed, as changes of the step time are. A level that comes and goes is not usual.
    """
    middle = median(per_step)
    if not step_s > 0:
        return np.full(len(per_step), middle)
    relative = 1.0 + (per_step - middle) / step_s
    level = levels(find_regimes(relative, spread(relative)), len(per_step))
    before, after = np.minimum.accumulate(level), np.minimum.accumulate(level[::-1])[::-1]
    return middle + (np.maximum(before, after) - 1.0) * step_s
