"""Time stamps of lines nobody asked for while they were read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import cache
from itertools import islice
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from logmfu.bulk.scan import Database, Found, database, line_feeds
from logmfu.envelopes import Envelopes
from logmfu.records import Line
from logmfu.stamps import LOOK_BACK, Both, Stamps

_MAY_BE = rb"\d\d:\d\d:\d\d|\d{13}\t|\x1b|\[0m|\\u001b"
"""What a line with a stamp holds: a clock, milliseconds since 1970, or control sequences that hide them."""


@dataclass(slots=True)
class Unit:
    """Some whole lines of one file."""

    base: int
    """Lines of the file before these."""
    found: Found
    load: Callable[[], bytes]
    """Gives the bytes, perhaps by reading them again."""
    stamped: bool = False
    _block: bytes | None = None
    _feeds: npt.NDArray[np.int64] | None = None

    def line(self, row: int) -> bytes:
        """One line, without its line feed."""
        if self._block is None or self._feeds is None:
            self._block = self.load()
            self._feeds = line_feeds(self._block)
        start = int(self._feeds[row - 1]) + 1 if row else 0
        return self._block[start : int(self._feeds[row])]

    def forget(self) -> None:
        """Free the bytes."""
        self._block = self._feeds = None


@cache
def _may_be() -> Database:
    return database([_MAY_BE], first_only=True)


def may_be_stamped(block: bytes) -> bool:
    """Whether any line of a block may have a stamp."""
    hits: list[int] = []
    _may_be().scan(block, match_event_handler=lambda number, *_: hits.append(number))
    return bool(hits)


def has_stamp(block: bytes, found: Found, stamps: LineStamps) -> bool:
    """Whether any line of a block has one."""
    timed = (group.lines[0] for group in found.groups if group.layout.inner or group.layout.outer)
    if any(stamps.of(0, line) for line in timed):
        return True
    if not may_be_stamped(block):
        return False
    return any(stamps.of(0, line) for line in block.split(b"\n"))


def pieces(line: bytes) -> list[str]:
    """The text of a physical line, cut where carriage returns are."""
    text = line.decode(errors="replace")
    if "\r" not in text:
        return [text]
    return [piece for piece in text.split("\r") if piece] or [""]


class LineStamps:
    """Reads the stamps of raw lines of one file."""

    def __init__(self, envelopes: Envelopes) -> None:
        self._envelopes = copy(envelopes)

    def of(self, number: int, raw: bytes) -> Line | None:
        """The last piece of a line that has a stamp; None if none has."""
        lines = self._envelopes.lines((number, piece) for piece in pieces(raw))
        stamped = [line for line in lines if line.time is not None or line.outer_time is not None]
        return stamped[-1] if stamped else None


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

    def add(self, unit: Unit) -> None:
        """Take the next unit; let go of those too far back."""
        self._units.append(unit)
        while len(self._units) > 1 and unit.base - self._units[1].base > LOOK_BACK:
            self._units.popleft()
        if unit.stamped:
            self._last_stamped = unit
            if self.opening is None:
                self.opening = next(self._stamped(unit, range(unit.found.count)), None)

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
        lines = (
            line for unit in units for line in self._stamped(unit, range(unit.found.count - 1, -1, -1))
        )
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
            if unit.base < number <= unit.base + unit.found.count:
                line = self.stamps.of(number, unit.line(number - unit.base - 1))
                return (line.time, line.outer_time) if line else None
        return None
