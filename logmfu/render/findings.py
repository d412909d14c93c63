"""Tables of what was found: attempts, stalls, changes, incidents, suspects, profiles."""

from __future__ import annotations

from collections.abc import Iterator

from logmfu.render.document import Block, Cell, Column, Text, cite, number, table
from logmfu.render.quantities import (
    count,
    duration,
    hours,
    moment,
    percent,
    plural,
    significant,
    value,
    words,
)
from logmfu.report import Attempt, Report, Stall

NUMBER = True
LOST = (
    "Time lost is the printed time of the steps lost. Lost work in the ledger is what of it lies in the wall clock outside of "
    "stalls, and what came after the last printed step."
)


def attempts(report: Report, limit: int) -> Iterator[Block]:
    """Process starts in the order of the log."""
    if not report.attempts:
        return
    heads = (
        Column("No.", NUMBER), "Start", "End", Column("First step", NUMBER), Column("Last step", NUMBER),
        "Ended by", Column("Steps lost", NUMBER), Column("Time lost", NUMBER),
        Column("To restart", NUMBER), Column("To catch up", NUMBER), "Line",
    )  # fmt: skip
    rows = [_attempt_row(attempt) for attempt in report.attempts[:limit]]
    left_out = len(report.attempts) - len(rows)
    yield table(
        "Attempts", heads, rows, more=f"{plural(left_out, 'later attempt')} left out." if left_out else ""
    )
    if any(attempt.lost_s for attempt in report.attempts):
        yield Text(LOST)


def _attempt_row(attempt: Attempt) -> list[Cell]:
    why = f": {attempt.exit_text}" if attempt.exit_text else ""
    return [
        number(count(attempt.number), attempt.number),
        _time(attempt.start),
        _time(attempt.end),
        _integer(attempt.first_step),
        _integer(attempt.last_step),
        Cell(words(attempt.exit) + why),
        _integer(attempt.lost_steps),
        number(duration(attempt.lost_s), attempt.lost_s),
        number(duration(attempt.restart_gap_s), attempt.restart_gap_s),
        number(duration(attempt.catch_up_s), attempt.catch_up_s),
        cite(attempt.evidence),
    ]


def _time(seconds: float | None) -> Cell:
    return Cell("" if seconds is None else moment(seconds), sort=seconds)


def _integer(amount: int | None) -> Cell:
    return number(count(amount), amount)


def stalls(report: Report, limit: int) -> Iterator[Block]:
    """The longest stalls first."""
    longest = sorted(report.stalls, key=lambda stall: -stall.seconds)
    heads = (
        "Class", Column("After step", NUMBER), "Start", Column("Length", NUMBER),
        Column("GPU-hours", NUMBER), Column("Known by", minor=True), "What", "Line",
    )  # fmt: skip
    rest = longest[limit:]
    together = duration(sum(stall.seconds for stall in rest))
    more = f"{plural(len(rest), 'shorter one')} left out, {together} together." if rest else ""
    if longest:
        yield table("Longest first", heads, [_stall_row(stall) for stall in longest[:limit]], more=more)


def _stall_row(stall: Stall) -> list[Cell]:
    return [
        Cell(words(stall.kind), kind=stall.kind),
        _integer(stall.step),
        _time(stall.start),
        number(duration(stall.seconds), stall.seconds),
        number(hours(stall.gpu_hours), stall.gpu_hours),
        Cell(stall.confidence),
        Cell(stall.text),
        cite(stall.evidence),
    ]


def changes(report: Report, limit: int) -> Iterator[Block]:
    """Where something became different for good."""
    rows = [
        [
            _integer(change.step),
            Cell(words(change.kind)),
            number(f"{significant(change.before)} {change.unit}".strip(), change.before),
            number(f"{significant(change.after)} {change.unit}".strip(), change.after),
            Cell(change.text),
            cite(change.evidence),
        ]
        for change in report.changes[:limit]
    ]
    heads = (
        Column("From step", NUMBER),
        "What",
        Column("Before", NUMBER),
        Column("After", NUMBER),
        "In words",
        "Line",
    )
    left_out = len(report.changes) - len(rows)
    if rows:
        yield table(
            "Changes", heads, rows, more=f"{plural(left_out, 'later one')} left out." if left_out else ""
        )


def incidents(report: Report, limit: int) -> Iterator[Block]:
    """Failure lines, first signs kept longest."""
    rank = {"first": 0, "sign": 1, "cascade": 2}
    ordered = sorted(report.incidents, key=lambda incident: rank.get(incident.role, 1))
    kept = sorted(ordered[:limit], key=lambda incident: (incident.attempt, incident.time or 0.0))
    rows = [
        [
            _time(incident.time),
            Cell(words(incident.kind)),
            Cell({"first": "first sign", "cascade": "follows from another"}.get(incident.role, "not sure")),
            _integer(incident.attempt),
            _integer(incident.rank),
            Cell(incident.host or ""),
            _integer(incident.count),
            Cell(incident.text, code=True),
            cite(incident.evidence),
        ]
        for incident in kept
    ]
    heads = (
        "Time", "Kind", "Role", Column("Attempt", NUMBER), Column("Rank", NUMBER), "Host",
        Column("Lines", NUMBER), "Text", "Line",
    )  # fmt: skip
    left_out = len(report.incidents) - len(rows)
    if rows:
        yield table(
            "Failure lines",
            heads,
            rows,
            more=f"{plural(left_out, 'more line')} left out." if left_out else "",
        )


def suspects(report: Report) -> Iterator[Block]:
    """What the steady pace suffers from, checkpoints and data loading included."""
    rows = [
        [
            Cell(words(suspect.name)),
            number(percent(suspect.share), suspect.share),
            Cell(words(suspect.how)),
            Cell(suspect.text),
            cite(suspect.evidence),
        ]
        for suspect in report.suspects
        if suspect.how != "not_visible"
    ]
    if rows:
        yield table("Suspects", ("What", Column("Costs", NUMBER), "Known by", "In words", "Line"), rows)
    yield from _saves(report)
    yield from _data_wait(report)


def _saves(report: Report) -> Iterator[Block]:
    saves = report.saves
    if saves is None or not saves.count:
        return
    blocking = saves.blocking_s
    rows = [
        (
            "checkpoints",
            plural(saves.count, "save") + (f", {saves.open} never seen complete" if saves.open else ""),
        ),
        (
            "training blocked per save",
            "" if blocking is None else _spread(blocking.median, blocking.p5, blocking.p95),
        ),
        (
            "training blocked in all",
            f"{duration(saves.total_s)} ({percent(saves.share)} of the wall clock)",
        ),
        ("written in the background", "" if saves.asynchronous is None else value(saves.asynchronous)),
        _trend(saves.trend_s_per_save or 0.0),
        ("steps between saves", "" if saves.interval_steps is None else value(saves.interval_steps)),
        (
            "interval with the least loss",
            "" if saves.optimal_interval_s is None else duration(saves.optimal_interval_s),
        ),
    ]
    yield table("Checkpoints", ("Checkpoints", "Value"), [row for row in rows if row[1]])


def _trend(seconds: float) -> tuple[str, str]:
    direction = "longer" if seconds > 0 else "shorter"
    return f"{direction} from save to save by", duration(abs(seconds)) if seconds else ""


def _spread(median: float, low: float, high: float) -> str:
    return f"median {duration(median)}, 5th to 95th percentile {duration(low)} to {duration(high)}"


def _data_wait(report: Report) -> Iterator[Block]:
    wait = report.data_wait
    if wait is None or not wait.total_s:
        return
    where = {"epoch_start": "at epoch starts", "spread": "spread over the run", "single": "in one place"}
    worst = "" if wait.worst_s is None else duration(wait.worst_s)
    at = "" if wait.worst_step is None else f" at step {count(wait.worst_step)}"
    rows = [
        ("waiting in all", f"{duration(wait.total_s)} ({percent(wait.share)} of the timed step time)"),
        ("longest wait", worst + at if worst else ""),
        ("pattern", where.get(wait.pattern or "", "")),
    ]
    yield table("Data loading", ("Data loading", "Value"), [row for row in rows if row[1]])


def profiles(report: Report, limit: int) -> Iterator[Block]:
    """Results of profilers."""
    rows = [
        [
            _integer(profile.step),
            number(f"{significant((profile.flops_per_gpu or 0) / 1e12)} TFLOP/s", profile.flops_per_gpu),
            Cell(value(profile.figures)),
            cite(profile.evidence),
        ]
        for profile in report.profiles[:limit]
    ]
    if rows:
        yield table(
            "Profiler", (Column("Step", NUMBER), Column("Per device", NUMBER), "Figures", "Line"), rows
        )
