"""Rates of each step line: batch, tokens, and TFLOP/s computed from the model's shape and the step time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
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

    shape: ModelShape
    lengths: Array
    """Tokens per sequence."""
    tokens_per_s: Array
    """Million millions of tokens per second and device."""
    recompute: str | None

    def model(self, attention: str) -> Array:
        """The model's."""
        return self._by_length(partial(flops_per_token, self.shape, attention=attention))

    def hardware(self, attention: str) -> Array | None:
        """With recomputation; ``None`` when the recompute setting is not known."""
        if not self.recompute:
            return None
        return self._by_length(
            partial(
                hardware_flops_per_token, self.shape, recompute=str(self.recompute), attention=attention
            )
        )

    def _by_length(self, per_token: Callable[[float], float]) -> Array:
        known = self.lengths[np.isfinite(self.lengths)]
        if len(known) == len(self.lengths) and known.min() == known.max():
            return per_token(float(known[0])) * self.tokens_per_s
        found = np.full(len(self.lengths), np.nan)
        for length in np.unique(known).tolist():
            found[self.lengths == length] = per_token(length)
        found *= self.tokens_per_s
        return found


def spread(values: Array) -> Spread | None:
    """Median, 5th and 95th percentile of the known values."""
    known = values[np.isfinite(values)]
    if not len(known):
        return None
    p5, median, p95 = np.percentile(known, (5, 50, 95), overwrite_input=True).tolist()
    return Spread(median, p5, p95, len(known))


def column(steps: pd.DataFrame, name: str) -> Array:
    """A column as floats, NaN where absent; not to be written to."""
    if name not in steps:
        return np.broadcast_to(np.nan, len(steps))
    return steps[name].to_numpy(dtype=np.float64, na_value=np.nan)


def batches(line: Timeline, facts: Mapping[str, Any]) -> Array:
    """Sequences per step of each row: printed, else the fact."""
    stated = facts.get("global_batch_size")
    default = float(stated) if isinstance(stated, int | float) else np.nan
    known = np.isfinite(line.batch)
    return line.batch if known.all() else np.where(known, line.batch, default)


def sequence_lengths(steps: pd.DataFrame, facts: Mapping[str, Any]) -> Array:
    """Tokens per sequence of each row: printed (curriculum), else the fact."""
    stated = facts.get("seq_len")
    default = float(stated) if isinstance(stated, int | float) else np.nan
    if "seq_len" not in steps:
        return np.broadcast_to(default, len(steps))
    printed = column(steps, "seq_len")
    return np.where(np.isfinite(printed), printed, default)


def _dropped_tokens(steps: pd.DataFrame, facts: Mapping[str, Any]) -> str:
    """Why FLOPs cannot be computed when some layers leave tokens out (random layerwise token dropping)."""
    for name in filter(steps.columns.__contains__, DROPPING):
        kept, whole = column(steps, name), sequence_lengths(steps, facts)
        if (kept < whole).any():
            return (
                f"some layers see only {np.nanmin(kept):.0f} of {np.nanmax(whole):.0f} tokens ({name}), "
                "and the log does not say how many layers do"
            )
    return ""


def compute(line: Timeline, steps: pd.DataFrame, facts: Mapping[str, Any]) -> Computed | str:
    """TFLOP/s per device from the model's shape; a sentence when something is missing."""
    if not len(steps):
        return "there is no step line"
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
    tokens_per_s = batch * lengths
    for divisor in (line.step_time_s, float(devices or 1), 1e12):
        tokens_per_s /= divisor
    return Computed(shape, lengths, tokens_per_s, facts.get("recompute"))
