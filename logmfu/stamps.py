"""First and last time stamp of a file, and how far back a line may look for one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

LOOK_BACK = 1000
"""Lines before a failure or a start in which the last time stamp is looked for."""

EARLY = 20_000
"""Lines of a file among which one is looked for that stands between step lines and has a stamp of its own."""

Both = tuple[float | None, float | None]
"""Inner and outer stamp of a line."""
Between = tuple[Both, Both, Both]
"""Stamps of the first stamped line behind a step line of a file that is none itself, between those of the step lines around it."""


class AnyStamps(Protocol):
    """What a table builder needs of the stamps of one file."""

    @property
    def first(self) -> Both | None:
        """The first stamp."""

    @property
    def last(self) -> Both | None:
        """The last stamp."""

    @property
    def lines(self) -> tuple[int, int]:
        """The lines of these two."""

    def before(self, number: int) -> Both:
        """The stamp a record of this line finds before it."""


@dataclass(slots=True)
class Stamps:
    """First and last time stamp of one file, on each of its two clocks."""

    first: Both | None = None
    first_line: int = 0
    last: Both | None = None
    last_line: int = 0
    previous: Both | None = None
    """The stamp before the last one, on an earlier line."""
    previous_line: int = 0

    def take(self, both: Both, number: int) -> None:
        """A line with a stamp was read."""
        if self.first is None:
            self.first, self.first_line = both, number
        if number != self.last_line:
            self.previous, self.previous_line = self.last, self.last_line
        self.last, self.last_line = both, number

    @property
    def lines(self) -> tuple[int, int]:
        """The lines of the first and the last stamp."""
        return self.first_line, self.last_line

    def before(self, number: int) -> Both:
        """The stamp a record of this line finds before it: one of the last two, if it is not too far back."""
        for line, both in ((self.last_line, self.last), (self.previous_line, self.previous)):
            if both and number - LOOK_BACK <= line < number:
                return both
        return (None, None)
