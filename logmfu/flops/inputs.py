"""What may be asked for by hand: names, and which inputs go together."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from logmfu.errors import OptionError
from logmfu.flops.facts import flag, integer, number, positive
from logmfu.schema import FACTS

Facts = Mapping[str, Any]

SPELLINGS: Mapping[str, str] = {
    "global_batch": "global_batch_size", "devices": "world_size", "gpus": "world_size", "gpu": "accelerator",
    "device": "accelerator", "seq": "seq_len", "iter_time_s": "iter_time", "n_params": "params",
    "tokens_per_s_per_gpu": "tokens_per_s_per_device",
}  # fmt: skip
"""Names of flags and columns to names of facts."""
OWN = (
    "iter_time", "tokens_per_s_per_device", "flops", "peak_tflops", "convention", "attention", "router", "model",
    "profiled_forward_flops",
)  # fmt: skip
"""Inputs that are no facts of a run."""
_AGREE = 0.01
"""Two speeds within this are the same, rounded differently."""
_EITHER = ("iter_time", "world_size", "accelerator", "precision", "peak_tflops")
_WITH: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("router_topk", "moe_ffn", "shared_ffn", "moe_layers", "moe_latent"), ("experts",)),
    **dict.fromkeys(("q_lora_rank", "qk_nope_dim", "qk_rope_dim", "v_head_dim"), ("kv_lora_rank",)),
    **dict.fromkeys(("mamba_state", "mamba_head_dim", "mamba_groups", "mamba_heads"), ("hybrid_pattern",)),
    **dict.fromkeys(
        ("delta_key_heads", "delta_value_heads", "delta_key_dim", "delta_value_dim", "delta_conv"),
        ("delta_every", "hybrid_pattern"),
    ),
    "window_every": ("window",),
    "packed_tokens": ("packed_squares",),
    "packed_squares": ("packed_tokens",),
}
"""Facts that mean nothing without one of others."""


def canonical(facts: Facts) -> dict[str, Any]:
    """Inputs under their names as facts; what is not given is left out."""
    named = {name.strip().replace("-", "_"): value for name, value in facts.items() if value is not None}
    return {SPELLINGS.get(name, name): value for name, value in named.items()}


def known(names: Iterable[str]) -> None:
    """Raise :class:`OptionError` for a name that is no fact and no input, with those that are near."""
    every = {*FACTS, *OWN, *SPELLINGS}
    for name in names:
        if name not in every:
            near = difflib.get_close_matches(name, sorted(every), n=3, cutoff=0.5)
            near += [other for other in FACTS if name in other and other not in near][:3]
            raise OptionError(
                f"there is no fact {name!r}",
                facts=[f"near: {', '.join(near)}"] if near else [],
                hint="`logmfu schema` lists the facts",
            )


def together(given: Facts, merged: Facts) -> None:
    """Raise for inputs a person gave that contradict each other, or say nothing without another.

    ``given`` is what the person gave, ``merged`` the same with the model's own facts.
    """
    if _off(merged, "experts") and not _off(given, "router_topk"):
        raise OptionError(
            f"router_topk is {given['router_topk']!r}, and the model has no experts", hint=flag("experts")
        )
    for name, others in _WITH.items():
        if name in given and all(other not in merged for other in others):
            raise OptionError(
                f"{name} says nothing without {' or '.join(others)}",
                hint=" or ".join(flag(other) for other in others),
            )


def _off(facts: Facts, name: str) -> bool:
    return (number(facts, name) or 0) < 1


def measured_alone(given: Facts, merged: Facts) -> None:
    """Raise for inputs that FLOPs given as a number, or counted by a profiler, have no use for."""
    profiled = "profiled_forward_flops" in merged and "flops" not in given
    used = {
        *_EITHER,
        *(("model", "grad_accumulation", "profiled_forward_flops") if profiled else ("flops",)),
    }
    unused = sorted(name for name in given if name not in used and (name in FACTS or name in OWN))
    if unused:
        what = "a profiler's FLOPs" if profiled else "--flops"
        raise OptionError(
            f"{what} and {', '.join(unused)} do not go together: the FLOPs are given, and nothing is counted",
            hint=f"leave out {', '.join(unused)}" + ("" if profiled else ", or --flops"),
        )


def speed(by_time: float | None, given: float | None) -> float | None:
    """Tokens per second and device from a time per step, or as given; both only when they say the same."""
    if by_time and given and abs(given / by_time - 1) > _AGREE:
        raise OptionError(
            f"the time per step makes {by_time:.6g} tokens per second and device, but {given:.6g} is given",
            hint="either --iter-time or --tokens-per-s-per-device",
        )
    return by_time or given


def devices(facts: Facts) -> int | None:
    """The number of devices, ``None`` when it is not given. Raises :class:`OptionError`."""
    positive(facts, "world_size")
    return integer(facts, "world_size")
