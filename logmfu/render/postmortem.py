"""The report as a post-mortem: which sections it has, in which order, and what each says.

It follows the practice of incident reviews of large training runs: identity, impact, accounting,
timeline, attempts, evidence, what is not known; cause and actions are left for people.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from logmfu.render.document import (
    Blank,
    Block,
    Bullets,
    Cell,
    Citations,
    Column,
    Section,
    Table,
    Text,
    cite,
    number,
    table,
)
from logmfu.render.findings import attempts, changes, incidents, profiles, stalls, suspects
from logmfu.render.provenance import provenance, unknowns, utilization
from logmfu.render.quantities import (
    duration,
    hours,
    moment,
    moment_utc,
    money,
    offset,
    percent,
    plural,
    significant,
    value,
    words,
)
from logmfu.render.timeline import timeline
from logmfu.report import LEDGER_KINDS, Evidence, LedgerEntry, Report

NUMBER = True


def title(report: Report) -> str:
    """The heading of every written report."""
    return f"Training run {report.name}"


def sections(report: Report, *, rows: int) -> tuple[Section, ...]:
    """All sections that have something to say; no table has more than ``rows`` rows."""
    findings = [
        Section("summary", "Summary", tuple(_summary(report))),
        Section("identity", "Run", tuple(_identity(report))),
        Section("impact", "Impact", tuple(_impact(report))),
        Section("ledger", "Where the time went", tuple(_ledger(report))),
        Section("utilization", "How well the devices were used", tuple(utilization(report))),
        Section("timeline", "Timeline", tuple(_timeline(report, rows))),
        Section("attempts", "Attempts", tuple(attempts(report, rows))),
        Section("stalls", "Stalls and slow stretches", tuple(stalls(report, rows))),
        Section("changes", "Changes", tuple(changes(report, rows))),
        Section("incidents", "Incidents", tuple(incidents(report, rows))),
        Section("suspects", "What holds the pace down", tuple(suspects(report))),
        Section("profiles", "Profiler results", tuple(profiles(report, rows))),
    ]
    evidence = Section("evidence", "Lines of the log", tuple(_evidence(findings, rows)))
    rest = (
        evidence,
        Section("unknowns", "What is not known, and what to switch on", tuple(unknowns(report, rows))),
        Section("people", "For people to fill in", _blanks()),
        Section("provenance", "How this report was made", tuple(provenance(report, rows))),
    )
    return tuple(section for section in (*findings, *rest) if section.blocks)


def headline(report: Report) -> str:
    """What a reader must know first, in one or two sentences."""
    who = f"{plural(report.devices, 'device')}, " if report.devices else ""
    first = f"{who}{_how_long(report)}, {plural(report.step_count, 'printed step')}"
    goodput = "" if report.goodput is None else f"; {percent(report.goodput)} of the time was productive"
    return f"{first}{goodput}. {_how_well(report)}"


def _how_long(report: Report) -> str:
    if report.wall_clock_s is None:
        return "wall clock unknown"
    return f"{duration(report.wall_clock_s)}{' of step time' if report.clock == 'reconstructed' else ''}"


def _how_well(report: Report) -> str:
    mfu = report.mfu
    if mfu.spread is None:
        return f"MFU is not given: {sentence(mfu.why_not or 'the report does not say why')}"
    over_all = "" if mfu.effective is None else f", {percent(mfu.effective)} over the wall clock"
    of_what = (
        ""
        if mfu.peak is None
        else f" of {significant(mfu.peak.tflops, 4)} TFLOP/s ({mfu.peak.precision} dense)"
    )
    return f"Median MFU {percent(mfu.spread.median)}{of_what}{over_all}."


def sentence(text: str) -> str:
    """The text with a full stop at its end."""
    return text if text.rstrip().endswith((".", "!", "?")) else f"{text.rstrip()}."


def _summary(report: Report) -> Iterator[Block]:
    yield Text(headline(report))
    if report.tripped:
        yield Bullets(tuple(f"Gate tripped: {gate}" for gate in report.tripped))
    if report.losses:
        yield Bullets(report.losses)


def _identity(report: Report) -> Iterator[Block]:
    rows = [
        (words(name), value(thing)) for name, thing in report.run.items() if thing not in (None, {}, ())
    ]
    rows += [("log format", report.parser_title or report.parser), *_when(report)]
    if report.first_step is not None and report.last_step is not None:
        rows.append(("steps", f"{value(report.first_step)} to {value(report.last_step)}"))
    yield table("Run", ("Property", "Value"), rows)


def _when(report: Report) -> Iterator[tuple[str, str]]:
    zone = "zone not printed" if report.utc_offset is None else offset(report.utc_offset)
    for name, time in (("first time stamp", report.start), ("last time stamp", report.end)):
        if time is not None and report.clock == "timestamps":
            yield name, f"{moment(time)} ({zone})"


def _impact(report: Report) -> Iterator[Block]:
    if not report.ledger:
        return
    productive = [entry for entry in report.ledger if entry.kind == "productive"]
    other = [entry for entry in report.ledger if entry.kind != "productive"]
    again = [entry for entry in report.ledger if entry.kind == "lost_work"]
    rows = [
        _impact_row("whole run", report.ledger),
        _impact_row("productive", productive),
        _impact_row("not productive", other),
    ]
    lost = sum(attempt.lost_steps or 0 for attempt in report.attempts)
    if again or lost:
        rows.append(_impact_row(f"of that, {plural(lost, 'step')} lost", again))
    heads = ("What", Column("Wall clock", NUMBER), Column("Share", NUMBER))
    yield table("Impact", (*heads, Column("GPU-hours", NUMBER), Column("Cost", NUMBER)), rows)
    if report.gpu_hour_price is not None and report.devices is not None:
        yield Text(f"Cost at {money(report.gpu_hour_price)} per GPU-hour.")
    if report.devices is None:
        yield Text(
            "The number of devices is not known, so GPU-hours are not given; --world-size N adds it."
        )


def _impact_row(what: str, entries: Sequence[LedgerEntry]) -> list[Cell]:
    seconds = sum(entry.seconds for entry in entries)
    return [
        Cell(what),
        number(duration(seconds), seconds),
        number(percent(share := sum(entry.share for entry in entries)), share),
        _total(hours, [entry.gpu_hours for entry in entries]),
        _total(money, [entry.cost for entry in entries]),
    ]


def _total(words_for: Any, amounts: Sequence[float | None]) -> Cell:
    known = [amount for amount in amounts if amount is not None]
    if len(known) < len(amounts) or not amounts:
        return Cell("")
    return number(words_for(sum(known)), sum(known))


def _ledger(report: Report) -> Iterator[Block]:
    rows = [
        [
            Cell(words(entry.kind), kind=entry.kind),
            number(duration(entry.seconds), entry.seconds),
            number(percent(entry.share), entry.share),
            number(hours(entry.gpu_hours), entry.gpu_hours),
            number(money(entry.cost), entry.cost),
            Cell(LEDGER_KINDS.get(entry.kind, "")),
        ]
        for entry in report.ledger
        if entry.seconds
    ]
    if rows:
        heads = ("Class", Column("Time", NUMBER), Column("Share", NUMBER), Column("GPU-hours", NUMBER))
        caption = f"Every second of the wall clock ({duration(report.wall_clock_s)}) is in one class"
        yield table(caption, (*heads, Column("Cost", NUMBER), Column("Meaning", minor=True)), rows)
    if report.clock == "reconstructed":
        yield Text(
            "The log has no time stamps: the clock is rebuilt from step times, and gaps between steps are unseen."
        )


def _timeline(report: Report, limit: int) -> Iterator[Block]:
    moments, left_out = timeline(report, limit)
    rows = [
        [
            Cell(moment(entry.time), sort=entry.time),
            Cell(
                "" if report.utc_offset is None else moment_utc(entry.time, report.utc_offset),
                sort=entry.time,
            ),
            Cell(entry.what, kind=entry.kind),
            cite(entry.evidence),
        ]
        for entry in moments
    ]
    if rows:
        zone = "zone not printed" if report.utc_offset is None else offset(report.utc_offset)
        more = (
            f"{plural(left_out, 'less telling entry', 'less telling entries')} left out."
            if left_out
            else ""
        )
        yield table(
            "Timeline", (f"Log clock ({zone})", Column("UTC", minor=True), "What", "Line"), rows, more=more
        )


def _evidence(findings: Sequence[Section], limit: int) -> Iterator[Block]:
    lines: dict[tuple[str, int], Evidence] = {}
    for line in _cited(findings):
        known = lines.get((line.path, line.line))
        if known is None or not known.text:
            lines[line.path, line.line] = line
    kept = list(lines.values())[: 2 * limit]
    if kept:
        left_out = len(lines) - len(kept)
        more = f"{plural(left_out, 'more line is', 'more lines are')} cited above." if left_out else ""
        yield Citations(tuple(sorted(kept, key=lambda line: (line.path, line.line))), more)


def _cited(findings: Sequence[Section]) -> Iterator[Evidence]:
    """First lines of attempts and incidents, then what the other tables cite."""
    first = ("attempts", "incidents", "changes")
    for section in sorted(findings, key=lambda section: section.key not in first):
        for block in section.blocks:
            if isinstance(block, Table):
                yield from (line for row in block.rows for cell in row for line in cell.evidence)


def _blanks() -> tuple[Block, ...]:
    prompts = ("Root cause", "Trigger", "How it was detected", "Actions (what, who, by when)", "Lessons")
    return tuple(Blank(prompt) for prompt in prompts)
