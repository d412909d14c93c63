"""Remarks: what a reader should know and what is no stall, change or incident of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from logmfu.analysis.account import Pause
from logmfu.analysis.intervals import Timeline
from logmfu.analysis.pace import Pace
from logmfu.analysis.rows import Event
from logmfu.report import Attempt
from logmfu.schema import INCIDENTS
from logmfu.tables import Facts, Run

OUTLIER = 1.2
"""A single step this many times the pace is remarked on, though it is no stall."""
SILENT_S = 30.0
"""Seconds by which one file's last line must come before the others' to be called silent first."""


def remarks(
    run: Run,
    line: Timeline,
    pace: Pace,
    pauses: Sequence[Pause],
    events: Sequence[Event],
    steps: pd.DataFrame,
    facts: Facts,
    tries: Sequence[Attempt],
) -> tuple[str, ...]:
    """All remarks, the most telling first."""
    return (
        *_silent_file(run, tries),
        *_several_runs(facts),
        *_unread_file(run),
        *_no_start(run, events),
        *_other_ranks(run, events),
        *_skipped(steps, events),
        *_outlier(line, pace, pauses),
        *_stragglers(events),
    )


def _silent_file(run: Run, tries: Sequence[Attempt]) -> Iterator[str]:
    """Of several rank files, the one that fell silent first before a failure."""
    ends = sorted((file.last_s, file.path) for file in run.inputs if file.last_s is not None)
    failed = any(attempt.exit not in ("finished", "running") for attempt in tries)
    if len(ends) > 1 and failed and ends[1][0] - ends[0][0] >= SILENT_S:
        ahead = ends[1][0] - ends[0][0]
        yield f"{ends[0][1]} fell silent first: its last line is {ahead:,.0f} s older than that of any other file"


def _several_runs(facts: Facts) -> Iterator[str]:
    for name in ("run_name", "job_id"):
        files: dict[str, set[str]] = {}
        for stated in facts.history(name):
            files.setdefault(str(stated.value), set()).add(stated.path)
        if name == "run_name" and len(files) > 1 and len(set().union(*files.values())) > 1:
            yield f"the files state different runs ({', '.join(sorted(files)[:3])}): are they one run? --each takes them apart"


def _unread_file(run: Run) -> Iterator[str]:
    """Of several files, those that gave this parser nothing."""
    if len(run.inputs) < 2:
        return
    used = {
        path for frame in (run.steps, run.events, run.timers) for path in frame["path"].drop_duplicates()
    }
    idle = [file.path for file in run.inputs if file.path not in used]
    if used and idle:
        yield f"nothing in {', '.join(idle[:3])} is understood by the parser {run.parser}: another program's log? --each reads it on its own"


def _no_start(run: Run, events: Sequence[Event]) -> Iterator[str]:
    if (
        len(run.steps)
        and not run.going_on
        and not any(event.event in ("process_start", "training_start") for event in events)
    ):
        yield "no start of a process is in this log: an excerpt, or another rank's file has it; attempts before are not known"


def _other_ranks(run: Run, events: Sequence[Event]) -> Iterator[str]:
    if not len(run.steps) and any(event.event == "training_start" for event in events):
        failed = any(event.event in INCIDENTS for event in events)
        died = "it failed before the first one was printed, or " if failed else ""
        yield f"training starts and no step line is in this log: {died}another rank prints them, give its file too"


def _skipped(steps: pd.DataFrame, events: Sequence[Event]) -> Iterator[str]:
    printed = int(steps["skipped"].sum()) if "skipped" in steps else 0
    overflows = sum(event.event == "overflow" for event in events)
    count = max(printed, overflows)
    if count:
        rows = steps.loc[steps["skipped"].fillna(0) > 0, "step"] if printed else pd.Series(dtype="Int64")
        at = f", first by step {int(rows.iloc[0])}" if len(rows) else ""
        steps_were, they = ("step was", "it took its") if count == 1 else ("steps were", "they took their")
        yield f"{count:,} {steps_were} skipped (loss-scale overflow){at}: {they} time and trained nothing"


def _outlier(line: Timeline, pace: Pace, pauses: Sequence[Pause]) -> Iterator[str]:
    single = ~line.first & (line.iterations <= 1)
    single[[pause.row for pause in pauses]] = False
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = line.step_time_s / pace.baseline
    high = np.flatnonzero(single & (ratio > max(OUTLIER, 1.0 + 8.0 * pace.noise)))
    if len(high):
        row = int(high[np.argmax(ratio[high])])
        took, usual = float(line.step_time_s[row]), float(pace.baseline[row])
        where = f"{line.path[row].rsplit('/', 1)[-1]}:{line.line[row]}"
        yield (
            f"{len(high):,} single {'step' if len(high) == 1 else 'steps'} took longer than the pace without being a stall; "
            f"the longest is step {line.step[row]} with {took:.4g} s against {usual:.4g} s [{where}]"
        )


def _stragglers(events: Sequence[Event]) -> Iterator[str]:
    found = [event for event in events if event.event == "straggler"]
    ranks = [str(event.details.get("slowest_rank") or event.details.get("ranks")) for event in found]
    named = [rank for rank in ranks if rank != "None"]
    if named:
        most = max(set(named), key=named.count)
        last = found[-1]
        yield f"straggler reports ({len(found)}) name rank {most} slowest most often; last: {last.text[:120]} [{last.path.rsplit('/', 1)[-1]}:{last.line}]"
