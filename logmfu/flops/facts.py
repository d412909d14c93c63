"""Facts of a log, a file or a person, by their canonical names, to a model's shape."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from logmfu.errors import MissingFactError, OptionError
from logmfu.flops.shape import Experts, GatedDelta, LatentAttention, Mamba, ModelShape

Facts = Mapping[str, Any]

_MOST = 10**15
_MOST_LAYERS = 100_000
"""Logs are hostile: a size beyond these is no size."""
KINDS = "MG*-E"
"""Letters of a hybrid pattern: Mamba, gated delta, attention, feed-forward, mixture of experts."""

FLAGS: Mapping[str, str] = {
    "layers": "--layers", "hidden": "--hidden", "heads": "--heads", "kv_heads": "--kv-heads",
    "head_dim": "--head-dim", "ffn": "--ffn", "vocab": "--vocab", "seq_len": "--seq-len",
    "world_size": "--devices", "global_batch_size": "--global-batch", "iter_time": "--iter-time",
    "tokens_per_s_per_device": "--tokens-per-s-per-device", "peak_tflops": "--peak-tflops", "flops": "--flops",
    "accelerator": "--gpu", "precision": "--precision", "recompute": "--recompute",
}  # fmt: skip
"""The flag of a fact, where it has one; any other is given by ``--set name=value``."""


def flag(fact: str) -> str:
    """How a person gives a fact."""
    return FLAGS.get(fact, f"--set {fact}=…")


def integer(facts: Facts, name: str) -> int | None:
    """A fact as a whole number, ``None`` when it is absent. Raises :class:`OptionError`."""
    value = number(facts, name)
    if value is None:
        return None
    most = _MOST_LAYERS if name == "layers" else _MOST
    if value != int(value) or not 0 <= value <= most:
        raise OptionError(
            f"{name} is {facts[name]!r}, and must be a whole number from 0 to {most:,}", hint=flag(name)
        )
    return int(value)


def positive(facts: Facts, name: str) -> float | None:
    """A fact as a number above zero, ``None`` when it is absent. Raises :class:`OptionError`."""
    value = number(facts, name)
    if value is not None and not value > 0:
        raise OptionError(f"{name} is {facts[name]!r}, and must be above zero", hint=flag(name))
    return value


def number(facts: Facts, name: str) -> float | None:
    """A fact as a finite number, ``None`` when it is absent; ``[64]`` is 64. Raises :class:`OptionError`."""
    value = facts.get(name)
    if value is None:
        return None
    try:
        found = float(str(value).strip("[] ").replace(",", "").replace("_", ""))
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise OptionError(f"{name} is {value!r}, and must be a number", hint=flag(name))
    return found


def truth(value: Any) -> bool:
    """A yes or no as logs and people write it. Raises :class:`OptionError`."""
    text = str(value).strip().casefold()
    if text in {"true", "yes", "on", "1", "1.0"}:
        return True
    if text in {"false", "no", "off", "0", "0.0", "none", ""}:
        return False
    raise OptionError(f"{value!r} is neither yes nor no", hint="true or false")


def _given(value: Any) -> bool:
    return value is not None and str(value).strip().casefold() not in {"", "none", "null"}


def shape_of(facts: Facts) -> ModelShape:
    """The shape that facts describe; see :meth:`logmfu.flops.shape.ModelShape.from_facts`."""
    facts = {name: value for name, value in facts.items() if _given(value)}
    kinds = _hybrid_kinds(facts)
    facts = {**facts, "layers": len(kinds)} if kinds else facts
    latent = _latent(facts)
    assumed: list[str] = []
    _require(facts, ("layers", "hidden", "heads", "vocab"), latent)
    layers, hidden, heads = (_size(facts, name) for name in ("layers", "hidden", "heads"))
    pattern = "".join("1" if kind == "E" else "0" for kind in kinds) or _expert_pattern(facts, layers)
    experts = _experts(facts) if "1" in pattern else None
    delta = _delta(facts, layers, kinds)
    return ModelShape(
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=_kv_heads(facts, heads, latent, assumed),
        head_dim=latent.nope + latent.rope if latent else _head_dim(facts, hidden, heads, assumed),
        ffn=_ffn(facts, hidden, pattern, assumed),
        vocab=_size(facts, "vocab"),
        glu=_glu(facts, assumed),
        tied=truth(facts.get("tied_embeddings", False)),
        gate=truth(facts.get("attention_gate", False)),
        experts=experts,
        expert_layers=pattern.count("1"),
        last_is_expert=pattern.endswith("1"),
        latent=latent,
        mtp=integer(facts, "mtp_layers") or 0,
        window=integer(facts, "window") or None,
        unwindowed=_unwindowed(facts, layers, kinds.count("*") if kinds else layers, delta),
        delta=delta,
        mamba=_mamba(facts, hidden) if "M" in kinds else None,
        kinds=kinds,
        positions=integer(facts, "learned_positions") or 0,
        params=number(facts, "params"),
        params_active=number(facts, "params_active"),
        assumed=tuple(assumed),
    )


def _require(facts: Facts, names: Sequence[str], latent: LatentAttention | None = None) -> None:
    missing = [name for name in names if name not in facts]
    if missing:
        raise MissingFactError(
            "the shape of the model is not known",
            facts=[f"missing: {', '.join(missing)}"],
            hint=" ".join(f"{flag(name)} N" if name in FLAGS else flag(name) for name in missing)
            + ", or --model FILE_OR_PRESET",
        )


def _size(facts: Facts, name: str) -> int:
    value = integer(facts, name)
    if not value:
        raise OptionError(f"{name} is {facts.get(name)!r}, and must be above zero", hint=flag(name))
    return value


def _kv_heads(facts: Facts, heads: int, latent: LatentAttention | None, assumed: list[str]) -> int:
    kv_heads = integer(facts, "kv_heads")
    if kv_heads is None:
        if not latent:
            assumed.append(f"kv_heads = heads = {heads}")
        return heads
    if not kv_heads or heads % kv_heads:
        raise OptionError(
            f"{heads} heads cannot share {kv_heads} key/value heads evenly", hint=flag("kv_heads")
        )
    return kv_heads


def _head_dim(facts: Facts, hidden: int, heads: int, assumed: list[str]) -> int:
    if "head_dim" in facts:
        return _size(facts, "head_dim")
    if hidden % heads:
        raise OptionError(f"hidden {hidden} is not a multiple of heads {heads}", hint=flag("head_dim"))
    assumed.append(f"head_dim = hidden / heads = {hidden // heads}")
    return hidden // heads


def _ffn(facts: Facts, hidden: int, pattern: str, assumed: list[str]) -> int:
    if "ffn" in facts:
        return _size(facts, "ffn")
    if pattern and "0" not in pattern and "moe_ffn" in facts:
        return _size(facts, "moe_ffn")
    if truth(facts.get("glu", False)):
        _require(facts, ("ffn",))
    assumed.append(f"ffn = 4 x hidden = {4 * hidden}")
    return 4 * hidden


def _glu(facts: Facts, assumed: list[str]) -> bool:
    if "glu" not in facts:
        assumed.append("feed-forward block not gated (--glu if it is)")
    return truth(facts.get("glu", False))


def _expert_pattern(facts: Facts, layers: int) -> str:
    """``1`` for a mixture-of-experts layer; a period n means layers 0, n, 2n, ..."""
    if (integer(facts, "experts") or 0) < 2:
        return "0" * layers
    pattern = _pattern(facts, "moe_layers", layers)
    if pattern is None:
        period = max(integer(facts, "moe_layers") or 1, 1)
        return "".join("1" if index % period == 0 else "0" for index in range(layers))
    return pattern


def _pattern(facts: Facts, name: str, layers: int) -> str | None:
    """A list with 0 or 1 for each layer; ``None`` for a period, or when it is absent."""
    spec = facts.get(name, 1)
    flags = spec if isinstance(spec, list | tuple) else _listed(name, str(spec))
    if flags is None:
        return None
    pattern = "".join("1" if truth(item) else "0" for item in flags)
    if len(pattern) != layers:
        raise OptionError(
            f"{name} lists {len(pattern)} layers of {layers}",
            hint=f"--set {name}=0*3+1*{max(layers - 3, 1)}, or a period",
        )
    return pattern


def _listed(name: str, text: str) -> list[str] | None:
    """The flags of ``[0,1,1]``, ``0,1,1``, ``0*3+1*58`` or ``([0]*3+[1]*58)``; ``None`` for one number."""
    plain = text.translate(str.maketrans("", "", "[]() '\""))
    if plain == text.strip() and not set(plain) & set(",*+"):
        return None
    flags: list[str] = []
    for part in plain.replace("+", ",").split(","):
        value, _, times = part.partition("*")
        if value not in {"0", "1"} or not (times or "1").isdecimal() or int(times or "1") > _MOST_LAYERS:
            raise OptionError(f"{name} is {text!r}", hint=f"--set {name}=0*3+1*58, or a period")
        flags += [value] * int(times or "1")
    return flags


def _experts(facts: Facts) -> Experts:
    _require(facts, ("router_topk",))
    ffn = integer(facts, "moe_ffn") or integer(facts, "ffn")
    if not ffn:
        _require(facts, ("moe_ffn",))
    count, topk = integer(facts, "experts") or 0, _size(facts, "router_topk")
    if topk > count:
        raise OptionError(f"a token cannot pass {topk} of {count} experts", hint="--set router_topk=…")
    return Experts(
        count=count,
        topk=topk,
        ffn=ffn or 0,
        shared_ffn=integer(facts, "shared_ffn") or 0,
        latent=integer(facts, "moe_latent") or None,
    )


def _latent(facts: Facts) -> LatentAttention | None:
    if not truth(facts.get("mla", "kv_lora_rank" in facts)):
        return None
    _require(facts, ("kv_lora_rank", "qk_nope_dim", "qk_rope_dim", "v_head_dim"))
    return LatentAttention(
        q_rank=integer(facts, "q_lora_rank") or None,
        kv_rank=_size(facts, "kv_lora_rank"),
        nope=_size(facts, "qk_nope_dim"),
        rope=integer(facts, "qk_rope_dim") or 0,
        v=_size(facts, "v_head_dim"),
    )


def _unwindowed(facts: Facts, layers: int, attention_layers: int, delta: GatedDelta | None) -> int:
    """Attention layers that see every key: every n-th, or those with a 0 in a list."""
    rest = attention_layers - (delta.layers if delta and attention_layers == layers else 0)
    pattern = _pattern(facts, "window_every", layers) if "window_every" in facts else None
    if pattern is not None:
        return rest - pattern.count("1")
    every = integer(facts, "window_every")
    return rest // every if every else 0


def _delta_layers(facts: Facts, layers: int, kinds: str) -> int:
    """All but every n-th layer, those with a 1 in a list, or those with a letter of their own."""
    if "G" in kinds or "delta_every" not in facts:
        return kinds.count("G")
    pattern = _pattern(facts, "delta_every", layers)
    if pattern is not None:
        return pattern.count("1")
    every = integer(facts, "delta_every")
    return layers - layers // every if every else 0


def _delta(facts: Facts, layers: int, kinds: str) -> GatedDelta | None:
    count = _delta_layers(facts, layers, kinds)
    if not count:
        return None
    names = ("delta_key_heads", "delta_value_heads", "delta_key_dim", "delta_value_dim")
    _require(facts, names)
    key_heads, value_heads, key_dim, value_dim = (_size(facts, name) for name in names)
    conv = integer(facts, "delta_conv") or 4
    return GatedDelta(count, key_heads, value_heads, key_dim, value_dim, conv)


def _hybrid_kinds(facts: Facts) -> str:
    """The layer letters of a hybrid pattern, without separators and without its prediction modules."""
    pattern = str(facts.get("hybrid_pattern", "")).split("/")[0]
    kinds = "".join(letter for letter in pattern if letter in KINDS)
    unknown = set(pattern) - {*KINDS, "|", " "}
    if unknown:
        raise OptionError(
            f"hybrid_pattern has layers of an unknown kind: {' '.join(sorted(unknown))}",
            hint=" ".join(KINDS),
        )
    return kinds


def _mamba(facts: Facts, hidden: int) -> Mamba:
    """Sizes of the mixer; without heads and head size it is twice as wide as the model."""
    state, groups = integer(facts, "mamba_state") or 128, integer(facts, "mamba_groups") or 8
    size = integer(facts, "mamba_head_dim") or 64
    heads = integer(facts, "mamba_heads") or 2 * hidden // size
    return Mamba(state=state, groups=groups, heads=heads, inner=heads * size)
