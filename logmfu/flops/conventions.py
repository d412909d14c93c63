"""The named conventions: whose number counts what, with the formula behind each."""

from __future__ import annotations

from collections.abc import Mapping

from logmfu.flops import count, formulas
from logmfu.flops.convention import FEATURES, Convention, Hardware
from logmfu.flops.shape import ModelShape

_ALWAYS_THERE = frozenset({"attention", "output layer", "projections"})
_BEFORE_2025 = frozenset(FEATURES) - _ALWAYS_THERE - {"unequal gated-delta heads"}
_EXPERTS = frozenset({"experts", "expert layer pattern", "expert size", "shared experts", "router"})
_OLD_MEGATRON = _BEFORE_2025 - {"gated feed-forward", "grouped-query attention", "experts"}
_BY_PARAMETERS = frozenset({"prediction modules", "sliding window", "hybrid layers"})


def _sc21_hardware(shape: ModelShape, seq_len: float, attention: str, recompute: str) -> float:
    """arXiv:2104.04473 equation 3 and arXiv:2205.05198 appendix A, by what is recomputed."""
    forms = {"none": formulas.sc21, "selective": formulas.korthikanti_selective}
    return forms.get(recompute, formulas.sc21_recomputing)(shape, seq_len, attention)


def _glu_factor(shape: ModelShape) -> float:
    return 32 / 24 if shape.glu else 1.0


def _bigscience_model(shape: ModelShape, seq_len: float, attention: str) -> float:
    """The printed form without recomputation and with the output layer whole."""
    body = formulas.sc21(shape, seq_len, attention) - 6 * count.logit_macs(shape)
    return body * _glu_factor(shape) + 6 * count.logit_macs(shape)


def _bigscience_hardware(shape: ModelShape, seq_len: float, attention: str, recompute: str) -> float:
    body = _sc21_hardware(shape, seq_len, attention, recompute) - 6 * count.logit_macs(shape)
    return body * _glu_factor(shape) + 6 * count.logit_macs(shape)


def _checkpointed(*triggers: str, glu: bool = False) -> Hardware:
    """The programs' ``24*c*...``, c = 4 when one of ``triggers`` is recomputed."""

    def printed(shape: ModelShape, seq_len: float, attention: str, recompute: str) -> float:
        factor = 4 if recompute in triggers else 3
        return formulas.sc21_factor(shape, seq_len, attention, factor=factor, glu=glu)

    return printed


def _eleuther_hardware(shape: ModelShape, seq_len: float, attention: str, recompute: str) -> float:
    """K = 4 with any recomputation, 3 without."""
    return formulas.eleuther(shape, seq_len, attention, factor=3 if recompute == "none" else 4)


def _four_thirds(shape: ModelShape, seq_len: float, attention: str, recompute: str) -> float:
    """4/3 of everything, output layer included, when anything is checkpointed."""
    return formulas.llm_foundry(shape, seq_len, attention) * (1 if recompute == "none" else 4 / 3)


def _deepspeed_2024(shape: ModelShape, seq_len: float, attention: str, recompute: str) -> float:
    return formulas.megatron_deepspeed_2024(shape, seq_len, attention, recompute=recompute)


_TABLE = (
    Convention(
        name="canonical",
        title="matrix weights and full attention, router in, prediction modules if they train",
        source="arXiv:2204.02311 appendix B, made exact; equal to torch.utils.flop_counter",
        model=lambda shape, seq_len, attention: count.flops_per_token(shape, seq_len, attention=attention),
    ),
    Convention(
        name="palm",
        logged=False,
        title="6N + 12LHQT with N all active parameters, embeddings included",
        source="arXiv:2204.02311 appendix B",
        model=formulas.palm,
        blind=_BY_PARAMETERS,
    ),
    Convention(
        name="sc21",
        logged=False,
        title="96BsLh2(1 + s/6h + V/16Lh): full recomputation is in it (72 and V/12 without)",
        source="arXiv:2104.04473 equation 3",
        model=formulas.sc21,
        counts="hardware",
        hardware=_sc21_hardware,
        recompute="full",
        blind=_BEFORE_2025,
    ),
    Convention(
        name="korthikanti",
        logged=False,
        title="72BLsh2(1 + s/6h + V/12Lh); hardware 72BLsh2(1 + s/3h + V/12Lh)",
        source="arXiv:2205.05198 appendix A",
        model=formulas.sc21,
        hardware=_sc21_hardware,
        recompute="selective",
        blind=_BEFORE_2025,
    ),
    Convention(
        name="megatron-0.5",
        title="feed-forward fixed at 4h and ungated",
        source="NVIDIA/Megatron-LM training.py, 2023-11-28 to 2024-03-13",
        model=formulas.megatron_05,
        blind=_OLD_MEGATRON | {"gated feed-forward", "experts"},
    ),
    Convention(
        name="megatron-0.6",
        title="gated, topk experts of the dense size on every layer",
        source="NVIDIA/Megatron-LM training.py, 2024-03-25 to 2024-04-03",
        model=formulas.megatron_06,
        blind=_OLD_MEGATRON,
    ),
    Convention(
        name="megatron-0.7",
        title="as 0.6, head size from kv_channels",
        source="NVIDIA/Megatron-LM training.py, 2024-04-03 to 2024-09-11 (0.7 to 0.9)",
        model=formulas.megatron_07,
        blind=_OLD_MEGATRON - {"head size"},
    ),
    Convention(
        name="megatron-0.10",
        title="as 0.7, shared experts on every layer",
        source="NVIDIA/Megatron-LM training.py, 2024-09-11 to 2025-03-06 (0.10, 0.11)",
        model=formulas.megatron_010,
        blind=_OLD_MEGATRON - {"head size", "shared experts"},
    ),
    Convention(
        name="megatron-0.12",
        title="experts per layer pattern without router, MLA, MTP, causal half",
        source="NVIDIA/Megatron-LM training.py since 2025-03-06 (0.12)",
        model=formulas.megatron_012,
        attention="half",
        blind=frozenset({"router", "sliding window", "unequal gated-delta heads"}),
    ),
    Convention(
        name="megatron-bridge",
        title="as megatron-0.12, with sliding windows",
        source="NVIDIA-NeMo/Megatron-Bridge @067f987d",
        model=formulas.megatron_bridge,
        attention="half",
        blind=frozenset({"router", "unequal gated-delta heads"}),
    ),
    Convention(
        name="megatron-deepspeed-2022",
        title="24cBsLh2(1 + s/6h + V/16Lh), c = 4 with any recomputation, selective too",
        source="microsoft/Megatron-DeepSpeed megatron/utils.py, 2022-07-11 to 2024-08-19",
        model=formulas.sc21,
        counts="hardware",
        hardware=_sc21_hardware,
        printed=_checkpointed("full", "early-stop", "selective"),
        blind=_BEFORE_2025,
    ),
    Convention(
        name="megatron-deepspeed-2024",
        title="exact products, but K and V as floor(2K/H); recomputation in it",
        source="microsoft/Megatron-DeepSpeed since 2024-08-19",
        model=formulas.megatron_deepspeed_2024,
        counts="hardware",
        hardware=_deepspeed_2024,
        blind=_BEFORE_2025 - {"gated feed-forward", "experts", "expert size"},
    ),
    Convention(
        name="bigscience",
        title="24cBsLh2(1 + s/6h + V/16Lh), 32 for 24 when gated, c = 4 with recomputation",
        source="bigscience-workshop/Megatron-DeepSpeed training.py since 2022-02-21 (32: 2022-06-05)",
        model=_bigscience_model,
        counts="hardware",
        hardware=_bigscience_hardware,
        printed=_checkpointed("full", "early-stop", glu=True),
        blind=_BEFORE_2025,
    ),
    Convention(
        name="gpt-neox",
        title="24cBsLh2(1 + s/6h + V/16Lh), c = 4 with checkpoint_activations",
        source="EleutherAI/gpt-neox megatron/logging.py since 2023-09-27",
        model=formulas.sc21,
        counts="hardware",
        hardware=_sc21_hardware,
        printed=_checkpointed("full", "early-stop"),
        blind=_BEFORE_2025,
    ),
    Convention(
        name="nemo",
        title="BsLh2(12 + 12K/H + 18f/h + 12s/h + 6V/Lh)",
        source="NVIDIA/NeMo flops_formulas to 2025-08-09; causal half after it",
        model=formulas.nemo,
        blind=_OLD_MEGATRON - {"expert size"},
    ),
    Convention(
        name="torchtitan",
        title="6(N - input embedding) + 6LH(d_qk + d_v)s",
        source="pytorch/torchtitan @b5bcd76c",
        model=formulas.torchtitan,
        blind=_BY_PARAMETERS,
    ),
    Convention(
        name="nanogpt",
        title="6(N - positions) + 12LHQT; it divides by an A100's peak on any device",
        source="karpathy/nanoGPT model.py @3adf61e1",
        model=formulas.nanogpt,
        blind=_BY_PARAMETERS,
    ),
    Convention(
        name="nanochat",
        title="6 x matrix weights + 12HQ min(window, s) per layer",
        source="karpathy/nanochat @92d63d4e",
        model=lambda shape, seq_len, attention: count.flops_per_token(
            shape, seq_len, attention=attention, mtp=0
        ),
        blind=frozenset({"prediction modules"}),
    ),
    Convention(
        name="maxtext",
        title="matrix products with the gate, causal half (full before 2025-07-22)",
        source="AI-Hypercomputer/maxtext @e591f30c",
        model=formulas.maxtext,
        attention="half",
    ),
    Convention(
        name="llm-foundry",
        title="6N + 12 L d_model s; hardware 4/3 of everything",
        source="mosaicml/llm-foundry scripts/train/benchmarking @8c8dd48f",
        model=formulas.llm_foundry,
        hardware=_four_thirds,
        blind=_BY_PARAMETERS | {"head size", "latent attention"},
    ),
    Convention(
        name="verl",
        title="matrix products with router and input embedding, latent values as wide as queries",
        source="volcengine/verl flops_counter.py @02cf355f",
        model=formulas.verl,
        blind=_BY_PARAMETERS | {"latent attention"},
    ),
    Convention(
        name="levanter",
        title="three forward passes with softmax 3sH per layer, heads of h/H",
        source="stanford-crfm/levanter @03c45fec",
        model=formulas.levanter,
        blind=_BY_PARAMETERS | {"head size", "latent attention"},
    ),
    Convention(
        name="eleuther",
        logged=False,
        title="k(2(1 + 2K/H) + 18)Lh2 + 4kLsh + 6hV, f = 4h ungated, k = 4 by default (3 without recomputation)",
        source="EleutherAI/cookbook calc_transformer_flops.py @05c40662",
        model=formulas.eleuther,
        counts="hardware",
        hardware=_eleuther_hardware,
        recompute="full",
        blind=_BEFORE_2025 - {"grouped-query attention"},
    ),
    Convention(
        name="accelerate",
        logged=False,
        title="18hf + 12d(H + K) + 12Hds per layer: a factor h is missing, and the output layer",
        source="huggingface/accelerate example @19d422eb",
        model=formulas.accelerate,
        blind=_BY_PARAMETERS | _EXPERTS | {"latent attention", "output layer", "projections"},
    ),
    Convention(
        name="hf-trainer",
        logged=False,
        title="6(N - input embedding), every expert, no attention",
        source="transformers 5.24 Trainer total_flos",
        model=lambda shape, seq_len, attention: formulas.hf_trainer(shape),
        attention="none",
        blind=_BY_PARAMETERS | _EXPERTS | {"attention"},
    ),
    Convention(
        name="6n",
        logged=False,
        title="6N with N all active parameters, no attention",
        source="arXiv:2001.08361",
        model=lambda shape, seq_len, attention: formulas.six_n(shape),
        attention="none",
        blind=_BY_PARAMETERS | {"attention"},
    ),
)

CONVENTIONS: Mapping[str, Convention] = {convention.name: convention for convention in _TABLE}
"""Every convention by name."""
