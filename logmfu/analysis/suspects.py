"""What holds the steady state down: shares the log measures, costs that can be computed, blind spots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from logmfu.analysis.account import Pause
from logmfu.analysis.intervals import Timeline, median
from logmfu.analysis.marks import spelled, timer_kind
from logmfu.analysis.rows import Timers
from logmfu.analysis.waits import Waits
from logmfu.report import LedgerEntry, Suspect, Utilization

PARTS: Mapping[str, tuple[str, ...]] = {
    "gradient communication": (
        "grads-sync",
        "grads-all-reduce",
        "grads-reduce-scatter",
        "allreduce",
        "reduce-scatter",
        "optimizer-gradients",
    ),
    "parameter all-gather": ("params-all-gather", "allgather"),
    "pipeline send/receive": ("-send", "-recv", "pipe-send", "pipe-recv"),
    "optimizer": ("optimizer", "step-microstep"),
}
"""Parts of a step and words of the timers that measure them, most specific first."""
WIDE = 1.2
"""Longest over shortest rank above which a timer is a sign of stragglers."""


def suspects(
    line: Timeline, pauses: Sequence[Pause], timers: Timers, waits: Waits, ledger: Sequence[LedgerEntry], mfu: Utilization, hfu: Utilization,
    facts: Mapping[str, Any],
) -> tuple[Suspect, ...]:  # fmt: skip
    """One statement for each thing that may hold the run down, the costliest first."""
    found = [
        *_timed_parts(line, timers),
        _data(line, waits),
        _bubble(facts),
        _recomputation(mfu, hfu, facts),
        _saves(ledger, visible=any(pause.kind == "checkpoint" for pause in pauses)),
    ]
    rank = {"measured": 0, "computed": 0, "not_visible": 1}
    return tuple(sorted(found, key=lambda suspect: (rank[suspect.how], -(suspect.share or 0.0))))


def _timed_parts(line: Timeline, timers: Timers) -> list[Suspect]:
    parts = {name: _part(name) for name in timers.names if timer_kind(name) is None}
    seen = list(dict.fromkeys(part for part in parts.values() if part))
    usual = float(np.nan_to_num(median(line.step_time_s))) if seen else 0.0
    out = [_timed(part, timers, parts, usual) for part in seen if usual > 0]
    missing = [part for part in PARTS if part not in seen and part != "optimizer"]
    if missing:
        text = f"{', '.join(missing)}: no timers in the log (Megatron --timing-log-level 2, DeepSpeed wall_clock_breakdown or comms_logger)"
        out.append(Suspect("communication", None, "not_visible", text))
    return out


@lru_cache(maxsize=1024)
def _part(name: str) -> str | None:
    plain = "-" + spelled(name)
    if "setup" in plain or "startup" in plain:
        return None
    return next((part for part, words in PARTS.items() if any(word in plain for word in words)), None)


def _timed(part: str, timers: Timers, parts: Mapping[str, str | None], usual: float) -> Suspect:
    """Share of the step a part takes: the median over steps of the longest timer of that part."""
    rows = timers.which(lambda name: parts.get(name) == part)
    longest, shortest = timers.longest_s[rows], timers.shortest_s[rows]
    of_step = pd.Series(longest).groupby([timers.attempt[rows], np.nan_to_num(timers.step[rows], nan=-1.0)])
    share = float(of_step.max().clip(lower=0.0).median()) / usual
    ranges = (longest != 0) & (shortest != 0) & ~np.isnan(shortest)
    wide = float(np.median(longest[ranges] / shortest[ranges])) if ranges.any() else 1.0
    uneven = ""
    if wide > WIDE and share * (1 - 1 / wide) > 0.01:
        uneven = f"; slowest rank {wide:.2f} times the fastest: a sign of stragglers"
    return Suspect(
        part,
        min(share, 1.0),
        "measured",
        f"{part} takes {100 * share:.1f} % of a step{uneven}",
        (timers.rows(rows[:1])[0].evidence,),
    )


def _data(line: Timeline, waits: Waits) -> Suspect:
    usual = float(np.nan_to_num(median(line.step_time_s))) if waits.known else 0.0
    if usual <= 0:
        return Suspect("data loader", None, "not_visible", "waits for data: no data timer in the log")
    share = median(waits.usual_s) / usual
    example = next(iter(waits.lines.values()))
    return Suspect(
        "data loader",
        min(share, 1.0),
        "measured",
        f"waiting for data takes {100 * share:.1f} % of a usual step",
        (example,),
    )


def _bubble(facts: Mapping[str, Any]) -> Suspect:
    """(p - 1) / (v m + p - 1) for p stages, m micro batches, v virtual stages (arXiv:2104.04473, section 2.2)."""
    stages, virtual = facts.get("pipeline_parallel"), facts.get("virtual_pipeline") or 1
    micro = facts.get("grad_accumulation") or _micro_batches(facts)
    if not isinstance(stages, int):
        return Suspect(
            "pipeline bubble",
            None,
            "not_visible",
            "pipeline bubble: the log does not state the pipeline size",
        )
    if stages == 1:
        return Suspect("pipeline bubble", 0.0, "computed", "no pipeline, no bubble")
    if not micro:
        return Suspect(
            "pipeline bubble",
            None,
            "not_visible",
            "pipeline bubble: the number of micro batches is not in the log",
        )
    share = (stages - 1) / (virtual * micro + stages - 1)
    text = f"the pipeline bubble is {100 * share:.1f} % of a step: {stages} stages, {micro:.0f} micro batches, {virtual} virtual"
    return Suspect("pipeline bubble", share, "computed", text)


def _micro_batches(facts: Mapping[str, Any]) -> float | None:
    batch, micro, parallel = (
        facts.get(name) for name in ("global_batch_size", "micro_batch_size", "data_parallel")
    )
    whole = all(isinstance(value, int) and value > 0 for value in (batch, micro, parallel))
    return batch / (micro * parallel) if whole else None  # type: ignore[operator]


def _recomputation(mfu: Utilization, hfu: Utilization, facts: Mapping[str, Any]) -> Suspect:
    recompute = facts.get("recompute")
    if recompute == "none":
        return Suspect("recomputation", 0.0, "computed", "no activations are recomputed")
    if mfu.spread is None or hfu.spread is None or hfu.spread.median <= 0:
        why = (
            "recompute setting not in the log"
            if recompute is None
            else f"recompute is {recompute}, its cost cannot be computed"
        )
        return Suspect("recomputation", None, "not_visible", f"recomputation: {why}")
    share = max(0.0, 1.0 - mfu.spread.median / hfu.spread.median)
    return Suspect(
        "recomputation",
        share,
        "computed",
        f"recomputation is {100 * share:.1f} % of the FLOPs the hardware does (HFU over MFU)",
    )


def _saves(ledger: Sequence[LedgerEntry], *, visible: bool) -> Suspect:
    share = sum(entry.share for entry in ledger if entry.kind == "checkpoint")
    if not share:
        text = (
            "checkpoints: saves block training, the wall clock does not show for how long"
            if visible
            else "checkpoints: no save is visible in this log"
        )
        return Suspect("checkpoints", None, "not_visible", text)
    text = f"checkpoints block training for {100 * share:.1f} % of the wall clock"
    return Suspect("checkpoints", share, "measured", text)
