"""What papers and programs count: one function per formula, FLOPs of one trained token, quirks included.

:mod:`logmfu.flops.count` says what should be counted; these say what a printed number means.
"""

from __future__ import annotations

from dataclasses import replace

from logmfu.flops.count import (
    attention_core,
    dense_weights,
    flops_per_token,
    keys,
    logit_macs,
    mtp_macs,
    parameters,
)
from logmfu.flops.shape import ModelShape


def sc21(shape: ModelShape, seq_len: float, attention: str = "full") -> float:
    """72*L*h^2*(1 + s/6h + V/12Lh): arXiv:2104.04473 equation 3 without its recomputation; arXiv:2205.05198 appendix A.

    Multi-head attention and an ungated f = 4h are built in.
    """
    layers, h = shape.layers, shape.hidden
    return 72 * layers * h**2 + 12 * layers * h * keys(seq_len, attention) + 6 * h * shape.vocab


def sc21_recomputing(shape: ModelShape, seq_len: float, attention: str = "full") -> float:
    """96*L*h^2*(1 + s/6h + V/16Lh): arXiv:2104.04473 equation 3, with full recomputation."""
    layers, h = shape.layers, shape.hidden
    return 96 * layers * h**2 + 16 * layers * h * keys(seq_len, attention) + 6 * h * shape.vocab


def sc21_parameters(shape: ModelShape, seq_len: float) -> float:
    """12*L*h^2*(1 + 13/12h + (V + s)/12Lh): arXiv:2104.04473 equation 2, with biases and positions."""
    layers, h = shape.layers, shape.hidden
    return 12 * layers * h**2 + 13 * layers * h + (shape.vocab + seq_len) * h


def korthikanti_selective(shape: ModelShape, seq_len: float, attention: str = "full") -> float:
    """72*L*h^2*(1 + s/3h + V/12Lh): arXiv:2205.05198 appendix A, the attention core recomputed."""
    layers, h = shape.layers, shape.hidden
    return 72 * layers * h**2 + 24 * layers * h * keys(seq_len, attention) + 6 * h * shape.vocab


def sc21_factor(
    shape: ModelShape, seq_len: float, attention: str, *, factor: int, glu: bool = False
) -> float:
    """24*c*L*h^2*(1 + s/6h + V/16Lh), c = 4 with recomputation and 3 without: what programs made of equation 3.

    With c = 3 the output layer is 3/4 of what it should be. ``glu``: 32 for 24 in front of a gated model.
    microsoft/Megatron-DeepSpeed utils.py 2022-07-11, bigscience-workshop/Megatron-DeepSpeed training.py
    2022-02-21 (32: 2022-06-05), EleutherAI/gpt-neox logging.py 2023-09-27.
    """
    layers, h = shape.layers, shape.hidden
    inner = layers * h**2 + layers * h * keys(seq_len, attention) / 6 + h * shape.vocab / 16
    return (32 if glu and shape.glu else 24) * factor * inner


def palm(shape: ModelShape, seq_len: float, attention: str = "full") -> float:
    """6N + 12*L*H*Q*T: arXiv:2204.02311 appendix B; N is every (active) parameter, embeddings too."""
    return six_n(shape) + 6 * shape.layers * shape.core_width * keys(seq_len, attention)


def six_n(shape: ModelShape) -> float:
    """6N: arXiv:2001.08361 with N as every (active) parameter; no attention."""
    return 6 * parameters(shape, active=True)


def nanogpt(shape: ModelShape, seq_len: float, attention: str = "full") -> float:
    """6*(N - positions) + 12*L*H*Q*T: karpathy/nanoGPT model.py; an input embedding counts, tied or not."""
    return palm(shape, seq_len, attention) - 6 * shape.positions * shape.hidden


def llm_foundry(shape: ModelShape, seq_len: float, attention: str = "full") -> float:
    """6N + 12*L*d_model*s: mosaicml/llm-foundry scripts/train/benchmarking; N with learned positions."""
    return six_n(shape) + 12 * shape.layers * shape.hidden * keys(seq_len, attention)


def torchtitan(shape: ModelShape, seq_len: float, attention: str = "full") -> float:
    """6*(N - input embedding) + 6*L*H*(d_qk + d_v)*s: pytorch/torchtitan; norms count, a tied embedding stays in."""
    embedding = 0 if shape.tied else shape.vocab * shape.hidden
    body = parameters(shape, active=True) - embedding - shape.positions * shape.hidden
    return 6 * body + 6 * shape.layers * shape.core_width * keys(seq_len, attention)


def hf_trainer(shape: ModelShape) -> float:
    """6*(N - input embedding) with every expert: transformers' ``total_flos``, no attention."""
    return 6 * (parameters(shape) - (shape.vocab + shape.positions) * shape.hidden)


def megatron_05(shape: ModelShape, seq_len: float, attention: str = "full") -> float:
    """60*L*h^2*(1 + K/5H + s/5h + V/10Lh): NVIDIA/Megatron-LM training.py, 2023-11-28 to 2024-03-13."""
    return 6 * (_gpt_layers(shape, seq_len, attention, 8 * shape.hidden**2) + logit_macs(shape))


def megatron_06(shape: ModelShape, seq_len: float, attention: str = "full") -> float:
    """12*L*h^2*(1 + 1.5*(f/h)*topk + K/H + s/h + V/2Lh): NVIDIA/Megatron-LM, 2024-03-25; every layer has experts."""
    return 6 * (_gpt_layers(shape, seq_len, attention, _routed(shape)) + logit_macs(shape))


def megatron_07(shape: ModelShape, seq_len: float, attention: str = "full") -> float:
    """The same with the head size taken from kv_channels: NVIDIA/Megatron-LM, 2024-04-03 to 2024-09-11."""
    return 6 * (_query_width_layers(shape, seq_len, attention, _routed(shape)) + logit_macs(shape))


def megatron_010(shape: ModelShape, seq_len: float, attention: str = "full") -> float:
    """The same with shared experts on every layer: NVIDIA/Megatron-LM, 2024-09-11 to 2025-03-06 (0.10, 0.11)."""
    shared = shape.matrices * shape.hidden * (shape.experts.shared_ffn if shape.experts else 0)
    feed_forward = _routed(shape) + shared
    return 6 * (_query_width_layers(shape, seq_len, attention, feed_forward) + logit_macs(shape))


def megatron_012(shape: ModelShape, seq_len: float, attention: str = "half") -> float:
    """NVIDIA/Megatron-LM training.py since 2025-03-06 (0.12): experts per layer pattern, no router, causal half.

    Latent attention since 2025-04-03 and each prediction module count their norms as r and 3h.
    A Mamba mixer is taken as twice as wide as the model, the state of a gated-delta head as dv*dv (not dk*dv).
    Sliding windows are not counted.
    """
    plain = _as_megatron_counts(shape)
    modules = plain.mtp * 3 * shape.hidden
    attentions = plain.attention_layers + plain.mtp
    norms = attentions * ((plain.latent.q_rank or 0) + plain.latent.kv_rank) if plain.latent else 0
    states = _square_states(plain)
    return flops_per_token(plain, seq_len, attention=attention, router=False) + 6 * (
        modules + norms + states
    )


def megatron_bridge(shape: ModelShape, seq_len: float, attention: str = "half") -> float:
    """Megatron 0.12's count with sliding windows: NVIDIA-NeMo/Megatron-Bridge @067f987d."""
    windowless = replace(shape, window=None)
    saved = attention_core(windowless, seq_len, attention) - attention_core(shape, seq_len, attention)
    return megatron_012(shape, seq_len, attention) - 6 * saved


def nemo(shape: ModelShape, seq_len: float, attention: str = "full") -> float:
    """L*h^2*(12 + 12K/H + 18f/h + 12s/h + 6V/Lh): NVIDIA/NeMo flops_formulas, llama; topk experts, no router."""
    return 6 * (_gpt_layers(shape, seq_len, attention, _active_feed_forward(shape)) + logit_macs(shape))


def maxtext(shape: ModelShape, seq_len: float, attention: str = "half") -> float:
    """Three times the matrix products with the gate; prediction modules without projection and logits: AI-Hypercomputer/maxtext."""
    modules = shape.mtp * (mtp_macs(shape, seq_len, attention, True) - 2 * shape.hidden**2)
    return flops_per_token(shape, seq_len, attention=attention, mtp=0) + 6 * modules


def megatron_deepspeed_2024(
    shape: ModelShape, seq_len: float, attention: str, *, recompute: str = "none"
) -> float:
    """microsoft/Megatron-DeepSpeed since 2024-08-19: exact products, but K and V as floor(2 / (H/K)) * h^2.

    Full recomputation adds a forward pass with the output layer, selective the attention core.
    """
    h, keys_counted = shape.hidden, keys(seq_len, attention)
    projections = (2 + 2 // shape.kv_groups) * h**2
    core = 2 * keys_counted * h
    forward = 2 * (shape.layers * (projections + core + _active_feed_forward(shape)) + logit_macs(shape))
    extra = {"full": forward, "early-stop": forward, "selective": 4 * shape.layers * h * keys_counted}
    return 3 * forward + extra.get(recompute, 0)


def verl(shape: ModelShape, seq_len: float, attention: str = "full") -> float:
    """The exact products, with the input embedding and no window: volcengine/verl flops_counter.py @02cf355f.

    Latent attention takes the size of a query for that of a value.
    """
    mla = shape.latent
    wider = shape.heads * (mla.nope + mla.rope - mla.v) if mla else 0
    core = shape.attention_layers * wider * keys(seq_len, attention)
    plain = replace(shape, window=None)
    exact = flops_per_token(plain, seq_len, attention=attention, mtp=0)
    return exact + 6 * (core + shape.hidden * shape.vocab)


def levanter(shape: ModelShape, seq_len: float, attention: str = "full") -> float:
    """Three forward passes with 3*s*H of softmax per layer, heads of h/H: stanford-crfm/levanter @03c45fec."""
    plain = replace(shape, head_dim=shape.hidden // shape.heads, latent=None, window=None)
    softmax = 9 * shape.layers * shape.heads * keys(seq_len, attention)
    return flops_per_token(plain, seq_len, attention=attention, mtp=0) + softmax


def eleuther(shape: ModelShape, seq_len: float, attention: str = "full", *, factor: int = 3) -> float:
    """k*(2(1 + 2K/H) + 2 + 16)*L*h^2 + 4*k*L*s*h + 6*h*V, k = ``factor``: EleutherAI/cookbook @05c40662.

    calc_transformer_flops.py: the feed-forward block is ungated and 4h; from two experts per token on they come
    on top of it, topk / interval times. The gating is left out: it is added once, not per token.
    """
    layers, h, moe = shape.layers, shape.hidden, shape.experts
    experts = moe.topk * shape.expert_layers / layers if moe and moe.topk > 1 else 0
    weights = 2 * (1 + 2 * shape.kv_heads / shape.heads) + 2 + 16 * (1 + experts)
    core = 4 * keys(seq_len, attention) * h
    return factor * layers * (weights * h**2 + core) + 6 * logit_macs(shape)


def accelerate(shape: ModelShape, seq_len: float, attention: str = "full") -> float:
    """18*h*f + 12*d*(H + K) + 12*H*d*s per layer: the example of huggingface/accelerate @19d422eb.

    No output layer, and the projections lack a factor h.
    """
    projections = 12 * shape.head_dim * (shape.heads + shape.kv_heads)
    core = 12 * shape.query_width * keys(seq_len, attention)
    return shape.layers * (18 * shape.hidden * shape.ffn + projections + core)


def gpt_neox_2021(shape: ModelShape, seq_len: float, attention: str = "full") -> float:
    """6N + 60*L*h*s: EleutherAI/gpt-neox, 2021-03-13 to 2023-09-27; five times the attention."""
    return six_n(shape) + 60 * shape.layers * shape.hidden * keys(seq_len, attention)


def bigscience_2021(shape: ModelShape, *, factor: int) -> float:
    """2*c*N without embeddings: bigscience-workshop/Megatron-DeepSpeed, 2021-12-06 to 2022-02-21."""
    body = parameters(shape) - shape.vocab * shape.hidden * (1 if shape.tied else 2)
    return 2 * factor * (body - shape.positions * shape.hidden)


def _gpt_layers(shape: ModelShape, seq_len: float, attention: str, feed_forward: float) -> float:
    """Multiply-accumulates of the layers with projections 2*h^2*(1 + K/H) and a core of 2*s*h."""
    h = shape.hidden
    projections = 2 * h**2 * (1 + shape.kv_heads / shape.heads)
    return shape.layers * (projections + 2 * keys(seq_len, attention) * h + feed_forward)


def _query_width_layers(shape: ModelShape, seq_len: float, attention: str, feed_forward: float) -> float:
    """The same with the width of the queries where it differs from h; latent attention is taken as h wide."""
    width = shape.hidden if shape.latent else shape.query_width
    projections = 2 * shape.hidden * width * (1 + shape.kv_heads / shape.heads)
    return shape.layers * (projections + 2 * keys(seq_len, attention) * width + feed_forward)


def _routed(shape: ModelShape) -> float:
    """Topk dense blocks: programs before 2025-03 knew the dense size only."""
    return dense_weights(shape) * (shape.experts.topk if shape.experts else 1)


def _active_feed_forward(shape: ModelShape) -> float:
    """Topk experts of their own size where there are experts."""
    moe = shape.experts
    return shape.matrices * shape.hidden * moe.topk * moe.ffn if moe else dense_weights(shape)


def _square_states(shape: ModelShape) -> float:
    """What 4*Hv*dv*dv is more than 4*Hv*dk*dv, over all gated-delta layers."""
    net = shape.delta
    if net is None:
        return 0
    return net.layers * 4 * net.value_heads * net.value_dim * (net.value_dim - net.key_dim)


def _as_megatron_counts(shape: ModelShape) -> ModelShape:
    mamba = replace(shape.mamba, inner=2 * shape.hidden) if shape.mamba else None
    return replace(shape, window=None, mamba=mamba)
