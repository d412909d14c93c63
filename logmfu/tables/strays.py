"""Lines that no rule reads, where their stamps are on another clock than those of the step lines.

A library prints UTC and the program local time; both stand in one file. A stamp between two step lines
shows by how much: zones differ by quarters of an hour. So do a first stamp later than that of the first
step line, and a last one earlier than that of the last, but these only show that it is so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from logmfu.stamps import Between
from logmfu.tables.clock import QUARTER_HOUR, Times
from logmfu.tables.rows import numbers

FAR_S = 600.0
"""Lines of several processes stand in a wrong order by less than this, and time zones differ by more."""
SLACK_S = 60.0
"""Lines of a library come this much before or after those around them, at most."""
FARTHEST_S = 26 * 3600.0
"""From UTC-12 to UTC+14."""

Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Strays:
    """By how many seconds the clock of the other lines is ahead, for each file where it is."""

    ahead: Mapping[str, float] = field(default_factory=dict)
    exact: frozenset[str] = frozenset()
    """Files for which that is known; for the others about."""

    def moved(self, path: str, span: Span, steps: Span, theirs: tuple[bool, bool]) -> Span:
        """First and last stamp of a file on the clock of its step lines; those of the latter where that cannot be told.

        ``theirs``: whether first and last stamp are of other lines.
        """
        if path not in self.exact:
            return steps
        begin, end = (at - self.ahead[path] * other for at, other in zip(span, theirs, strict=True))
        begin, end = (begin, end) if end >= begin else steps
        return (
            begin if begin <= steps[0] + FAR_S else steps[0],
            end if end >= steps[1] - FAR_S else steps[1],
        )

    def notes(self) -> Iterable[str]:
        """What is said of them."""
        for exact in (True, False):
            files = [path for path in self.ahead if (path in self.exact) == exact]
            if not files:
                continue
            more = f" (and {len(files) - 1} more files)" if len(files) > 1 else ""
            ahead = self.ahead[files[0]]
            yield (
                f"{files[0]}{more}: other lines have stamps {'' if exact else 'about '}{_far(ahead)} "
                f"{'ahead of' if ahead > 0 else 'behind'} those of the step lines around them, so they are on another clock: "
                + (
                    "they were moved to that of the step lines"
                    if exact
                    else "only lines that were understood give times"
                )
            )

    def before(self, events: pd.DataFrame, steps: pd.DataFrame) -> Times:
        """The last stamp before each event, on the clock of the step lines; NaN where that cannot be told.

        It may be of a step line or of another one: of both readings the earlier that is no earlier than the
        last step line counts.
        """
        found = numbers(events, "silent_since").copy()
        for path, ahead in self.ahead.items():
            mine = np.flatnonzero((events["path"] == path).to_numpy())
            if path not in self.exact:
                found[mine] = np.nan
                continue
            rows = np.flatnonzero((steps["path"] == path).to_numpy() & steps["clock"].notna().to_numpy())
            line, clock = numbers(steps, "line")[rows], numbers(steps, "clock")[rows]
            order = np.argsort(line, kind="stable")
            at = np.searchsorted(line[order], numbers(events, "line")[mine]) - 1
            stepped = np.where(at >= 0, clock[order[np.maximum(at, 0)]], np.nan)
            as_read, as_moved = found[mine], found[mine] - ahead
            readings = np.sort(np.stack([as_read, as_moved]), axis=0)
            fits = readings >= stepped - FAR_S
            best = np.where(fits[0], readings[0], np.where(fits[1], readings[1], np.nan))
            found[mine] = np.where(np.isnan(stepped), as_moved, best)
        return found


def _far(seconds: float) -> str:
    hours = abs(seconds) / 3600
    return f"{hours:.3g} h" if hours < 100 else f"{hours / 24:,.0f} days"


def find(
    files: Mapping[str, Span],
    steps: Mapping[str, Span],
    between: Mapping[str, Between],
    offsets: Mapping[str, float],
) -> Strays:
    """Files with lines on another clock. ``files``: first and last stamp of any line; ``steps``: of step lines."""
    exact = {
        path: ahead
        for path in steps
        if path in between and (ahead := _shown(between[path], offsets.get(path, 0.0)))
    }
    about = {
        path: ahead
        for path, ends in steps.items()
        if path in files and path not in exact and (ahead := _ahead(files[path], ends))
    }
    zones = [*exact.values(), *about.values()]
    for path, ends in steps.items() if zones else ():
        if path in files and path not in exact:
            ahead = about.get(path) or _also_ahead(files[path], ends, zones)
            same = next((zone for zone in exact.values() if abs(zone - ahead) <= FAR_S), 0.0)
            if same:
                exact[path] = same
            elif ahead:
                about[path] = ahead
    return Strays(about | exact, frozenset(exact))


def _shown(between: Between, offset: float) -> float:
    """By how much a line between two step lines is ahead; 0 if it is not, or if that is no difference of two zones.

    Moved by it the line stands between the two; where several quarters of an hour do that, nobody can tell.
    """
    before, other, after = (
        inner if inner is not None else (outer + offset if outer is not None else np.nan)
        for inner, outer in between
    )
    if np.isnan([before, other, after]).any() or before - FAR_S <= other <= after + FAR_S:
        return 0.0
    least = math.ceil((other - after - SLACK_S) / QUARTER_HOUR)
    most = math.floor((other - before + SLACK_S) / QUARTER_HOUR)
    ahead = least * QUARTER_HOUR
    return ahead if least == most and abs(ahead) <= FARTHEST_S else 0.0


def _ahead(span: Span, steps: Span) -> float:
    """By how much the clock of the first and last stamped lines is surely ahead of that of the step lines; else 0."""
    if span[0] - steps[0] > FAR_S:
        return span[0] - steps[0]
    return span[1] - steps[1] if steps[1] - span[1] > FAR_S else 0.0


def _also_ahead(span: Span, steps: Span, known: Iterable[float]) -> float:
    """The same where the stamps alone could be right, but are off as those of another file are."""
    apart = [ours - theirs for ours, theirs in zip(span, steps, strict=True)]
    return next((ahead for ahead in known if any(abs(one - ahead) <= FAR_S for one in apart)), 0.0)
