"""A checkpoint's ``config.json`` in one spelling, and what in it no formula here counts.

Every family names its parts as it likes, and a part that is overlooked is a wrong number. So each key that may
change the shape is either used, known not to matter, refused (structure) or named in a note (sizes). The spellings are
those of the configuration files of huggingface/transformers and of the models that bring their own; the families are
proved by the published parameter counts in ``tests/test_checkpoints.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from logmfu.errors import OptionError
from logmfu.flops.facts import integer, number, truth

Raw = Mapping[str, Any]

NESTED = ("text_config", "llm_config", "language_config")
"""Where models of several modalities keep the language model."""
_FLATTENED = ("attn_config", "ffn_config")
_GATED = (
    "gemma", "llama", "mistral", "ministral", "mixtral", "qwen", "deepseek", "gpt_oss", "phi3", "phimoe", "olmo", "chatglm",
    "glm", "dbrx", "granite", "cohere", "internlm", "baichuan", "yi", "kimi", "smollm", "stablelm", "exaone", "seed_oss",
)  # fmt: skip
_PLAIN = (
    "gpt2", "gpt_neo", "gptj", "gpt_bigcode", "codegen", "opt", "bloom", "falcon", "refinedweb", "mpt", "starcoder2",
    "nemotron", "phi", "persimmon", "apertus", "bert", "roberta",
)  # fmt: skip
"""Families whose feed-forward block is gated, or is not, whatever their activation is called."""
_TIED = ("gemma", "falcon", "refinedweb", "bloom", "gpt2", "gpt_neo", "opt", "mpt", "cohere", "gpt_bigcode")
_STRUCTURE = re.compile(
    r"mamba|ssm|rwkv|lru|conv|recurrent|block_type|block_config|layers_block|layer_pattern|encoder|decoder_|cross_att|moe|"
    r"expert|sparse|^index_|linear_att|lightning|attn_type|attention_type|layer_types|altup|laurel|kv_shared|per_layer|"
    r"interleave|local_att|global_att|attention_layers|sliding_window_pattern|zero_expert|block_ff|use_cla"
)
"""Names of other building blocks: they are not counted silently."""
_SIZE = re.compile(
    r"heads?($|_)|groups?$|kv_|mlp|ffn|intermediate|inner|expansion|_ratio$|layers?$|_dims?$|_rank$|window|chunk|gate|share"
)
_HARMLESS = re.compile(
    r"dropout|pdrop|bias|coef|loss|jitter|eps(ilon)?$|init|rope|rotary|norm|token|cache|scal(e|ing)|dtype|softcap|"
    r"_implementation|_drop$|alibi|beam|_method$|_func$|_act(ivation)?$|_fn$|return_|output_(router|attentions|hidden)|"
    r"^_|ngram|penalty|quantization|position|parallel|pruned|summary|routed_scal|capacity|ep_size|type_vocab|"
    r"max_window_layers|use_sliding_window|n_group$|topk_group|interpolate|qk_layer|attn_uses|attn_impl|clip_qkv|"
    r"prefix_lm|multi_query_attention|num_nextn|full_attn_mod|chunk_size_feed_forward|finetun|num_labels|"
    r"no_rope_layers|order_of_|query_pre_attn|pretraining|slow_but|is_decoder$"
)
"""Names that look like the above and change no matrix product."""


def spelled_out(raw: Raw) -> dict[str, Any]:
    """The language model's configuration with its parts on one level, in the names most families use."""
    inner: Raw = next((raw[name] for name in NESTED if isinstance(raw.get(name), dict)), {})
    flat: dict[str, Any] = {**raw, **inner}
    for name in _FLATTENED:
        if isinstance(flat.get(name), dict):
            flat = {**flat.pop(name), **flat}
    kind = str(flat.get("model_type", "")).casefold()
    family = next((change for start, change in _FAMILIES.items() if kind.startswith(start)), None)
    if family:
        flat |= family(flat)
    return flat | _published_llama(flat)


def is_checkpoint(raw: Raw) -> bool:
    """Whether this is a model's configuration, and not the arguments of a training program."""
    return not {"tensor_model_parallel_size", "make_vocab_size_divisible_by", "train_batch_size"} & set(raw)


def gated(raw: Raw) -> bool | None:
    """Whether the feed-forward block has a third matrix; ``None`` when neither family nor activation say."""
    kind = str(raw.get("model_type", "")).casefold()
    if any(kind.startswith(name) for name in _GATED):
        return True
    if any(kind.startswith(name) for name in _PLAIN):
        return False
    act = str(raw.get("hidden_act", raw.get("activation_function", raw.get("hidden_activation", ""))))
    if any(word in act for word in ("silu", "swish", "glu")):
        return True
    return False if not kind and act else None


def tied(raw: Raw) -> bool | None:
    """Whether input and output embedding share weights by the family's default; ``None`` for other families."""
    kind = str(raw.get("model_type", "")).casefold()
    return True if kind.startswith(_TIED) and not kind.startswith("gpt_neox") else None


def refuse_unknown(raw: Raw, used: frozenset[str]) -> None:
    """Raise :class:`OptionError` for structure that no formula here counts."""
    kind = raw.get("model_type", "?")
    if truth(raw.get("is_encoder_decoder") or False):
        raise _refused(kind, ["is_encoder_decoder = True"])
    found = [name for name in _unused(raw, used) if _STRUCTURE.search(name)]
    whole = [kind] if _STRUCTURE.search(str(kind).replace("_moe", "").replace("moe", "")) else []
    if found or whole:
        raise _refused(kind, [f"{name} = {str(raw[name])[:60]}" for name in found])


def note(raw: Raw, used: frozenset[str]) -> str:
    """What a reader of the numbers has to know: keys that were not used, an unknown family, other modalities."""
    kind = str(raw.get("model_type", "")).casefold()
    known = any(kind.startswith(name) for name in (*_GATED, *_PLAIN, *_FAMILIES))
    said = [] if known or not kind else [f"model_type {kind} is not known: counted as a plain decoder"]
    towers = sorted(name for name in raw if re.fullmatch(r"(vision|audio|visual)_config", name))
    said += [f"{', '.join(towers)}: only the language model is counted"] if towers else []
    if raw.get("attention_chunk_size"):
        chunk = raw["attention_chunk_size"]
        said.append(f"above {chunk} tokens attention is counted too high: chunks of it are not counted")
    unused = [
        f"{name} = {str(raw[name])[:40]}"
        for name in _unused(raw, used)
        if _SIZE.search(name) and raw[name] != raw.get("hidden_size")
    ]
    said += [f"not used: {', '.join(unused)}"] if unused else []
    return "; ".join(said)


def _unused(raw: Raw, used: frozenset[str]) -> list[str]:
    return [
        name
        for name, value in raw.items()
        if name not in used and value not in (None, False, 0, "", [], {}) and not _HARMLESS.search(name)
        if not name.endswith("_config") or _STRUCTURE.search(name)
    ]


def _refused(kind: object, facts: list[str]) -> OptionError:
    return OptionError(
        f"a model of type {kind!r} has parts that are not understood, and is not counted without them",
        facts=[f"not understood: {', '.join(facts)}"] if facts else [],
        hint="give its shape by flags instead: --layers N --hidden N --heads N ..., and --set NAME=VALUE (`logmfu schema` lists them)",
    )


def _published_llama(raw: Raw) -> dict[str, Any]:
    """The feed-forward size of a ``params.json``: 8/3 of ``dim``, times a factor, up to a multiple (meta-llama/llama3)."""
    width, multiple = integer(raw, "dim"), integer(raw, "multiple_of")
    if not width or not multiple or "intermediate_size" in raw:
        return {}
    size = int((number(raw, "ffn_dim_multiplier") or 1.0) * int(8 * width / 3))
    return {
        "intermediate_size": -(-size // multiple) * multiple,
        "swiglu": True,
        "ffn_dim_multiplier": None,
    }


def _read(*names: str) -> Iterator[tuple[str, Any]]:
    """Keys that were used here under their family's own names, or that change nothing."""
    yield from ((name, None) for name in names)


def _dbrx(raw: Raw) -> Iterator[tuple[str, Any]]:
    yield "moe_intermediate_size", raw.get("ffn_hidden_size")
    yield "num_key_value_heads", raw.get("kv_n_heads")
    yield "num_experts", raw.get("moe_num_experts")
    yield "num_experts_per_tok", raw.get("moe_top_k")
    yield from _read("kv_n_heads", "moe_num_experts", "moe_top_k", "moe_normalize_expert_weights")


def _mpt(raw: Raw) -> Iterator[tuple[str, Any]]:
    width, ratio = integer(raw, "d_model"), integer(raw, "expansion_ratio")
    if raw.get("ffn_type", "mptmlp") != "mptmlp":
        raise _refused("mpt", [f"ffn_type = {raw['ffn_type']}"])
    if raw.get("attn_type") == "multiquery_attention":
        yield "num_key_value_heads", 1
    elif "kv_n_heads" in raw:
        yield "num_key_value_heads", raw["kv_n_heads"]
    if width and ratio:
        yield "ffn_hidden_size", width * ratio
    yield from _read("attn_type", "ffn_type", "expansion_ratio", "kv_n_heads")


def _llama4(raw: Raw) -> Iterator[tuple[str, Any]]:
    """Dense layers have ``intermediate_size_mlp``; an expert, and the one shared, ``intermediate_size``."""
    layers, step = integer(raw, "num_hidden_layers") or 0, integer(raw, "interleave_moe_layer_step") or 1
    listed = raw.get("moe_layers")
    experts = set(listed) if isinstance(listed, list) else set(range(step - 1, layers, step))
    yield "moe_layer_freq", [int(index in experts) for index in range(layers)]
    yield "moe_intermediate_size", raw.get("intermediate_size")
    yield "n_shared_experts", 1
    yield from _read("moe_layers", "interleave_moe_layer_step", "intermediate_size_mlp")
    yield "intermediate_size", raw.get("intermediate_size_mlp", raw.get("intermediate_size"))


def _chatglm(raw: Raw) -> Iterator[tuple[str, Any]]:
    groups = raw.get("multi_query_group_num") if truth(raw.get("multi_query_attention") or False) else None
    yield "num_key_value_heads", groups
    yield "swiglu", True


def _gemma2(raw: Raw) -> Iterator[tuple[str, Any]]:
    """Without ``layer_types`` every second layer has the window, from the first on."""
    if "layer_types" not in raw:
        yield "sliding_window_pattern", raw.get("sliding_window_pattern") or 2
    yield from _read("sliding_window_size")


def _gemma3(raw: Raw) -> Iterator[tuple[str, Any]]:
    if "layer_types" not in raw:
        yield "sliding_window_pattern", raw.get("sliding_window_pattern") or 6


def _falcon(raw: Raw) -> Iterator[tuple[str, Any]]:
    """``multi_query`` means nothing with the new decoder, and ``num_kv_heads`` nothing without it."""
    heads = raw.get("num_attention_heads", raw.get("n_head"))
    if truth(raw.get("new_decoder_architecture") or False) or "n_head_kv" in raw:
        yield "num_key_value_heads", raw.get("num_kv_heads") or raw.get("n_head_kv") or heads
    else:
        yield "num_key_value_heads", 1 if truth(raw.get("multi_query", True)) else heads
    yield from _read("multi_query", "num_kv_heads", "n_head_kv", "new_decoder_architecture")


def _nemotron_h(raw: Raw) -> Iterator[tuple[str, Any]]:
    yield "head_dim", raw.get("attention_head_dim") or raw.get("head_dim")
    yield "mamba_num_groups", raw.get("n_groups")
    yield "swiglu", str(raw.get("mlp_hidden_act", "relu2")) in {"silu", "swiglu"}
    yield from _read(
        "n_groups", "attention_head_dim", "conv_kernel", "expand", "chunk_size", "use_mamba_kernels"
    )
    yield from _read("mamba_hidden_act", "mamba_ssm_cache_dtype", "mamba_proj_bias")
    if not {"hybrid_override_pattern", "hybrid_layer_pattern"} & set(raw):
        raise _refused("nemotron_h", ["no layer pattern"])


def _qwen_first(raw: Raw) -> Iterator[tuple[str, Any]]:
    """The first Qwen states the size of both gated matrices together."""
    yield "intermediate_size", (integer(raw, "intermediate_size") or 0) // 2 or None


def _qwen_next(raw: Raw) -> Iterator[tuple[str, Any]]:
    yield "attn_output_gate", True


def _plain(raw: Raw) -> Iterator[tuple[str, Any]]:
    """A family under a start another family's name has too."""
    yield from ()


def _changed(change: Callable[[Raw], Iterator[tuple[str, Any]]]) -> Callable[[Raw], dict[str, Any]]:
    return lambda raw: dict(change(raw))


_FAMILIES: Mapping[str, Callable[[Raw], dict[str, Any]]] = {
    name: _changed(change)
    for name, change in {
        "dbrx": _dbrx,
        "mpt": _mpt,
        "llama4": _llama4,
        "chatglm": _chatglm,
        "gemma2": _gemma2,
        "gemma3n": _plain,
        "gemma3": _gemma3,
        "falcon_": _plain,
        "falcon": _falcon,
        "refinedweb": _falcon,
        "nemotron_h": _nemotron_h,
        "qwen3_next": _qwen_next,
        "qwen3_5": _qwen_next,
        "qwen2": _plain,
        "qwen3": _plain,
        "qwen": _qwen_first,
    }.items()
}
"""The first start of a ``model_type`` that fits wins."""
