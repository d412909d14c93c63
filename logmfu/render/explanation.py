"""How a log was read, as text: the choice of the parser, the facts, what is left over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from logmfu.render.escape import terminal as safe
from logmfu.render.quantities import count
from logmfu.schema import FACTS
from logmfu.tables import Run

if TYPE_CHECKING:
    from logmfu.reading import Choice


def render(choice: Choice, run: Run, *, every: bool = False) -> str:
    """The whole explanation; ``every`` lists raw arguments and unknown facts too."""
    parts = [_choice(choice), _inputs(run), _tables(run), _facts(run, every), _left_over(run)]
    return "\n".join(line for part in parts for line in part) + "\n"


def _choice(choice: Choice) -> Iterator[str]:
    yield f"parser: {choice.parser.name} ({choice.parser.title})"
    if choice.forced:
        yield "  asked for with --parser"
        return
    yield f"  chosen by what each parser understood of the first {count(choice.lines_looked_at)} lines:"
    for score in choice.ranking:
        yield f"  {score.parser:<20} {score.records:>8,} records, {score.steps:>7,} of them steps, {score.near_misses:,} near misses"
    for plugin in choice.broken:
        yield f"  {plugin.name}: broken and left out: {safe(plugin.reason)}"


def _inputs(run: Run) -> Iterator[str]:
    yield ""
    for file in run.inputs:
        note = f" ({safe(file.note)})" if file.note else ""
        yield f"input: {safe(file.path)}: {count(file.bytes)} bytes, {count(file.lines)} lines{note}"


def _tables(run: Run) -> Iterator[str]:
    yield f"tables: {len(run.steps):,} steps, {len(run.events):,} events, {len(run.timers):,} timers, {len(run.profiles):,} profiles"
    if len(run.steps):
        yield "columns of steps: " + ", ".join(
            name for name in run.steps.columns if run.steps[name].notna().any()
        )
    kinds = run.events["event"].value_counts()
    if len(kinds):
        yield "events: " + ", ".join(f"{name} {number}" for name, number in kinds.items())


def _facts(run: Run, every: bool) -> Iterator[str]:
    yield ""
    yield "facts (and the line that says them):"
    names = [name for name in FACTS if name in run.facts]
    names += [name for name in run.facts if name not in FACTS and (every or not name.startswith("arg."))]
    for name in names:
        stated = run.facts.where(name)
        yield f"  {name} = {safe(str(stated.value), limit=80)}  [{safe(stated.path)}:{stated.line}]"
    hidden = len(run.facts) - len(names)
    if hidden:
        yield f"  and {hidden} raw arguments (--all lists them)"


def _left_over(run: Run) -> Iterator[str]:
    counts = run.coverage
    yield ""
    yield f"lines: {count(counts.lines)} read, {count(counts.matched)} understood, {count(counts.near_misses)} nearly, {count(counts.other)} other text"
    for miss in counts.examples:
        yield f"  near miss [{safe(miss.path)}:{miss.line}] {miss.rule}: {safe(miss.reason)}: {safe(miss.text, limit=120)}"
