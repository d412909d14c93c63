"""How the numbers came about: denominators, conventions, options, inputs, and what stayed unknown."""

from __future__ import annotations

from collections.abc import Iterator

from logmfu import __version__
from logmfu.render.document import Block, Bullets, Cell, Column, Text, cite, number, table
from logmfu.render.quantities import (
    UNKNOWN,
    count,
    duration,
    percent,
    plural,
    significant,
    size,
    value,
    words,
)
from logmfu.report import Evidence, LedgerEntry, Peak, Report, Spread, Utilization

NUMBER = True


def utilization(report: Report) -> Iterator[Block]:
    """MFU, HFU and the rates behind them, each with its spread and denominator."""
    heads = ("Quantity", Column("Median", NUMBER), Column("5th pct.", NUMBER), Column("95th pct.", NUMBER))
    rows = [
        _spread_row("MFU", report.mfu.spread, percent),
        _spread_row("HFU", report.hfu.spread, percent),
        _spread_row("TFLOP/s per device", report.tflops_per_gpu, significant),
        _spread_row("tokens per second", report.tokens_per_s, significant),
        _spread_row("step time", report.step_time_s, duration),
    ]
    known = [row for row in rows if row]
    if known:
        yield table("Rates over step time", (*heads, Column("Values", NUMBER)), known)
    details = list(_details(report.mfu))
    if details:
        yield table("What MFU means here", ("MFU", "Value"), details)
    if report.mfu.spread is None and report.mfu.why_not:
        yield Text(f"MFU is not given: {report.mfu.why_not}")
    if report.mfu.explanation:
        yield Text(report.mfu.explanation)
    if report.mfu.alternatives:
        others = [
            [Cell(name), number(percent(share), share)] for name, share in report.mfu.alternatives.items()
        ]
        yield table(
            "The same run under other conventions", ("Convention", Column("Median MFU", NUMBER)), others
        )


def _spread_row(name: str, spread: Spread | None, words_for: object) -> list[Cell] | None:
    if spread is None or not callable(words_for):
        return None
    figures = (spread.median, spread.p5, spread.p95)
    return [Cell(name), *(number(words_for(figure), figure) for figure in figures), _count(spread.count)]


def _count(amount: int) -> Cell:
    return number(count(amount), amount or None)


def _details(mfu: Utilization) -> Iterator[tuple[str, str]]:
    if mfu.effective is not None:
        yield "over the wall clock", percent(mfu.effective)
    if mfu.grade:
        yield "grade", mfu.grade
    if mfu.basis:
        yield "FLOPs", f"{mfu.basis}, attention counted {mfu.attention or UNKNOWN}"
    if mfu.convention:
        yield "convention", mfu.convention
    if mfu.peak:
        yield from _denominator(mfu.peak)
    if mfu.logged_over_computed is not None:
        yield "logged / computed", significant(mfu.logged_over_computed)


def _denominator(peak: Peak) -> Iterator[tuple[str, str]]:
    yield "denominator", denominator(peak)
    yield "source", f"{peak.source}; {peak.evidence}"
    yield "device known by", peak.how


def denominator(peak: Peak) -> str:
    """What a share of peak is a share of."""
    return f"{significant(peak.tflops, 4)} TFLOP/s per device ({peak.device}, {peak.precision} dense)"


def unknowns(report: Report, limit: int) -> Iterator[Block]:
    """Everything the report could not find out, and why."""
    items = tuple(dict.fromkeys(_unknowns(report)))
    yield Bullets(items or ("Nothing that was looked for is missing.",))
    rows = [
        (
            cite([Evidence(example.path, example.line)]),
            example.rule,
            example.reason,
            Cell(example.text, code=True),
        )
        for example in report.coverage.examples[:limit]
    ]
    if rows:
        heads = ("Line", "Rule", "Why not", "Text")
        yield table("Lines that look like something known and could not be read", heads, rows)


def _unknowns(report: Report) -> Iterator[str]:
    for name, reason in _reasons(report):
        if reason:
            yield f"{name}: {reason}"
    yield from (suspect.text for suspect in report.suspects if suspect.how == "not_visible")
    yield from _clock(report)
    yield from (
        _unknown_time(entry) for entry in report.ledger if entry.kind == "unknown" and entry.seconds
    )
    if report.coverage.near_misses:
        missed = plural(report.coverage.near_misses, "line")
        yield f"{missed} looked like something known and could not be read."
    yield from (f"{each.path}: {each.note}" for each in report.inputs if each.note)
    yield from report.notes


def _reasons(report: Report) -> Iterator[tuple[str, str | None]]:
    yield "MFU", report.mfu.why_not
    yield "HFU", report.hfu.why_not
    yield "Checkpoints", report.saves.why_not if report.saves else None
    yield "Data loading", report.data_wait.why_not if report.data_wait else None


def _clock(report: Report) -> Iterator[str]:
    if report.clock == "reconstructed":
        yield "The log has no time stamps; pauses between steps cannot be seen."
    elif report.clock == "none":
        yield "The log has neither time stamps nor step times; nothing can be said about time."
    elif report.utc_offset is None:
        yield "The log prints no time zone; times are those of its own clock."


def _unknown_time(entry: LedgerEntry) -> str:
    return f"{duration(entry.seconds)} ({percent(entry.share)}) of the wall clock has no known cause."


def provenance(report: Report, limit: int) -> Iterator[Block]:
    """Tool, parser, inputs, options and facts."""
    lines = report.coverage
    rows = [
        ("logmfu", __version__),
        ("parser", f"{report.parser} ({report.parser_title})" if report.parser_title else report.parser),
        ("clock", words(report.clock)),
        (
            "lines",
            f"{count(lines.lines)} read, {count(lines.matched)} understood, {count(lines.other)} of no interest",
        ),
        ("MFU", "model FLOPs per step / (step time × devices × peak)"),
        ("MFU over the wall clock", "model FLOPs of surviving steps / (wall clock × devices × peak)"),
        *((f"option {name}", value(thing)) for name, thing in report.options.items()),
    ]
    yield table("Provenance", ("What", "Value"), rows)
    yield from _inputs(report, limit)
    facts = [
        [
            Cell(fact.name),
            Cell(value(fact.value)),
            Cell(fact.how),
            cite([Evidence(fact.path, fact.line)] if fact.path else []),
        ]
        for fact in report.facts[:limit]
    ]
    if facts:
        left_out = len(report.facts) - len(facts)
        more = f"{plural(left_out, 'more fact')} left out." if left_out else ""
        yield table("Facts used", ("Fact", "Value", "From", "Line"), facts, more=more)


def _inputs(report: Report, limit: int) -> Iterator[Block]:
    rows = [
        [
            Cell(each.path, code=True),
            number(size(each.bytes), each.bytes),
            number(count(each.lines), each.lines),
            Cell(each.note),
        ]
        for each in report.inputs[:limit]
    ]
    if rows:
        left_out = len(report.inputs) - len(rows)
        more = f"{plural(left_out, 'more file')} left out." if left_out else ""
        yield table(
            "Inputs", ("File", Column("Size", NUMBER), Column("Lines", NUMBER), "Note"), rows, more=more
        )
