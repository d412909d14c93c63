"""FLOPs of one trained token: one function per formula, with its source.

One multiply-accumulate is two FLOPs; a trained token costs three forward passes. Counted are matrix products
alone: embedding look-up, norms, biases, positions, softmax, activations and the optimizer are zero, and the
output layer counts once, tied or not. Padding is not work: give the real lengths of packed data.
"""

from __future__ import annotations

from typing import Literal, get_args

from logmfu.errors import OptionError
from logmfu.flops.shape import Experts, ModelShape

Attention = Literal["full", "half", "exact", "none"]
"""Keys counted per query: all, half of them (causal), the (s + 1) / 2 a causal mask leaves, or none."""
Recompute = Literal["none", "full", "early-stop", "selective"]
"""What is computed again in the backward pass: nothing, every block, every block but its last product
(as ``torch.utils.checkpoint`` without reentry does), or the attention core."""


def tflops(flops: float, iteration_time: float) -> float:
    """``FLOPS / iteration_time / 1e12``: TFLOP/s of work done in ``iteration_time`` seconds.

    Give the FLOPs of one device for TFLOP/s per device. Raises :class:`OptionError` on a time that cannot be.
    """
    if not iteration_time > 0:
        raise OptionError(
            f"{iteration_time} s per iteration cannot be", hint="a time above zero, in seconds"
        )
    return flops / iteration_time / 1e12


def keys(seq_len: float, attention: str, window: int | None = None) -> float:
    """Keys counted per query.

    A causal window W < s sees W - W(W-1)/(2s) keys on average, the exact mean of min(i, W) over i = 1..s.
    """
    if attention not in get_args(Attention):
        raise OptionError(f"attention {attention!r} is not known", hint=", ".join(get_args(Attention)))
    if attention == "none":
        return 0.0
    if window and window < seq_len:
        return window if attention == "full" else window - window * (window - 1) / (2 * seq_len)
    return {"full": seq_len, "half": seq_len / 2, "exact": (seq_len + 1) / 2}[attention]


def packed_length(tokens: float, squares: float) -> float:
    """The sequence length that gives packed documents their attention: sum of squared lengths / sum of lengths."""
    if not 0 < tokens <= squares:
        raise OptionError(
            f"documents of {tokens:g} tokens cannot have {squares:g} as the sum of their squared lengths",
            hint="packed_tokens and packed_squares of the same step",
        )
    return squares / tokens


def attention_weights(shape: ModelShape) -> float:
    """Weights of the projections of one attention layer.

    Grouped-query: h*d*(H + 2K) + H*d*h, and H*d*h more with an output gate.
    Latent (arXiv:2405.04434 section 2.1): h*q_r + q_r*H*(nope+rope) + h*(kv_r+rope) + kv_r*H*(nope+v) + H*v*h.
    """
    h, width = shape.hidden, shape.query_width
    mla = shape.latent
    if mla is None:
        return h * shape.head_dim * (shape.heads + 2 * shape.kv_heads) + width * h * (
            2 if shape.gate else 1
        )
    query = h * mla.q_rank + mla.q_rank * width if mla.q_rank else h * width
    key_value = h * (mla.kv_rank + mla.rope) + mla.kv_rank * shape.heads * (mla.nope + mla.v)
    return query + key_value + shape.heads * mla.v * h


def attention_core(shape: ModelShape, seq_len: float, attention: str) -> float:
    """Multiply-accumulates per token of the attention core (scores and values), all layers together."""
    inside = shape.windowed_layers
    full = shape.attention_layers - inside
    mean_keys = full * keys(seq_len, attention) + inside * keys(seq_len, attention, shape.window)
    return shape.core_width * mean_keys


def expert_weights(shape: ModelShape, router: bool) -> float:
    """Weights of one mixture-of-experts block that a token passes: topk experts, the shared ones, the router.

    Latent experts work in a smaller space, with a projection down and one up (NVIDIA/Megatron-LM, moe_latent_size, core 0.17).
    """
    moe = shape.experts
    if moe is None:
        return 0
    width = moe.latent or shape.hidden
    routed = moe.topk * shape.matrices * width * moe.ffn
    projections = 2 * shape.hidden * moe.latent if moe.latent else 0
    gating = shape.hidden * moe.count if router else 0
    return routed + projections + shape.matrices * shape.hidden * moe.shared_ffn + gating


def dense_weights(shape: ModelShape) -> float:
    """Weights of one dense feed-forward block: 3*h*f gated, 2*h*f not."""
    return shape.matrices * shape.hidden * shape.ffn


def mamba_macs(shape: ModelShape) -> float:
    """Multiply-accumulates per token of one Mamba-2 layer: h(2d + 2GN + H) + 3.5*d*N + d*h.

    Projections and scan as in NVIDIA/Megatron-LM training.py, 2025-03-17; the convolution is not counted there.
    """
    mixer = shape.mamba
    if mixer is None:
        return 0
    into = shape.hidden * (2 * mixer.inner + 2 * mixer.groups * mixer.state + mixer.heads)
    return into + 3.5 * mixer.inner * mixer.state + mixer.inner * shape.hidden


def delta_macs(shape: ModelShape) -> float:
    """Multiply-accumulates per token of one gated-delta layer: projections, convolution, four products of the state.

    NVIDIA/Megatron-LM training.py, 2026-01, with MaxText's dk*dv for the size of a state. Where heads are unequal
    Megatron itself counts dv*dv: :func:`logmfu.flops.formulas.megatron_012`.
    """
    net = shape.delta
    if net is None:
        return 0
    key, value = net.key_heads * net.key_dim, net.value_heads * net.value_dim
    projections = shape.hidden * (2 * key + 2 * value + 2 * net.value_heads) + shape.hidden * value
    return projections + net.conv * (2 * key + value) + 4 * net.value_heads * net.key_dim * net.value_dim


def layer_macs(shape: ModelShape, seq_len: float, attention: str, router: bool) -> float:
    """Multiply-accumulates per token of all layers, without output layer and prediction modules."""
    return (
        shape.attention_layers * attention_weights(shape)
        + attention_core(shape, seq_len, attention)
        + shape.dense_layers * dense_weights(shape)
        + shape.expert_layers * expert_weights(shape, router)
        + shape.mamba_layers * mamba_macs(shape)
        + shape.delta_layers * delta_macs(shape)
    )


def mtp_macs(shape: ModelShape, seq_len: float, attention: str, router: bool) -> float:
    """Multiply-accumulates per token of one prediction module without its logits: a block and 2*h*h (arXiv:2412.19437)."""
    feed_forward = expert_weights(shape, router) if shape.last_is_expert else dense_weights(shape)
    core = shape.core_width * keys(seq_len, attention)
    return attention_weights(shape) + core + feed_forward + 2 * shape.hidden**2


def logit_macs(shape: ModelShape) -> float:
    """Multiply-accumulates per token of the output layer: h*V."""
    return shape.hidden * shape.vocab


def flops_per_token(
    shape: ModelShape,
    seq_len: float,
    *,
    attention: str = "full",
    router: bool = True,
    mtp: int | None = None,
) -> float:
    """Model FLOPs of one trained token: ``6*W + 6*L*D*keys``, the definition behind MFU here.

    PaLM, arXiv:2204.02311 appendix B, made exact: W counts the matrix weights a token passes, not parameters.
    ``mtp`` is the number of prediction modules that train, by default the shape's.
    """
    modules = shape.mtp if mtp is None else mtp
    per_layer = layer_macs(shape, seq_len, attention, router)
    predicted = modules * (mtp_macs(shape, seq_len, attention, router) + logit_macs(shape))
    return 6 * (per_layer + logit_macs(shape) + predicted)


def recomputed_flops(
    shape: ModelShape, seq_len: float, *, recompute: str, attention: str = "full", router: bool = True
) -> float:
    """FLOPs per token computed a second time.

    full: a forward pass of the layers, not of the output layer (arXiv:2104.04473).
    early-stop: the same without the last product of every dense block (torch.utils.checkpoint, use_reentrant=False);
    a mixture-of-experts block has to compute all of its products again.
    selective: the attention core (arXiv:2205.05198).
    """
    if recompute not in get_args(Recompute):
        raise OptionError(f"recomputation {recompute!r} is not known", hint=", ".join(get_args(Recompute)))
    if recompute == "none":
        return 0.0
    if recompute == "selective":
        modules = shape.mtp * shape.core_width * keys(seq_len, attention)
        return 2 * (attention_core(shape, seq_len, attention) + modules)
    forward = layer_macs(shape, seq_len, attention, router) + shape.mtp * mtp_macs(
        shape, seq_len, attention, router
    )
    blocks = shape.dense_layers + (0 if shape.last_is_expert else shape.mtp)
    skipped = blocks * shape.hidden * shape.ffn if recompute == "early-stop" else 0
    return 2 * (forward - skipped)


def hardware_flops_per_token(
    shape: ModelShape,
    seq_len: float,
    *,
    recompute: str = "none",
    attention: str = "full",
    router: bool = True,
) -> float:
    """Hardware FLOPs of one trained token: model FLOPs plus what is recomputed. HFU is MFU times their ratio."""
    model = flops_per_token(shape, seq_len, attention=attention, router=router)
    return model + recomputed_flops(shape, seq_len, recompute=recompute, attention=attention, router=router)


def norm_parameters(shape: ModelShape) -> float:
    """Weights of the norms: two per layer and a last one; latent attention has one per rank."""
    ranks = (shape.latent.q_rank or 0) + shape.latent.kv_rank if shape.latent else 0
    return shape.hidden * (2 * shape.layers + 1) + shape.layers * ranks


def parameters(shape: ModelShape, *, active: bool = False) -> float:
    """Number of parameters: as given, else counted from the shape (without biases and prediction modules).

    ``active``: of the experts only those one token passes.
    """
    given = shape.params_active if active and shape.experts else shape.params
    if given:
        return given
    embeddings = shape.vocab * shape.hidden * (1 if shape.tied else 2) + shape.positions * shape.hidden
    idle = 0.0 if active or not shape.experts else _idle_expert_weights(shape, shape.experts)
    return layer_macs(shape, 0, "none", True) + idle + embeddings + norm_parameters(shape)


def _idle_expert_weights(shape: ModelShape, moe: Experts) -> float:
    """Weights of the routed experts one token does not pass."""
    one = shape.matrices * (moe.latent or shape.hidden) * moe.ffn
    return shape.expert_layers * (moe.count - moe.topk) * one
