"""Feeds the rules with the lines that can matter, and the tables with the rest of what a log says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np

from logmfu import failures
from logmfu.bulk.blocks import Broken, blocks
from logmfu.bulk.columns import Columns, columns
from logmfu.bulk.layout import Layout
from logmfu.bulk.scan import Group, Scanner, available, has_giant, line_feeds
from logmfu.bulk.stamps import History, Unit, has_stamp, pieces
from logmfu.envelopes import Envelopes
from logmfu.parsing import Engine, Parser, Rule, RuleParser, apply
from logmfu.records import Line, Record
from logmfu.source import Reading, Source
from logmfu.source.text import numbered
from logmfu.tables import TableBuilder

HELD = 32 << 20
"""Bytes of step lines that wait to become columns."""


def fits(parser: Parser) -> bool:
    """Whether there is a quick way for this parser."""
    return available() and isinstance(parser, RuleParser)


def columnar(parser: RuleParser) -> frozenset[str]:
    """Names of the rules whose step records may become columns: nobody looks at them one by one."""
    steps = {rule.name for rule in parser.rules if isinstance(rule, Rule) and rule.kind == "step"}
    if parser.refine is None:
        return frozenset(steps)
    return frozenset(steps - parser.refined if parser.refined is not None else ())


@dataclass(slots=True)
class Waiting:
    """Step lines of one layout that will become columns."""

    layout: Layout
    numbers: list[int]
    lines: list[bytes]


class Feed:
    """Reads sources into a builder, as ``logmfu.reading`` does line by line."""

    def __init__(self, parser: RuleParser, builder: TableBuilder) -> None:
        self._parser, self._builder = parser, builder
        self._failures, self._engine = Engine(failures.RULES), Engine(parser.rules)
        self._scanner = Scanner(parser.rules, failures.RULES, columnar=columnar(parser))
        self._before = 0
        """Lines of the files before this one."""
        self._waiting: dict[int, Waiting] = {}
        self._held = 0
        self._watching = False
        self._history = History(Envelopes())
        self._path = ""

    def read(self, opened: Iterable[tuple[Source, Envelopes]]) -> None:
        """Read all sources, in order."""
        for record in self._parser.understand(self._records(opened)):
            self._builder.add(record)

    def _records(self, opened: Iterable[tuple[Source, Envelopes]]) -> Iterator[Record]:
        builder = self._builder
        for source, envelopes in opened:
            for line in self._lines(source, envelopes):
                for record in self._failures.feed(line):
                    builder.add(record)
                yield from self._engine.feed(line)
        for record in self._failures.close():
            builder.add(record)
        yield from self._engine.close()

    def _lines(self, source: Source, envelopes: Envelopes) -> Iterator[Line]:
        self._scanner.new_file()
        self._path, self._watching = source.path, False
        self._history = self._builder.stamps[source.path] = History(envelopes)
        for line in envelopes.lines(self._raw(source, envelopes)):
            if self._watching and (line.time is not None or line.outer_time is not None):
                self._builder.stamp(line)
            yield line
        self._flush(envelopes)
        self._settle_stamps()
        self._before += source.reading.lines

    def _raw(self, source: Source, envelopes: Envelopes) -> Iterator[tuple[int, str]]:
        chunks = source.chunks(count=False)
        broken, base = Broken(), 0
        for block in blocks(chunks):
            feeds = line_feeds(block)
            found = None if has_giant(feeds) else self._scanner.scan(block, feeds, envelopes)
            if found is None or found.partial is not None:
                broken.note(source.reading)
                yield from self._rest(chain([block], chunks), base, source.reading)
                return
            broken.look(block)
            stamped = has_stamp(block, found, self._history.stamps)
            yield from self._unit(Unit(base, found, partial(bytes, block), stamped), envelopes)
            base += found.count
            source.reading.lines = base
        broken.note(source.reading)

    def _rest(self, chunks: Iterable[bytes], base: int, reading: Reading) -> Iterator[tuple[int, str]]:
        """All lines from here on, every one of them watched."""
        self._settle_stamps()
        self._watching = True
        scratch = Reading()
        for number, text in numbered(chunks, scratch, number=base + 1):
            self._at(number)
            yield number, text
        reading.notes += scratch.notes
        reading.lines = scratch.lines

    def _unit(self, unit: Unit, envelopes: Envelopes) -> Iterator[tuple[int, str]]:
        self._add_to_history(unit)
        covered: list[tuple[int, int]] = []
        at = 0
        for row, raw in [*unit.found.kept, (unit.found.count, b"")]:
            begin = at
            while at < row and (self._engine.waiting or self._failures.waiting):
                yield from self._physical(unit.base + at + 1, unit.line(at))
                at += 1
            if at > begin:
                covered.append((begin, at))
            if row < unit.found.count:
                yield from self._physical(unit.base + row + 1, raw)
            at = row + 1
        for group in unit.found.groups:
            self._hold(group, unit.base, covered)
        if self._held > HELD:
            self._flush(envelopes)

    def _physical(self, number: int, raw: bytes) -> Iterator[tuple[int, str]]:
        self._at(number)
        for piece in pieces(raw):
            yield number, piece

    def _at(self, number: int) -> None:
        self._history.current = number
        self._builder.place = self._before + number

    def _hold(self, group: Group, base: int, covered: list[tuple[int, int]]) -> None:
        """Keep the lines of a group that were not read one by one, to make columns of them later."""
        rows, lines = group.rows, group.lines
        if covered:
            free = [not any(start <= row < end for start, end in covered) for row in rows]
            rows = [row for row, is_free in zip(rows, free, strict=True) if is_free]
            lines = [line for line, is_free in zip(lines, free, strict=True) if is_free]
        waiting = self._waiting.get(id(group.layout))
        if waiting is None:
            waiting = self._waiting[id(group.layout)] = Waiting(group.layout, [], [])
        waiting.numbers += [base + row + 1 for row in rows]
        waiting.lines += lines
        self._held += len(lines) * group.layout.width

    def _flush(self, envelopes: Envelopes) -> None:
        for waiting in self._waiting.values():
            if waiting.lines:
                self._add(columns(waiting.layout, waiting.lines), np.array(waiting.numbers), envelopes)
        self._waiting, self._held = {}, 0

    def _add(self, found: Columns, numbers: np.ndarray, envelopes: Envelopes) -> None:
        places = numbers + self._before
        for row, raw in found.odd.items():
            self._odd(raw, int(numbers[row]), envelopes)
        keep = np.ones(len(numbers), dtype=bool)
        keep[list(found.odd)] = False
        values = {
            **found.values,
            "rule": found.rule,
            "path": self._path,
            "inner": np.nan if found.inner is None else found.inner,
            "outer": np.nan if found.outer is None else found.outer,
            "rank": np.nan if found.line.rank is None else found.line.rank,
            "host": found.line.host,
        }
        if found.odd:
            values = {name: _kept(value, keep) for name, value in values.items()}
        self._builder.add_steps(values, numbers[keep], places[keep])

    def _odd(self, raw: bytes, number: int, envelopes: Envelopes) -> None:
        """A line whose columns cannot be read (an impossible date): the rules say what it is."""
        self._at(number)
        for line in list(envelopes.lines((number, piece) for piece in pieces(raw))):
            for rule in self._parser.rules:
                if isinstance(rule, Rule) and rule.needle in line.text:
                    for record in apply(rule, line):
                        self._builder.add(record)

    def _add_to_history(self, unit: Unit) -> None:
        known = self._history.opening
        self._history.add(unit)
        if known is None and self._history.opening:
            self._builder.first_stamp(self._history.opening)

    def _settle_stamps(self) -> None:
        """Leave the stamps of a file to the builder, once nothing is looked up any more."""
        if self._builder.stamps[self._path] is not self._history:
            return
        del self._builder.stamps[self._path]
        if (settled := self._history.settled()).first is not None:
            self._builder.stamps[self._path] = settled


def _kept(value: object, keep: np.ndarray) -> object:
    if isinstance(value, np.ndarray):
        return value[keep]
    if isinstance(value, list):
        return [one for one, is_kept in zip(value, keep.tolist(), strict=True) if is_kept]
    return value
