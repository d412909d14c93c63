"""What is looked for in a log, and how the lines of known layouts become records."""

from __future__ import annotations

from dataclasses import dataclass

from logmfu.parsing import Block, Rule, RuleParser


@dataclass(frozen=True, slots=True)
class Plan:
    """The rules of a run, and what becomes of lines that differ in their numbers alone."""

    rules: tuple[Rule | Block, ...]
    columnar: frozenset[str]
    """Rules whose records become columns of a table at once: nobody looks at them one by one."""
    replayed: frozenset[str]
    """Rules whose numbers are read as columns, and whose records are then made one by one."""

    @property
    def needles(self) -> set[str]:
        """What lines hold that may have a layout."""
        either = self.columnar | self.replayed
        return {rule.needle for rule in self.rules if rule.name in either}


def plan(parser: RuleParser) -> Plan:
    """The plan for a parser: what its ``refine`` wants to see, it sees in order, as do the tables with events."""
    rules = [rule for rule in parser.rules if isinstance(rule, Rule)]
    every = frozenset(rule.name for rule in rules)
    tables = frozenset(rule.name for rule in rules if rule.kind in ("step", "timer"))
    if parser.refine is not None:
        tables -= every if parser.refined is None else parser.refined
    return Plan(parser.rules, tables, every - tables)
