"""Which parsers there are, and which one fits a log.

Parsers come through the entry-point group ``logmfu.parsers``, the built-in ones too. Detection has
no rules of its own: every parser reads the head of the log, and what came out is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

from logmfu.errors import FormatError, PluginError
from logmfu.parsing import Parser, RuleParser
from logmfu.records import Line

GROUP = "logmfu.parsers"


@dataclass(frozen=True, slots=True)
class Broken:
    """A parser that is installed and cannot be used, with the reason."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Score:
    """What one parser made of the head of a log."""

    parser: str
    records: int
    steps: int
    near_misses: int
    rules: int

    @property
    def rank(self) -> tuple[int, int]:
        """More understood lines win; among equals the parser that needs fewer rules."""
        return (self.records, -self.rules)


def load() -> tuple[dict[str, Parser], list[Broken]]:
    """All installed parsers by name, and those that are broken."""
    parsers: dict[str, Parser] = {}
    broken: list[Broken] = []
    for entry in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            parsers[entry.name] = _checked(entry)
        except Exception as error:  # anything may go wrong in somebody else's module
            broken.append(Broken(entry.name, f"{type(error).__name__}: {error}"))
    return parsers, broken


def _checked(entry: EntryPoint) -> Parser:
    parser = entry.load()
    if not (hasattr(parser, "parse") and hasattr(parser, "title")):
        raise TypeError(f"{entry.value} has no parse() or no title")
    if getattr(parser, "name", None) != entry.name:
        raise TypeError(f"{entry.value} is called {getattr(parser, 'name', None)!r}, its entry point {entry.name!r}")
    return parser  # type: ignore[no-any-return]


def get(name: str) -> Parser:
    """The parser called ``name``. Raises ``PluginError`` if it is missing or broken."""
    parsers, broken = load()
    if name in parsers:
        return parsers[name]
    for plugin in broken:
        if plugin.name == name:
            raise PluginError(f"the parser {name!r} is broken", facts=[plugin.reason])
    raise PluginError(f"there is no parser called {name!r}", facts=["installed: " + ", ".join(parsers)])


def scores(head: Sequence[Line], parsers: Mapping[str, Parser]) -> list[Score]:
    """What each parser makes of these lines, best first."""
    found = [_score(parser, head) for parser in parsers.values()]
    return sorted(found, key=lambda score: (score.rank, score.parser), reverse=True)


def _score(parser: Parser, head: Iterable[Line]) -> Score:
    kinds = Counter(record.kind for record in parser.parse(head) if record.rule != "meaning")
    rules = len(parser.rules) if isinstance(parser, RuleParser) else 0
    misses = kinds.pop("near_miss", 0)
    return Score(parser.name, kinds.total(), kinds["step"], misses, rules)


def is_clear(ranking: Sequence[Score]) -> bool:
    """Whether one parser is the best."""
    return len(ranking) < 2 or ranking[0].rank != ranking[1].rank


def choose(ranking: Sequence[Score]) -> str:
    """Name of the best parser. Raises ``FormatError`` when none fits or two fit equally well."""
    fitting = [score for score in ranking if score.records]
    if not fitting:
        raise FormatError(
            "no parser understands this log",
            facts=["tried: " + ", ".join(sorted(score.parser for score in ranking))],
            hint="`logmfu parsers` lists what can be read; --parser NAME forces one",
        )
    best = fitting[0]
    equals = [score.parser for score in fitting if score.rank == best.rank]
    if len(equals) > 1:
        raise FormatError(
            "more than one parser fits this log",
            facts=[f"{name} reads {best.records} lines" for name in equals],
            hint=" or ".join(f"--parser {name}" for name in equals),
        )
    return best.parser
