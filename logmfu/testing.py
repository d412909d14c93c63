"""The conformance kit: what is wrong with a parser, as sentences. Public, and needs no test framework.

    from logmfu.testing import problems
    assert problems(PARSER) == []

A parser made of rules is proved against its own samples. Any other parser is checked on the lines given
as ``log``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain, zip_longest
from typing import Any

from logmfu import schema
from logmfu.envelopes import Envelopes
from logmfu.parsing import Block, Parser, Rule, RuleParser, Sample, compiled, run_rules
from logmfu.records import Line, Record

CUTS = 24
"""Places at which the kit damages each sample."""
REPEATS = 3000
"""How often a damaged sample repeats a piece, to find patterns that are not linear."""


def problems(parser: Parser, *, log: Iterable[str] = ()) -> list[str]:
    """What is wrong with ``parser``: one sentence each, none when it conforms.

    ``log`` are further raw lines to try it on.
    """
    if missing := _interface(parser):
        return missing
    rules = parser.rules if isinstance(parser, RuleParser) else ()
    covered = {rule.name: frozenset(_covered(rule)) for rule in rules}
    texts = [sample.text for rule in rules for sample in rule.samples]
    lines = lines_of([*chain.from_iterable(text.split("\n") for text in texts), *log])
    return [
        *([] if lines else ["nothing to check: the parser has no samples, and no log was given"]),
        *_rule_names(rules),
        *chain.from_iterable(_of_rule(rule, rules, covered) for rule in rules),
        *_names(parser, lines),
        *_order(parser, lines, {rule.name for rule in rules if isinstance(rule, Rule)}),
        *_damage(parser, texts or [line.text for line in lines]),
    ]


def lines_of(raw: Iterable[str], path: str = "sample.log") -> list[Line]:
    """Lines with their envelopes off, numbered from 1, as a parser gets them."""
    return list(Envelopes(path).lines(enumerate(raw, start=1)))


def given(record: Record) -> dict[str, Any]:
    """What a sample may state about a record.

    Its values; time, rank and host of its line; under its name a fact's value and a timer's values.
    """
    line: dict[str, Any] = {"time": record.line.time, "rank": record.line.rank, "host": record.line.host}
    if record.kind == "fact":
        return {**line, record.name: record.values.get("value")}
    if record.kind == "timer":
        return {**line, **record.values, record.name: record.values}
    return {**line, **record.values}


def _interface(parser: Parser) -> list[str]:
    found = []
    name, title = getattr(parser, "name", None), getattr(parser, "title", None)
    if not (isinstance(name, str) and compiled(r"[a-z][a-z0-9_]*+").fullmatch(name)):
        found.append(f"name {name!r} is not a lower-case identifier")
    if not (isinstance(title, str) and title.strip() and "\n" not in title):
        found.append(f"title {title!r} is not one line of text")
    if not callable(getattr(parser, "parse", None)):
        found.append("there is no parse()")
    return found


def _rule_names(rules: Sequence[Rule | Block]) -> Iterator[str]:
    for name, count in Counter(rule.name for rule in rules).items():
        if count > 1:
            yield f"{count} rules are called {name!r}"


def _of_rule(
    rule: Rule | Block, rules: Sequence[Rule | Block], covered: Mapping[str, Set[str]]
) -> Iterator[str]:
    if not rule.samples:
        yield f"rule {rule.name!r} has no sample"
        return
    for sample in rule.samples:
        for wrong in _of_sample(rule, sample, rules):
            yield f"rule {rule.name!r}, sample {_short(sample.text)}: {wrong}"
    for part in sorted(_uncovered(rule, rules, covered)):
        yield f"rule {rule.name!r}: no sample has the part {part!r}"


def _of_sample(rule: Rule | Block, sample: Sample, rules: Sequence[Rule | Block]) -> Iterator[str]:
    if rule.needle not in sample.text:
        yield f"the needle {rule.needle!r} is not in it"
    records = list(run_rules(rules, lines_of(sample.text.split("\n"))))
    for miss in (record for record in records if record.kind == "near_miss"):
        yield f"near miss of rule {miss.rule!r}: {miss.values.get('reason')}"
    read = [record for record in records if record.kind != "near_miss"]
    for other in sorted({record.rule for record in read} - {rule.name}):
        yield f"rule {other!r} reads it too"
    own = [given(record) for record in read if record.rule == rule.name]
    if not own:
        yield "the rule makes no record of it"
        return
    for name, value in sample.values.items():
        seen = [values[name] for values in own if name in values]
        if not any(same(value, one) for one in seen):
            yield f"{name} should be {value!r} and is {', '.join(map(repr, seen)) or 'missing'}"


def same(stated: Any, read: Any) -> bool:
    """Equal, floats to 9 digits; a NaN equals a NaN; of a mapping the stated keys."""
    if isinstance(stated, Mapping) and isinstance(read, Mapping):
        return all(name in read and same(value, read[name]) for name, value in stated.items())
    if isinstance(read, Mapping):  # a timer, stated by its seconds
        read = read.get("seconds", read.get("max_s"))
    if isinstance(stated, float) and isinstance(read, int | float):
        return math.isclose(stated, read, rel_tol=1e-9) or (math.isnan(stated) and math.isnan(read))
    return bool(stated == read)


def _uncovered(
    rule: Rule | Block, rules: Sequence[Rule | Block], covered: Mapping[str, Set[str]]
) -> Set[str]:
    """Named groups no sample of the rule has, and fields no sample of any rule that shares them has."""
    groups = {group for pattern in _patterns(rule) for group in compiled(pattern).groupindex}
    fields = {
        name
        for name, field in rule.fields.items()
        if name not in groups
        and not any(other.fields.get(name) == field and name in covered[other.name] for other in rules)
    }
    return (groups - covered[rule.name]) | fields


def _patterns(rule: Rule | Block) -> tuple[str, ...]:
    return (rule.pattern,) if isinstance(rule, Rule) else (rule.header, rule.row)


def _covered(rule: Rule | Block) -> Iterator[str]:
    for sample in rule.samples:
        for line in lines_of(sample.text.split("\n")):
            yield from _in_rule(rule, line.text) if isinstance(rule, Rule) else _in_block(rule, line.text)


def _in_rule(rule: Rule, text: str) -> Iterator[str]:
    matches = list(compiled(rule.pattern).finditer(text))
    for match, following in zip_longest(matches, matches[1:]):
        yield from _present(match.groupdict())
        if rule.pairs:
            rest = text[match.end() : following.start() if following else len(text)]
            yield from (name for name, _ in rule.pairs.split(rest))


def _in_block(block: Block, text: str) -> Iterator[str]:
    for pattern in (block.header, block.row):
        if match := compiled(pattern).search(text):
            groups = match.groupdict()
            yield from _present(groups)
            yield (groups.get("name") or "").strip()


def _present(groups: Mapping[str, str | None]) -> Iterator[str]:
    return (name for name, value in groups.items() if value is not None)


def _names(parser: Parser, lines: Sequence[Line]) -> Iterator[str]:
    """Names nobody knows; a parser's own names are fine unless they are a known one misspelt."""
    try:
        records = list(parser.parse(lines))
    except Exception as error:
        yield f"raises {type(error).__name__} on its own samples: {error}"
        return
    events = {record.name for record in records if record.kind == "event"}
    facts = {record.name for record in records if record.kind == "fact"}
    columns = {name for record in records if record.kind == "step" for name in record.values}
    yield from (f"event {name!r} is not in the schema" for name in sorted(events - schema.EVENTS.keys()))
    yield from _misspelt("fact", facts, schema.FACTS)
    known = [column.name for column in (*schema.STEPS, *schema.MORE_STEPS)]
    yield from _misspelt("step column", columns, known)
    reserved = columns & {"attempt", "path", "line", "elapsed_s"}
    yield from (
        f"step column {name!r} is filled by the tables, not by a parser" for name in sorted(reserved)
    )


def _misspelt(what: str, names: Iterable[str], known: Iterable[str]) -> Iterator[str]:
    spelling = {_bare(name): name for name in known}
    for name in sorted(names):
        right = spelling.get(_bare(name), name)
        if right != name:
            yield f"{what} {name!r} is spelt {right!r} in the schema"


def _bare(name: str) -> str:
    """A name without case, underscores and unit."""
    return (
        compiled(r"(?:_(?:ms|s|us|seconds|bytes|gb|gib|mb))?+$")
        .sub("", name.lower(), count=1)
        .replace("_", "")
    )


def _order(parser: Parser, lines: Sequence[Line], plain: set[str]) -> Iterator[str]:
    """Records of one line must come before the next line is asked for, and in the order of the lines."""
    handed: list[Line] = []

    def watched() -> Iterator[Line]:
        for line in lines:
            handed.append(line)
            yield line

    try:
        late = {
            record.rule or record.name
            for record in parser.parse(watched())
            if (record.rule in plain if plain else record.kind == "step") and record.line is not handed[-1]
        }
    except Exception as error:
        yield f"raises {type(error).__name__} on lines that come one by one: {error}"
        return
    yield from (f"records of {name!r} come after the parser has read on" for name in sorted(late))


def _damage(parser: Parser, texts: Sequence[str]) -> Iterator[str]:
    """A damaged log must never raise, and no pattern may run away on it."""
    for text in texts:
        for broken in damaged(text):
            try:
                records = list(parser.parse(lines_of(broken.split("\n"))))
            except Exception as error:
                yield f"raises {type(error).__name__} on damaged text {_short(broken)}: {error}"
                break
            slow = [record.rule for record in records if "too long" in str(record.values.get("reason", ""))]
            if slow:
                yield f"rule {slow[0]!r} takes too long on damaged text {_short(broken)}"
                break


def damaged(text: str) -> Iterator[str]:
    """The same set of damaged texts each time: cut, holed, doubled, glued, and blown up."""
    places = sorted({len(text) * part // CUTS for part in range(1, CUTS)})
    for place in places:
        yield text[:place]
        yield text[place:]
        yield text[:place] + text[place + 3 :]
        yield text[:place] + "\x00\ufffd{}%s" + text[place:]
        yield text[:place] + text
    for place in places[::6]:
        yield text[:place] + text[place : place + 2] * REPEATS + text[place:]
    yield compiled(r"\d").sub("9" * 40, text)
    yield compiled(r"\d").sub("nan", text)
    yield compiled(r"\d").sub("\u0663", text)
    yield (text + " ") * 50


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:60]}...{text[-15:]}")
