"""First and last time stamp of a file, and how far back a line may look for one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

LOOK_BACK = 1000
"""Lines before a failure or a start in which the last time stamp is looked for."""

Both = tuple[float | None, float | None]
"""Inner and outer stamp of a line."""


class AnyStamps(Protocol):
    """What a table builder needs of the stamps of one file."""

    @property
    def first(self) -> Both | None:
        """The first stamp."""

    @property
    def last(self) -> Both | None:
        """The last stamp."""

    def before(self, number: int) -> Both:
        """The stamp a record of this line finds before it."""


@dataclass(slots=True)
class Stamps:
    """First and last time stamp of one file, on each of its two clocks."""

    first: Both | None = None
    last: Both | None = None
    last_line: int = 0
    previous: Both | None = None
    """The stamp before the last one, on an earlier line."""
    previous_line: int = 0

    def take(self, both: Both, number: int) -> None:
        """A line with a stamp was read."""
        if self.first is None:
            self.first = both
        if number != self.last_line:
            self.previous, self.previous_line = self.last, self.last_line
        self.last, self.last_line = both, number

    def before(self, number: int) -> Both:
        """The stamp a record of this line finds before it: one of the last two, if it is not too far back."""
        for line, both in ((self.last_line, self.last), (self.previous_line, self.previous)):
            if both and number - LOOK_BACK <= line < number:
                return both
        return (None, None)
