"""The lines around each cited line, read from the inputs a second time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from logmfu.errors import SourceError
from logmfu.masking import MASK, PrivateKeys, mask
from logmfu.report import Evidence, Report
from logmfu.source import Source

CONTEXT = 3
"""Lines shown before and after a cited one."""
MOST = 400
"""Cited lines that are looked up."""
LONGEST = 400
"""Characters kept of one line."""

Excerpts = Mapping[tuple[str, int], Sequence[str]]
"""By path and number of a cited line: the lines from :func:`first_line` on, secrets masked."""


def first_line(cited: int) -> int:
    """Number of the first line of the excerpt around line ``cited``."""
    return max(1, cited - CONTEXT)


def excerpts(report: Report, sources: Iterable[Source]) -> dict[tuple[str, int], Sequence[str]]:
    """What stands around the cited lines, each source read once and only as far as needed.

    A pipe cannot be read again and a file may be gone by now: those have no excerpts, and the
    renderers fall back on the cited line itself.
    """
    wanted = _wanted(report)
    found: dict[tuple[str, int], Sequence[str]] = {}
    for source in sources:
        if source.path in wanted and source.size is not None:
            found |= _of_source(source, wanted[source.path])
    return found


def cited(report: Report) -> Iterator[Evidence]:
    """Every line the report cites, the most telling first."""
    stalls = sorted(report.stalls, key=lambda stall: -stall.seconds)
    for findings in (
        report.attempts,
        report.incidents,
        report.changes,
        stalls,
        report.suspects,
        report.profiles,
    ):
        for finding in findings:
            yield from finding.evidence
    ends = report.series.groupby("attempt").nth([0, -1])
    for path, line in zip(ends["path"], ends["line"], strict=True):
        yield Evidence(str(path), int(line), "")


def _wanted(report: Report) -> dict[str, list[int]]:
    lines: dict[str, list[int]] = defaultdict(list)
    for path, line in list(dict.fromkeys((each.path, each.line) for each in cited(report)))[:MOST]:
        lines[path].append(line)
    return lines


def _of_source(source: Source, wanted: Sequence[int]) -> dict[tuple[str, int], Sequence[str]]:
    numbers = sorted({n for line in wanted for n in range(first_line(line), line + CONTEXT + 1)})
    try:
        texts = _texts(source.lines(), frozenset(numbers), numbers[-1])
    except SourceError:
        return {}
    return {(source.path, line): _around(line, texts) for line in wanted if line in texts}


def _texts(lines: Iterable[tuple[int, str]], numbers: frozenset[int], last: int) -> dict[int, str]:
    """The wanted lines; pieces of one line between carriage returns are put together again."""
    texts: dict[int, str] = {}
    keys = PrivateKeys()
    for number, text in lines:
        if number > last:
            break
        if keys.inside(text):
            text = MASK
        if number in numbers:
            texts[number] = f"{texts[number]}\r{_cut(text)}" if number in texts else _cut(text)
    return {number: mask(_cut(text)) for number, text in texts.items()}


def _cut(text: str) -> str:
    if len(text) <= LONGEST + 40:
        return text
    return f"{text[:LONGEST]} … ({len(text):,} characters)"


def _around(line: int, texts: Mapping[int, str]) -> tuple[str, ...]:
    return tuple(
        texts.get(n, "") for n in range(first_line(line), line + CONTEXT + 1) if n in texts or n < line
    )
