"""Blocks of bytes to the lines in them that can matter.

The scanner is Hyperscan's (https://github.com/darvid/python-hyperscan): all needles in one pass, at a
speed that does not depend on their number. Where it is not installed there is no quick way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from logmfu.bulk.alike import Shapes, Variants
from logmfu.bulk.layout import Judge, Layout
from logmfu.bulk.plan import Plan
from logmfu.bulk.uniform import SHAPE
from logmfu.envelopes import Envelopes
from logmfu.parsing import Block, Rule, compiled
from logmfu.source.text import MAX_LINE

Rows = npt.NDArray[np.int64]
SHAPES = 2048
"""Shapes remembered; lines of further shapes are read one by one."""
LONG = 16 << 10
"""Bytes of a line from which on it is read by itself: shapes are remembered."""
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
        self._named = plan.names
        self.new_file()

    def new_file(self) -> None:
        """Forget the layouts: prefixes of another file are its own."""
        self._shapes: dict[bytes, _Shape] = {}
        self._alike = Shapes()

    def scan(self, block: bytes, feeds: Rows, envelopes: Envelopes) -> Found:
        """The lines of a block that can matter, given where its lines end."""
        found, whole = Found(len(feeds), [], []), (block, feeds)
        groups: dict[int, Group] = {}
        numbers = np.arange(len(feeds))
        if self._alike.many(feeds):
            numbers = self._take(block, feeds, numbers, numbers, groups)
            block, feeds = _only(block, feeds, numbers)
        rows, regular, partial = self._hits(block, feeds)
        left = self._take(block, feeds, rows[regular], numbers, groups)
        kept = np.union1d(rows[~regular], left)
        signs = partial[np.searchsorted(rows, kept)].tolist()
        quick: dict[bytes, Group] = {}
        candidates = frozenset(left.tolist())
        for row, number, start, end, sign in zip(
            kept.tolist(),
            numbers[kept].tolist(),
            _starts(feeds, kept).tolist(),
            feeds[kept].tolist(),
            signs,
            strict=True,
        ):
            line, group = block[start:end], None
            if row in candidates and end - start <= LONG:
                line = line.removesuffix(b"\r")
                key = line.translate(SHAPE)
                group = quick.get(key) or self._group(key, line, envelopes, groups)
                if group and not (group.layout.fixed or group.layout.positive):
                    quick[key] = group
            if group:
                group.rows.append(number)
                group.text.append(line)
                continue
            found.kept.append((number, line))
            if sign and found.partial is None and line.lstrip(b"\r")[:1] in (b"{", b"1", b"2"):
                found.partial = number
        self._rows(whole, groups, found.kept, envelopes)
        found.groups = list(groups.values())
        return found

    def _rows(
        self,
        block: tuple[bytes, Rows],
        groups: dict[int, Group],
        kept: Sequence[tuple[int, bytes]],
        envelopes: Envelopes,
    ) -> None:
        """Rows of blocks that hold no needle: lines behind a header or another row that look like one."""
        text, feeds = block
        owners: dict[int, Layout] = {}
        inside = np.zeros(len(feeds) + 1, dtype=bool)
        free = np.ones(len(feeds) + 1, dtype=bool)
        for group in groups.values():
            free[group.rows] = False
            if group.layout.role != "line":
                inside[group.rows] = True
                owners.update(dict.fromkeys(group.rows, group.layout))
        if not owners:
            return
        free[[number for number, _ in kept]] = free[-1] = False
        for first in np.flatnonzero(inside[:-1] & free[1:]).tolist():
            row, layout = first + 1, owners[first]
            while free[row]:
                line = text[int(feeds[row - 1]) + 1 : int(feeds[row])].removesuffix(b"\r")
                if not _looks_like_row(layout, line):
                    break
                group_of = self._group(line.translate(SHAPE), line, envelopes, groups)
                if group_of:
                    group_of.rows.append(row)
                    group_of.text.append(line)
                    free[row] = False
                row += 1

    def _take(self, block: bytes, feeds: Rows, rows: Rows, numbers: Rows, groups: dict[int, Group]) -> Rows:
        """Sort rows with known layouts into groups, under their numbers; the rows that are left."""
        left = np.ones(len(feeds), dtype=bool)
        for layout, mine, text in self._alike.find(block, feeds, rows):
            group = groups.setdefault(id(layout), Group(layout))
            group.rows += numbers[mine].tolist()
            group.text.append(text)
            left[mine] = False
        return rows[left[rows]]

    def _group(
        self, key: bytes, line: bytes, envelopes: Envelopes, groups: dict[int, Group]
    ) -> Group | None:
        layout = self._layout(key, line, envelopes)
        return groups.setdefault(id(layout), Group(layout)) if layout else None

    def _hits(self, block: bytes, feeds: Rows) -> tuple[Rows, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Rows with needles, and whether only needles of regular lines, or a sign of a piece, are on each."""
        found: list[int] = []
        ends: list[int] = []

        def hit(number: int, start: int, end: int, flags: int, context: Any) -> None:
            found.append(number)
            ends.append(end)

        self._database.scan(block, match_event_handler=hit)
        if not found:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=bool), np.empty(0, dtype=bool)
        ids = np.array(found)
        rows = np.searchsorted(feeds, np.array(ends) - 1)
        firsts = np.flatnonzero(np.diff(rows, prepend=-1))
        regular = np.logical_and.reduceat(self._regular[ids], firsts)
        return rows[firsts], regular, np.logical_or.reduceat(ids < len(PARTIAL), firsts)

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


def _looks_like_row(layout: Layout, line: bytes) -> bool:
    """Whether a line behind one of a block may be a row of that block, with the same kind of prefix."""
    block = layout.rule
    return (
        isinstance(block, Block)
        and len(line) <= LONG
        and line.isascii()
        and compiled(block.row).search(line[layout.prefix :].decode()) is not None
    )


def _only(block: bytes, feeds: Rows, rows: Rows) -> tuple[bytes, Rows]:
    """Some lines of a block, and where they end in what is returned."""
    if not len(rows):
        return b"", rows
    starts, ends = _starts(feeds, rows), np.minimum(feeds[rows] + 1, len(block))
    breaks = np.flatnonzero(np.diff(rows) > 1)
    first, last = np.concatenate(([0], breaks + 1)), np.concatenate((breaks, [len(rows) - 1]))
    text = b"".join(block[a:b] for a, b in zip(starts[first].tolist(), ends[last].tolist(), strict=True))
    cut = np.cumsum(feeds[rows] + 1 - starts) - 1
    return text, cut


def _starts(feeds: Rows, rows: Rows) -> Rows:
    return np.where(rows > 0, feeds[rows - 1] + 1, 0)


def has_giant(feeds: npt.NDArray[np.int64]) -> bool:
    """Whether a line is so long that it has to be cut."""
    return bool(len(feeds)) and int(np.diff(feeds, prepend=0).max()) > MAX_LINE
