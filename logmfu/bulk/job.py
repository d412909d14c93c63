"""A range of a file, read on its own: what another process does for the one that merges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from logmfu import failures
from logmfu.bulk.blocks import Broken, blocks
from logmfu.bulk.columns import Columns
from logmfu.bulk.plan import Plan
from logmfu.bulk.scan import Found, Scanner, has_giant, line_feeds
from logmfu.bulk.stamps import LineStamps, has_stamp
from logmfu.bulk.waiting import Waiting
from logmfu.envelopes import Envelopes
from logmfu.envelopes.learning import known, learnt
from logmfu.source import Reading, Source

LINE = 100
"""Bytes that a line takes beside its text."""


@dataclass(slots=True)
class Job:
    """Lines that begin in ``start`` to ``end`` of a plain file, or all those of a compressed one."""

    source: Source
    """Its memo says what the one who asks knows of its envelopes."""
    start: int
    end: int

    def chunks(self) -> Iterator[bytes]:
        """The bytes of these lines."""
        if self.source.splittable:
            return self.source.range(self.start, self.end, count=False)
        return self.source.chunks(count=False)


@dataclass(slots=True)
class Result:
    """What the range holds; rows count its lines from 0."""

    count: int = 0
    kept: list[tuple[int, bytes]] = field(default_factory=list)
    regular: list[tuple[Columns, npt.NDArray[np.int64]]] = field(default_factory=list)
    """Columns with the rows they are of."""
    stamped: bool = False
    broken: int = 0
    whole: bool = True
    """Its lines can be judged one by one; if not, nothing else is filled in."""
    reading: Reading = field(default_factory=Reading)
    envelopes: Envelopes | None = None
    """Those of the file, for one who did not know them."""
    packed: list[bytes] = field(default_factory=list)
    """The text, where reading it again would take long: a quick compression of each block."""

    @property
    def size(self) -> int:
        """Bytes it takes, about."""
        lines = sum(len(raw) + LINE for _, raw in self.kept)
        return lines + sum(map(len, self.packed)) + sum(found.size for found, _ in self.regular)

    def text(self) -> bytes:
        """The text that was packed."""
        from lz4 import frame

        return b"".join(frame.decompress(block) for block in self.packed)


class Hand:
    """Does jobs, one after the other."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._scanner = Scanner(plan, failures.RULES)
        self._path = ""
        self._envelopes = Envelopes()

    def do(self, job: Job) -> Result:
        """Read one range."""
        told = known(job.source)
        if job.source.path != self._path:
            self._scanner.new_file()
            self._path, self._envelopes = job.source.path, learnt(job.source)
        new = None if told else self._envelopes
        result, waiting, broken = Result(envelopes=new), Waiting(), Broken()
        stamps = LineStamps(self._envelopes)
        for block in blocks(job.chunks()):
            found = self._found(block)
            if found is None:
                return Result(whole=False, envelopes=new)
            broken.look(block)
            if not job.source.splittable:
                result.packed.append(_packed(block))
            result.stamped = result.stamped or has_stamp(block, found, stamps)
            result.kept += [(result.count + row, raw) for row, raw in found.kept]
            for group in found.groups:
                waiting.hold(group.layout, [result.count + row for row in group.rows], group.text)
            result.count += found.count
        taken = waiting.take()
        result.regular = [
            (self._plan.columns(layout, text), np.array(rows)) for layout, rows, text in taken
        ]
        result.broken, result.reading = broken.count, job.source.reading
        return result

    def _found(self, block: bytes) -> Found | None:
        feeds = line_feeds(block)
        if has_giant(feeds):
            return None
        found = self._scanner.scan(block, feeds, self._envelopes)
        return found if found.partial is None else None


def _packed(block: bytes) -> bytes:
    from lz4 import frame

    packed: bytes = frame.compress(block)
    return packed
