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
ENOUGH = 20
"""Facts, timers and other records that name a program without a single step or event of its life."""
TELLING = frozenset(
    (
        "process_start",
        "startup",
        "training_start",
        "exit",
        "save_start",
        "save_end",
        "load_start",
        "load_end",
        "eval_end",
    )
)


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
    telling: int = 0
    """Records that only this kind of program gives: steps, profiles, life of a process, saves."""
    error: str = ""
    """Why the parser broke down on these lines."""

    @property
    def fits(self) -> bool:
        """Whether this is enough to say that the parser's program printed the log: one fact is not."""
        return self.telling > 0 or self.records >= ENOUGH

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
        except (Exception, SystemExit) as error:  # anything may go wrong in somebody else's module
            broken.append(Broken(entry.name, f"{type(error).__name__}: {error}"))
    return parsers, broken


def _checked(entry: EntryPoint) -> Parser:
    parser = entry.load()
    if not (hasattr(parser, "parse") and hasattr(parser, "title")):
        raise TypeError(f"{entry.value} has no parse() or no title")
    if getattr(parser, "name", None) != entry.name:
        raise TypeError(
            f"{entry.value} is called {getattr(parser, 'name', None)!r}, its entry point {entry.name!r}"
        )
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
    rules = len(parser.rules) if isinstance(parser, RuleParser) else 0
    kinds: Counter[str] = Counter()
    telling = 0
    try:
        for record in parser.parse(head):
            if record.rule != "meaning":
                kinds[record.kind] += 1
                telling += record.kind in ("step", "profile") or record.name in TELLING
    except Exception as error:  # the same for what it does with a log
        return Score(parser.name, 0, 0, 0, rules, error=f"{type(error).__name__}: {error}")
    misses = kinds.pop("near_miss", 0)
    return Score(parser.name, kinds.total(), kinds["step"], misses, rules, telling)


def is_clear(ranking: Sequence[Score]) -> bool:
    """Whether one parser is the best."""
    return len(ranking) < 2 or ranking[0].rank != ranking[1].rank


def choose(ranking: Sequence[Score]) -> str:
    """Name of the best parser. Raises ``FormatError`` when none fits or two fit equally well."""
    fitting = [score for score in ranking if score.fits]
    if any(score.steps for score in fitting):  # lines about steps weigh more than any others
        fitting = [score for score in fitting if score.steps]
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
