"""A file as units: some whole lines each, with what the scanner found in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

import numpy as np
import numpy.typing as npt

from logmfu.bulk.blocks import Broken, blocks
from logmfu.bulk.columns import Columns
from logmfu.bulk.job import Job, Result
from logmfu.bulk.scan import Group, Scanner, has_giant, line_feeds
from logmfu.bulk.stamps import LineStamps, has_stamp
from logmfu.envelopes import Envelopes
from logmfu.source import Reading, Source

SHORTER = "it became shorter while it was read"


@dataclass(slots=True)
class Unit:
    """Some whole lines of one file; rows count them from 0."""

    base: int
    """Lines of the file before these."""
    count: int
    kept: list[tuple[int, bytes]]
    """Lines to be read one by one."""
    load: Callable[[], bytes]
    """Gives the bytes, perhaps by reading them again."""
    stamped: bool
    """Whether any line has a stamp."""
    groups: list[Group] = field(default_factory=list)
    """Lines of known layouts."""
    regular: list[tuple[Columns, npt.NDArray[np.int64]]] = field(default_factory=list)
    """Columns of lines of known layouts, with the rows they are of: of ranges that were read elsewhere."""
    _block: bytes | None = None
    _feeds: npt.NDArray[np.int64] | None = None

    def line(self, row: int) -> bytes:
        """One line, without its line feed."""
        if self._block is None or self._feeds is None:
            self._block = self.load()
            self._feeds = line_feeds(self._block)
        if row >= len(self._feeds):
            return b""  # the file became shorter
        start = int(self._feeds[row - 1]) + 1 if row else 0
        return self._block[start : int(self._feeds[row])]


@dataclass(slots=True)
class Rest:
    """All that is left of a file, from a line on that cannot be judged by itself."""

    base: int
    chunks: Iterable[bytes]
    broken: Broken
    """What was counted before it."""


def streamed(
    source: Source, envelopes: Envelopes, scanner: Scanner, stamps: LineStamps
) -> Iterator[Unit | Rest]:
    """The units of a source, read from its beginning to its end."""
    chunks = source.chunks(count=False)
    cut, broken, base = blocks(chunks), Broken(), 0
    for block in cut:
        feeds = line_feeds(block)
        found = None if has_giant(feeds) else scanner.scan(block, feeds, envelopes)
        if found is None or found.partial is not None:
            yield Rest(base, chain([block], cut, chunks), broken)
            return
        broken.look(block)
        stamped = has_stamp(block, found, stamps)
        yield Unit(base, found.count, found.kept, partial(bytes, block), stamped, found.groups)
        base += found.count
        source.reading.lines = base
    broken.note(source.reading)


def ranged(source: Source, results: Iterable[tuple[Job, Result]]) -> Iterator[Unit | Rest]:
    """The units of a file whose ranges are read elsewhere; its ``reading`` becomes the sum of theirs."""
    source.chunks()
    total, broken, base = source.reading, Broken(), 0
    for job, result in results:
        if not result.whole:
            rest = replace(job, source=replace(source, memo={}), end=source.size or 0)
            yield Rest(base, _to_the_end(rest, total), broken)
            return
        load = result.text if result.packed else partial(_again, job, result.count, total)
        yield Unit(base, result.count, result.kept, load, result.stamped, regular=result.regular)
        base += result.count
        total.lines = base
        total.add(result.reading)
        broken.count += result.broken
        if source.progress:
            source.progress(job.end - job.start)
    broken.note(total)


def _to_the_end(job: Job, total: Reading) -> Iterator[bytes]:
    yield from job.chunks()
    total.add(job.source.reading)


def _again(job: Job, count: int, total: Reading) -> bytes:
    """The text of a range of so many lines, once more."""
    text = b"".join(job.chunks())
    if len(line_feeds(text)) < count and SHORTER not in total.notes:
        total.note(SHORTER)
    return text
