"""What the prefixes of one line said, collected while they are taken off."""

from __future__ import annotations

from logmfu.envelopes.clocks import Years
from logmfu.records import Line


class Found:
    """Fields of a :class:`Line` that prefixes fill, and what kind of prefix was taken already."""

    __slots__ = (
        "host",
        "inner_offset",
        "level",
        "local_rank",
        "logger",
        "nested",
        "origin",
        "outer_offset",
        "outer_time",
        "rank",
        "stream",
        "task",
        "time",
        "years",
    )

    def __init__(self, years: Years) -> None:
        self.years = years
        self.time: float | None = None
        self.outer_time: float | None = None
        self.inner_offset: int | None = None
        self.outer_offset: int | None = None
        self.rank: int | None = None
        self.local_rank: int | None = None
        self.host: str | None = None
        self.stream: str | None = None
        self.level: str | None = None
        self.origin: str | None = None
        self.task: str | None = None
        """Number of a scheduler's task: the rank, unless the task starts several ranks."""
        self.logger = False
        """A program's own logger prefix was taken: labels and hosts cannot follow."""
        self.nested = False
        """A prefix that only a process under a launcher prints was taken."""

    def outer(self) -> Found:
        """A copy with only the fields that belong to everything on the same physical line."""
        copy = Found(self.years)
        copy.outer_time, copy.outer_offset = self.outer_time, self.outer_offset
        copy.host, copy.stream, copy.task = self.host, self.stream, self.task
        copy.rank, copy.local_rank = self.rank, self.local_rank
        return copy

    def stamp(self, time: float, offset: int | None = None) -> None:
        """Keep a time of the program itself; a later call is further inside and wins."""
        self.time, self.inner_offset = time, offset

    def arrive(self, time: float, offset: int | None = None) -> None:
        """Keep a time put on by a collector; the outermost one wins."""
        if self.outer_time is None:
            self.outer_time, self.outer_offset = time, offset

    def line(self, text: str, path: str, number: int) -> Line:
        """The finished line."""
        return Line(
            text,
            path,
            number,
            self.time,
            self.outer_time,
            self.inner_offset if self.time is not None else self.outer_offset,
            self.rank,
            self.local_rank,
            self.host,
            self.stream,
            self.level,
            self.origin,
        )
