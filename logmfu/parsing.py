"""Parsers as data: rules, blocks, fields and samples, and the engine that runs them.

A rule has a *needle*, a literal that only its lines contain; the pattern is tried on those lines
alone. A needle without its pattern is a near miss: counted and shown, never raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, Union

import regex

from logmfu import values
from logmfu.records import Kind, Line, Record

if TYPE_CHECKING:
    from logmfu.stretch import Stretch

_Key = tuple[str, int | None, str | None]
TIMEOUT_S = 1.0
"""Time one pattern may take on one line; longer is a near miss. The last guard against hostile lines."""
LABEL = r"[A-Za-z_][^|:()]*+(?:\([^|()]*+\)[^|:()]*+)*+"
"""What the name of a ``name: value`` pair looks like."""


class Parser(Protocol):
    """What ``logmfu`` needs of a parser: a name, a title, and a generator over lines."""

    @property
    def name(self) -> str:
        """Module, entry point, fixture folder and ``--parser`` value."""

    @property
    def title(self) -> str:
        """One line for people."""

    def parse(self, lines: Iterable[Line]) -> Iterator[Record]:
        """Yield records in the order of the lines, without reading ahead."""


@dataclass(frozen=True, slots=True)
class Field:
    """Where a value goes: column, how to read it, and the factor to SI units."""

    column: str
    parse: values.Parse = values.number
    scale: float = 1.0
    also: str = ""
    """A second column that gets the same value."""

    def read(self, text: str) -> dict[str, Any]:
        """The value under its column names. Raises ``ValueError``."""
        value = self.parse(text)
        if self.scale != 1.0:
            value *= self.scale
        return {self.column: value, self.also: value} if self.also else {self.column: value}


@dataclass(frozen=True, slots=True)
class Pairs:
    """How the rest of a line splits into ``name: value | name: value``."""

    separator: str = "|"
    assign: str = ": "
    label: str = LABEL
    """What a name looks like."""
    closed: str = ""
    """Characters one of which ends a whole line; without it the last part is torn, and left out."""

    def split(self, rest: str) -> Iterator[tuple[str, str]]:
        """Name and value of each part that looks like a pair; other text is glue and left alone."""
        for name, start, end in self.spans(rest):
            yield name, rest[start:end].strip()

    def spans(self, rest: str) -> Iterator[tuple[str, int, int]]:
        """Name of each pair, and where its value stands, with the blanks around it."""
        parts = rest.split(self.separator)
        end = -len(self.separator)
        closed = not self.closed or rest.rstrip().endswith(tuple(self.closed))
        for part in parts if closed else parts[:-1]:
            start = end + len(self.separator)
            end = start + len(part)
            name, found, value = part.partition(self.assign)
            name = name.strip()
            if found and compiled(self.label).fullmatch(name):
                yield name, end - len(value), end


@dataclass(frozen=True, slots=True)
class Sample:
    """A whole line (or block) as a log has it, and values it must give."""

    text: str
    values: Mapping[str, Any] = field(default_factory=dict)
    version: str = ""
    """Where this layout was seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One kind of line.

    ``pattern`` is searched anywhere in a line that contains ``needle``; its named groups and, with
    ``pairs``, the ``name: value`` parts after it go through ``fields``. A name without a field is
    kept under its own name. ``constants`` are added to every record. The group ``name`` of a timer or
    fact rule names its record: a pattern that matches several times in a line gives a record each.
    """

    name: str
    kind: Kind
    needle: str
    pattern: str
    event: str = ""
    """Name of the event, timer or fact records."""
    pairs: Pairs | None = None
    fields: Mapping[str, Field] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    ignore: str = ""
    """Lines with the needle that mean something else (source code quoted in a log): no near miss."""
    quiet: bool = False
    """The needle is common in other text: a line without the pattern is no near miss."""
    samples: tuple[Sample, ...] = ()


Derive = Callable[[Mapping[str, Any]], Iterable[tuple[str, Any, str]]]
"""Rows of a block to ``(fact name, value, name of the row that shows it)``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Lines that belong together: a header, rows, an end.

    ``row`` has the groups ``name`` and ``value`` (facts, profiles) or ``name`` with ``min_s``,
    ``max_s``, ``seconds`` (timers); further groups are read like values of the header. A group
    ``section`` names the rows after it. Rows of
    other ranks and up to ``foreign`` other lines in between do not end the block. With ``gather``
    all rows become one record at the end, else each row is one.
    """

    name: str
    kind: Kind
    needle: str
    header: str
    row: str
    end: str = ""
    event: str = ""
    """An event record with this name is made of the header."""
    prefix: str = ""
    """Put before the name of each row's record."""
    gather: bool = False
    foreign: int = 60
    fields: Mapping[str, Field] = field(default_factory=dict)
    parse: values.Parse = values.literal
    derive: Derive | None = None
    samples: tuple[Sample, ...] = ()


@dataclass(slots=True)
class Seen:
    """What a log has shown so far: the evidence from which meaning facts are drawn."""

    rules: dict[str, Line] = field(default_factory=dict)
    """First line of each rule or block that matched."""
    facts: dict[str, tuple[Any, Line]] = field(default_factory=dict)
    """Latest value of each fact."""
    columns: dict[str, Line] = field(default_factory=dict)
    """First line of each step column."""
    first_step: Record | None = None

    def note(self, record: Record) -> None:
        """Take a record into account."""
        self.rules.setdefault(record.rule, record.line)
        if record.kind == "fact":
            self.facts[record.name] = (record.values.get("value"), record.line)
        elif record.kind == "step":
            if self.first_step is None:
                self.first_step = record
            for column in record.values:
                self.columns.setdefault(column, record.line)

    def skim(self, stretch: Stretch) -> None:
        """Take a stretch into account: of each part the first record, if it shows anything new."""
        new = {
            int(part.numbers[0])
            for part in stretch.parts
            if part.rule not in self.rules or not part.values.keys() <= self.columns.keys()
        }
        for record in stretch if new else ():
            if record.line.number in new:
                self.note(record)


Meaning = Callable[[Seen], Iterable[tuple[str, Any, Line]]]
"""Evidence to meaning facts ``(name, value, line that proves it)``."""

Item = Union[Record, "Stretch"]
Refine = Callable[[Iterator[Record]], Iterator[Record]]
"""Records to records, in order and without reading ahead: what one line says about a later one."""
Skim = Callable[[Iterator[Item]], Iterator[Item]]
"""The same for a stream in which many like records may come as a stretch; it goes on as one, or as its records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleParser:
    """A parser made of rules and blocks."""

    name: str
    title: str
    rules: tuple[Rule | Block, ...]
    refine: Refine | None = None
    """Corrects records by what earlier lines showed (a version with a known unit bug)."""
    skim: Skim | None = None
    """Instead of ``refine``, where it can do so with many lines at once."""
    refined: frozenset[str] | None = None
    """Names of the rules whose records either looks at; all others it passes on. None: of every rule."""
    meaning: Meaning | None = None
    """Drawn once, at the end of the log, from what was seen."""
    source: str = ""
    """Where the layout was read: repositories and dates."""

    def parse(self, lines: Iterable[Line]) -> Iterator[Record]:
        """Yield records in the order of the lines, then the facts about meaning."""
        return _records(self.understand(run_rules(self.rules, lines)))

    def understand(self, items: Iterator[Item]) -> Iterator[Item]:
        """What the rules gave, refined; then the facts about meaning."""
        seen = Seen()
        if self.skim:
            items = self.skim(items)
        elif self.refine:
            items = self.refine(_records(items))
        for item in items:
            if not isinstance(item, Record):
                seen.skim(item)
            elif item.kind != "near_miss":
                seen.note(item)
            yield item
        for name, value, line in self.meaning(seen) if self.meaning else ():
            yield Record("fact", name, {"value": value}, line, "meaning")


def _records(items: Iterator[Item]) -> Iterator[Record]:
    """For who takes records alone: then there are no stretches."""
    return (item for item in items if isinstance(item, Record))


@cache
def compiled(pattern: str) -> regex.Pattern[str]:
    """The pattern, compiled on first use: start-up stays free of it."""
    return regex.compile(pattern)


@cache
def column_name(label: str) -> str:
    """Column for a label nobody declared: ``tokens/s/GPU`` becomes ``tokens_s_gpu``."""
    return regex.sub(r"\W++", "_", label.strip().lower()).strip("_")


def run_rules(rules: Sequence[Rule | Block], lines: Iterable[Line]) -> Iterator[Record]:
    """Run every rule over every line; yield records in line order."""
    engine = Engine(rules)
    for line in lines:
        yield from engine.feed(line)
    yield from engine.close()


@dataclass(frozen=True, slots=True)
class LineKind:
    """What is known of some lines without a look at them."""

    line: Line
    """One of them: path, rank and host are those of all."""
    strange: frozenset[str]
    """Names of the blocks that they are surely no part of."""
    row_of: str = ""
    """Name of the block that they are rows of, where it is open."""
    opens: str = ""
    """Name of the block that they are headers of."""
    key: _Key = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", _key(self.line))


class Engine:
    """Runs rules line by line, with the blocks that are open."""

    def __init__(self, rules: Sequence[Rule | Block]) -> None:
        self._rules = [(rule.needle, rule) for rule in rules if isinstance(rule, Rule)]
        self._blocks = [(block.needle, block) for block in rules if isinstance(block, Block)]
        self._opened: _Opened = {}

    @property
    def waiting(self) -> bool:
        """Whether a block is open: then every line may matter."""
        return bool(self._opened)

    def feed(self, line: Line) -> Iterator[Record]:
        """Records of one line."""
        text = line.text
        taken, records = self.go_on(line)
        yield from records
        if taken:
            return
        for needle, block in self._blocks:
            if needle in text and (header := _search(block.header, text)):
                yield from _open(self._opened, block, header, line)
        for needle, rule in self._rules:
            if needle in text:
                yield from apply(rule, line)

    def go_on(self, line: Line) -> tuple[bool, list[Record]]:
        """Whether a line belongs to an open block, and the records of the blocks it goes on with or ends."""
        return _feed(self._opened, line) if self._opened else (False, [])

    def pass_over(
        self, kinds: Sequence[LineKind | None], start: int, end: int, failures: Engine
    ) -> tuple[int, list[int]]:
        """Do as ``go_on`` does for lines of known kinds, in both engines, without a look at them.

        Stops before a line that has to be looked at: of no known kind, perhaps a part of a block that
        is open, or the end of one. Returns where, and which lines were rows of open blocks.
        """
        opened, failing, rows = self._opened, failures._opened, list[int]()
        for at in range(start, end):
            kind = kinds[at]
            if kind is None:
                return at, rows
            waiting = opened.get(kind.key)
            if waiting and len(waiting) == 1 and waiting[0].block.name == kind.row_of and not failing:
                waiting[0].strangers = 0
                rows.append(at)
                continue
            both = [*failing.get(kind.key, ()), *(waiting or ())]
            if not all(state.passes(kind) for state in both):
                return at, rows
            for state in both:
                if state.block.name == kind.row_of:
                    state.strangers = 0
                    rows.append(at)
                    break
                state.strangers += 1
            if kind.opens:
                self.open(kind)
        return end, rows

    def open(self, kind: LineKind) -> None:
        """Open the block of a header that is known to be one, and has no values."""
        waiting = self._opened.setdefault(kind.key, [])
        block = next(block for _, block in self._blocks if block.name == kind.opens)
        waiting[:] = [state for state in waiting if state.block is not block]
        waiting.append(_OpenBlock(block, kind.line))

    def close(self) -> Iterator[Record]:
        """Records of the blocks that the log's end leaves open."""
        for waiting in self._opened.values():
            for state in waiting:
                yield from state.close()
        self._opened = {}


def apply(rule: Rule, line: Line) -> Iterator[Record]:
    """Records of one rule on one line that contains its needle."""
    try:
        matches = list(compiled(rule.pattern).finditer(line.text, timeout=TIMEOUT_S))
    except TimeoutError:
        yield _near_miss(rule.name, line, "the pattern took too long")
        return
    if not matches and not rule.quiet and not (rule.ignore and _search(rule.ignore, line.text)):
        yield _near_miss(rule.name, line, "the layout is not the expected one")
    for index, match in enumerate(matches):
        end = matches[index + 1].start() if index + 1 < len(matches) else len(line.text)
        record, unread = _record(rule, match, line.text[match.end() : end], line)
        yield record
        for reason in unread:
            yield _near_miss(rule.name, line, reason)


def of_row(block: Block, line: Line) -> list[Record]:
    """Records of one line of an open block."""
    return _OpenBlock(block, line).feed(line)[1]


def _record(rule: Rule, match: regex.Match[str], rest: str, line: Line) -> tuple[Record, list[str]]:
    found = [(name, value) for name, value in match.groupdict().items() if value is not None]
    if rule.pairs:
        found.extend(rule.pairs.split(rest))
    read, unread = _values(rule.fields, found)
    return made(rule, {**rule.constants, **read}, line), unread


def made(rule: Rule | Block, read: dict[str, Any], line: Line) -> Record:
    """The record of a rule from values that were read, the rule's constants among them."""
    named = read.pop("name", None) if rule.kind in ("timer", "fact") else None
    return Record(rule.kind, named or rule.event or rule.name, read, line, rule.name)


def _values(
    fields: Mapping[str, Field], found: Iterable[tuple[str, str]]
) -> tuple[dict[str, Any], list[str]]:
    read: dict[str, Any] = {}
    unread: list[str] = []
    for name, text in found:
        known = fields.get(name)
        try:
            read.update(known.read(text) if known else {column_name(name): values.auto(text)})
        except (ValueError, OverflowError):
            unread.append(f"cannot read {name!r} in {text[:60]!r}")
    return read, unread


def _near_miss(rule: str, line: Line, reason: str) -> Record:
    return Record("near_miss", rule, {"reason": reason}, line, rule)


def _search(pattern: str, text: str) -> regex.Match[str] | None:
    try:
        return compiled(pattern).search(text, timeout=TIMEOUT_S)
    except TimeoutError:
        return None


@dataclass(slots=True)
class _OpenBlock:
    block: Block
    header: Line
    rows: dict[str, Any] = field(default_factory=dict)
    shown: dict[str, Line] = field(default_factory=dict)
    section: str = ""
    strangers: int = 0
    closed: bool = False

    def feed(self, line: Line) -> tuple[bool, list[Record]]:
        """Whether the line belongs to this block, and its records."""
        block = self.block
        if block.end and _search(block.end, line.text):
            self.closed = True
            return True, list(self.close())
        match = _search(block.row, line.text)
        if match is None:
            self.strangers += 1
            self.closed = self.strangers > block.foreign
            return False, list(self.close()) if self.closed else []
        self.strangers = 0
        return True, list(self._row(match.groupdict(), line))

    def passes(self, kind: LineKind) -> bool:
        """Whether it is known what lines are to this block, and that they do not end it."""
        name = self.block.name
        return name == kind.row_of or (name in kind.strange and self.strangers < self.block.foreign)

    def _row(self, groups: dict[str, str | None], line: Line) -> Iterator[Record]:
        section = groups.pop("section", None)
        if section is not None:
            self.section = section.strip()
            return
        block = self.block
        name = (groups.pop("name", None) or self.section).strip()
        if block.kind == "timer":
            found = [(key, text) for key, text in groups.items() if text is not None]
            read, _ = _values(block.fields, found)
            yield Record("timer", name, read, line, block.name)
            return
        value = self._value(name, groups.pop("value", None) or "")
        more, _ = _values(block.fields, [(key, text) for key, text in groups.items() if text is not None])
        self.rows.update(value | more)
        for key in value:
            self.shown.setdefault(key, line)
        if block.kind == "fact":
            yield Record("fact", block.prefix + name, {"value": value.get(name)}, line, block.name)

    def _value(self, name: str, text: str) -> dict[str, Any]:
        known = self.block.fields.get(name)
        if known is None:
            return {name: self.block.parse(text)}
        try:
            return known.read(text)
        except (ValueError, OverflowError):
            return {known.column: None}

    def close(self) -> Iterator[Record]:
        """Records that need the whole block."""
        block = self.block
        if block.gather and self.rows:
            yield Record(block.kind, block.name, self.rows, self.header, block.name)
        for name, value, row in block.derive(self.rows) if block.derive else ():
            yield Record("fact", name, {"value": value}, self.shown.get(row, self.header), block.name)


_Opened = dict[_Key, list[_OpenBlock]]


def _key(line: Line) -> _Key:
    """Lines with the same one come from one process: their blocks are theirs."""
    return (line.path, line.rank, line.host)


def _open(opened: _Opened, block: Block, header: regex.Match[str], line: Line) -> Iterator[Record]:
    waiting = opened.setdefault(_key(line), [])
    for state in [state for state in waiting if state.block is block]:
        waiting.remove(state)
        yield from state.close()
    state = _OpenBlock(block, line)
    found = [(name, value) for name, value in header.groupdict().items() if value is not None]
    read, _ = _values(block.fields, found)
    state.rows.update(read)
    waiting.append(state)
    if block.event:
        yield Record("event", block.event, read, line, block.name)


def _feed(opened: _Opened, line: Line) -> tuple[bool, list[Record]]:
    key = _key(line)
    waiting = opened.get(key)
    if not waiting:
        return False, []
    out: list[Record] = []
    taken = False
    for state in list(waiting):
        belongs, records = state.feed(line)
        out.extend(records)
        if state.closed:
            waiting.remove(state)
        if belongs:
            taken = True
            break
    if not waiting:
        del opened[key]
    return taken, out
