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

from logmfu.bulk.layout import Judge, Layout
from logmfu.bulk.uniform import SHAPE
from logmfu.envelopes import Envelopes
from logmfu.parsing import Block, Rule
from logmfu.source.text import MAX_LINE

SHAPES = 2048
"""Shapes remembered; lines of further shapes are read one by one."""
VARIANTS = 64
"""Layouts of one shape: other ranks, other hosts."""
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
    lines: list[bytes] = field(default_factory=list)


@dataclass(slots=True)
class _Shape:
    layouts: list[Layout] = field(default_factory=list)
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
    """Scans the blocks of one file; learns the layouts of its step lines on the way."""

    def __init__(
        self, rules: Sequence[Rule | Block], failures: Sequence[Rule | Block], *, columnar: frozenset[str]
    ) -> None:
        steps = {rule.needle for rule in rules if rule.name in columnar}
        others = {rule.needle for rule in (*rules, *failures)} - steps
        texts = [*PARTIAL, *steps, *sorted(others | set(CONTROL))]
        self._database = database([literal(text) for text in texts])
        self._step = np.array([text in steps for text in texts])
        self._judge = Judge(rules, failures)
        self._columnar = columnar
        self._shapes: dict[bytes, _Shape] = {}

    def new_file(self) -> None:
        """Forget the layouts: prefixes of another file are its own."""
        self._shapes.clear()

    def scan(self, block: bytes, feeds: npt.NDArray[np.int64], envelopes: Envelopes) -> Found:
        """The lines of a block that can matter, given where its lines end."""
        ids, ends = self._hits(block)
        found = Found(len(feeds), [], [])
        groups: dict[int, Group] = {}
        quick: dict[bytes, Group] = {}
        rows = np.searchsorted(feeds, np.array(ends, dtype=np.int64) - 1)
        for row, start, end, step, partial in self._lines(np.array(ids, dtype=np.int64), rows, feeds):
            line = block[start:end]
            group = None
            if step:
                line = line.removesuffix(b"\r")
                key = line.translate(SHAPE)
                group = quick.get(key) or self._group(key, line, envelopes, groups)
                if group and not group.layout.fixed:
                    quick[key] = group
            if group:
                group.rows.append(row)
                group.lines.append(line)
                continue
            found.kept.append((row, line))
            if partial and found.partial is None and line.lstrip(b"\r")[:1] in (b"{", b"1", b"2"):
                found.partial = row
        found.groups = list(groups.values())
        return found

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
        """Row, start, end, and whether only needles of steps, or a sign of a piece, are on it."""
        if not len(rows):
            return iter(())
        firsts = np.flatnonzero(np.diff(rows, prepend=-1))
        lines = rows[firsts]
        starts = np.where(lines > 0, feeds[lines - 1] + 1, 0)
        step = np.logical_and.reduceat(self._step[ids], firsts)
        partial = np.logical_or.reduceat(ids < len(PARTIAL), firsts)
        return zip(
            lines.tolist(),
            starts.tolist(),
            feeds[lines].tolist(),
            step.tolist(),
            partial.tolist(),
            strict=True,
        )

    def _layout(self, key: bytes, line: bytes, envelopes: Envelopes) -> Layout | None:
        known = self._shapes.get(key)
        if known is None:
            if len(self._shapes) < SHAPES:
                self._shapes[key] = _Shape()  # seen once is no layout yet
            return None
        for layout in known.layouts:
            if layout.fits(line):
                return layout
        if len(known.layouts) < VARIANTS and known.refused < REFUSALS:
            learnt = self._judge.layout(line, envelopes)
            if learnt is None or learnt.rule.name not in self._columnar:
                known.refused += 1
            else:
                known.layouts.append(learnt)
        return None


def line_feeds(block: bytes) -> npt.NDArray[np.int64]:
    """Where the lines of a block end; the last one perhaps without a line feed."""
    feeds = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
    return feeds if not block or block.endswith(b"\n") else np.append(feeds, len(block))


def has_giant(feeds: npt.NDArray[np.int64]) -> bool:
    """Whether a line is so long that it has to be cut."""
    return bool(len(feeds)) and int(np.diff(feeds, prepend=0).max()) > MAX_LINE
