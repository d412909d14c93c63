"""Numbers that single versions are known to have printed, which are no convention of their own."""

from __future__ import annotations

from collections.abc import Iterator

from logmfu.flops import formulas
from logmfu.flops.count import logit_macs
from logmfu.flops.shape import ModelShape


def known_bugs(shape: ModelShape, seq_len: float, recompute: str) -> Iterator[tuple[str, float]]:
    """Which versions, and the FLOPs per token they printed."""
    factor = 4 if recompute in {"full", "early-stop"} else 3
    yield (
        "EleutherAI/gpt-neox 2021-03-13 to 2023-09-27 (five times the attention)",
        formulas.gpt_neox_2021(shape, seq_len),
    )
    yield (
        "EleutherAI/gpt-neox 2023-09-27 to 2023-12-06 (output layer lost)",
        formulas.sc21_factor(shape, seq_len, "full", factor=factor) - 24 * factor * logit_macs(shape) / 16,
    )
    early = formulas.bigscience_2021(shape, factor=factor)
    yield "bigscience-workshop/Megatron-DeepSpeed 2022-01-05 to 2022-02-21 (parameters only)", early
    yield (
        "bigscience-workshop/Megatron-DeepSpeed 2021-12-06 to 2022-01-05 (GFLOP/s labelled TFLOPs)",
        early * 1000,
    )
