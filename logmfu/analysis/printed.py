"""The FLOP/s a program printed, held against the computed ones: what they count, and whether to trust them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from logmfu.analysis.accounting import TOLERANCE, Comparison, compare
from logmfu.analysis.intervals import Array, Timeline
from logmfu.analysis.rates import Computed, batches, column, sequence_lengths
from logmfu.errors import LogmfuError
from logmfu.flops import ModelShape

MISCOUNTED = ("version", "experts", "unit")
"""Kinds of comparison after which the computed number is the better one. A number nothing explains, or one
for packed documents, may still know more than the arguments do: it is used, with a note."""


@dataclass(frozen=True, slots=True)
class Printed:
    """The printed series and what it counts: as the log's facts say, else as the numbers show."""

    tflops: Array
    counts: str
    """``model``, ``hardware`` or ``unknown``."""
    attention: str
    convention: str | None
    comparison: Comparison | None
    trusted: bool

    @property
    def there(self) -> bool:
        """Whether the log prints FLOP/s at all."""
        return bool(np.isfinite(self.tflops).any())


def printed(
    line: Timeline,
    steps: pd.DataFrame,
    facts: Mapping[str, Any],
    computed: Computed | str,
    recounted: Sequence[int],
) -> Printed:
    """The printed FLOP/s, held against the computed ones where those are known.

    ``recounted``: rows from which on the program counts in another way. Such a series is no series of one
    quantity: it is explained part by part and not used.
    """
    logged = column(steps, "tflops_per_gpu_logged")
    counts, attention = (
        str(facts.get("flops_kind") or "unknown"),
        str(facts.get("attention_logged") or "unknown"),
    )
    stated = facts.get("convention")
    if isinstance(computed, str):
        return Printed(logged, counts, attention, stated, None, not recounted)
    borders = [0, *recounted, len(logged)]
    parts = [_compared(line, steps, facts, logged, begin, end) for begin, end in pairwise(borders)]
    found = next((part for part in parts if part is not None), None)
    if found is None:
        return Printed(logged, counts, attention, stated, None, not recounted)
    if recounted:
        found = replace(found, trusted=False, explanation=_part_by_part(line, recounted, parts))
    return Printed(
        logged,
        found.counts if found.counts != "unknown" else counts,
        found.attention if found.attention != "unknown" else attention,
        found.convention or stated,
        found,
        found.kind not in MISCOUNTED and not recounted,
    )


def _part_by_part(line: Timeline, recounted: Sequence[int], parts: Sequence[Comparison | None]) -> str:
    steps = [f"to step {int(line.step[row - 1])}" for row in recounted] + ["after that"]
    return "; ".join(
        f"{where}: {part.explanation if part else 'nothing to compare'}"
        for where, part in zip(steps, parts, strict=True)
    )


def _compared(
    line: Timeline, steps: pd.DataFrame, facts: Mapping[str, Any], logged: Array, begin: int, end: int
) -> Comparison | None:
    """The row in the middle of the printed rates from ``begin`` to ``end``, held against the formulas."""
    times, batch, lengths = (
        column(steps, "step_time_s"),
        batches(line, facts),
        sequence_lengths(steps, facts),
    )
    part = np.zeros(len(logged), dtype=bool)
    part[begin:end] = True
    usable = part & np.isfinite(logged) & (logged > 0) & (times > 0) & (batch > 0) & (lengths > 0)
    rows = np.flatnonzero(usable & ~line.first) if (usable & ~line.first).any() else np.flatnonzero(usable)
    if not len(rows):
        return None
    row = int(rows[np.argsort(logged[rows])[len(rows) // 2]])
    rounding = 0.06 / float(logged[row]) + 0.06e-3 / float(times[row])
    try:
        return compare(
            float(logged[row]),
            float(times[row]),
            shape=ModelShape.from_facts(facts),
            seq_len=float(lengths[row]),
            batch=float(batch[row]),
            devices=int(facts["world_size"]),
            recompute=facts.get("recompute"),
            convention=facts.get("convention"),
            candidates=facts.get("convention_candidates") or (),
            tolerance=max(TOLERANCE, rounding),
        )
    except LogmfuError:
        return None
