"""Rates of each step line: batch, tokens, and TFLOP/s computed from the model's shape and the step time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from logmfu.analysis.intervals import Array, Timeline
from logmfu.errors import LogmfuError
from logmfu.flops import ModelShape, flops_per_token, hardware_flops_per_token
from logmfu.report import Spread

FLAGS = {
    "world_size": "--world-size N",
    "seq_len": "--seq-len N",
    "global_batch_size": "--set global_batch_size=N",
    "a step time": "(no option can: the log prints none)",
}
DROPPING = ("reserve_length", "random_ltd_reserved_length")
"""Columns with the number of tokens that layers with token dropping keep."""


@dataclass(frozen=True, slots=True)
class Computed:
    """TFLOP/s per device of each row from shape, batch and step time, by attention count."""

    full: Array
    half: Array
    hardware: Array | None
    """With recomputation, attention full; ``None`` when the recompute setting is not known."""
    hardware_half: Array | None


def spread(values: Array) -> Spread | None:
    """Median, 5th and 95th percentile of the known values."""
    known = values[np.isfinite(values)]
    if not len(known):
        return None
    p5, median, p95 = (float(value) for value in np.percentile(known, (5, 50, 95)))
    return Spread(median, p5, p95, len(known))


def column(steps: pd.DataFrame, name: str) -> Array:
    """A column as floats, NaN where absent."""
    if name not in steps:
        return np.full(len(steps), np.nan)
    return steps[name].to_numpy(dtype=np.float64, na_value=np.nan)


def batches(line: Timeline, facts: Mapping[str, Any]) -> Array:
    """Sequences per step of each row: printed, else the fact."""
    stated = facts.get("global_batch_size")
    default = float(stated) if isinstance(stated, int | float) else np.nan
    return np.where(np.isfinite(line.batch), line.batch, default)


def sequence_lengths(steps: pd.DataFrame, facts: Mapping[str, Any]) -> Array:
    """Tokens per sequence of each row: printed (curriculum), else the fact."""
    stated = facts.get("seq_len")
    printed = column(steps, "seq_len")
    return np.where(
        np.isfinite(printed), printed, float(stated) if isinstance(stated, int | float) else np.nan
    )


def _dropped_tokens(steps: pd.DataFrame, facts: Mapping[str, Any]) -> str:
    """Why FLOPs cannot be computed when some layers leave tokens out (random layerwise token dropping)."""
    for name in DROPPING:
        kept, whole = column(steps, name), sequence_lengths(steps, facts)
        if (kept < whole).any():
            return (
                f"some layers see only {np.nanmin(kept):.0f} of {np.nanmax(whole):.0f} tokens ({name}), "
                "and the log does not say how many layers do"
            )
    return ""


def compute(line: Timeline, steps: pd.DataFrame, facts: Mapping[str, Any]) -> Computed | str:
    """TFLOP/s per device from the model's shape; a sentence when something is missing."""
    if dropped := _dropped_tokens(steps, facts):
        return dropped
    try:
        shape = ModelShape.from_facts(facts)
    except LogmfuError as error:
        return f"{error.what}: give --model NAME|FILE, or --set NAME=VALUE for layers, hidden, heads, vocab ..."
    devices, batch, lengths = facts.get("world_size"), batches(line, facts), sequence_lengths(steps, facts)
    missing = [
        name
        for name, known in (
            ("world_size", bool(devices)),
            ("global_batch_size", np.isfinite(batch).any()),
            ("seq_len", np.isfinite(lengths).any()),
            ("a step time", np.isfinite(line.step_time_s).any()),
        )
        if not known
    ]
    if missing:
        return f"the log lacks {', '.join(missing)}: give {' '.join(FLAGS.get(name, name) for name in missing)}"
    tokens_per_s = batch * lengths / line.step_time_s / float(devices or 1) / 1e12
    recompute = facts.get("recompute")
    per_token = {name: np.full(len(line), np.nan) for name in ("full", "half", "hw", "hw_half")}
    for length in np.unique(lengths[np.isfinite(lengths)]):
        at = lengths == length
        per_token["full"][at] = flops_per_token(shape, float(length), attention="full")
        per_token["half"][at] = flops_per_token(shape, float(length), attention="half")
        if recompute:
            for name, attention in (("hw", "full"), ("hw_half", "half")):
                per_token[name][at] = hardware_flops_per_token(
                    shape, float(length), recompute=str(recompute), attention=attention
                )
    return Computed(
        per_token["full"] * tokens_per_s,
        per_token["half"] * tokens_per_s,
        per_token["hw"] * tokens_per_s if recompute else None,
        per_token["hw_half"] * tokens_per_s if recompute else None,
    )
