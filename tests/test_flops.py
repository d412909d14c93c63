"""The FLOPs engine: numbers to check in the head, laws, named conventions, shapes from facts and files."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logmfu.analysis.accounting import compare
from logmfu.errors import FormatError, MissingFactError, OptionError, SourceError
from logmfu.flops import (
    CONVENTIONS,
    ModelShape,
    flops_per_token,
    hardware_flops_per_token,
    packed_length,
    parameters,
    recomputed_flops,
    tflops,
)
from logmfu.flops.modelfile import facts_of, read
from logmfu.flops.presets import PRESETS, preset
from logmfu.schema import FACTS

TINY = {"layers": 1, "hidden": 2, "heads": 1, "ffn": 8, "vocab": 10, "glu": False}
DATA = Path(__file__).parent / "data"
TABLE = list(csv.DictReader((DATA / "conventions.csv").read_text(encoding="utf-8").splitlines()))


def shape(**facts: Any) -> ModelShape:
    """A shape from facts."""
    return ModelShape.from_facts(facts)


def known(name: str) -> ModelShape:
    """The shape of a preset."""
    return ModelShape.from_facts(PRESETS[name].facts)


def test_a_tiny_model_can_be_counted_by_hand() -> None:
    """Weights 16 + 32 + 20 = 68; attention 4 wide over 4 keys: 6 x (68 + 16) = 504 FLOPs per token."""
    tiny = shape(**TINY)
    assert flops_per_token(tiny, 4) == 504
    assert flops_per_token(tiny, 4, attention="half") == 6 * (68 + 8)
    assert flops_per_token(tiny, 4, attention="exact") == 6 * (68 + 10)
    assert flops_per_token(tiny, 4, attention="none") == 6 * 68


@pytest.mark.parametrize(
    ("change", "weights"),
    [
        ({"glu": True}, 68 + 16),
        ({"heads": 2, "kv_heads": 1}, 68 - 4),
        ({"attention_gate": True}, 68 + 4),
        ({"tied_embeddings": True}, 68),
        ({"experts": 4, "router_topk": 2, "moe_ffn": 3}, 68 - 32 + 2 * 2 * 2 * 3 + 2 * 4),
        ({"experts": 4, "router_topk": 1, "moe_ffn": 3, "shared_ffn": 5}, 68 - 32 + 12 + 20 + 8),
        ({"experts": 4, "router_topk": 1, "moe_ffn": 3, "moe_latent": 1}, 68 - 32 + 6 + 4 + 8),
        ({"mtp_layers": 1}, 68 + 48 + 8 + 20),
    ],
)
def test_features_change_the_weights_a_token_passes(change: dict[str, Any], weights: int) -> None:
    """Each feature adds or removes the products it says."""
    assert flops_per_token(shape(**{**TINY, **change}), 4, attention="none") == 6 * weights


def test_latent_attention_by_hand() -> None:
    """Hidden 2, ranks 3 and 5, head sizes 1 + 1 and 4: 6 + 6 + 12 + 25 + 8 weights, core 2 + 4 wide."""
    mla = {"q_lora_rank": 3, "kv_lora_rank": 5, "qk_nope_dim": 1, "qk_rope_dim": 1, "v_head_dim": 4}
    assert flops_per_token(shape(**TINY, **mla), 4) == 6 * (57 + 32 + 20 + 6 * 4)
    without_rank = {**mla, "q_lora_rank": None}
    assert flops_per_token(shape(**TINY, **without_rank), 4) == 6 * (57 - 12 + 4 + 32 + 20 + 6 * 4)


def test_a_window_leaves_the_keys_it_shows() -> None:
    """Within a window of 2 of 4 tokens the causal mean is (1 + 2 + 2 + 2) / 4 keys; every second layer sees all."""
    two = {**TINY, "layers": 2, "window": 2}
    weights = 2 * 48 + 20
    assert flops_per_token(shape(**two), 4) == 6 * (weights + 2 * 4 * 2)
    assert flops_per_token(shape(**two), 4, attention="exact") == 6 * (weights + 2 * 4 * 1.75)
    assert flops_per_token(shape(**two, window_every=2), 4) == 6 * (weights + 4 * 2 + 4 * 4)


def test_a_hybrid_model_counts_each_letter() -> None:
    """M* - E: a mixer 2 (8 + 4 + 2) + 3.5 x 4 + 8, attention 16, feed-forward 32, experts 8 + 8 weights."""
    mamba = {"mamba_state": 1, "mamba_groups": 2, "mamba_heads": 2, "mamba_head_dim": 2}
    moe = {"experts": 4, "router_topk": 1, "moe_ffn": 2}
    hybrid = shape(**TINY, **mamba, **moe, hybrid_pattern="M*-|E/MM")
    assert (hybrid.layers, hybrid.mamba_layers, hybrid.attention_layers) == (4, 1, 1)
    assert flops_per_token(hybrid, 4) == 6 * ((28 + 14 + 8) + (16 + 16) + 32 + (8 + 8) + 20)


def test_gated_delta_layers_by_hand() -> None:
    """One of two layers attends: the other 2 (2 + 2 + 2) + 2 projections, 4 x 3 convolution, 4 products of the state."""
    delta = {
        "delta_every": 2,
        "delta_key_heads": 1,
        "delta_value_heads": 1,
        "delta_key_dim": 1,
        "delta_value_dim": 1,
    }
    net = shape(**{**TINY, "layers": 2}, **delta)
    assert (net.delta_layers, net.attention_layers) == (1, 1)
    assert flops_per_token(net, 4) == 6 * ((12 + 2 + 12 + 4) + (16 + 16) + 2 * 32 + 20)


DELTA = {
    "delta_key_heads": 1, "delta_value_heads": 2, "delta_key_dim": 1, "delta_value_dim": 3,
}  # fmt: skip


def test_a_state_of_unequal_heads_is_squared_by_one_program() -> None:
    """Two heads of 1 x 3: canonically 4 x 2 x 3 products, by NVIDIA/Megatron-LM 4 x 2 x 9: 6 x 48 FLOPs more."""
    net = shape(**{**TINY, "layers": 2}, **DELTA, delta_every=2)
    printed_flops = CONVENTIONS["megatron-0.12"].flops_per_token(net, 4)
    assert printed_flops - flops_per_token(net, 4, attention="half") == 6 * 48
    assert CONVENTIONS["megatron-0.12"].not_counted(net) == ["unequal gated-delta heads"]


@pytest.mark.parametrize("every", [2, "1,0", [1, 0], "1*1+0*1"])
def test_gated_delta_layers_are_a_period_or_a_list(every: Any) -> None:
    """A list has a 1 for each gated-delta layer."""
    net = shape(**{**TINY, "layers": 2}, **DELTA, delta_every=every)
    assert (net.delta_layers, net.attention_layers) == (1, 1)


def test_gated_delta_layers_have_a_letter() -> None:
    """``G-*-`` is the model in which every second of two layers attends."""
    by_letter = shape(**TINY, **DELTA, hybrid_pattern="G-*-")
    by_period = shape(**{**TINY, "layers": 2}, **DELTA, delta_every=2)
    assert flops_per_token(by_letter, 4) == flops_per_token(by_period, 4)


def test_windows_are_a_list_of_any_order() -> None:
    """Of five layers the first, second and last are within the window: 3 x 2 + 2 x 4 keys of width 4."""
    five = shape(**{**TINY, "layers": 5}, window=2, window_every=[1, 1, 0, 0, 1])
    assert flops_per_token(five, 4) == 6 * (5 * 48 + 20 + 4 * (3 * 2 + 2 * 4))
    with pytest.raises(OptionError, match="window_every lists 2 layers of 5"):
        shape(**{**TINY, "layers": 5}, window=2, window_every="1,0")


def test_packed_documents_see_only_themselves() -> None:
    """Two documents of 2 tokens have the attention of length 2, not 4."""
    assert packed_length(4, 2**2 + 2**2) == 2
    assert packed_length(7, 7**2) == 7
    with pytest.raises(OptionError, match="sum of their squared lengths"):
        packed_length(10, 9)


def test_flops_over_time_is_one_call() -> None:
    """``FLOPS / iteration_time / 1e12``."""
    assert tflops(5e14, 2) == 250
    with pytest.raises(OptionError, match="cannot be"):
        tflops(5e14, 0)


@pytest.mark.parametrize(
    ("model", "seq_len", "recompute", "ratio"),
    [
        ("gpt3-175b", 2048, "full", 1.332),
        ("llama3-70b", 8192, "full", 1.329),
        ("llama3-8b", 8192, "full", 1.315),
        ("gpt3-175b", 2048, "early-stop", 1.22),
        ("llama3-8b", 8192, "early-stop", 1.25),
        ("llama3-70b", 8192, "early-stop", 1.25),
        ("gpt3-175b", 2048, "selective", 1.009),
        ("llama3-70b", 8192, "selective", 1.045),
        ("llama3-8b", 8192, "selective", 1.074),
        ("llama3-8b", 8192, "none", 1.0),
    ],
)
def test_hardware_flops_over_model_flops(model: str, seq_len: int, recompute: str, ratio: float) -> None:
    """Full recomputation costs a third of the layers, not of the output layer; selective a percent to seven."""
    hardware = hardware_flops_per_token(known(model), seq_len, recompute=recompute)
    digits = len(str(ratio).partition(".")[2])
    assert round(hardware / flops_per_token(known(model), seq_len), digits) == ratio


SHAPES = st.builds(
    lambda heads, groups, size, **more: shape(heads=heads * groups, kv_heads=heads, head_dim=size, **more),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 64),
    layers=st.integers(1, 9),
    hidden=st.integers(1, 512),
    ffn=st.integers(1, 999),
    vocab=st.integers(1, 9999),
    glu=st.booleans(),
    mtp_layers=st.integers(0, 2),
    window=st.none() | st.integers(1, 300),
)


@given(SHAPES, st.integers(1, 4096))
def test_attention_counts_are_ordered(model: ModelShape, seq_len: int) -> None:
    """Nothing, half, exact, full: each counts at least as much as the one before."""
    counts = [flops_per_token(model, seq_len, attention=kind) for kind in ("none", "half", "exact", "full")]
    assert counts == sorted(counts)


@given(SHAPES, st.integers(1, 4096))
def test_recomputation_only_adds(model: ModelShape, seq_len: int) -> None:
    """Hardware FLOPs are at least the model's, and at most 4/3 of them."""
    base = flops_per_token(model, seq_len)
    again = [
        hardware_flops_per_token(model, seq_len, recompute=kind) for kind in ("none", "early-stop", "full")
    ]
    assert again == sorted(again)
    assert base == again[0] <= again[-1] <= base * 4 / 3
    assert 0 <= recomputed_flops(model, seq_len, recompute="selective") <= again[-1] - base


@given(SHAPES, st.integers(1, 4096))
def test_a_window_that_shows_everything_is_none(model: ModelShape, seq_len: int) -> None:
    """A window as long as the sequence changes nothing."""
    wide, none = replace(model, window=seq_len), replace(model, window=None)
    assert flops_per_token(wide, seq_len) == flops_per_token(none, seq_len)


@given(SHAPES, st.integers(1, 4096))
def test_one_expert_that_is_the_dense_block_is_dense(model: ModelShape, seq_len: int) -> None:
    """Top 1 of experts of the dense size, without the router, is the dense model."""
    facts = {"experts": 2, "router_topk": 1, "moe_ffn": model.ffn}
    dense = {
        name: getattr(model, name)
        for name in ("layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "glu")
    }
    moe = shape(**dense, **facts)
    assert flops_per_token(moe, seq_len, router=False) == flops_per_token(shape(**dense), seq_len)


@given(SHAPES, st.integers(1, 4096))
def test_versions_agree_where_they_should(model: ModelShape, seq_len: int) -> None:
    """Dense, without windows and prediction modules, 0.7 to 0.11 are the canonical count and 0.12 is its half."""
    plain = replace(model, window=None, mtp=0)
    full = flops_per_token(plain, seq_len)
    for name in ("megatron-0.7", "megatron-0.10", "nanochat"):
        assert CONVENTIONS[name].flops_per_token(plain, seq_len) == pytest.approx(full, rel=1e-12)
    half = flops_per_token(plain, seq_len, attention="half")
    for name in ("megatron-0.12", "megatron-bridge", "maxtext"):
        assert CONVENTIONS[name].flops_per_token(plain, seq_len) == pytest.approx(half, rel=1e-12)


@pytest.mark.parametrize(
    "row", TABLE, ids=lambda row: f"{row['convention']} {row['model']} {row['seq_len']}"
)
def test_conventions_give_their_known_numbers(row: dict[str, str]) -> None:
    """FLOPs per token of eleven models under each convention, to the five digits known (biases are below them)."""
    model = replace(known(row["model"]), mtp=int(row["mtp_layers"] or 0))
    convention, seq_len, attention = (
        CONVENTIONS[row["convention"]],
        int(row["seq_len"]),
        row["attention"] or None,
    )
    again = row["recompute"] or None
    found = {
        "printed": convention.flops_per_token(model, seq_len, recompute=again, attention=attention),
        "model": convention.model_flops_per_token(model, seq_len, attention=attention),
        "hardware": convention.hardware_flops_per_token(
            model, seq_len, recompute=again, attention=attention
        ),
    }[row["quantity"]]
    assert found == pytest.approx(float(row["flops_per_token"]), rel=1.2e-4)


@pytest.mark.parametrize(
    ("model", "per_version"),
    [
        (
            {
                "layers": 32,
                "hidden": 4096,
                "ffn": 14336,
                "heads": 32,
                "kv_heads": 8,
                "vocab": 128256,
                "glu": True,
                "seq_len": 8192,
            },
            {
                "0.5": 5.228178e16,
                "0.6": 6.072603e16,
                "0.7": 6.072603e16,
                "0.10": 6.072603e16,
                "0.12": 5.397063e16,
            },
        ),
        (
            {
                "layers": 32,
                "hidden": 4096,
                "ffn": 16384,
                "heads": 32,
                "vocab": 50304,
                "glu": False,
                "seq_len": 2048,
            },
            {"0.5": 1.130161e16, "0.6": 1.130161e16, "0.10": 1.130161e16, "0.12": 1.087939e16},
        ),
        (
            {**PRESETS["mixtral-8x7b"].facts, "seq_len": 4096},
            {"0.5": 2.152294e16, "0.6": 4.347799e16, "0.10": 4.347799e16, "0.12": 4.178914e16},
        ),
    ],
)
def test_a_step_counts_differently_in_each_version(
    model: dict[str, Any], per_version: dict[str, float]
) -> None:
    """FLOPs of a step of 128 sequences as each version counts them."""
    for version, wanted in per_version.items():
        convention = CONVENTIONS[f"megatron-{version}"]
        found = convention.flops_per_iteration(ModelShape.from_facts(model), model["seq_len"], 128)
        assert found == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("convention", CONVENTIONS.values(), ids=lambda convention: convention.name)
def test_every_convention_states_its_source_and_orders_its_counts(convention: Any) -> None:
    """A source, a title, and hardware FLOPs that are never below the model's."""
    assert convention.source
    assert convention.title
    for name in PRESETS:
        for recompute in ("none", "selective", "early-stop", "full"):
            model = convention.model_flops_per_token(known(name), 4096)
            assert 0 < model <= convention.hardware_flops_per_token(known(name), 4096, recompute=recompute)


def test_what_a_convention_leaves_out_is_named() -> None:
    """The features of a shape that a formula does not count are listed, and no others."""
    assert CONVENTIONS["sc21"].not_counted(known("gpt3-175b")) == []
    assert CONVENTIONS["sc21"].not_counted(known("llama3-8b")) == [
        "gated feed-forward",
        "grouped-query attention",
    ]
    assert CONVENTIONS["megatron-0.12"].not_counted(known("mixtral-8x7b")) == ["router"]
    assert CONVENTIONS["canonical"].not_counted(known("gpt-oss-120b")) == []


@pytest.mark.parametrize(
    ("model", "count"),
    [
        ("llama2-7b", 6_738_415_616),
        ("llama2-70b", 68_976_648_192),
        ("llama3-8b", 8_030_261_248),
        ("llama3-70b", 70_553_706_496),
        ("llama3-405b", 405_853_388_800),
        ("mixtral-8x7b", 46_702_792_704),
        ("deepseek-v3", 671_026_404_352),
    ],
)
def test_presets_have_the_parameters_of_their_checkpoints(model: str, count: int) -> None:
    """Counted from the shape, the parameters are those of the published weights."""
    assert parameters(known(model)) == count


def test_presets_are_found_in_usual_spellings() -> None:
    """Dashes, case, a version's dot and a hub's prefix do not matter; each preset has a source."""
    for name in ("llama3-8b", "Llama-3-8B", "meta-llama/Llama-3.1-8B", "llama_3_8b"):
        found = preset(name)
        assert found is not None
        assert found.name == "llama3-8b"
    assert preset("llama9") is None
    assert all(entry.source and set(entry.facts) <= set(FACTS) for entry in PRESETS.values())


def test_missing_facts_name_their_flags() -> None:
    """What is missing is listed with the flag for each."""
    with pytest.raises(MissingFactError) as caught:
        shape(layers=32, hidden=4096)
    assert caught.value.facts == ("missing: heads, vocab",)
    assert "--heads N" in caught.value.hint
    with pytest.raises(MissingFactError) as caught:
        shape(**TINY, experts=8)
    assert "--set router_topk" in caught.value.hint


def test_what_is_taken_as_usual_is_said() -> None:
    """Without key/value heads, head size, gating and feed-forward size the usual ones are taken, and listed."""
    assumed = shape(layers=1, hidden=8, heads=2, vocab=10).assumed
    assert [text.partition(" ")[0] for text in assumed] == ["kv_heads", "head_dim", "ffn", "feed-forward"]
    assert shape(**TINY, kv_heads=1, head_dim=2).assumed == ()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"layers": 0}, "above zero"),
        ({"layers": "many"}, "must be a number"),
        ({"layers": 1.5}, "whole number"),
        ({"layers": 10**9}, "whole number"),
        ({"hidden": 1e300}, "whole number"),
        ({"params": "inf"}, "must be a number"),
        ({"kv_heads": 3, "heads": 4, "head_dim": 2}, "cannot share"),
        ({"heads": 3}, "not a multiple"),
        ({"glu": "perhaps"}, "neither yes nor no"),
        ({"experts": 8, "router_topk": 2, "moe_layers": "1,0"}, "lists 2 layers of 1"),
        ({"experts": 8, "router_topk": 2, "moe_layers": "1;0"}, "moe_layers"),
        ({"hybrid_pattern": "MX"}, "unknown kind"),
        ({"layers": -1}, "whole number from 0 to 100,000"),
        ({"layers": "nan"}, "must be a number"),
        ({"experts": 8, "router_topk": 9, "moe_ffn": 4}, "cannot pass 9 of 8"),
        ({"params": "lots"}, "must be a number"),
    ],
)
def test_values_that_cannot_be_are_refused(change: dict[str, Any], complaint: str) -> None:
    """A wrong value is an error that says which."""
    with pytest.raises(OptionError, match=complaint):
        shape(**{**TINY, **change})


def test_a_list_of_one_is_its_number() -> None:
    """Programs that take one number of experts per group print a list."""
    assert shape(**TINY, experts="[1]").experts is None
    assert shape(**TINY, experts=[8], router_topk=2, moe_ffn=4).expert_layers == 1


def test_glu_without_its_size_is_not_guessed() -> None:
    """A gated block has no usual size."""
    with pytest.raises(MissingFactError):
        shape(layers=1, hidden=8, heads=2, vocab=10, glu=True)


@pytest.mark.parametrize(
    ("pattern", "layers"),
    [(1, 4), (2, 2), ("3", 2), ([0, 1, 1, 1], 3), ("[0,1,0,1]", 2), ("([0]*1+[1]*3)*1", 0), ("0*3+1*1", 1)],
)
def test_expert_layers_are_a_list_or_a_period(pattern: Any, layers: int) -> None:
    """A period of n means layers 0, n, 2n, ..."""
    facts = {**TINY, "layers": 4, "experts": 8, "router_topk": 1, "moe_ffn": 8, "moe_layers": pattern}
    if not layers:
        with pytest.raises(OptionError):
            shape(**facts)
        return
    assert shape(**facts).expert_layers == layers


HF_DEEPSEEK = {
    "model_type": "deepseek_v3", "num_hidden_layers": 61, "hidden_size": 7168, "num_attention_heads": 128,
    "num_key_value_heads": 128, "intermediate_size": 18432, "moe_intermediate_size": 2048, "n_routed_experts": 256,
    "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3, "kv_lora_rank": 512, "q_lora_rank": 1536,
    "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 129280, "hidden_act": "silu",
    "tie_word_embeddings": False, "num_nextn_predict_layers": 1,
}  # fmt: skip
LAUNCH = r"""#!/bin/bash
torchrun --nproc-per-node 8 pretrain.py \
    --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 \
    --num-attention-heads 32 --group-query-attention --num-query-groups 8 --kv-channels 128 \
    --seq-length 8192 --swiglu --untie-embeddings-and-output-weights \
    --vocab-size 128000 --make-vocab-size-divisible-by 128 --tensor-model-parallel-size 4 \
    --global-batch-size=128 --bf16
"""
DUMP = """
------------------------ arguments ------------------------
  ffn_hidden_size ................................. 14336
  group_query_attention ........................... True
  hidden_size ..................................... 4096
  kv_channels ..................................... 128
  multi_latent_attention .......................... False
  num_attention_heads ............................. 32
  num_experts ..................................... 8
  num_layers ...................................... 32
  num_query_groups ................................ 8
  moe_router_topk ................................. 2
  moe_ffn_hidden_size ............................. 14336
  mtp_num_layers .................................. None
  padded_vocab_size ............................... 32000
  q_lora_rank ..................................... None
  qk_head_dim ..................................... 128
  swiglu .......................................... True
  kv_lora_rank .................................... 32
  v_head_dim ...................................... 128
-------------------- end of arguments ---------------------
"""
PROFILE = """
Profile Summary at step 3:
world size:                                                             4
params per GPU:                                                         1.5 B
fwd MACs per GPU:                                                       2.5 TMACs
fwd flops per GPU:                                                      5 T
fwd latency:                                                            50 ms
fwd FLOPS per GPU = fwd flops per GPU / fwd latency:                    100 TFLOPS
"""


def test_a_checkpoint_config_gives_the_shape() -> None:
    """Latent attention, first layers dense, shared expert; prediction modules only count when a run trains them."""
    assert shape(**facts_of(json.dumps(HF_DEEPSEEK))) == replace(known("deepseek-v3"), kv_heads=128)


def test_configs_of_other_families() -> None:
    """GPT-2's short names, windows by layer type, gated-delta layers, an ungated activation."""
    gpt2 = {
        "n_layer": 12,
        "n_embd": 768,
        "n_head": 12,
        "vocab_size": 50304,
        "activation_function": "gelu_new",
    }
    assert flops_per_token(shape(**facts_of(json.dumps(gpt2))), 1024) == flops_per_token(
        known("gpt2-124m"), 1024
    )
    types = ["sliding_attention", "full_attention"] * 18
    oss = {
        "num_hidden_layers": 36, "hidden_size": 2880, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
        "intermediate_size": 2880, "num_local_experts": 128, "experts_per_token": 4, "vocab_size": 201088,
        "sliding_window": 128, "layer_types": types, "hidden_act": "silu",
    }  # fmt: skip
    assert flops_per_token(shape(**facts_of(json.dumps(oss))), 4096) == flops_per_token(
        known("gpt-oss-120b"), 4096
    )
    uneven = {**oss, "layer_types": ["full_attention"] * 20 + ["sliding_attention"] * 16}
    assert shape(**facts_of(json.dumps(uneven))).windowed_layers == 16
    delta = {"layer_types": ["linear_attention"] * 3 + ["full_attention"], "num_hidden_layers": 4}
    assert facts_of(json.dumps(delta))["delta_every"] == [1, 1, 1, 0]
    nested = {"text_config": {**gpt2, "multi_query": True}}
    assert shape(**facts_of(json.dumps(nested))).kv_heads == 1


def test_a_launch_script_gives_the_shape() -> None:
    """Flags, bare or with ``=``; the vocabulary padded as the program will: 128000 is a multiple of 512 already."""
    facts = facts_of(LAUNCH)
    assert (facts["seq_len"], facts["global_batch_size"]) == (8192, 128)
    assert shape(**facts) == replace(known("llama3-8b"), vocab=128000)


def test_an_argument_dump_gives_the_shape() -> None:
    """What is switched off does not count: the ranks of latent attention are printed even without it."""
    assert flops_per_token(shape(**facts_of(DUMP)), 4096) == flops_per_token(known("mixtral-8x7b"), 4096)


def test_a_dump_without_grouped_queries_has_as_many_key_heads() -> None:
    """``num_query_groups 1`` means nothing while ``group_query_attention`` is off."""
    off = DUMP.replace(
        "group_query_attention ........................... True", "group_query_attention .... False"
    )
    assert (
        shape(
            **facts_of(
                off.replace("num_query_groups ................................ 8", "num_query_groups ... 1")
            )
        ).kv_heads
        == 32
    )


def test_a_dump_may_be_prefixed_and_say_where_a_value_is_from() -> None:
    """A rank prefix before, ``....default`` or ``....updated`` behind."""
    text = (
        "0: [default0]:  num_layers ...................... 6...........................updated\n"
        "0: [default0]:  hidden_size ..................... 512.........................updated\n"
        "0: [default0]:  num_attention_heads ............. 8...........................default\n"
        "0: [default0]:  padded_vocab_size ............... 50304\n"
        "0: [default0]:  checkpoint_activations .......... True........................updated\n"
    )
    facts = facts_of(text)
    assert (facts["layers"], facts["hidden"], facts["heads"], facts["recompute"]) == (6, 512, 8, "full")
    assert shape(**facts).ffn == 2048


@pytest.mark.parametrize(
    ("more", "fact", "value"),
    [
        ({"sliding_window": 4096, "use_sliding_window": False}, "window", None),
        ({"sliding_window": 4096, "layer_types": ["full_attention"] * 4}, "window", None),
        ({"num_experts": 8, "decoder_sparse_step": 2}, "moe_layers", [0, 1, 0, 1]),
        ({"linear_attention_freq": 4}, "delta_every", None),
        (
            {"linear_attention_freq": 4, "experimental_attention_variant": "gated_delta_net"},
            "delta_every",
            4,
        ),
        ({"model_type": "gemma2", "hidden_act": "gelu_pytorch_tanh"}, "glu", True),
        ({"model_type": "opt", "hidden_act": "relu"}, "glu", False),
        (
            {"vocab_size": 50257, "make_vocab_size_divisible_by": 128, "tensor_model_parallel_size": 2},
            "vocab",
            50432,
        ),
    ],
)
def test_facts_that_follow_from_others(more: dict[str, Any], fact: str, value: Any) -> None:
    """What is switched off is off; patterns, gating and padding are worked out."""
    assert facts_of(json.dumps({"num_hidden_layers": 4, "hidden_size": 64, **more}))[fact] == value


def test_a_profiler_block_gives_forward_flops() -> None:
    """Counted work instead of a shape."""
    assert facts_of(PROFILE) == {"world_size": 4, "profiled_params": 1.5e9, "profiled_forward_flops": 5e12}


def test_files_that_are_no_model(tmp_path: Path) -> None:
    """A file that cannot be read or says nothing is an error with a way out."""
    with pytest.raises(SourceError):
        read(tmp_path / "missing.json")
    binary = tmp_path / "model.bin"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SourceError):
        read(binary)
    empty = tmp_path / "config.json"
    empty.write_text('{"a": 1}', encoding="utf-8")
    with pytest.raises(FormatError, match="does not describe a model"):
        read(empty)


@given(st.text(max_size=200))
def test_any_text_is_facts_or_nothing(text: str) -> None:
    """A hostile file gives facts, none, or an error made on purpose."""
    try:
        assert isinstance(facts_of(text), dict)
    except (OptionError, FormatError):
        return


def printed(model: str, by: str, *, seq_len: int = 4096, recompute: str = "none", **more: Any) -> Any:
    """What ``by`` would print for a step of 10 s on 64 devices, compared."""
    per_step = CONVENTIONS[by].flops_per_iteration(known(model), seq_len, 256, recompute)
    return compare(
        more.pop("factor", 1.0) * per_step / 10 / 64 / 1e12,
        10.0,
        shape=known(model),
        seq_len=seq_len,
        batch=256,
        devices=64,
        recompute=more.pop("assumed", recompute),
        **more,
    )


@pytest.mark.parametrize(
    ("model", "convention", "recompute", "kind", "trusted", "attention", "counts"),
    [
        ("llama3-8b", "megatron-0.10", "none", "equal", True, "full", "model"),
        ("llama3-8b", "megatron-0.10", "full", "equal", True, "full", "model"),
        ("llama3-8b", "megatron-0.12", "full", "attention", True, "half", "model"),
        ("bloom-176b", "bigscience", "full", "hardware", True, "full", "hardware"),
        ("gpt3-175b", "gpt-neox", "full", "hardware", True, "full", "hardware"),
        ("llama3-8b", "megatron-0.5", "none", "version", False, "full", "model"),
        ("llama3-8b", "bigscience", "full", "version", False, "full", "hardware"),
        ("deepseek-v3", "megatron-0.10", "none", "experts", False, "full", "model"),
        ("deepseek-v3", "megatron-0.12", "none", "attention", True, "half", "model"),
    ],
)
def test_a_stated_convention_explains_its_number(
    model: str, convention: str, recompute: str, kind: str, trusted: bool, attention: str, counts: str
) -> None:
    """Equal, attention in half, recomputation in it, or miscounted: the last is not to be used."""
    found = printed(model, convention, recompute=recompute, convention=convention)
    assert (found.kind, found.trusted, found.attention, found.counts) == (kind, trusted, attention, counts)
    assert found.convention == convention
    assert convention in found.explanation


def test_the_ratio_is_to_the_canonical_full_count() -> None:
    """Llama-3-8B at 8192 tokens: half attention is 0.889 of full; BLOOM with recomputation 1.33 times."""
    assert printed(
        "llama3-8b", "megatron-0.12", seq_len=8192, convention="megatron-0.12"
    ).ratio == pytest.approx(0.889, abs=5e-4)
    bloom = printed("bloom-176b", "bigscience", seq_len=2048, recompute="full", convention="bigscience")
    assert bloom.ratio == pytest.approx(1.327, abs=5e-3)
    assert bloom.computed_tflops * bloom.ratio == pytest.approx(
        CONVENTIONS["bigscience"].flops_per_iteration(known("bloom-176b"), 2048, 256, "full") / 640e12
    )


def test_candidates_are_told_apart() -> None:
    """Of the versions a log may come from, the number shows which."""
    names = ["megatron-0.5", "megatron-0.10", "megatron-0.12"]
    found = printed("llama3-8b", "megatron-0.12", candidates=names)
    assert (found.convention, found.candidates) == ("megatron-0.12", ("megatron-0.12",))
    assert printed("gpt3-175b", "megatron-0.10", candidates=names).candidates == (
        "megatron-0.5",
        "megatron-0.10",
    )


def test_another_convention_than_the_stated_one_is_said_and_not_trusted() -> None:
    """A number that only fits another program's formula is a warning."""
    found = printed("llama3-8b", "megatron-0.5", convention="megatron-0.12")
    assert not found.trusted
    assert "not what megatron-0.12 prints" in found.explanation


@pytest.mark.parametrize(
    ("factor", "kind", "words"),
    [
        (1000, "unit", "GFLOP/s labelled as TFLOP/s"),
        (64, "unit", "whole job's figure"),
        (1 / 3, "unit", "forward pass alone"),
        (1.777, "unexplained", "not explained: 1.777"),
    ],
)
def test_factors_and_the_unexplained(factor: float, kind: str, words: str) -> None:
    """A plain factor is named; anything else is a warning, never trusted."""
    found = printed("llama3-8b", "megatron-0.10", factor=factor, convention="megatron-0.10")
    assert (found.kind, found.trusted) == (kind, False)
    assert words in found.explanation


def test_packed_documents_are_suspected() -> None:
    """Less attention than the sequence has: documents of 2048 tokens in sequences of 8192 are named as the likely cause."""
    model = known("llama3-8b")
    per_token = CONVENTIONS["megatron-0.12"].flops_per_token(model, 2048)
    found = compare(
        per_token * 8192 * 8 / 8e12,
        1.0,
        shape=model,
        seq_len=8192,
        batch=8,
        devices=8,
        convention="megatron-0.12",
    )
    assert (found.kind, found.trusted) == ("packed", False)
    assert "documents of about 2048 tokens" in found.explanation


@pytest.mark.parametrize(
    ("per_token", "words"),
    [
        (lambda model: 72 * 70 * 14336**2 + 12 * 70 * 14336 * 2048, "output layer lost"),
        (lambda model: 6 * parameters(model) + 60 * 70 * 14336 * 2048, "five times the attention"),
        (lambda model: 6 * 12 * 70 * 14336**2 * 1000, "GFLOP/s labelled TFLOPs"),
    ],
)
def test_numbers_of_known_bugs_are_recognized(per_token: Any, words: str) -> None:
    """What single versions are known to have printed is named, and not trusted."""
    model = known("bloom-176b")
    logged = per_token(model) * 2048 / 1e12
    found = compare(logged, 1.0, shape=model, seq_len=2048, batch=8, devices=8, convention="gpt-neox")
    assert (found.kind, found.trusted) == ("version", False)
    assert words in found.explanation


def test_recomputation_that_was_not_stated_is_found() -> None:
    """A hardware number of full recomputation in a log that states none."""
    flops = CONVENTIONS["gpt-neox"].flops_per_iteration(known("gpt3-175b"), 2048, 256, "full")
    found = compare(
        flops / 640e12,
        10.0,
        shape=known("gpt3-175b"),
        seq_len=2048,
        batch=256,
        devices=64,
        recompute="none",
        convention="gpt-neox",
    )
    assert (found.kind, found.trusted) == ("recompute", False)
    assert "recomputation full, not none as stated" in found.explanation


def test_recomputation_nobody_stated_is_found_and_contradicts_nothing() -> None:
    """The same number where nothing is stated: hardware FLOPs of full recomputation, said to be inferred."""
    found = printed("gpt3-175b", "gpt-neox", recompute="full", assumed=None, convention="gpt-neox")
    assert (found.kind, found.trusted, found.counts) == ("hardware", True, "hardware")
    assert "the recomputation is not stated, and full fits" in found.explanation


@pytest.mark.parametrize("candidates", ["bigscience", ["bigscience"], "gpt-neox, bigscience"])
def test_a_number_is_named_after_the_program_that_printed_it(candidates: Any) -> None:
    """Full recomputation is the same number in four formulas: the candidate is named, not a paper."""
    found = printed("bloom-176b", "sc21", seq_len=2048, recompute="full", candidates=candidates)
    assert found.convention in candidates
    assert "sc21" not in found.explanation
    unknown = printed("bloom-176b", "sc21", seq_len=2048, recompute="full")
    assert unknown.convention == "megatron-deepspeed-2022"


def test_the_unexplained_is_held_against_what_may_be_printed() -> None:
    """The candidates are compared; without any the page says that nothing is known, and names no formula."""
    some = printed("llama3-8b", "megatron-0.10", factor=1.777, candidates="megatron-0.5,megatron-0.12")
    assert "of megatron-0.5, " in some.explanation
    assert "of megatron-0.12" in some.explanation
    none = printed("llama3-8b", "megatron-0.10", factor=1.777)
    assert "what the program counts is not known" in none.explanation
    assert not any(name in none.explanation for name in CONVENTIONS)


def test_a_step_that_cannot_be_is_refused() -> None:
    """A time of zero is an error, not an infinite speed."""
    with pytest.raises(OptionError, match="step_time_s"):
        compare(400, 0.0, shape=known("llama3-8b"), seq_len=8192, batch=8, devices=8)
