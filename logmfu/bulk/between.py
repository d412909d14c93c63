"""The first stamped line that stands between two step lines of a file, of which only some lines are read."""

from __future__ import annotations

from collections.abc import Iterable

from logmfu.bulk.history import History
from logmfu.bulk.stamps import may_have_stamp
from logmfu.bulk.units import Unit
from logmfu.stamps import EARLY, Between, Both


class Search:
    """Looks for it, unit by unit; the same as :class:`logmfu.tables.TableBuilder` finds line by line."""

    def __init__(self, history: History) -> None:
        self._history, self._stamps = history, history.stamps
        self._before: Both | None = None
        """Stamps of the last step line before the next unit, or before ``_other``."""
        self._other: tuple[int, Both] | None = None
        """The first stamped line after it that is none."""
        self.kept: list[int] = []
        """Step lines of the next unit that are known beside those it knows itself."""
        self.over = False

    def look(self, unit: Unit, known: Iterable[int]) -> Between | None:
        """What it is, once it is found; ``known``: the numbers of the step lines of a unit."""
        steps = sorted({*known, *self.kept})
        self.kept = []
        if self._other is None and unit.base < EARLY and (steps or self._before):
            begin = unit.base + 1 if self._before else steps[0] + 1
            self._other = self._stamped(unit, begin, set(steps))
            before = [number for number in steps if self._other is None or number < self._other[0]]
            if before:
                self._before = self._history.of(before[-1])
        self.over = self._other is None and unit.base + unit.count >= EARLY
        after = next((number for number in steps if self._other and number > self._other[0]), None)
        if after is None or self._other is None or self._before is None:
            return None
        self.over = True
        return (self._before, self._other[1], self._history.of(after))

    def _stamped(self, unit: Unit, begin: int, steps: set[int]) -> tuple[int, Both] | None:
        for number in range(begin, min(unit.base + unit.count, EARLY) + 1):
            raw = unit.line(number - unit.base - 1)
            if number not in steps and may_have_stamp(raw) and (line := self._stamps.first(number, raw)):
                return number, (line.time, line.outer_time)
        return None
