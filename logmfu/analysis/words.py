"""The largest losses in words, each with what to do or switch on next."""

from __future__ import annotations

from collections.abc import Sequence

from logmfu.report import Attempt, DataWaitSummary, LedgerEntry, SaveSummary, Stall

ADVICE = {
    "checkpoint": "save asynchronously, to faster storage, or less often",
    "evaluation": "evaluate less often or on fewer samples",
    "data_wait": "add loader workers or prefetching, or move the data to faster storage",
    "slow_steps": "the log names no cause; per-step timers and straggler reports would",
    "startup": "cache compiled kernels and data indices; stagger imports on shared storage",
    "warmup": "cache compiled kernels; first-step compilation is not avoidable otherwise",
    "restore": "load checkpoints in parallel, or keep a local copy",
    "lost_work": "save more often: what is after the last complete checkpoint has to be done again",
    "hang": "shorten the collective time-out and switch on the flight recorder, so that a hang ends early and names its rank",
    "restart_gap": "keep spare nodes and restart automatically",
    "gc": "collect garbage by hand at one moment on all ranks",
    "unknown": "switch on time stamps, per-step timers and log interval 1 to see what this is; where no step came, take stack dumps of all ranks (py-spy)",
}
"""What helps against each class of lost time."""
LEAST_SHARE = 0.005
CONSTANT_SHARE = 0.05
"""Part of step time from which waiting for data in every step is a loss to name."""


def losses(
    ledger: Sequence[LedgerEntry],
    stalls: Sequence[Stall],
    attempts: Sequence[Attempt],
    saves: SaveSummary | None,
    *,
    waits: DataWaitSummary | None = None,
    most: int = 3,
) -> tuple[str, ...]:
    """The largest losses, at most ``most``; nothing below half a percent of the wall clock."""
    inside = _inside_steps(waits)
    lost = [
        (entry.seconds, _sentence(entry, stalls, attempts, saves))
        for entry in ledger
        if entry.kind != "productive"
        and entry.share >= LEAST_SHARE
        and not (inside and entry.kind == "data_wait")
    ]
    ranked = sorted([*lost, *inside], key=lambda loss: -loss[0])
    return tuple(text for _, text in ranked[:most])


def _inside_steps(waits: DataWaitSummary | None) -> list[tuple[float, str]]:
    """Waiting for data in every step: it is part of the run's pace, and of no class of its own."""
    if waits is None or waits.share is None or waits.share < CONSTANT_SHARE:
        return []
    size = f"{waits.total_s:,.1f} s, {100 * waits.share:.1f} % of the step time its timers measured"
    return [(waits.total_s, f"data wait: {size}, most of it in usual steps. {_advice('data_wait', None)}")]


def _sentence(
    entry: LedgerEntry, stalls: Sequence[Stall], attempts: Sequence[Attempt], saves: SaveSummary | None
) -> str:
    name = entry.kind.replace("_", " ")
    hours = "" if entry.gpu_hours is None else f", {entry.gpu_hours:,.2f} GPU-hours"
    size = f"{entry.seconds:,.1f} s ({100 * entry.share:.1f} %{hours})"
    return f"{name}: {size}{_detail(entry.kind, stalls, attempts, saves)}. {_advice(entry.kind, saves)}"


def _advice(kind: str, saves: SaveSummary | None) -> str:
    text = ADVICE.get(kind, "")
    if kind in ("checkpoint", "lost_work") and saves and saves.optimal_interval_s:
        text += f"; by this run's own failures a save every {saves.optimal_interval_s:,.0f} s costs least (Young/Daly)"
    return text[:1].upper() + text[1:] + "."


def _detail(
    kind: str, stalls: Sequence[Stall], attempts: Sequence[Attempt], saves: SaveSummary | None
) -> str:
    if kind == "lost_work":
        steps = sum(attempt.lost_steps or 0 for attempt in attempts)
        return f" in {_many(steps, 'step')} done again or lost"
    if kind == "checkpoint" and saves and saves.blocking_s:
        return f" in {_many(saves.blocking_s.count, 'save')}, median {saves.blocking_s.median:,.1f} s"
    mine = [stall for stall in stalls if stall.kind == kind]
    if not mine:
        return ""
    worst = max(mine, key=lambda stall: stall.seconds)
    at = "" if worst.step is None else f" at step {worst.step}"
    if len(mine) == 1:
        return f" in one stall{at}"
    return f" in {_many(len(mine), 'stall')}, the longest {worst.seconds:,.1f} s{at}"


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
