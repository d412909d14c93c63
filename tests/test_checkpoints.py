"""Configurations of published checkpoints: each family's own names, and what is refused instead of miscounted."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from logmfu.errors import OptionError
from logmfu.flops import CONVENTIONS, ModelShape, flops_per_token, parameters
from logmfu.flops.evaluate import evaluate
from logmfu.flops.modelfile import facts_of
from logmfu.flops.presets import PRESETS

BASE = {"hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4, "vocab_size": 100}


def facts(**raw: Any) -> dict[str, Any]:
    """Facts of a configuration."""
    return facts_of(json.dumps(raw))


def shape(**raw: Any) -> ModelShape:
    """The shape of a configuration."""
    return ModelShape.from_facts(facts(**raw))


DBRX = {
    "model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 40, "vocab_size": 100352, "tie_word_embeddings": False,
    "attn_config": {"clip_qkv": 8, "kv_n_heads": 8, "model_type": ""},
    "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4, "moe_loss_weight": 0.05},
}  # fmt: skip
LLAMA_4 = {
    "model_type": "llama4_text", "attention_chunk_size": 8192, "head_dim": 128, "hidden_act": "silu", "hidden_size": 5120,
    "interleave_moe_layer_step": 2, "intermediate_size": 8192, "intermediate_size_mlp": 16384, "num_attention_heads": 40,
    "num_experts_per_tok": 1, "num_hidden_layers": 48, "num_key_value_heads": 8, "num_local_experts": 128,
    "vocab_size": 202048, "tie_word_embeddings": False,
}  # fmt: skip
CHATGLM = {
    "model_type": "chatglm", "ffn_hidden_size": 13696, "hidden_size": 4096, "kv_channels": 128, "multi_query_attention": True,
    "multi_query_group_num": 2, "num_attention_heads": 32, "num_layers": 28, "padded_vocab_size": 65024, "seq_length": 8192,
}  # fmt: skip
FALCON = {
    "model_type": "falcon", "hidden_size": 8192, "multi_query": True, "new_decoder_architecture": True,
    "num_attention_heads": 128, "num_hidden_layers": 60, "num_kv_heads": 8, "vocab_size": 65024,
}  # fmt: skip
NEMOTRON = {
    "model_type": "nemotron_h", "attention_head_dim": 128, "chunk_size": 128, "conv_kernel": 4, "expand": 2,
    "hidden_size": 4096, "hybrid_override_pattern": "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-",
    "intermediate_size": 21504, "mamba_head_dim": 64, "mamba_hidden_act": "silu", "mamba_num_heads": 128,
    "mlp_hidden_act": "relu2", "n_groups": 8, "num_attention_heads": 32, "num_hidden_layers": 52,
    "num_key_value_heads": 8, "ssm_state_size": 128, "use_conv_bias": True, "use_mamba_kernels": True, "vocab_size": 131072,
}  # fmt: skip
QWEN_NEXT = {
    "model_type": "qwen3_next", "decoder_sparse_step": 1, "full_attention_interval": 4, "head_dim": 256, "hidden_act": "silu",
    "hidden_size": 2048, "intermediate_size": 5120, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
    "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_value_head_dim": 128, "mlp_only_layers": [],
    "moe_intermediate_size": 512, "num_attention_heads": 16, "num_experts": 512, "num_experts_per_tok": 10,
    "num_hidden_layers": 48, "num_key_value_heads": 2, "shared_expert_intermediate_size": 512, "vocab_size": 151936,
}  # fmt: skip


@pytest.mark.parametrize(
    ("raw", "billions", "active"),
    [
        (DBRX, 131.6, 36.5),
        (LLAMA_4, 400.7, 17.2),
        (CHATGLM, 6.243, 6.243),
        (FALCON, 41.3, 41.3),
        (NEMOTRON, 8.19, 8.19),
        (QWEN_NEXT, 79.7, 3.95),
    ],
    ids=lambda raw: raw["model_type"] if isinstance(raw, dict) else "",
)
def test_families_have_the_parameters_they_are_named_after(
    raw: dict[str, Any], billions: float, active: float
) -> None:
    """DBRX 132B-A36B, Llama 4 Maverick 400B-A17B, ChatGLM3 6.2B, Falcon 40B, Nemotron-H 8B, Qwen3-Next 80B-A3B."""
    assert parameters(shape(**raw)) == pytest.approx(billions * 1e9, rel=0.01)
    assert parameters(shape(**raw), active=True) == pytest.approx(active * 1e9, rel=0.01)


def test_parts_of_families_are_read() -> None:
    """Dense and expert layers of their own size, groups of queries, the gate, heads of a hybrid model."""
    llama = shape(**LLAMA_4)
    assert (llama.expert_layers, llama.ffn, llama.experts and llama.experts.shared_ffn) == (24, 16384, 8192)
    assert (shape(**CHATGLM).kv_heads, shape(**CHATGLM).glu) == (2, True)
    assert (shape(**FALCON).kv_heads, shape(**{**FALCON, "new_decoder_architecture": False}).kv_heads) == (
        8,
        1,
    )
    assert (shape(**QWEN_NEXT).gate, shape(**QWEN_NEXT).delta_layers) == (True, 36)
    nemotron = shape(**NEMOTRON)
    assert nemotron.mamba
    assert (nemotron.head_dim, nemotron.mamba.groups, nemotron.mamba.inner) == (128, 8, 8192)


def test_the_longest_sequence_of_a_configuration_is_not_the_runs() -> None:
    """``seq_length`` of a checkpoint says what it can do."""
    assert "seq_len" not in facts(**CHATGLM)


@pytest.mark.parametrize(
    ("more", "windowed"),
    [
        ({"model_type": "gemma2"}, 6),
        ({"model_type": "gemma3_text", "sliding_window_pattern": 6}, 10),
        ({"model_type": "gemma3_text"}, 10),
        ({"model_type": "cohere2", "sliding_window_pattern": 4}, 9),
        ({"model_type": "mistral"}, 12),
        ({"model_type": "qwen2", "use_sliding_window": False, "max_window_layers": 6}, 0),
        ({"model_type": "qwen2", "use_sliding_window": True, "max_window_layers": 8}, 4),
    ],
)
def test_layers_within_a_window(more: dict[str, Any], windowed: int) -> None:
    """Of twelve layers, as the family alternates them."""
    raw = {**BASE, "num_hidden_layers": 12, "sliding_window": 16, "intermediate_size": 128, **more}
    assert shape(**raw).windowed_layers == windowed


def test_layers_without_experts_are_listed() -> None:
    """``mlp_only_layers`` are dense, with the dense size; without them no layer has it."""
    moe = {
        **BASE, "model_type": "qwen3_moe", "intermediate_size": 96, "moe_intermediate_size": 8, "num_experts": 4,
        "num_experts_per_tok": 2,
    }  # fmt: skip
    assert shape(**moe, mlp_only_layers=[0]).expert_layers == 3
    assert shape(**moe, mlp_only_layers=[0]).ffn == 96
    assert shape(**moe, mlp_only_layers=[]).ffn == 8


@pytest.mark.parametrize("name", ["text_config", "llm_config", "language_config"])
def test_the_language_model_of_several_modalities(name: str) -> None:
    """It is counted alone, and that is said."""
    inner = {**BASE, "model_type": "qwen2", "intermediate_size": 128}
    found = facts(**{"model_type": "internvl_chat", name: inner, "vision_config": {"hidden_size": 9}})
    assert (found["hidden"], found["glu"]) == (64, True)
    assert found["model_note"] == "vision_config: only the language model is counted"


def test_short_names_of_old_families() -> None:
    """BLOOM's ``n_embed``, the first Qwen's doubled size, Llama's own ``params.json``."""
    bloom = shape(model_type="bloom", n_embed=14336, n_layer=70, n_head=112, vocab_size=250880)
    assert flops_per_token(bloom, 2048) == flops_per_token(
        ModelShape.from_facts(PRESETS["bloom-176b"].facts), 2048
    )
    assert shape(**BASE, model_type="qwen", intermediate_size=256).ffn == 128
    published = {
        "dim": 4096, "n_layers": 32, "n_heads": 32, "n_kv_heads": 8, "vocab_size": 128256, "multiple_of": 1024,
        "ffn_dim_multiplier": 1.3,
    }  # fmt: skip
    llama = shape(**published)
    assert replace(llama, assumed=()) == ModelShape.from_facts(PRESETS["llama3-8b"].facts)


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"model_type": "granitemoehybrid", "layer_types": ["mamba", "attention"] * 2}, "mamba"),
        ({"model_type": "jamba", "attn_layer_period": 8, "mamba_d_state": 16}, "mamba_d_state = 16"),
        ({"model_type": "falcon_h1", "mamba_d_ssm": 1536}, "mamba_d_ssm"),
        ({"model_type": "mamba2", "conv_kernel": 4}, "conv_kernel"),
        ({"model_type": "t5", "is_encoder_decoder": True}, "is_encoder_decoder"),
        ({"model_type": "recurrent_gemma", "block_types": ["recurrent", "attention"]}, "block_types"),
        (
            {"model_type": "ernie4_5_moe", "moe_num_experts": 64, "moe_k": 6},
            "moe_num_experts = 64, moe_k = 6",
        ),
        ({"model_type": "deepseek_v32", "index_topk": 2048}, "index_topk"),
        (
            {"model_type": "llama", "num_key_value_heads": 4, "layers_block_type": ["ssm"]},
            "layers_block_type",
        ),
        ({"architectures": ["NewForCausalLM"], "ssm_state": 16}, "ssm_state"),
        ({"model_type": "lfm2", "layer_types": ["conv", "full_attention"] * 2}, "conv"),
        ({"model_type": "mpt", "d_model": 64, "ffn_config": {"ffn_type": "mb_moe"}}, "ffn_type = mb_moe"),
    ],
)
def test_structure_that_is_not_understood_is_refused(more: dict[str, Any], named: str) -> None:
    """Never counted as a plain decoder: the keys are named, and the way out."""
    with pytest.raises(OptionError) as caught:
        facts(**BASE, intermediate_size=128, **more)
    assert named in str(caught.value)
    assert "flags" in caught.value.hint


def test_sizes_that_were_not_used_are_named() -> None:
    """A family nobody knows, and a key that may matter, are said beside the numbers."""
    raw = {
        **BASE,
        "intermediate_size": 128,
        "model_type": "brandnew",
        "memory_heads": 3,
        "hidden_act": "silu",
    }
    note = facts(**raw)["model_note"]
    assert (
        note == "model_type brandnew is not known: counted as a plain decoder; not used: memory_heads = 3"
    )
    assert note in evaluate({**facts(**raw), "seq_len": 8}).notes
    usual = {
        "attention_dropout": 0.1,
        "rope_theta": 1e4,
        "mlp_bias": True,
        "num_beams": 4,
        "rms_norm_eps": 1e-5,
    }
    assert "model_note" not in facts(**BASE, **usual, intermediate_size=128, model_type="llama")


def test_chunks_of_attention_are_said_to_be_missing() -> None:
    """Beyond a chunk, attention is counted too high."""
    assert "above 8192 tokens" in facts(**LLAMA_4)["model_note"]


def test_a_dense_size_no_layer_has_is_no_experts_size() -> None:
    """Qwen3-30B-A3B with topk experts of the dense size is what versions to 0.11 count: 768, not 6144."""
    model = ModelShape.from_facts(PRESETS["qwen3-30b-a3b"].facts)
    for name in ("megatron-0.6", "megatron-0.7", "megatron-0.10"):
        assert CONVENTIONS[name].flops_per_token(model, 4096) < 1.001 * flops_per_token(model, 4096)
