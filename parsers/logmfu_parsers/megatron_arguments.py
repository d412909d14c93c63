"""Arguments of the Megatron family to facts under their canonical names.

A dump holds more than 700 arguments, and the same thing has had several names and meanings: what is
turned into a fact here is only what one name or a rule about several names settles. Names: Megatron-LM
v1.0 to core 0.19, microsoft and BigScience Megatron-DeepSpeed, epfLLM, bigcode, GPT-NeoX, Megatron-Bridge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Arguments = Mapping[str, Any]
Derived = Iterator[tuple[str, Any, str]]
"""Fact name, value, and the argument that shows it."""

SIZES: dict[str, tuple[str, ...]] = {
    "layers": ("num_layers",),
    "hidden": ("hidden_size",),
    "ffn": ("ffn_hidden_size", "intermediate_size"),
    "heads": ("num_attention_heads",),
    "vocab": ("padded_vocab_size",),
    "seq_len": ("seq_length",),
    "world_size": ("world_size",),
    "tensor_parallel": ("tensor_model_parallel_size", "model_parallel_size"),
    "pipeline_parallel": ("pipeline_model_parallel_size", "pipe_parallel_size"),
    "virtual_pipeline": ("virtual_pipeline_model_parallel_size",),
    "data_parallel": ("data_parallel_size",),
    "context_parallel": ("context_parallel_size",),
    "expert_parallel": ("expert_model_parallel_size", "moe_expert_parallel_size"),
    "micro_batch_size": ("micro_batch_size", "train_micro_batch_size_per_gpu"),
    "global_batch_size": ("global_batch_size", "train_batch_size"),
    "train_steps": ("train_iters",),
    "log_interval": ("log_interval",),
    "save_interval": ("save_interval", "checkpoint_factor"),
    "eval_interval": ("eval_interval",),
    "mtp_layers": ("mtp_num_layers",),
}
"""Whole numbers, by the first of these arguments that is one."""
EXPERT_SIZES: dict[str, tuple[str, ...]] = {
    "router_topk": ("moe_router_topk", "topk", "moe_top_k"),
    "moe_ffn": ("moe_ffn_hidden_size", "ffn_hidden_size"),
    "shared_ffn": ("moe_shared_expert_intermediate_size",),
    "moe_latent": ("moe_latent_size",),
}
LATENT_SIZES: dict[str, tuple[str, ...]] = {
    "q_lora_rank": ("q_lora_rank",),
    "kv_lora_rank": ("kv_lora_rank",),
    "qk_nope_dim": ("qk_head_dim",),
    "qk_rope_dim": ("qk_pos_emb_head_dim",),
    "v_head_dim": ("v_head_dim",),
}
MAMBA_SIZES: dict[str, tuple[str, ...]] = {
    "mamba_state": ("mamba_state_dim",),
    "mamba_head_dim": ("mamba_head_dim",),
    "mamba_groups": ("mamba_num_groups",),
    "mamba_heads": ("mamba_num_heads",),
}
DELTA_SIZES: dict[str, tuple[str, ...]] = {
    "delta_key_heads": ("linear_num_key_heads",),
    "delta_value_heads": ("linear_num_value_heads",),
    "delta_key_dim": ("linear_key_head_dim",),
    "delta_value_dim": ("linear_value_head_dim",),
    "delta_conv": ("linear_conv_kernel_dim",),
}
GATED = ("swiglu", "quick_geglu", "glu_activation", "gated_linear_unit")
"""Arguments that switch the third matrix of the feed-forward block on, by being true or by naming it."""
GATED_VALUES = {"activation": ("swiglu", "geglu", "reglu", "bilinear", "glu"), "mlp_type": ("llama",)}
"""The same in GPT-NeoX: values of an argument."""


def facts(args: Arguments) -> Derived:
    """Canonical facts of one dump. A fact the arguments do not settle is left out."""
    yield from _sizes(args, SIZES)
    yield from _attention(args)
    yield from _feed_forward(args)
    yield from _experts(args)
    yield from _special_layers(args)
    yield from _precision(args)
    yield from _recompute(args)
    yield from _batch(args)
    if isinstance(args.get("async_save"), bool):
        yield "async_save", args["async_save"], "async_save"
    if name := args.get("wandb_exp_name"):
        yield "run_name", str(name), "wandb_exp_name"


def _whole(args: Arguments, name: str) -> int | None:
    value = args.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _sizes(args: Arguments, names: Mapping[str, Iterable[str]]) -> Derived:
    for fact, arguments in names.items():
        found = next((name for name in arguments if _whole(args, name) is not None), None)
        if found is not None:
            yield fact, args[found], found


def _attention(args: Arguments) -> Derived:
    heads, hidden = _whole(args, "num_attention_heads"), _whole(args, "hidden_size")
    if heads is None:
        return
    yield "kv_heads", *_kv_heads(args, heads)
    if width := _whole(args, "kv_channels"):
        yield "head_dim", width, "kv_channels"
    elif hidden and hidden % heads == 0:
        yield "head_dim", hidden // heads, "num_attention_heads"
    if args.get("multi_latent_attention") is True:
        yield "mla", True, "multi_latent_attention"
        yield from _sizes(args, LATENT_SIZES)
    if isinstance(args.get("attention_output_gate"), bool):
        yield "attention_gate", args["attention_output_gate"], "attention_output_gate"
    yield from _window(args)


def _kv_heads(args: Arguments, heads: int) -> tuple[int, str]:
    """``num_query_groups`` prints 1 without grouped-query attention up to core 0.12: the switch decides."""
    if args.get("attention_head_type") == "multiquery":
        return 1, "attention_head_type"
    names = ["num_key_value_heads", "num_attention_heads_kv", "num_kv_heads"]
    if args.get("group_query_attention", "group_query_attention" not in args) is True:
        names.append("num_query_groups")
    found = next((name for name in names if _whole(args, name)), "num_attention_heads")
    return (_whole(args, found) or heads), found


def _window(args: Arguments) -> Derived:
    size = args.get("window_size")
    left = size[0] if isinstance(size, tuple | list) and size else size
    if isinstance(left, int) and left > 0:
        yield "window", left, "window_size"
        if isinstance(args.get("window_attn_skip_freq"), list):
            yield "window_every", args["window_attn_skip_freq"], "window_attn_skip_freq"
        yield from _sizes(args, {"window_every": ("window_attn_skip_freq",)})


def _feed_forward(args: Arguments) -> Derived:
    if (hidden := _whole(args, "hidden_size")) is None:
        return
    named = [name for name, gates in GATED_VALUES.items() if args.get(name) in gates]
    gated = next((name for name in GATED if args.get(name)), named[0] if named else None)
    yield "glu", gated is not None, gated or next((name for name in GATED if name in args), "hidden_size")
    if gated is None and not {"ffn_hidden_size", "intermediate_size", "kv_channels"} & args.keys():
        yield "ffn", 4 * hidden, "hidden_size"  # v1.0 has no argument for it
    if isinstance(args.get("untie_embeddings_and_output_weights"), bool):
        untied = args["untie_embeddings_and_output_weights"]
        yield "tied_embeddings", not untied, "untie_embeddings_and_output_weights"
    elif isinstance(args.get("share_embeddings_and_output_weights"), bool):
        shared = args["share_embeddings_and_output_weights"]
        yield "tied_embeddings", shared, "share_embeddings_and_output_weights"
    elif isinstance(args.get("no_weight_tying"), bool):
        yield "tied_embeddings", not args["no_weight_tying"], "no_weight_tying"


def _experts(args: Arguments) -> Derived:
    """Megatron-DeepSpeed prints a list, ``[1]`` for a dense model; Megatron prints ``None`` for dense."""
    name = "num_experts" if "num_experts" in args else "num_moe_experts"
    printed = args.get(name)
    counts = printed if isinstance(printed, list) else [printed]
    count = max((number for number in counts if isinstance(number, int)), default=0)
    if count < 2:
        return
    yield "experts", count, name
    yield from _sizes(args, EXPERT_SIZES)
    if "expert_interval" in args:
        yield from _sizes(args, {"moe_layers": ("expert_interval",)})
    elif isinstance(args.get("moe_layer_freq"), int | list):
        yield "moe_layers", args["moe_layer_freq"], "moe_layer_freq"


def _special_layers(args: Arguments) -> Derived:
    for name in ("hybrid_override_pattern", "hybrid_layer_pattern"):
        if args.get(name):
            yield "hybrid_pattern", args[name], name
            yield from _sizes(args, MAMBA_SIZES)
    if args.get("experimental_attention_variant") == "gated_delta_net":
        yield from _sizes(args, DELTA_SIZES)
        if (every := _delta_every(args)) is not None:
            yield "delta_every", every, "linear_attention_freq"


def _delta_every(args: Arguments) -> int | list[int] | None:
    """``linear_attention_freq`` is the period, or a list with 0 for each layer that attends fully: as it is if it has none."""
    spec = args.get("linear_attention_freq")
    if not isinstance(spec, list):
        return _whole(args, "linear_attention_freq")
    full = spec.count(0)
    every = len(spec) // full if full else len(spec) + 1
    return every if len(spec) // every == full else spec


def _precision(args: Arguments) -> Derived:
    """FP4 and FP8 are printed beside the bf16 or fp16 of the other layers, and win."""
    for fact, name in (("fp4", "fp4"), ("fp8", "fp8"), ("fp8", "fp8_hybrid"), ("fp8", "fp8_e4m3")):
        if args.get(name):
            yield "precision", fact, name
            return
    for name in ("bf16", "fp16"):
        switch = args.get(name)
        if switch is True or (isinstance(switch, dict) and switch.get("enabled", True)):
            yield "precision", name, name
            return
    for name in ("precision", "mixed_precision", "params_dtype"):
        text = str(args.get(name, "")).replace("bfloat", "bf").replace("float", "fp")
        if found := next((kind for kind in ("fp4", "fp8", "bf16", "fp16", "fp32") if kind in text), None):
            yield "precision", found, name
            return


def _recompute(args: Arguments) -> Derived:
    """``none``, ``full`` or ``selective`` (the attention core); anything between is not settled here."""
    if args.get("checkpoint_activations") is True:
        yield "recompute", "full", "checkpoint_activations"
    elif method := args.get("activations_checkpoint_method"):
        if method == "uniform":
            yield "recompute", "full", "activations_checkpoint_method"
        else:
            yield (
                "recompute_note",
                _partly(args, "activations_checkpoint_num_layers"),
                "activations_checkpoint_method",
            )
    elif args.get("recompute_granularity") == "full":
        if args.get("recompute_method") != "block" or _all_layers(args):
            yield "recompute", "full", "recompute_granularity"
        else:
            yield "recompute_note", _partly(args, "recompute_num_layers"), "recompute_granularity"
    elif args.get("recompute_granularity") == "selective":
        modules = args.get("recompute_modules")
        if modules in (None, [], ["core_attn"]):
            yield "recompute", "selective", "recompute_granularity"
        else:
            listed = ", ".join(map(str, modules)) if isinstance(modules, list) else modules
            yield (
                "recompute_note",
                f"recomputation of {listed} is not supported: no HFU",
                "recompute_modules",
            )
    elif shown := [name for name in ("recompute_granularity", "activations_checkpoint_method", "checkpoint_activations") if name in args]:  # fmt: skip
        yield "recompute", "none", shown[0]


def _partly(args: Arguments, name: str) -> str:
    """What to say of ``block`` recomputation, which covers the first layers of a stage."""
    layers = _whole(args, name)
    return f"recomputation of {layers or 'some'} layers per stage is not supported: no HFU"


def _all_layers(args: Arguments) -> bool:
    """Whether ``block`` recomputation covers every layer of a (virtual) pipeline stage."""
    layers, covered = _whole(args, "num_layers"), _whole(args, "recompute_num_layers")
    stages = (_whole(args, "pipeline_model_parallel_size") or 1) * (
        _whole(args, "virtual_pipeline_model_parallel_size") or 1
    )
    return bool(layers and covered and covered * stages >= layers)


def _batch(args: Arguments) -> Derived:
    batch = _whole(args, "global_batch_size")
    share = (_whole(args, "micro_batch_size") or 0) * (_whole(args, "data_parallel_size") or 0)
    if steps := _whole(args, "gradient_accumulation_steps"):
        yield "grad_accumulation", steps, "gradient_accumulation_steps"
    elif batch and share and batch % share == 0:
        yield "grad_accumulation", batch // share, "global_batch_size"
    samples = _whole(args, "train_samples")
    if samples and batch and not args.get("rampup_batch_size") and _whole(args, "train_iters") is None:
        yield "train_steps", samples // batch, "train_samples"
