"""What saves and data waits cost, and how often one should save."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from logmfu.analysis.account import Account, Pause
from logmfu.analysis.intervals import Timeline
from logmfu.analysis.marks import Mark, Save
from logmfu.analysis.rates import spread
from logmfu.analysis.waits import Waits
from logmfu.report import Attempt, DataWaitSummary, SaveSummary

FAILURES = frozenset(("crash", "oom", "hang", "nan", "node_failure"))
"""Ends that come without warning and cost the work since the last save; what people or schedulers decide is none."""


def save_summary(
    book: Account, saves: Sequence[Save], marks: Sequence[Mark], attempts: Sequence[Attempt]
) -> SaveSummary | None:
    """The table of saves; ``None`` when the log names none."""
    if not saves and not any(pause.kind == "checkpoint" for pause in book.pauses):
        return None
    line = book.line
    blocking = np.array(_blocking(book, marks))
    total = float(blocking.sum()) if len(blocking) else 0.0
    steps = sorted({save.step for save in saves if save.step is not None})
    known = [save for save in saves if save.started or save.complete]
    return SaveSummary(
        count=sum(save.complete for save in saves),
        open=sum(save.started and not save.complete for save in saves),
        asynchronous=any(save.asynchronous for save in known) if known else None,
        blocking_s=spread(blocking),
        total_s=total,
        share=total / line.total_s if line.total_s > 0 and len(blocking) else None,
        trend_s_per_save=_trend(blocking),
        interval_steps=float(np.median(np.diff(steps))) if len(steps) > 1 else None,
        optimal_interval_s=_young_daly(
            blocking, attempts, line.total_s if line.clock == "timestamps" else 0.0
        ),
        why_not=None
        if len(blocking)
        else "no timer, no time stamps and no gap show how long a save blocked training",
    )


def _blocking(book: Account, marks: Sequence[Mark]) -> list[float]:
    """Seconds each save stood in the way: as accounted for in intervals, as measured outside them."""
    inside = [pause.seconds for pause in (*book.pauses, *book.unseen) if pause.kind == "checkpoint"]
    outside: dict[tuple[int, int | None], float] = {}
    for mark in marks:
        if mark.kind == "checkpoint" and mark.place != "interval" and mark.seconds is not None:
            key = (mark.attempt, mark.step)
            outside[key] = max(outside.get(key, 0.0), mark.seconds)
    return [*inside, *outside.values()]


def _trend(blocking: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float | None:
    """Theil-Sen slope: median change from one save to the next, seconds."""
    if len(blocking) < 4:
        return None
    at = np.arange(len(blocking))
    left, right = np.triu_indices(min(len(blocking), 500), k=1)
    return float(np.median((blocking[right] - blocking[left]) / (at[right] - at[left])))


def _young_daly(
    blocking: np.ndarray[tuple[int], np.dtype[np.float64]], attempts: Sequence[Attempt], wall_s: float
) -> float | None:
    """sqrt(2 C M): Young (CACM 17(9), 1974) with save cost C and mean time between failures M."""
    failures = sum(attempt.exit in FAILURES for attempt in attempts)
    if not failures or not len(blocking) or wall_s <= 0:
        return None
    return math.sqrt(2.0 * float(np.median(blocking)) * wall_s / failures)


def data_wait_summary(line: Timeline, pauses: Sequence[Pause], waits: Waits) -> DataWaitSummary:
    """Share, worst and pattern of waits for data; why not, when no timer measures them."""
    if not waits.known:
        return DataWaitSummary(
            None, 0.0, None, None, None,
            "no data timer in the log: switch on per-step timers (Megatron --timing-log-level 2, DeepSpeed wall_clock_breakdown)",
        )  # fmt: skip
    per_step = np.nan_to_num(waits.per_step_s)
    total = float(np.sum(per_step * line.iterations))
    worst = int(np.argmax(per_step))
    timed = np.isfinite(waits.per_step_s) & np.isfinite(line.printed_s)
    inside = float(np.sum(line.printed_s[timed]))
    return DataWaitSummary(
        share=total / inside if inside > 0 else None,
        total_s=total,
        worst_s=float(per_step[worst]),
        worst_step=int(line.step[worst]),
        pattern=_pattern(pauses),
    )


def _pattern(pauses: Sequence[Pause]) -> str | None:
    rows = [pause.row for pause in pauses if pause.kind == "data_wait"]
    if not rows:
        return None
    if len(rows) == 1:
        return "single"
    distances = np.diff(sorted(rows))
    regular = len(rows) >= 3 and distances.max() - distances.min() <= 1 and distances.min() > 5
    return "epoch_start" if regular else "spread"
