"""Blocks of bytes to the lines in them that can matter.

The scanner is Hyperscan's (https://github.com/darvid/python-hyperscan): all needles in one pass, at a
speed that does not depend on their number. Where it is not installed there is no quick way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from logmfu.bulk.alike import Shapes, Variants
from logmfu.bulk.layout import Judge, Layout
from logmfu.bulk.plan import Plan
from logmfu.bulk.uniform import SHAPE
from logmfu.envelopes import Envelopes
from logmfu.parsing import Block, Rule
from logmfu.source.text import MAX_LINE

SHAPES = 2048
"""Shapes remembered; lines of further shapes are read one by one."""
VARIANTS = 64
"""Layouts of one shape; lines of further ranks or hosts are read one by one."""
REFUSALS = 2
"""Lines of one shape that had no layout, after which no more are tried."""
CONTROL = ("\x1b", "[0m", "\\u001b")
"""Terminal control sequences may stand inside a needle: such lines are always looked at."""
PARTIAL = (" stdout P", " stderr P", '"log"')
"""Signs of lines that a container runtime may have cut in pieces."""


class Database(Protocol):
    """What is used of ``hyperscan.Database``."""

    def compile(self, *, expressions: list[bytes], ids: list[int], elements: int, flags: int) -> None:
        """Prepare the expressions."""

    def scan(self, data: bytes, *, match_event_handler: Callable[..., bool | None]) -> None:
        """Report every match in the data."""


@dataclass(slots=True)
class Group:
    """Lines of one layout in a block."""

    layout: Layout
    rows: list[int] = field(default_factory=list)
    text: list[bytes] = field(default_factory=list)
    """The lines, one or several in a piece, without line feeds."""

    @property
    def first(self) -> bytes:
        """One of the lines."""
        return self.text[0][: self.layout.width]


@dataclass(slots=True)
class _Shape:
    variants: Variants | None = None
    refused: int = 0


@dataclass(slots=True)
class Found:
    """What a block holds: rows count its lines from 0."""

    count: int
    """Lines in the block."""
    kept: list[tuple[int, bytes]]
    """Lines to be read one by one, without their line feed."""
    groups: list[Group]
    partial: int | None = None
    """First line that may be a piece of one."""


def database(expressions: Sequence[bytes], *, first_only: bool = False) -> Database:
    """The expressions, compiled."""
    import hyperscan

    made: Database = hyperscan.Database()
    flags = hyperscan.HS_FLAG_SINGLEMATCH if first_only else 0
    numbers = list(range(len(expressions)))
    made.compile(expressions=list(expressions), ids=numbers, elements=len(numbers), flags=flags)
    return made


def literal(text: str) -> bytes:
    """The expression that matches a text as it is."""
    return b"".join(b"\\x%02x" % byte for byte in text.encode())


class Scanner:
    """Scans the blocks of one file; learns the layouts of its lines on the way."""

    def __init__(self, plan: Plan, failures: Sequence[Rule | Block]) -> None:
        regular = plan.needles
        others = {rule.needle for rule in (*plan.rules, *failures)} - regular
        texts = [*PARTIAL, *sorted(regular), *sorted(others | set(CONTROL))]
        self._database = database([literal(text) for text in texts])
        self._regular = np.array([text in regular for text in texts])
        self._judge = Judge(plan.rules, failures)
        self._named = plan.columnar | plan.replayed
        self.new_file()

    def new_file(self) -> None:
        """Forget the layouts: prefixes of another file are its own."""
        self._shapes: dict[bytes, _Shape] = {}
        self._alike = Shapes()

    def scan(self, block: bytes, feeds: npt.NDArray[np.int64], envelopes: Envelopes) -> Found:
        """The lines of a block that can matter, given where its lines end."""
        found = Found(len(feeds), [], [])
        groups: dict[int, Group] = {}
        rest = np.ones(len(feeds), dtype=bool)
        for layout, rows, text in self._alike.find(block, feeds):
            group = groups.setdefault(id(layout), Group(layout))
            group.rows += rows.tolist()
            group.text.append(text)
            rest[rows] = False
        if groups:
            block, feeds = _only(block, feeds, rest)
        self._scan(block, feeds, np.flatnonzero(rest), envelopes, found, groups)
        found.groups = list(groups.values())
        return found

    def _scan(
        self,
        block: bytes,
        feeds: npt.NDArray[np.int64],
        numbers: npt.NDArray[np.int64],
        envelopes: Envelopes,
        found: Found,
        groups: dict[int, Group],
    ) -> None:
        """Look for needles in lines that have these numbers."""
        ids, ends = self._hits(block)
        quick: dict[bytes, Group] = {}
        hit = np.searchsorted(feeds, np.array(ends, dtype=np.int64) - 1)
        for at, start, end, regular, partial in self._lines(np.array(ids, dtype=np.int64), hit, feeds):
            row, line = int(numbers[at]), block[start:end]
            group = None
            if regular:
                line = line.removesuffix(b"\r")
                key = line.translate(SHAPE)
                group = quick.get(key) or self._group(key, line, envelopes, groups)
                if group and not (group.layout.fixed or group.layout.positive):
                    quick[key] = group
            if group:
                group.rows.append(row)
                group.text.append(line)
                continue
            found.kept.append((row, line))
            if partial and found.partial is None and line.lstrip(b"\r")[:1] in (b"{", b"1", b"2"):
                found.partial = row

    def _group(
        self, key: bytes, line: bytes, envelopes: Envelopes, groups: dict[int, Group]
    ) -> Group | None:
        layout = self._layout(key, line, envelopes)
        return groups.setdefault(id(layout), Group(layout)) if layout else None

    def _hits(self, block: bytes) -> tuple[list[int], list[int]]:
        ids: list[int] = []
        ends: list[int] = []

        def hit(number: int, start: int, end: int, flags: int, context: Any) -> None:
            ids.append(number)
            ends.append(end)

        self._database.scan(block, match_event_handler=hit)
        return ids, ends

    def _lines(
        self, ids: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], feeds: npt.NDArray[np.int64]
    ) -> Iterator[tuple[int, int, int, bool, bool]]:
        """Row, start, end, and whether only needles of regular lines, or a sign of a piece, are on it."""
        if not len(rows):
            return iter(())
        firsts = np.flatnonzero(np.diff(rows, prepend=-1))
        lines = rows[firsts]
        starts = np.where(lines > 0, feeds[lines - 1] + 1, 0)
        regular = np.logical_and.reduceat(self._regular[ids], firsts)
        partial = np.logical_or.reduceat(ids < len(PARTIAL), firsts)
        return zip(
            lines.tolist(),
            starts.tolist(),
            feeds[lines].tolist(),
            regular.tolist(),
            partial.tolist(),
            strict=True,
        )

    def _layout(self, key: bytes, line: bytes, envelopes: Envelopes) -> Layout | None:
        known = self._shapes.get(key)
        if known is None:
            if len(self._shapes) < SHAPES:
                self._shapes[key] = _Shape()  # seen once is no layout yet
            return None
        if known.variants and (layout := known.variants.of(line)):
            return layout
        if known.refused < REFUSALS and (known.variants is None or len(known.variants) < VARIANTS):
            self._learn(known, line, envelopes)
        return None

    def _learn(self, known: _Shape, line: bytes, envelopes: Envelopes) -> None:
        learnt = self._judge.layout(line, envelopes)
        if learnt is None or learnt.rule.name not in self._named:
            known.refused += 1
        elif known.variants is None:
            known.variants = Variants(learnt, line)
            self._alike.add(known.variants)
        elif not known.variants.add(learnt, line):
            known.refused += 1


def line_feeds(block: bytes) -> npt.NDArray[np.int64]:
    """Where the lines of a block end; the last one perhaps without a line feed."""
    feeds = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
    return feeds if not block or block.endswith(b"\n") else np.append(feeds, len(block))


def _only(
    block: bytes, feeds: npt.NDArray[np.int64], wanted: npt.NDArray[np.bool_]
) -> tuple[bytes, npt.NDArray[np.int64]]:
    """Some lines of a block, and where they end in what is returned."""
    ends = np.minimum(feeds + 1, len(block))
    starts = np.concatenate(([0], ends[:-1]))
    borders = np.flatnonzero(np.diff(wanted, prepend=False, append=False)).tolist()
    runs = zip(
        starts[borders[::2]].tolist(),
        ends[np.array(borders[1::2], dtype=np.int64) - 1].tolist(),
        strict=True,
    )
    lengths = (ends - starts)[wanted]
    cut = np.cumsum(lengths) - 1
    return b"".join(block[start:end] for start, end in runs), cut


def has_giant(feeds: npt.NDArray[np.int64]) -> bool:
    """Whether a line is so long that it has to be cut."""
    return bool(len(feeds)) and int(np.diff(feeds, prepend=0).max()) > MAX_LINE
