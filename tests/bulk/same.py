"""Reads a log both ways and compares what comes out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path

import pandas as pd

from logmfu import reading, registry
from logmfu.bulk import crew, feed
from logmfu.bulk.job import Hand, Job, Result
from logmfu.bulk.plan import plan
from logmfu.parsing import RuleParser
from logmfu.source import Source, open_sources
from logmfu.tables import Run, TableBuilder, finish


def line_by_line(parser: RuleParser, paths: Sequence[Path]) -> Run:
    """The reference."""
    sources = open_sources(list(paths))
    builder = TableBuilder()
    for record in parser.parse(reading.watched(reading._lines(sources), builder)):
        builder.add(record)
    return finished(builder, sources, parser)


def in_blocks(parser: RuleParser, paths: Sequence[Path]) -> Run:
    """The quick way, in this process, from the beginning of each file to its end."""
    sources = open_sources(list(paths))
    builder = TableBuilder()
    feed.Feed(parser, builder).read(sources, None)
    return finished(builder, sources, parser)


def in_ranges(parser: RuleParser, paths: Sequence[Path]) -> Run:
    """The quick way, ranges of files read on their own."""
    sources = open_sources(list(paths))
    builder = TableBuilder()
    feed.Feed(parser, builder).read(sources, _results(parser, sources))
    return finished(builder, sources, parser)


def by_processes(parser: RuleParser, paths: Sequence[Path], count: int) -> Run:
    """The quick way, ranges read by other processes."""
    sources = open_sources(list(paths))
    builder = TableBuilder()
    with crew.Crew(count) as helpers:
        results = helpers.results(plan(parser), feed._jobs(sources))
        feed.Feed(parser, builder).read(sources, results)
    return finished(builder, sources, parser)


def _results(parser: RuleParser, sources: Sequence[Source]) -> Iterator[tuple[Job, Result]]:
    hands = [Hand(plan(parser)) for _ in range(2)]
    return ((job, hands[at % 2].do(job)) for at, job in enumerate(feed._jobs(sources)))


def finished(builder: TableBuilder, sources: Sequence[Source], parser: RuleParser) -> Run:
    """The run."""
    inputs = [reading._read_file(source) for source in sources]
    return finish(builder, inputs=inputs, parser=parser.name, title=parser.title)


def rule_parser(name: str) -> RuleParser:
    """An installed parser."""
    found = registry.get(name)
    assert isinstance(found, RuleParser)
    return found


def assert_same(one: Run, other: Run) -> None:
    """Every table, fact and count."""
    for field in fields(Run):
        left, right = getattr(one, field.name), getattr(other, field.name)
        if isinstance(left, pd.DataFrame):
            pd.testing.assert_frame_equal(left, right)
        elif field.name == "facts":
            assert [(name, left.history(name)) for name in left] == [
                (name, right.history(name)) for name in right
            ]
        else:
            assert repr(left) == repr(right), field.name
