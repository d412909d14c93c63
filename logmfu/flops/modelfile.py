"""A model's description in a file: to facts under their canonical names.

Read are a ``config.json`` of a checkpoint, a JSON or flat YAML of arguments, a launch script or argument file with
``--num-layers 32``, an argument dump with ``num_layers ..... 32``, and the block of a FLOPs profiler.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from logmfu import values
from logmfu.errors import FormatError, OptionError, SourceError
from logmfu.flops import checkpoint
from logmfu.flops.facts import integer, truth

_LIMIT_BYTES = 32_000_000
_PAIR = re.compile(
    r"""(?<![\w.-]) --(?P<flag>[A-Za-z][\w-]*) (?:[ \t=]+ (?P<word>"[^"\n]*"|'[^'\n]*'|[^\s\\"'-][^\s\\]*))?
    | (?<!\S) (?P<dotted>[A-Za-z]\w*) [ ]\.{3,} [ \t]* (?P<dump>[^\n]*?) (?:\.{3,}(?:updated|default))? [ \t]*$
    | ^[ \t"']* (?P<name>[A-Za-z][\w-]*) ["']? [ \t]*[:=][ \t]* (?P<value>[^\n#]*)""",
    re.MULTILINE | re.VERBOSE,
)
_PROFILED = re.compile(
    r"^\s*(?P<name>[a-z][A-Za-z ]+?)(?: *= [^:\n]*)?: +(?P<value>\S[^\n]*)$", re.MULTILINE
)
_NAMES: Mapping[str, str] = {
    "layers": "num_hidden_layers num_layers n_layer n_layers",
    "hidden": "hidden_size n_embd n_embed d_model dim",
    "heads": "num_attention_heads n_head n_heads num_heads",
    "kv_heads": "num_key_value_heads num_kv_heads n_kv_heads num_query_groups",
    "head_dim": "head_dim kv_channels d_head",
    "ffn": "ffn_hidden_size intermediate_size n_inner ffn_dim",
    "vocab": "padded_vocab_size vocab_size",
    "seq_len": "seq_length seq_len",
    "global_batch_size": "global_batch_size train_batch_size",
    "world_size": "world_size",
    "glu": "swiglu gated_linear_unit",
    "tied_embeddings": "tie_word_embeddings",
    "experts": "num_experts n_routed_experts num_local_experts",
    "router_topk": "moe_router_topk num_experts_per_tok experts_per_token",
    "moe_ffn": "moe_ffn_hidden_size moe_intermediate_size",
    "shared_ffn": "moe_shared_expert_intermediate_size shared_expert_intermediate_size shared_intermediate_size",
    "moe_layers": "moe_layer_freq",
    "moe_latent": "moe_latent_size",
    "mtp_layers": "mtp_num_layers",
    "mla": "multi_latent_attention",
    "q_lora_rank": "q_lora_rank",
    "kv_lora_rank": "kv_lora_rank",
    "qk_nope_dim": "qk_head_dim qk_nope_head_dim",
    "qk_rope_dim": "qk_pos_emb_head_dim qk_rope_head_dim",
    "v_head_dim": "v_head_dim",
    "attention_gate": "attention_output_gate attn_output_gate",
    "window": "sliding_window",
    "window_every": "sliding_window_pattern",
    "delta_every": "linear_attention_freq full_attention_interval",
    "delta_key_heads": "linear_num_key_heads",
    "delta_value_heads": "linear_num_value_heads",
    "delta_key_dim": "linear_key_head_dim",
    "delta_value_dim": "linear_value_head_dim",
    "delta_conv": "linear_conv_kernel_dim",
    "hybrid_pattern": "hybrid_layer_pattern hybrid_override_pattern",
    "mamba_state": "mamba_state_dim ssm_state_size",
    "mamba_head_dim": "mamba_head_dim",
    "mamba_groups": "mamba_num_groups",
    "mamba_heads": "mamba_num_heads",
    "recompute": "recompute_granularity",
    "learned_positions": "n_positions",
}
"""Canonical fact: the names files give it, the best first."""
_LATENT_ONLY = {"q_lora_rank", "kv_lora_rank", "qk_nope_dim", "qk_rope_dim", "v_head_dim"}
_DELTA_ONLY = {name for name in _NAMES if name.startswith("delta_")}
_EXPERTS_ONLY = {"router_topk", "moe_ffn", "shared_ffn", "moe_layers", "moe_latent"}
_DERIVED = (
    "n_shared_experts num_shared_experts first_k_dense_replace decoder_sparse_step mlp_only_layers layer_types "
    "use_sliding_window max_window_layers multi_query attention_chunk_size model_type"
)
_LAYER_TYPES = {"full_attention", "sliding_attention", "linear_attention", "chunked_attention"}
_USED = frozenset(" ".join((*_NAMES.values(), _DERIVED)).split())


def read(path: Path) -> dict[str, Any]:
    """Facts of a model file. Raises :class:`SourceError` and :class:`FormatError`."""
    facts = facts_of(_text(path))
    if not facts:
        raise FormatError(
            f"{path} does not describe a model",
            hint="a config.json, an argument file or dump, or a profiler's block",
        )
    return facts


def facts_of(text: str) -> dict[str, Any]:
    """Facts of the text of a model file; empty when it states none."""
    if "fwd flops per GPU" in text:
        return profiled(text)
    raw = _json(text)
    return canonical(_pairs(text) if raw is None else raw)


def canonical(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Facts from the names a file uses."""
    described = checkpoint.is_checkpoint(raw)
    raw = checkpoint.spelled_out(raw) if described else raw
    given = {name: value for name, value in raw.items() if value is not None and value != "None"}
    facts = _first(given)
    if not {"layers", "hidden", "hybrid_pattern"} & set(facts):
        return {}
    facts |= _derived(given, facts)
    if (integer(facts, "experts") or 0) < 2:
        facts = {name: value for name, value in facts.items() if name not in _EXPERTS_ONLY}
    return _checkpoint(given, facts) if described else facts


def _checkpoint(given: Mapping[str, Any], facts: dict[str, Any]) -> dict[str, Any]:
    """The facts of a checkpoint's configuration, which is no run's: what it can do at most is left out."""
    named = bool({"model_type", "architectures"} & set(given))
    if named:
        checkpoint.refuse_unknown(given, _USED)
        facts.pop("seq_len", None)
    pattern = facts.get("moe_layers", [1] if "experts" in facts else [0])
    if "moe_ffn" in facts and pattern != 0 and isinstance(pattern, list) and all(pattern):
        facts["ffn"] = facts["moe_ffn"]  # a dense size no layer has
    note = checkpoint.note(given, _USED) if named else ""
    return {**facts, "model_note": note} if note else facts


def profiled(text: str) -> dict[str, Any]:
    """Forward FLOPs of one device and micro batch, parameters and world size of a profiler's block."""
    wanted = {
        "fwd flops per GPU": "profiled_forward_flops",
        "params per GPU": "profiled_params",
        "world size": "world_size",
    }
    found: dict[str, Any] = {}
    for match in _PROFILED.finditer(text):
        fact = wanted.get(match["name"])
        if fact:
            found.setdefault(fact, values.si_number(match["value"]))
    return found


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_LIMIT_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path} cannot be read: {error}") from error


def _json(text: str) -> dict[str, Any] | None:
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return raw if isinstance(raw, dict) else None


def _pairs(text: str) -> dict[str, Any]:
    """``--name value``, ``name ..... value`` and ``name: value`` of a text, the last of each; a bare flag is true."""
    found: dict[str, Any] = {}
    for match in _PAIR.finditer(text):
        name = (match["flag"] or match["dotted"] or match["name"]).replace("-", "_")
        value = match["word"] if match["flag"] else match["dump"] if match["dotted"] else match["value"]
        found[name] = True if value is None else values.literal(value.strip().rstrip(",").strip("\"'"))
    return found


def _first(given: Mapping[str, Any]) -> dict[str, Any]:
    """For each fact with several names, the best one that is given."""
    best: dict[str, Any] = {}
    for fact, names in _NAMES.items():
        value = next((given[name] for name in names.split() if name in given), None)
        if value is not None:
            best[fact] = value
    return best


def _derived(given: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts that follow from others: gating, shared experts, layer patterns, padding, what is switched off."""
    derived: dict[str, Any] = {}
    gated = checkpoint.gated(given)
    if "glu" not in facts and gated is not None:
        derived["glu"] = gated
    if "tied_embeddings" not in facts and checkpoint.tied(given):
        derived["tied_embeddings"] = True
    if "untie_embeddings_and_output_weights" in given:
        derived["tied_embeddings"] = not truth(given["untie_embeddings_and_output_weights"])
    if "group_query_attention" in given and not truth(given["group_query_attention"]):
        derived["kv_heads"] = facts.get("heads")
    if truth(given.get("multi_query", False)):
        derived["kv_heads"] = 1
    if truth(given.get("checkpoint_activations", False)):
        derived["recompute"] = "full"
    if not truth(given.get("use_sliding_window", True)):
        derived["window"] = None
    elif "use_sliding_window" in given and "max_window_layers" in given:
        layers, full = integer(facts, "layers") or 0, integer(given, "max_window_layers") or 0
        derived["window_every"] = [int(index >= full) for index in range(layers)]
    if "mla" in facts and not truth(facts["mla"]):
        derived |= dict.fromkeys(_LATENT_ONLY)
    if "kv_lora_rank" in facts and "mla" not in facts:
        derived |= {"mla": True, "kv_heads": None, "head_dim": None}
    if "linear_attention_freq" in given and given.get("experimental_attention_variant") is None:
        derived |= dict.fromkeys(_DELTA_ONLY)
    return {**derived, **_expert_facts(given, facts), **_layer_types(given), **_padded(given)}


def _expert_facts(given: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    derived: dict[str, Any] = {}
    shared = integer(given, "n_shared_experts") or integer(given, "num_shared_experts")
    if shared and "moe_ffn" in facts and "shared_ffn" not in facts:
        derived["shared_ffn"] = shared * (integer(facts, "moe_ffn") or 0)
    layers = integer(facts, "layers") or 0
    if layers > 100_000:
        return derived
    dense, step = integer(given, "first_k_dense_replace"), integer(given, "decoder_sparse_step") or 1
    if dense is not None:
        freq = given.get("moe_layer_freq", 1)
        every = freq if isinstance(freq, int) and freq > 0 else 1
        derived["moe_layers"] = [int(index >= dense and index % every == 0) for index in range(layers)]
    only = given.get("mlp_only_layers")
    without = set(only) if isinstance(only, list) else set()
    if step > 1 or without:
        derived["moe_layers"] = [
            int((index + 1) % step == 0 and index not in without) for index in range(layers)
        ]
    return derived


def _layer_types(given: Mapping[str, Any]) -> dict[str, Any]:
    """Which layers have a window, and which gated-delta attention, from a list of layer types."""
    types = given.get("layer_types")
    if not isinstance(types, list) or not types:
        return {}
    if unknown := {str(kind) for kind in types} - _LAYER_TYPES:
        raise OptionError(
            f"layer_types has layers that are not counted: {', '.join(sorted(unknown))}",
            hint="give the shape by flags and --set hybrid_pattern=... instead",
        )
    windowed = [int(kind == "sliding_attention") for kind in types]
    linear = [int(kind == "linear_attention") for kind in types]
    found: dict[str, Any] = {"window_every": windowed} if any(windowed) else {"window": None}
    return {**found, "delta_every": linear if any(linear) else None}


def _padded(given: Mapping[str, Any]) -> dict[str, Any]:
    """The vocabulary padded as the program will, when only the plain size is given."""
    if "padded_vocab_size" in given or not {"vocab_size", "make_vocab_size_divisible_by"} <= set(given):
        return {}
    multiple = (integer(given, "make_vocab_size_divisible_by") or 1) * (
        integer(given, "tensor_model_parallel_size") or 1
    )
    return {"vocab": -(-(integer(given, "vocab_size") or 0) // multiple) * multiple}
