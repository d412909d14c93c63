"""Where the values stand in step lines of one shape, found out by reading one of them the usual way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import regex

from logmfu import values
from logmfu.bulk.uniform import positive, relaxed, shape, uniform
from logmfu.envelopes import Envelopes
from logmfu.envelopes.clocks import date_s, moment
from logmfu.envelopes.labels import LOOKS_LIKE_HOST
from logmfu.envelopes.layouts import TABLE
from logmfu.parsing import Block, Field, Rule, column_name, compiled
from logmfu.records import Line

_STAMP = re.compile(r"(\d{4})-(\d\d)-(\d\d)[T _](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?")
_CLOCK = re.compile(r"\d\d:\d\d:\d\d|\d{13}\t")
_RANK = re.compile(r"\[Rank \d+\]")
_NUMBER = re.compile(r"([+-]?)(\d+)(?:\.(\d*))?(?:[eE]([+-]?)(\d{1,2}))?(?![\w.,])")
Role = Literal["line", "header", "row"]
"""A line that a rule reads by itself, one that opens a block, or a row of a block."""
EXACT = 15
"""Decimal digits that a float64 always holds exactly."""


@dataclass(frozen=True, slots=True)
class Number:
    """A plain decimal number: where its digits are, and what is made of them."""

    negative: bool
    digits: tuple[int, int]
    decimals: tuple[int, int]
    """Empty without a point."""
    exponent: tuple[int, int] | None
    shrinks: bool
    """The exponent is negative."""
    power: int
    """Power of ten by which the value is multiplied while it is read."""
    whole: bool
    """It stays an integer."""

    @property
    def spans(self) -> Iterator[tuple[int, int]]:
        """All runs of digits."""
        yield self.digits
        if self.decimals[0] < self.decimals[1]:
            yield self.decimals
        if self.exponent:
            yield self.exponent


@dataclass(frozen=True, slots=True)
class Cell:
    """One value: the columns it goes to, where it stands, and how it is read."""

    columns: tuple[str, ...]
    start: int
    end: int
    parse: values.Parse
    scale: float
    number: Number | None = None
    same: bool = False
    """The value is that of every line: no digit in it, or all of them fixed."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """A full date and clock in a prefix: the spans of its seven parts."""

    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """Lines of one shape that give the same records but for their numbers, all by one rule or block."""

    rule: Rule | Block
    role: Role
    strange: frozenset[str]
    """Names of the blocks that these lines are surely no part of."""
    width: int
    prefix: int
    """Where the text without its envelopes begins."""
    records: tuple[tuple[Cell, ...], ...]
    """The values of each record."""
    fixed: tuple[tuple[int, int], ...]
    """Where prefix and names have digits: lines that have others there are not of this layout."""
    positive: tuple[int, ...]
    """Where a digit must not be zero."""
    inner: Stamp | None
    outer: Stamp | None
    line: Line
    """The line all this was learnt from: its rank and host are those of all."""

    @property
    def constants(self) -> Mapping[str, Any]:
        """Values of all records that stand in no line."""
        return self.rule.constants if isinstance(self.rule, Rule) else {}


@dataclass(slots=True)
class Judge:
    """Knows the rules of a run: makes layouts."""

    rules: Sequence[Rule | Block]
    failures: Sequence[Rule | Block]
    telling: tuple[bytes, ...] = field(init=False)
    """Shapes of needles that have digits themselves."""

    def __post_init__(self) -> None:
        needles = {rule.needle for rule in (*self.rules, *self.failures)}
        self.telling = tuple(
            shape(needle.encode()) for needle in needles if any(char.isdecimal() for char in needle)
        )

    def layout(self, raw: bytes, envelopes: Envelopes) -> Layout | None:
        """The layout of the lines that look like this one; None if they have to be read one by one."""
        if not raw.isascii() or b"\r" in raw or b"\x1b" in raw or raw.startswith(b"{"):
            return None
        text = raw.decode()
        if "[0m" in text or "\\u001b" in text:
            return None
        lines = list(envelopes.lines([(1, text)]))
        if len(lines) != 1 or not text.endswith(lines[0].text):
            return None
        line = lines[0]
        rule, role = self._owner(line.text)
        prefix = len(text) - len(line.text)
        if rule is None or not _settled(line.text):
            return None
        stamps = _stamps(line, text[:prefix])
        found = _records(rule, role, line.text, prefix)
        if stamps is None or found is None:
            return None
        head = _frozen(line.text, prefix)
        if any(cell.start < head for cells in found for cell in cells):
            return None
        spans = [(cell.start, cell.end) for cells in found for cell in cells if not cell.same]
        spans += [span for stamp in stamps if stamp for span in stamp.spans]
        parts = [
            (0, head),
            *((prefix + start, prefix + end) for start, end in _named(rule, role, line.text)),
        ]
        fixed = tuple(span for start, end in parts for span in _fixed(raw, start, end, spans))
        positive = (
            tuple(prefix + start for start in _positive(rule.pattern, line.text))
            if isinstance(rule, Rule)
            else ()
        )
        strange = self._strange(line.text)
        return Layout(
            rule, role, strange, len(raw), prefix, found, fixed, positive, stamps[0], stamps[1], line
        )

    def _owner(self, text: str) -> tuple[Rule | Block | None, Role]:
        """The one rule or block that gives records of a text, if whatever looks at it is uniform."""
        if any(rule.needle in text for rule in self.failures):
            return None, "line"
        if any(needle in shape(text.encode()) for needle in self.telling):
            return None, "line"
        rows = [block for block in self.rules if isinstance(block, Block) and _is_row(block, text)]
        looking = [rule for rule in self.rules if rule.needle in text]
        if not looking and len(rows) == 1 and simple(rows[0]):
            return rows[0], "row"
        match looking:
            case [Block() as block] if simple(block) and compiled(block.header).search(text):
                return block, "header"
        return _only_rule(looking, text), "line"

    def _strange(self, text: str) -> frozenset[str]:
        """Names of the blocks that a text is surely no part of."""
        blocks = [rule for rule in (*self.rules, *self.failures) if isinstance(rule, Block)]
        part = {block.name for block in blocks if _may_be_part(block, text)}
        return frozenset(block.name for block in blocks) - part


def simple(block: Block) -> bool:
    """Whether each row of a block is a record of its own, and nothing else is one."""
    alone = block.kind == "timer" and not (block.end or block.gather or block.derive or block.event)
    return alone and uniform(block.row) and uniform(block.header) and not compiled(block.header).groupindex


def _is_row(block: Block, text: str) -> bool:
    return compiled(block.row).search(text) is not None


def _may_be_part(block: Block, text: str) -> bool:
    """Whether a line that looks like this one may be a row of a block, or its end."""
    patterns = (block.row, block.end) if block.end else (block.row,)
    return any(not uniform(pattern) or compiled(pattern).search(text) for pattern in patterns)


def _only_rule(looking: Sequence[Rule | Block], text: str) -> Rule | None:
    """The one rule that gives records of a text, of those that look at it, if they are all uniform."""
    found: list[Rule] = []
    for rule in looking:
        if not isinstance(rule, Rule) or not _same_for_all(rule.pattern, text):
            return None
        if compiled(rule.pattern).search(text):
            found.append(rule)
        elif not (rule.quiet or _ignored(rule, text)):
            return None
    return found[0] if len(found) == 1 else None


def _same_for_all(pattern: str, text: str) -> bool:
    """Whether a pattern finds the same places in all lines of a shape, as far as they have no zero too many."""
    wide = relaxed(pattern)
    if not uniform(wide):
        return False
    return wide == pattern or _places(wide, text) == _places(pattern, text)


def _places(pattern: str, text: str) -> list[Sequence[tuple[int, int]]]:
    return [match.regs for match in compiled(pattern).finditer(text)]


def _positive(pattern: str, text: str) -> Iterator[int]:
    """Where in a text a value must not begin with zero."""
    for match in compiled(pattern).finditer(text):
        yield from (match.start(name) for name in positive(pattern) if match[name])


def _ignored(rule: Rule, text: str) -> bool:
    """Whether the rule's lines that look like this one are surely something else."""
    return bool(rule.ignore and uniform(rule.ignore) and compiled(rule.ignore).search(text))


def _settled(text: str) -> bool:
    """Whether no digit of the text could make its beginning a prefix, or take one away."""
    body = text.lstrip(" \t")
    label = body[: body.find(")") + 1] if body.startswith("(") else ""  # as Ray has one
    if LOOKS_LIKE_HOST.match(text) or any(char.isdecimal() for char in label):
        return False
    return not (_CLOCK.search(text) and body[:2] in TABLE)


def _frozen(text: str, prefix: int) -> int:
    """Where values may begin: behind a rank that stays in the text."""
    rank = _RANK.match(text)
    return prefix + rank.end() if rank else prefix


def _stamps(line: Line, prefix: str) -> tuple[Stamp | None, Stamp | None] | None:
    """Where inner and outer time of a line stand in its prefix; None if that cannot be told."""
    if line.time is None and line.outer_time is None:
        return None if _CLOCK.search(prefix) else (None, None)
    there = [(seconds(match), _stamp(match)) for match in _STAMP.finditer(prefix)]
    inner = [stamp for time, stamp in there if time == line.time]
    outer = [stamp for time, stamp in there if time == line.outer_time]
    both = None not in (line.time, line.outer_time)
    if len(there) != 1 + both or len(_CLOCK.findall(prefix)) != len(there):
        return None  # a clock that is no full date, or one too many
    if (line.time is not None and not inner) or (line.outer_time is not None and not outer):
        return None
    return (inner[-1] if inner else None), (outer[0] if outer else None)


def _stamp(match: re.Match[str]) -> Stamp:
    return Stamp(tuple(match.span(part) for part in range(1, 8) if match[part] is not None))


def seconds(match: re.Match[str]) -> float | None:
    """The time of a stamp, as the envelopes read it."""
    day = date_s(f"{match[1]}-{match[2]}-{match[3]}")
    return moment(day, f"{match[4]}:{match[5]}:{match[6]}", match[7])


def _records(rule: Rule | Block, role: Role, text: str, prefix: int) -> tuple[tuple[Cell, ...], ...] | None:
    """The values of each record of a text, in the order in which they are read; None if they cannot be told."""
    if isinstance(rule, Block):
        row = _row(rule, text, prefix) if role == "row" else None
        return (row,) if row else () if role == "header" else None
    records = []
    for match, end in _matches(rule, text):
        found = _groups(match)
        if rule.pairs:
            at = match.end()
            found += [(name, at + start, at + stop) for name, start, stop in rule.pairs.spans(text[at:end])]
        cells = _cells(rule.fields, found, text, prefix)
        if cells is None:
            return None
        records.append(cells)
    return tuple(records)


def _row(block: Block, text: str, prefix: int) -> tuple[Cell, ...] | None:
    """The values of a row with a name of its own, the name among them."""
    match = compiled(block.row).search(text)
    groups = match.groupdict() if match else {}
    if not match or groups.get("section") is not None or not (groups.get("name") or "").strip():
        return None
    start, end = _stripped(text, *match.span("name"))
    name = Cell(("name",), prefix + start, prefix + end, str.strip, 1.0, same=True)
    others = _cells(block.fields, [one for one in _groups(match) if one[0] != "name"], text, prefix)
    return None if others is None else (name, *others)


def _groups(match: regex.Match[str]) -> list[tuple[str, int, int]]:
    """Name of each group that took part, and where it stands."""
    return [(name, *match.span(name)) for name, value in match.groupdict().items() if value is not None]


def _cells(
    fields: Mapping[str, Field], found: Iterable[tuple[str, int, int]], text: str, prefix: int
) -> tuple[Cell, ...] | None:
    cells = [_cell(fields, name, text, start, stop, prefix) for name, start, stop in found]
    return None if None in cells else tuple(cell for cell in cells if cell is not None)


def _cell(
    fields: Mapping[str, Field], name: str, text: str, start: int, end: int, prefix: int
) -> Cell | None:
    known = fields.get(name) or Field(column_name(name), values.auto)
    start, end = _stripped(text, start, end)
    try:
        value = known.parse(text[start:end])
    except (ValueError, OverflowError):
        return None
    columns = (known.column, known.also) if known.also else (known.column,)
    number = _number(known.parse, text[start:end], value, prefix + start)
    same = not any(char.isdecimal() for char in text[start:end])
    return Cell(columns, prefix + start, prefix + end, known.parse, known.scale, number, same)


def _number(parse: values.Parse, raw: str, value: Any, at: int) -> Number | None:
    """How the number is read from its digits, if that gives just what ``parse`` gives."""
    power = _power(parse)
    match = _NUMBER.match(raw)
    if power is None or match is None or not isinstance(value, int | float):
        return None
    whole = isinstance(value, int)
    if (match.end() < len(raw) and parse is not values.first_number) or (match[5] and (whole or power)):
        return None
    if len(match[2]) + len(match[3] or "") > EXACT:
        return None
    exponent = f"e{int(match[5] or 0) * (-1 if match[4] == '-' else 1) + power}"
    if value != (
        int(match[0]) if whole else float(match[1] + match[2] + "." + (match[3] or "") + exponent)
    ):
        return None
    digits, decimals, of_exponent = ((at + match.start(part), at + match.end(part)) for part in (2, 3, 5))
    return Number(
        match[1] == "-",
        digits,
        decimals if match[3] else (0, 0),
        of_exponent if match[5] else None,
        match[4] == "-",
        power,
        whole,
    )


def _power(parse: values.Parse) -> int | None:
    """Power of ten by which a function multiplies while it reads; None for functions of another kind."""
    if parse in (values.number, values.integer, values.auto, values.first_number):
        return 0
    if parse is values.milliseconds:
        return -3
    if isinstance(parse, partial) and parse.func is values.shifted and not parse.args:
        return int(parse.keywords["by"])
    return None


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    part = text[start:end]
    return start + len(part) - len(part.lstrip()), end - len(part) + len(part.rstrip())


def _matches(rule: Rule, text: str) -> Iterator[tuple[regex.Match[str], int]]:
    """Where the pattern of a rule is found, and where the pairs that belong to each place end."""
    matches = list(compiled(rule.pattern).finditer(text))
    ends = [*(match.start() for match in matches[1:]), len(text)]
    yield from zip(matches, ends, strict=True)


def _named(rule: Rule | Block, role: Role, text: str) -> Iterator[tuple[int, int]]:
    """Where names stand in which a digit makes a difference."""
    if isinstance(rule, Block):
        if role == "row" and (match := compiled(rule.row).search(text)):
            yield match.span("name")
    elif rule.pairs:
        yield from ((match.end(), end) for match, end in _matches(rule, text))


def _fixed(raw: bytes, start: int, end: int, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Runs of digits in a part of a line, outside of all spans."""
    free = bytearray(raw)
    for first, past in spans:
        free[first:past] = b" " * (past - first)
    yield from (match.span() for match in re.finditer(rb"\d+", free[:end]) if match.start() >= start)
