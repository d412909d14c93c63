"""From the tables of a run to a report: pure functions of tables and options."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from logmfu.analysis import (
    account,
    attempts,
    changes,
    costs,
    facts,
    gates,
    incidents,
    intervals,
    ledger,
    marks,
    mfu,
    pace,
    peak,
    periods,
    profiles,
    rates,
    remarks,
    rows,
    stalls,
    suspects,
    waits,
    window,
    words,
)  # fmt: skip
from logmfu.analysis.options import Options
from logmfu.errors import OptionError
from logmfu.report import (
    Attempt,
    InputFile,
    LedgerEntry,
    Report,
    SaveSummary,
    Stall,
)  # fmt: skip
from logmfu.tables import Facts, Run


def analyze(run: Run, **options: Any) -> Report:
    """Analyse a run; the keyword arguments are the fields of :class:`logmfu.analysis.options.Options`.

    Raises ``OptionError`` for an option that does not exist.
    """
    unknown = set(options) - set(Options.__dataclass_fields__)
    if unknown:
        raise OptionError(
            f"there is no option {', '.join(sorted(unknown))}",
            hint=", ".join(sorted(Options.__dataclass_fields__)),
        )
    return report(run, Options(**options))


def report(run: Run, options: Options) -> Report:
    """The report of a run under the given options."""
    view = _view(window.window(run, options.since, options.until), options)
    done = _accounted(view, options)
    recounts = changes.recounts(view.line, view.steps)
    numbers = mfu.utilizations(
        view.line,
        view.steps,
        view.facts,
        options,
        peak.denominator(view.facts, options),
        [recount.row for recount in recounts],
    )
    surviving = _surviving(view.line, done.attempts)
    use = replace(numbers.mfu, effective=mfu.effective(numbers.mfu_series, view.line, surviving))
    trouble = incidents.incidents(view.events, origin=view.run.start)
    median = use.spread.median if use.spread else None
    waited = costs.data_wait_summary(view.line, done.pauses, done.waits)
    return Report(
        **_identity(view, options),
        **_extent(view, done),
        mfu=use,
        hfu=numbers.hfu,
        attempts=done.attempts,
        ledger=done.entries,
        stalls=done.stalls,
        changes=changes.changes(view.line, done.pace, view.steps, view.timers, recounts),
        incidents=trouble,
        saves=done.saves,
        data_wait=waited,
        suspects=suspects.suspects(
            view.line,
            (*done.pauses, *done.unseen),
            view.timers,
            done.waits,
            done.entries,
            use,
            numbers.hfu,
            view.facts,
        ),
        profiles=profiles.profiles(view.run),
        coverage=view.run.coverage,
        notes=(
            *remarks.remarks(
                view.run,
                view.line,
                done.pace,
                done.pauses,
                view.events,
                view.steps,
                view.facts,
                done.attempts,
            ),
            *view.run.notes,
            *view.line.notes,
            *numbers.notes,
            *facts.warnings(view.facts),
        ),
        losses=words.losses(
            done.entries,
            done.stalls,
            done.attempts,
            done.saves,
            waits=waited,
        ),
        series=_series(view.line, view.steps, numbers, surviving),
        tokens_per_s=rates.spread(numbers.tokens_per_s),
        tflops_per_gpu=rates.spread(rates.column(view.steps, "tflops_per_gpu_logged"))
        or rates.spread(numbers.tflops),
        tripped=gates.tripped(options, median, use.why_not, done.stalls, trouble, done.attempts),
    )


@dataclass(frozen=True, slots=True)
class _View:
    """What is analysed: the run, its facts with the caller's, and its tables in handy form."""

    run: Run
    facts: Facts
    line: intervals.Timeline
    steps: pd.DataFrame
    """Rows with a step number: one per interval of the line."""
    events: list[rows.Event]
    timers: rows.Timers


@dataclass(frozen=True, slots=True)
class _Accounted:
    """Where the time went."""

    pace: pace.Pace
    pauses: tuple[account.Pause, ...]
    unseen: tuple[account.Pause, ...]
    waits: waits.Waits
    attempts: tuple[Attempt, ...]
    entries: tuple[LedgerEntry, ...]
    stalls: tuple[Stall, ...]
    saves: SaveSummary | None


def _view(run: Run, options: Options) -> _View:
    return _View(
        run,
        facts.gathered(run, options),
        intervals.timeline(run),
        intervals.stepping(run),
        rows.events(run.events),
        rows.Timers(run.timers),
    )


def _accounted(view: _View, options: Options) -> _Accounted:
    line, known, origin = view.line, view.facts, view.run.start
    saves = marks.saves(view.events)
    found = marks.pause_marks(line, view.events, view.timers, saves)
    waited = waits.data_waits(line, view.timers)
    inside = account.EVERYTHING if line.step_clock == "stamps" else facts.step_time_includes(known)
    book = account.account(line, _pace(line, found, waited, inside), found, waited, inside)
    periods.name_by_period(book, known, found, inside)
    tries = attempts.attempts(
        line,
        view.events,
        saves,
        origin=origin,
        no_loss=changes.without_loss(line, view.steps),
        planned=facts.planned_steps(line, view.steps, known),
    )
    around = ledger.surroundings(book, tries, found, incidents.signs(view.events, line), waited)
    devices = known.get("world_size")
    seconds = ledger.totals(book, tries, around)
    return _Accounted(
        book.pace,
        tuple(book.pauses),
        tuple(book.unseen),
        waited,
        tuple(tries),
        ledger.ledger(seconds, line.total_s, devices=devices, price=options.gpu_hour_price),
        stalls.stalls(book, around, origin=origin, devices=devices),
        costs.save_summary(book, saves, found, tries),
    )


def _pace(
    line: intervals.Timeline, found: list[marks.Mark], waited: waits.Waits, inside: frozenset[str]
) -> pace.Pace:
    """The run's pace, over intervals that no pause inside the step time disturbs."""
    clean = ~line.first & np.isfinite(line.step_time_s)
    for mark in found:
        if mark.place == "interval" and (mark.kind in inside or mark.kind not in account.PAUSES):
            clean[mark.row] = False
    if waited.known:
        clean &= ~(waited.excess() > 0.05 * np.nan_to_num(line.step_time_s, nan=np.inf))
    return pace.pace(line.step_time_s, line.batch, line.iterations, clean)


def _identity(view: _View, options: Options) -> dict[str, Any]:
    """What run it is, and how it was read."""
    run = view.run
    return {
        "name": facts.run_name(run, view.facts),
        "inputs": tuple(InputFile(file.path, file.bytes, file.lines, file.note) for file in run.inputs),
        "parser": run.parser,
        "parser_title": run.parser_title,
        "run": facts.properties(view.facts),
        "facts": facts.lines(view.facts),
        "utc_offset": run.utc_offset if options.utc_offset is None else options.utc_offset,
        "gpu_hour_price": options.gpu_hour_price,
        "options": options.given(),
    }


def _extent(view: _View, done: _Accounted) -> dict[str, Any]:
    """From when to when, from which step to which."""
    line, steps, start = view.line, view.steps, view.run.start
    stamped = line.clock == "timestamps" and start is not None
    productive = next((entry.share for entry in done.entries if entry.kind == "productive"), 0.0)
    told = line.total_s > 0 and (line.step_clock != "none" or not len(line))
    return {
        "clock": line.clock,
        "start": start if stamped else None,
        "end": (start or 0.0) + line.total_s if stamped else None,
        "wall_clock_s": line.total_s if line.clock != "none" else None,
        "step_count": len(view.run.steps),
        "first_step": _step(steps, 0),
        "last_step": _step(steps, -1),
        "step_time_s": rates.spread(rates.column(steps, "step_time_s")) or rates.spread(line.step_time_s),
        "goodput": productive if told else None,
    }


def _surviving(line: intervals.Timeline, tries: tuple[Attempt, ...]) -> intervals.Array:
    """Part of each interval's steps that was not done again."""
    if not any(attempt.lost_steps for attempt in tries):
        return np.broadcast_to(1.0, len(line))
    share = np.ones(len(line))
    for attempt in tries:
        rows = line.rows(attempt.number)
        share[rows] = 1.0 - ledger.lost_share(line, attempt, rows)
    return share


def _step(steps: pd.DataFrame, at: int) -> int | None:
    return int(steps["step"].iloc[at]) if len(steps) else None


def _series(
    line: intervals.Timeline, steps: pd.DataFrame, numbers: mfu.Numbers, surviving: intervals.Array
) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "step": line.step,
            "time": steps["time"],
            "elapsed_s": line.end_s,
            "step_time_s": line.step_time_s,
            "iterations": line.iterations,
            "mfu": numbers.mfu_series,
            "hfu": numbers.hfu_series,
            "tflops_per_gpu": numbers.tflops,
            "tokens_per_s": numbers.tokens_per_s,
            "loss": rates.column(steps, "loss"),
            "attempt": line.attempt,
            "lost": surviving < 0.5,
            "path": steps["path"],
            "line": line.line,
        },
        copy=False,
    )
