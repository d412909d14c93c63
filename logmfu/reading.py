"""From paths to a run: open, take the envelopes off, choose the parser, fill the tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING, BinaryIO

from logmfu import failures, registry
from logmfu.bulk import feed
from logmfu.bulk.crew import Crew, crew
from logmfu.envelopes import Envelopes
from logmfu.envelopes.learning import learnt
from logmfu.errors import FormatError
from logmfu.parsing import Engine, Parser, RuleParser
from logmfu.records import Line
from logmfu.source import Source, open_sources

if TYPE_CHECKING:
    from logmfu.tables import ReadFile, Run, TableBuilder

HEADS = (500, 2_000, 20_000, 200_000)
"""Lines of the head that detection looks at, of all files together; more only while no step was seen."""
SHARE = 200
"""Lines of one file that it looks at, however many files there are."""
FEW = 3
"""Files up to this number are learnt from before detection; it does well without, where there are more."""
HEAD_BYTES = (1 << 17, 1 << 20, 8 << 20, 64 << 20)
"""Bytes of a file read for that: more only while there are not enough lines in them."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The parser that reads a log, how it came out, and the parsers that are broken."""

    parser: Parser
    ranking: tuple[registry.Score, ...]
    lines_looked_at: int
    forced: bool
    broken: tuple[registry.Broken, ...]


def read(
    paths: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    parser: str | None = None,
    stdin: BinaryIO | None = None,
) -> Run:
    """Read the logs of one run.

    ``paths``: files, globs, directories, or ``-``. ``parser`` forces one by name. Raises
    ``SourceError``, ``FormatError``, ``PluginError``.
    """
    sources = open_sources(_several(paths), stdin=stdin)
    with crew(sources) as helpers:
        return read_with(choose(sources, parser=parser).parser, sources, helpers)


def read_with(
    parser: Parser, sources: Sequence[Source], helpers: Crew, *, ahead: Sequence[str] = ()
) -> Run:
    """Read sources with a parser that is already chosen; the crew helps, if the parser has a quick way.

    ``ahead``: modules that will be needed after this, to be loaded while the crew reads.
    """
    if isinstance(parser, RuleParser) and feed.fits(parser):
        builder = feed.read(parser, sources, partial(_builder, ahead), helpers)
    else:
        builder = _builder()
        for record in parser.parse(watched(_lines(sources), builder)):
            builder.add(record)
    from logmfu.tables import finish

    run = finish(
        builder,
        inputs=[_read_file(source) for source in sources],
        parser=parser.name,
        title=parser.title,
    )
    _refuse_nothing(run)
    return run


def choose(sources: Sequence[Source], *, parser: str | None = None) -> Choice:
    """The parser for these inputs: the one asked for, else the one that understands most of the head."""
    if parser is not None:
        return Choice(registry.get(parser), (), 0, True, ())
    parsers, broken = registry.load()
    ranking: list[registry.Score] = []
    looked = 0
    for size in HEADS:
        share = max(size // max(len(sources), 1), SHARE)
        head = [line for source in sources for line in _head(source, share, learn=len(sources) <= FEW)]
        enough = len(head) == looked
        looked = len(head)
        if not enough:
            ranking = registry.scores(head, parsers)
        if enough or (ranking and ranking[0].steps and registry.is_clear(ranking)):
            break
    broke = [registry.Broken(score.parser, score.error) for score in ranking if score.error]
    return Choice(parsers[registry.choose(ranking)], tuple(ranking), looked, False, (*broken, *broke))


def watched(lines: Iterable[Line], builder: TableBuilder) -> Iterator[Line]:
    """Pass lines on to the parser; on the way note their stamps and the failure lines among them."""
    engine = Engine(failures.RULES)
    for line in builder.watch(lines):
        for record in engine.feed(line):
            builder.add(record)
        yield line
    for record in engine.close():
        builder.add(record)


def _builder(ahead: Sequence[str] = ()) -> TableBuilder:
    from logmfu.tables import TableBuilder  # loads pandas: as late as can be

    for name in ahead:
        import_module(name)
    return TableBuilder()


def _several(paths: str | PathLike[str] | Sequence[str | PathLike[str]]) -> list[str | PathLike[str]]:
    return [paths] if isinstance(paths, str | PathLike) else list(paths)


def _head(source: Source, size: int, *, learn: bool) -> Iterator[Line]:
    """The first ``size`` lines, as far as they stand in the first ``HEAD_BYTES``."""
    raw: list[tuple[int, str]] = []
    for max_bytes in HEAD_BYTES:
        before, raw = len(raw), source.head(max_bytes)
        if len(raw) >= size or len(raw) == before:
            break
    envelopes = learnt(source) if learn else Envelopes(source.path)
    return envelopes.lines(raw[:size])


def _lines(sources: Sequence[Source]) -> Iterator[Line]:
    for source in sources:
        yield from learnt(source).lines(source.lines())


def _read_file(source: Source) -> ReadFile:
    from logmfu.tables import ReadFile

    reading = source.reading
    notes = [f"cut off: {reading.truncated}"] if reading.truncated else []
    return ReadFile(source.path, reading.bytes, reading.lines, "; ".join([*notes, *reading.notes]))


def _refuse_nothing(run: Run) -> None:
    """A log without a step, a profile or a word about the life of a process is an error, not an empty result."""
    told = run.events["event"].isin(registry.TELLING).any() if len(run.events) else False
    if len(run.steps) or told or run.profiles:
        return
    raise FormatError(
        f"nothing in this log is understood by the parser {run.parser!r}",
        facts=[f"{file.path}: {file.lines} lines" for file in run.inputs],
        hint="`logmfu explain PATH` shows what each parser makes of it; --parser NAME forces another",
    )
