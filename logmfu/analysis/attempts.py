"""Attempts: how each process start ended, what it lost, and how long it took to get back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from logmfu.analysis.intervals import Bools, Rows, Timeline
from logmfu.analysis.marks import Save
from logmfu.analysis.rows import Event
from logmfu.report import Attempt, Evidence

CAUSES = {
    "oom": "oom",
    "host_oom": "oom",
    "time_limit": "time_limit",
    "preempted": "preempted",
    "node_failure": "node_failure",
    "ecc_error": "node_failure",
    "xid": "node_failure",
    "loss_scale_floor": "nan",
    "nccl_timeout": "hang",
    "heartbeat_timeout": "hang",
    "interrupted": "interrupted",
    "cancelled": "killed",
    "cuda_error": "crash",
    "dataloader_error": "crash",
    "storage_error": "crash",
    "segfault": "crash",
    "exception": "crash",
    "process_failed": "crash",
    "traceback": "crash",
    "store_timeout": "crash",
    "nccl_error": "crash",
    "killed": "killed",
    "terminating": "killed",
    "connection_lost": "crash",
}
"""Incident to exit class, the most telling first: an out-of-memory error also ends in a dead worker."""
BEGINS = frozenset(("process_start", "training_start", "load_end", "load_none"))
"""Lines that show where an attempt begins; without one a first step line may be any line of it."""
CLEAN = {"finished": "finished", "interval": "finished", "duration": "time_limit", "signal": "preempted"}
"""Reason of an ``exit`` event to exit class; other reasons are ``finished``."""


_NAN = re.compile(r"\bnan\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ended, as its lines say."""

    exit: str
    text: str
    evidence: tuple[Evidence, ...]


def attempts(
    line: Timeline,
    events: Sequence[Event],
    saves: Sequence[Save],
    *,
    origin: float | None,
    no_loss: Bools,
    planned: Mapping[int, int],
) -> list[Attempt]:
    """All attempts of a run.

    ``origin``: the run's first time stamp, to give absolute times; ``no_loss``: rows at which the loss was
    not a number; ``planned``: last planned step, by attempt.
    """
    count = max(len(line.starts), 1)
    shows_start = any(event.event == "process_start" for event in events)
    resumed = {number: _resumed_at(line, events, number) for number in range(1, count + 1)}
    found: list[Attempt] = []
    for number in range(1, count + 1):
        mine = [event for event in events if event.attempt == number]
        rows = _rows(line, number)
        later = number < count
        outcome = _outcome(mine, len(rows) > 0, later)
        outcome = _refined(outcome, line, rows, no_loss, planned.get(number))
        durable = _durable(saves, number, resumed, last=int(line.step[rows[-1]]) if len(rows) else None)
        # What a part of a run began from is outside of it, and what was saved there.
        unseen = line.going_on and number == 1
        told = resumed[number] == 0 or any(event.event in BEGINS for event in mine)
        # Without a single save line in the log of a rank that prints no start either, nobody can tell.
        silent = not saves and not shows_start and number == count
        if silent or (durable == resumed[number] and (unseen or not told)):
            durable = None
        lost = _lost(line, rows, number, resumed, durable, outcome.exit, count)
        found.append(
            Attempt(
                number=number,
                first_step=int(line.step[rows[0]]) if len(rows) else None,
                last_step=int(line.step[rows[-1]]) if len(rows) else None,
                steps=len(rows),
                start=_absolute(line, line.starts, number, origin),
                end=_absolute(line, line.ends, number, origin),
                exit=outcome.exit,
                exit_text=outcome.text,
                lost_steps=lost,
                lost_s=_lost_seconds(line, rows, lost),
                restart_gap_s=_gap_after(line, number, count),
                catch_up_s=_catch_up(line, rows, number),
                durable_step=durable,
                evidence=outcome.evidence,
            )
        )
    return found


def _absolute(line: Timeline, times: Sequence[float], number: int, origin: float | None) -> float | None:
    stamped = line.clock == "timestamps" and origin is not None and number <= len(times)
    return (origin or 0.0) + times[number - 1] if stamped else None


def _gap_after(line: Timeline, number: int, count: int) -> float | None:
    if number >= count or line.clock != "timestamps":
        return None
    return line.starts[number] - line.ends[number - 1]


def _outcome(events: Sequence[Event], stepped: bool, later: bool) -> Outcome:
    """Exit class: the program's own word, else the most telling failure line, else the log just ends."""
    said = [event for event in events if event.event == "exit"]
    failures = [event for event in events if event.event in CAUSES and not _teardown(event)]
    if said and not _fails_before(failures, said[-1]):
        reason = str(said[-1].details.get("reason", "finished"))
        return Outcome(CLEAN.get(reason, "finished"), said[-1].text, (said[-1].evidence,))
    if any(event.event == "nan_loss" for event in events) and failures:
        first = next(event for event in events if event.event == "nan_loss")
        return Outcome("nan", first.text, (first.evidence,))
    ranked = sorted(failures, key=lambda event: list(CAUSES).index(event.event))
    if ranked:
        return Outcome(_exit_of(ranked[0]), ranked[0].text, (ranked[0].evidence,))
    if later:
        return Outcome("unknown", "the log goes on with a new start; nothing says why", ())
    ended = [event for event in events if event.event == "process_exit"]
    if ended and stepped:
        return Outcome("finished", ended[-1].text, (ended[-1].evidence,))
    return Outcome("running", "the log ends without a word: still running, or killed from outside", ())


def _refined(outcome: Outcome, line: Timeline, rows: Rows, no_loss: Bools, planned: int | None) -> Outcome:
    """The same with what the step lines say: a loss that was no number, or the last planned step."""
    if not len(rows):
        return outcome
    last = int(rows[-1])
    if outcome.exit == "crash" and (no_loss[last] or _NAN.search(outcome.text)):
        return Outcome("nan", outcome.text, (*outcome.evidence, line.evidence(last)))
    if outcome.exit in ("running", "unknown") and planned is not None and line.step[last] >= planned:
        return Outcome("finished", f"the last planned step, {planned}, is done", (line.evidence(last),))
    return outcome


def _exit_of(event: Event) -> str:
    """Exit class of a failure line; a worker that a launcher saw die of SIGKILL was killed from outside."""
    if event.event == "process_failed" and event.details.get("exitcode") in (-9, 137):
        return "killed"
    return CAUSES[event.event]


def _teardown(event: Event) -> bool:
    return event.details.get("role") == "teardown" and event.event not in (
        "killed",
        "terminating",
        "interrupted",
    )


def _fails_before(failures: Sequence[Event], said: Event) -> bool:
    """Whether a cause was printed before the program's last word (after it, it is teardown noise)."""
    return any(
        event.details.get("role") == "cause" and event.line < said.line
        for event in failures
        if event.path == said.path
    )


def _resumed_at(line: Timeline, events: Sequence[Event], number: int) -> int | None:
    """Step an attempt went on from: its load line, else the step before its first interval."""
    loads = [e.step for e in events if e.event == "load_end" and e.attempt == number and e.step is not None]
    if loads:
        return loads[-1]
    rows = line.rows(number)
    return int(line.begun[rows.start]) if rows.stop > rows.start else None


def _rows(line: Timeline, number: int) -> Rows:
    rows = line.rows(number)
    return np.arange(rows.start, rows.stop)


def _durable(
    saves: Sequence[Save], number: int, resumed: Mapping[int, int | None], *, last: int | None
) -> int | None:
    """Last step that was safe when the attempt ended: saved completely, gone on from later, or where it began."""
    complete = [
        save.step for save in saves if save.attempt == number and save.complete and save.step is not None
    ]
    begun, after = resumed[number], resumed.get(number + 1)
    proven = [after] if after is not None and last is not None and (begun or 0) < after <= last else []
    return max([*complete, *proven], default=begun)


def _lost(
    line: Timeline, rows: Rows, number: int,
    resumed: Mapping[int, int | None], durable: int | None, exit: str, count: int,
) -> int | None:  # fmt: skip
    """Steps an attempt did that a later one did again, or that no later one can go on from."""
    if not len(rows):
        return 0
    last, begun = int(line.step[rows[-1]]), int(line.begun[rows[0]])
    back_to = [step for attempt, step in resumed.items() if attempt > number and step is not None]
    if exit == "finished" or (not back_to and (exit == "running" or number < count)):
        return 0
    safe = min(back_to) if back_to else durable
    if safe is None or _lines_missing(line, rows, safe, any_of_them=not back_to):
        return None
    return max(0, last - max(safe, begun))


def _lines_missing(line: Timeline, rows: Rows, safe: int, *, any_of_them: bool) -> bool:
    """Whether lines between a step and the end of an attempt are not in the log: an excerpt shows no loss.

    Where the time between says that the steps were done, they still count for ``any_of_them``: a save may be missing too.
    """
    after = rows[line.step[rows] > safe]
    before = np.concatenate([[line.begun[after[0]]], line.step[after[:-1]]]) if len(after) else after
    return bool((line.begun[after] > before).any() or (any_of_them and line.missing[after].any()))


def _lost_seconds(line: Timeline, rows: Rows, lost: int | None) -> float | None:
    if lost is None:
        return None
    if not lost or not len(rows):
        return 0.0
    safe = line.step[rows[-1]] - lost
    share = np.clip((line.step[rows] - safe) / np.maximum(line.iterations[rows], 1), 0.0, 1.0)
    return float(
        np.nansum(share * np.where(np.isnan(line.printed_s[rows]), line.wall_s(rows), line.printed_s[rows]))
    )


def _catch_up(line: Timeline, rows: Rows, number: int) -> float | None:
    """Seconds from an attempt's start until the furthest step before it was passed again."""
    before = line.step[: line.rows(number).start]
    if not len(before) or not len(rows):
        return None
    past = rows[line.step[rows] >= before.max()]
    return float(line.end_s[past[0]] - line.starts[number - 1]) if len(past) else None
