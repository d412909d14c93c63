"""Shapes of well-known public models, as facts under their canonical names, each with its source.

Prediction modules are left out: they count when a run trains them (``--set mtp_layers=1``).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from logmfu.errors import OptionError


@dataclass(frozen=True, slots=True)
class Preset:
    """A named shape."""

    name: str
    source: str
    facts: Mapping[str, Any]


def _gpt(layers: int, hidden: int, heads: int, vocab: int, **more: Any) -> dict[str, Any]:
    """Multi-head attention, ungated f = 4h, tied embeddings."""
    sizes = {
        "layers": layers,
        "hidden": hidden,
        "heads": heads,
        "kv_heads": heads,
        "head_dim": hidden // heads,
    }
    return {**sizes, "ffn": 4 * hidden, "vocab": vocab, "glu": False, "tied_embeddings": True, **more}


def _llama(
    layers: int, hidden: int, heads: int, kv_heads: int, ffn: int, vocab: int, **more: Any
) -> dict[str, Any]:
    """Grouped-query attention, gated feed-forward, untied embeddings."""
    sizes = {
        "layers": layers,
        "hidden": hidden,
        "heads": heads,
        "kv_heads": kv_heads,
        "ffn": ffn,
        "vocab": vocab,
    }
    return {"head_dim": hidden // heads, "glu": True, "tied_embeddings": False, **sizes, **more}


def _deepseek(heads: int, vocab: int, experts: int, dense: int) -> dict[str, Any]:
    """Latent attention; ``dense`` first layers without experts, then topk 8 of size 2048 and a shared one."""
    latent = {"mla": True, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_dim": 128, "qk_rope_dim": 64}
    moe = {"experts": experts, "router_topk": 8, "moe_ffn": 2048, "shared_ffn": 2048}
    body = {"layers": 61, "hidden": 7168, "heads": heads, "ffn": 18432, "vocab": vocab, "v_head_dim": 128}
    pattern = [0] * dense + [1] * (61 - dense)
    return {**body, **latent, **moe, "moe_layers": pattern, "glu": True, "tied_embeddings": False}


_TABLE = (
    Preset("gpt2-124m", "karpathy/nanoGPT, vocabulary padded to 50304", _gpt(12, 768, 12, 50304, learned_positions=1024)),
    Preset("gpt3-175b", "arXiv:2104.04473 Table 1, vocabulary padded to 51200", _gpt(96, 12288, 96, 51200, learned_positions=2048)),
    Preset("mt-nlg-530b", "arXiv:2201.11990 section 2", _gpt(105, 20480, 128, 51200, learned_positions=2048)),
    Preset("bloom-176b", "bigscience tr11-176B-ml, vocabulary padded to 250880", _gpt(70, 14336, 112, 250880)),
    Preset("palm-540b", "arXiv:2204.02311 section 2", _llama(118, 18432, 48, 1, 73728, 256000, head_dim=256, tied_embeddings=True)),
    Preset("llama2-7b", "meta-llama/Llama-2-7b config.json", _llama(32, 4096, 32, 32, 11008, 32000)),
    Preset("llama2-70b", "meta-llama/Llama-2-70b config.json", _llama(80, 8192, 64, 8, 28672, 32000)),
    Preset("llama3-8b", "meta-llama/Meta-Llama-3-8B config.json", _llama(32, 4096, 32, 8, 14336, 128256)),
    Preset("llama3-70b", "meta-llama/Meta-Llama-3-70B config.json", _llama(80, 8192, 64, 8, 28672, 128256)),
    Preset("llama3-405b", "meta-llama/Llama-3.1-405B config.json", _llama(126, 16384, 128, 8, 53248, 128256)),
    Preset(
        "mixtral-8x7b",
        "mistralai/Mixtral-8x7B-v0.1 config.json",
        _llama(32, 4096, 32, 8, 14336, 32000, experts=8, router_topk=2, moe_ffn=14336),
    ),
    Preset(
        "qwen3-30b-a3b",
        "Qwen/Qwen3-30B-A3B config.json; its dense size of 6144 is one no layer has",
        _llama(48, 2048, 32, 4, 768, 151936, head_dim=128, experts=128, router_topk=8, moe_ffn=768),
    ),
    Preset(
        "qwen3-235b-a22b",
        "Qwen/Qwen3-235B-A22B config.json; its dense size of 12288 is one no layer has",
        _llama(94, 4096, 64, 4, 1536, 151936, head_dim=128, experts=128, router_topk=8, moe_ffn=1536),
    ),
    Preset(
        "gpt-oss-120b",
        "openai/gpt-oss-120b config.json: every second layer within a window of 128",
        _llama(36, 2880, 64, 8, 2880, 201088, head_dim=64, experts=128, router_topk=4, moe_ffn=2880, window=128, window_every=2),
    ),
    Preset("deepseek-v3", "arXiv:2412.19437 section 4.2", _deepseek(128, 129280, 256, 3)),
    Preset("kimi-k2", "moonshotai/Kimi-K2 config.json", _deepseek(64, 163840, 384, 1)),
)  # fmt: skip

PRESETS: Mapping[str, Preset] = {preset.name: preset for preset in _TABLE}
"""Presets by name."""


def preset(name: str) -> Preset | None:
    """The preset of a name, spelled with or without ``-``, ``_``, ``.`` and ``v``; ``None`` when there is none."""
    return next((preset for preset in _TABLE if _squeeze(preset.name) == _squeeze(name)), None)


def unknown(name: str) -> OptionError:
    """The error for a name that is neither a file nor a preset."""
    near = difflib.get_close_matches(name.casefold(), PRESETS, n=3, cutoff=0.4)
    return OptionError(
        f"model {name!r} is neither a file nor a preset",
        facts=[f"near: {', '.join(near)}"] if near else [],
        hint=f"a file, or one of {', '.join(PRESETS)}",
    )


def _squeeze(name: str) -> str:
    plain = name.casefold().rsplit("/", 1)[-1].replace("3.1", "3")
    return re.sub(r"[^0-9a-z]|v(?=\d)", "", plain)
