"""What is looked for in a log, and how the lines of known layouts become records."""

from __future__ import annotations

from dataclasses import dataclass

from logmfu.bulk.columns import Columns, Texts, columns
from logmfu.bulk.layout import Layout, simple
from logmfu.parsing import Block, Rule, RuleParser
from logmfu.schema import INCIDENTS


@dataclass(frozen=True, slots=True)
class Plan:
    """The rules of a run, and what becomes of lines that differ in their numbers alone."""

    rules: tuple[Rule | Block, ...]
    columnar: frozenset[str]
    """Rules and blocks whose records become columns of a table at once: nobody looks at them one by one."""
    replayed: frozenset[str]
    """Rules whose numbers are read as columns, and whose records are then made one by one."""

    def columns(self, layout: Layout, raw: bytes) -> Columns:
        """The columns of lines of a layout, with what is needed to make their records one by one, if they are."""
        found = columns(layout, raw)
        found.replayed = layout.rule.name in self.replayed
        if found.replayed or layout.rule.kind == "event":
            found.texts = Texts(raw, layout.width, layout.prefix)
        return found

    @property
    def needles(self) -> set[str]:
        """What lines hold that may have a layout."""
        names = self.names
        return {rule.needle for rule in self.rules if rule.name in names}

    @property
    def names(self) -> frozenset[str]:
        """Rules whose lines may have a layout."""
        return self.columnar | self.replayed


def plan(parser: RuleParser) -> Plan:
    """The plan for a parser: what its ``refine`` wants to see, it sees in order, as do the tables with events."""
    names = frozenset(rule.name for rule in parser.rules)
    alone = frozenset(rule.name for rule in parser.rules if isinstance(rule, Rule))
    tables = frozenset(rule.name for rule in parser.rules if _independent(rule))
    if parser.refine or parser.skim:
        tables -= names if parser.refined is None else parser.refined
    return Plan(parser.rules, tables, alone - tables)


def _independent(rule: Rule | Block) -> bool:
    """Whether rows of a table can be made of its records without a look at other lines, but for a block's header."""
    if isinstance(rule, Block):
        return simple(rule)
    if rule.kind == "event":
        columns = {field.column for field in rule.fields.values()}
        own_time = "time" in columns | rule.constants.keys() or "(?P<time>" in rule.pattern or rule.pairs
        return not own_time and (rule.event or rule.name) not in INCIDENTS | {"process_start"}
    return rule.kind in ("step", "timer")
