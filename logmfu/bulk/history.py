"""The stamps of a file of which only some lines are read."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from operator import attrgetter

from logmfu.bulk.stamps import LineStamps
from logmfu.bulk.units import Unit
from logmfu.envelopes import Envelopes
from logmfu.records import Line
from logmfu.stamps import LOOK_BACK, Both, Stamps


class History:
    """Stamps of one file of which only some lines are read: a line is looked at when somebody asks.

    Takes the place of :class:`logmfu.stamps.Stamps` while the file is read. Holds the units that were
    read last, as far back as anything may ask.
    """

    def __init__(self, envelopes: Envelopes) -> None:
        self.stamps = LineStamps(envelopes)
        self.current = 0
        """Number of the line that is being read."""
        self.opening: Line | None = None
        """First line with a stamp."""
        self._units: deque[Unit] = deque()
        self._last_stamped: Unit | None = None
        self._known: dict[int, Both | None] = {}

    @property
    def first(self) -> Both | None:
        """The first stamp."""
        return self.settled().first

    @property
    def last(self) -> Both | None:
        """The last stamp."""
        return self.settled().last

    @property
    def lines(self) -> tuple[int, int]:
        """The lines of these two."""
        return self.settled().lines

    def add(self, unit: Unit) -> None:
        """Take the next unit; let go of those too far back."""
        self._units.append(unit)
        while len(self._units) > 1 and unit.base - self._units[1].base > LOOK_BACK:
            self._units.popleft()
        if unit.stamped:
            self._last_stamped = unit
            if self.opening is None:
                found = (
                    self.stamps.first(unit.base + row + 1, unit.line(row)) for row in range(unit.count)
                )
                self.opening = next((line for line in found if line), None)

    def before(self, number: int) -> Both:
        """The stamp a record of line ``number`` finds before it while the current line is read."""
        seen = 0
        for line in range(self.current, max(number - LOOK_BACK, 1) - 1, -1):
            both = self._both(line)
            if both is None:
                continue
            seen += 1
            if line < number or seen == 2:
                return both if line < number else (None, None)
        return (None, None)

    def of(self, number: int) -> Both:
        """The stamps of a line of the units that are held."""
        return self._both(number) or (None, None)

    def settled(self) -> Stamps:
        """What the stamps are when no more units come."""
        stamps = Stamps()
        for line in sorted(self._ends(), key=attrgetter("number")):
            stamps.take((line.time, line.outer_time), line.number)
        return stamps

    def _ends(self) -> Iterator[Line]:
        """The first line with a stamp, and the last two as far as they are held."""
        if self.opening:
            yield self.opening
        if self._last_stamped is None:
            return
        units = [
            self._last_stamped,
            *(u for u in reversed(self._units) if u.base < self._last_stamped.base),
        ]
        lines = (line for unit in units for line in self._stamped(unit, range(unit.count - 1, -1, -1)))
        yield from islice(lines, 2)

    def _stamped(self, unit: Unit, rows: Iterable[int]) -> Iterator[Line]:
        found = (self.stamps.of(unit.base + row + 1, unit.line(row)) for row in rows)
        return (line for line in found if line)

    def _both(self, number: int) -> Both | None:
        if number not in self._known:
            if len(self._known) > 50 * LOOK_BACK:
                self._known.clear()
            self._known[number] = self._read(number)
        return self._known[number]

    def _read(self, number: int) -> Both | None:
        for unit in reversed(self._units):
            if unit.base < number <= unit.base + unit.count:
                line = self.stamps.of(number, unit.line(number - unit.base - 1))
                return (line.time, line.outer_time) if line else None
        return None
