"""Feeds the rules with the lines that can matter, and the tables with the rest of what a log says."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from logmfu import failures
from logmfu.bulk import available
from logmfu.bulk.between import Search
from logmfu.bulk.columns import Columns
from logmfu.bulk.crew import Crew, ranges
from logmfu.bulk.history import History
from logmfu.bulk.job import Job, Result
from logmfu.bulk.known import Known
from logmfu.bulk.layout import Role
from logmfu.bulk.plan import plan
from logmfu.bulk.replay import Replay, picked
from logmfu.bulk.scan import Group, Scanner
from logmfu.bulk.stamps import pieces
from logmfu.bulk.units import Rest, Unit, ranged, streamed
from logmfu.bulk.waiting import Waiting
from logmfu.envelopes import Envelopes
from logmfu.envelopes.learning import known, learnt, remember
from logmfu.parsing import Block, Engine, Item, Parser, Rule, RuleParser, apply, of_row
from logmfu.records import Line, Record
from logmfu.source import Reading, Source
from logmfu.source.text import numbered
from logmfu.stretch import Stretch

if TYPE_CHECKING:
    from logmfu.tables import TableBuilder

HELD = 8 << 20
"""Bytes of step lines that wait to become columns."""
Results = Iterator[tuple[Job, Result]]
Rows = npt.NDArray[np.int64]


def fits(parser: Parser) -> bool:
    """Whether there is a quick way for this parser."""
    return available() and isinstance(parser, RuleParser)


def read(
    parser: RuleParser, sources: Sequence[Source], make_builder: Callable[[], TableBuilder], helpers: Crew
) -> TableBuilder:
    """Read sources into a builder, as ``logmfu.reading`` does line by line; large files side by side.

    The builder is made while other processes are already reading: what it needs takes time to load.
    """
    results = helpers.results(plan(parser), _jobs(sources))
    builder = make_builder()
    Feed(parser, builder).read(sources, results)
    return builder


class Feed:
    """The rules of one run, and what has to be remembered between lines."""

    def __init__(self, parser: RuleParser, builder: TableBuilder) -> None:
        self._parser, self._builder = parser, builder
        self._rules = {rule.name: rule for rule in parser.rules}
        self._failures, self._engine = Engine(failures.RULES), Engine(parser.rules)
        self._plan = plan(parser)
        self._scanner = Scanner(self._plan, failures.RULES)
        self._waiting = Waiting()
        self._before = 0
        """Lines of the files before this one."""
        self._watching = False
        self._shown: set[str] = set()
        """Blocks of which a row was read one by one: who draws conclusions has seen it."""
        self._envelopes = Envelopes()
        self._history = History(self._envelopes)
        self._search = Search(self._history)
        self._path = ""

    def read(self, sources: Sequence[Source], results: Results | None) -> None:
        """Read all sources, in order; those that others read from their results, if there are any."""
        for item in self._parser.understand(self._items(sources, results)):
            if isinstance(item, Record):
                self._builder.add(item)
                if item.kind == "step" and not self._search.over:
                    self._search.kept.append(item.line.number)
            else:
                self._take(item)

    def _items(self, sources: Sequence[Source], results: Results | None) -> Iterator[Item]:
        for source in sources:
            yield from self._file(source, islice(results or (), len(ranges(source))))
        for record in self._failures.close():
            self._builder.add(record)
        yield from self._engine.close()

    def _file(self, source: Source, results: Results) -> Iterator[Item]:
        self._scanner.new_file()
        first = next(results, None)
        if first and first[1].envelopes:
            remember(source, first[1].envelopes)
        self._path, self._watching, self._envelopes = source.path, False, learnt(source)
        self._history = self._builder.stamps[source.path] = History(self._envelopes)
        self._search = Search(self._history)
        if first:
            units = ranged(source, chain([first], results))
        else:
            units = streamed(source, self._envelopes, self._scanner, self._history.stamps)
        for unit in units:
            yield from self._unit(unit) if isinstance(unit, Unit) else self._rest(unit, source)
        deque(results, maxlen=0)  # results nobody asked for: the rest of the file was read another way
        self._flush()
        self._at(source.reading.lines)  # what an open block gives when the log ends comes last
        self._settle_stamps()
        self._before += source.reading.lines

    def _rest(self, rest: Rest, source: Source) -> Iterator[Record]:
        """All lines from here on, every one of them watched."""
        self._settle_stamps()
        self._watching = True
        scratch = Reading()
        yield from self._lines(numbered(rest.chunks, scratch, number=rest.base + 1))
        for note in scratch.notes:
            source.reading.note(note)
        rest.broken.note(source.reading)
        source.reading.lines = scratch.lines

    def _unit(self, unit: Unit) -> Iterator[Item]:
        self._remember(unit)
        regular = [*unit.regular, *self._looked_at(unit.groups)]
        replayed = [(found, rows) for found, rows in regular if found.replayed]
        replay = Replay(replayed, self._rules, base=unit.base, reread=self._reread, place=self._at)
        walk = _Walk(unit, replay.stretches if self._parser.skim else replay.records)
        at = 0
        for row, raw in [*unit.kept, (unit.count, b"")]:
            yield from self._between(walk, at, row)
            if row < unit.count:
                yield from self._physical(unit.base + row + 1, raw)
            at = row + 1
        for found, rows in regular:
            if not found.replayed and found.role != "header":
                self._add(found, unit.base + rows + 1, walk.free(rows, found.role))
        self._hold(unit, walk)
        if not self._search.over and (between := self._search.look(unit, self._step_lines(unit))):
            self._builder.between[self._path] = between

    def _step_lines(self, unit: Unit) -> Iterator[int]:
        """Numbers of the step lines of known layouts."""
        groups = ((group.layout.rule.kind, np.array(group.rows)) for group in unit.groups)
        regular = ((self._rules[found.rule].kind, rows) for found, rows in unit.regular)
        for kind, rows in (*groups, *regular):
            if kind == "step":
                yield from (unit.base + rows + 1).tolist()

    def _between(self, walk: _Walk, at: int, end: int) -> Iterator[Item]:
        """What lines give that no rule has to look at: only open blocks, and layouts, say what they are."""
        done = at
        while at < end:
            if not (self._engine.waiting or self._failures.waiting):
                at = walk.known.header(at, end)
                if at == end:
                    break
            kinds = walk.known.kinds(self._shown)
            at, rows = self._engine.pass_over(kinds, at, end, self._failures)
            walk.rows += rows
            yield from walk.give(done, at)
            if at == end:
                return
            number, raw, done = walk.unit.base + at + 1, walk.unit.line(at), at
            if walk.known.is_header(at):
                yield from self._physical(number, raw)
            elif (yield from self._in_block(number, raw)):
                walk.covered.append(at)
                self._shown.add(walk.known.row_of(at))
                done = at + 1
            at += 1
        yield from walk.give(done, end)

    def _in_block(self, number: int, raw: bytes) -> Generator[Record, None, bool]:
        """Records of open blocks from a line that no rule has to look at; whether it belongs to one."""
        self._before_line(number)
        belongs = False
        for line in self._envelopes.lines((number, piece) for piece in pieces(raw)):
            _, records = self._failures.go_on(line)
            for record in records:
                self._builder.add(record)
            taken, records = self._engine.go_on(line)
            yield from records
            belongs = belongs or taken
        return belongs

    def _looked_at(self, groups: Iterable[Group]) -> Iterator[tuple[Columns, Rows]]:
        """Columns of the groups whose records are looked at one by one."""
        for group in groups:
            if group.layout.rule.name in self._plan.replayed:
                yield self._plan.columns(group.layout, b"".join(group.text)), np.array(group.rows)

    def _physical(self, number: int, raw: bytes) -> Iterator[Record]:
        """One line of a file, which no other belongs to."""
        return self._lines((number, piece) for piece in pieces(raw))

    def _lines(self, raw: Iterable[tuple[int, str]]) -> Iterator[Record]:
        """Records of raw lines that the rules look at."""
        for line in self._envelopes.lines(self._placed(raw)):
            if self._watching and (line.time is not None or line.outer_time is not None):
                self._builder.stamp(line)
            for record in self._failures.feed(line):
                self._builder.add(record)
            yield from self._engine.feed(line)

    def _placed(self, raw: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        for number, text in raw:
            self._at(number)
            yield number, text

    def _before_line(self, number: int) -> None:
        """Blocks that a line ends come before what the line itself gives."""
        self._at(number)
        self._builder.place -= 1

    def _at(self, number: int) -> None:
        self._history.current = number
        self._builder.place = 2 * (self._before + number)

    def _reread(self, number: int, raw: bytes) -> list[Record]:
        """Records of a line whose columns cannot be read (an impossible date): the rules say what it is."""
        return [
            record
            for line in self._envelopes.lines((number, piece) for piece in pieces(raw))
            for rule in self._rules.values()
            if isinstance(rule, Rule) and rule.needle in line.text
            for record in apply(rule, line)
        ]

    def _reread_row(self, block: Block, number: int, raw: bytes) -> list[Record]:
        """The same for a row of an open block."""
        lines = self._envelopes.lines((number, piece) for piece in pieces(raw))
        return [record for line in lines for record in of_row(block, line)]

    def _hold(self, unit: Unit, walk: _Walk) -> None:
        """Keep lines that become columns, but for those read one by one because a block was open."""
        for group in unit.groups:
            if group.layout.rule.name in self._plan.columnar and group.layout.role != "header":
                rows = np.array(group.rows)
                free = walk.free(rows, group.layout.role)
                text = group.text if free.all() else _picked(group, free)
                self._waiting.hold(group.layout, (unit.base + rows[free] + 1).tolist(), text)
        if self._waiting.size > HELD:
            self._flush()

    def _flush(self) -> None:
        for layout, numbers, text in self._waiting.take():
            self._add(
                self._plan.columns(layout, text), np.array(numbers), np.ones(len(numbers), dtype=bool)
            )

    def _add(self, found: Columns, numbers: Rows, keep: npt.NDArray[np.bool_]) -> None:
        rule = self._rules[found.rule]
        for at, raw in found.odd.items():
            if keep[at]:
                number = int(numbers[at])
                self._at(number)
                records = (
                    self._reread_row(rule, number, raw)
                    if isinstance(rule, Block)
                    else self._reread(number, raw)
                )
                for record in records:
                    self._builder.add(record)
        keep[list(found.odd)] = False
        times = {"inner": found.inner, "outer": found.outer}
        columns = list(found.records)
        if not keep.all():
            times, *columns = (
                {name: picked(value, keep) for name, value in one.items()} for one in (times, *columns)
            )
        texts = found.texts.some(np.flatnonzero(keep)) if found.texts else ()
        self._add_rows(found.rule, found.line, columns, times, numbers[keep], texts)

    def _take(self, stretch: Stretch) -> None:
        """The records of a stretch that went through as they are."""
        for part in stretch.parts:
            self._add_rows(part.rule, part.line, [part.values], part.times, part.numbers)

    def _add_rows(
        self,
        rule: str,
        line: Line,
        records: Sequence[Mapping[str, Any]],
        times: Mapping[str, Any],
        numbers: Rows,
        texts: Sequence[str] = (),
    ) -> None:
        self._builder.zone(line)
        shared = {"path": self._path, **times, "rank": line.rank, "host": line.host}
        places = 2 * (self._before + numbers)
        self._builder.add_columns(self._rules[rule], records, shared, numbers, places, texts=texts)

    def _remember(self, unit: Unit) -> None:
        known = self._history.opening
        self._history.add(unit)
        if known is None and self._history.opening:
            self._builder.first_stamp(self._history.opening)

    def _settle_stamps(self) -> None:
        """Leave the stamps of a file to the builder, once nothing is looked up any more."""
        if self._builder.stamps.get(self._path) is not self._history:
            return
        del self._builder.stamps[self._path]
        if (settled := self._history.settled()).first is not None:
            self._builder.stamps[self._path] = settled


class _Walk:
    """The way through the lines of a unit."""

    def __init__(self, unit: Unit, give: Callable[[int, int], Iterator[Item]]) -> None:
        self.unit, self.known = unit, Known(unit)
        self.give = give
        """Gives what the replayed lines of a range give."""
        self.covered: list[int] = []
        """Lines that a block took, and gave the records of."""
        self.rows: list[int] = []
        """Rows of open blocks that are still to become columns."""

    def free(self, rows: Rows, role: Role) -> npt.NDArray[np.bool_]:
        """Which lines of a layout are to become columns: asked when all lines of the unit are done."""
        return self._taken[rows] if role == "row" else ~self._given[rows]

    @cached_property
    def _taken(self) -> npt.NDArray[np.bool_]:
        return self._marked(self.rows)

    @cached_property
    def _given(self) -> npt.NDArray[np.bool_]:
        return self._marked(self.covered)

    def _marked(self, lines: Sequence[int]) -> npt.NDArray[np.bool_]:
        marked = np.zeros(self.unit.count, dtype=bool)
        marked[lines] = True
        return marked


def _jobs(sources: Iterable[Source]) -> Iterator[Job]:
    for source in sources:
        alone = replace(source, progress=None, memo={})
        if envelopes := known(source):
            remember(alone, envelopes)
        for start, end in ranges(source):
            yield Job(alone, start, end)


def _picked(group: Group, free: npt.NDArray[np.bool_]) -> list[bytes]:
    """Some lines of a group."""
    table = np.frombuffer(b"".join(group.text), np.uint8).reshape(len(free), group.layout.width)
    return [table[free].tobytes()]
