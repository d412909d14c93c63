"""What the Megatron family's parsers make of arguments, versions, unit bugs and lookalike lines."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from logmfu_parsers import gpt_neox, megatron, megatron_arguments, megatron_deepspeed, megatron_steps

from logmfu.parsing import RuleParser
from logmfu.records import Record
from logmfu.testing import lines_of

STEP = " iteration {step:8d}/{total:8d} | consumed samples: {samples:12d} |{tokens} elapsed time per iteration (ms): {ms:.1f} |{more} learning rate: {lr} | global batch size:   256 | lm loss: 2.500000E+00 | loss scale: 1.0 | number of skipped iterations:   0 | number of nan iterations:   0 |"
THROUGHPUT = " throughput per GPU (TFLOP/s/GPU): 400.0 |"
LATE, EARLY = "1.000000E-04", "1.000E-04"


def step(
    number: int = 10,
    *,
    stamp: str = "",
    more: str = THROUGHPUT,
    tokens: str = "",
    lr: str = LATE,
    ms: float = 5000.0,
) -> str:
    """An iteration line."""
    text = STEP.format(step=number, total=100, samples=number * 256, tokens=tokens, ms=ms, more=more, lr=lr)
    return f" [{stamp}]{text}" if stamp else text


def read(parser: RuleParser, *log: str) -> list[Record]:
    """Records of a log."""
    return list(parser.parse(lines_of(log)))


def facts(parser: RuleParser, *log: str) -> dict[str, Any]:
    """Latest facts of a log."""
    return {r.name: r.values["value"] for r in read(parser, *log) if r.kind == "fact"}


def steps(parser: RuleParser, *log: str) -> list[Record]:
    """Step records of a log."""
    return [record for record in read(parser, *log) if record.kind == "step"]


def derived(**arguments: Any) -> dict[str, Any]:
    """Canonical facts of these arguments."""
    return {name: value for name, value, _ in megatron_arguments.facts(arguments)}


# --- arguments ----------------------------------------------------------------------------------

HEADS = {"num_attention_heads": 32, "hidden_size": 4096}


@pytest.mark.parametrize(
    ("arguments", "kv_heads"),
    [
        ({"num_query_groups": 1, "group_query_attention": False}, 32),
        ({"num_query_groups": None, "group_query_attention": False}, 32),
        ({"num_query_groups": 8, "group_query_attention": True}, 8),
        ({"num_query_groups": 8}, 8),
        ({"num_key_value_heads": 4}, 4),
        ({"num_attention_heads_kv": 2}, 2),
        ({"attention_head_type": "multiquery"}, 1),
        ({}, 32),
    ],
)
def test_key_value_heads_follow_the_switch_and_not_the_default(arguments, kv_heads):
    """``num_query_groups`` prints 1 in versions where grouped-query attention is off."""
    assert derived(**HEADS, **arguments)["kv_heads"] == kv_heads


@pytest.mark.parametrize(
    ("arguments", "recompute"),
    [
        ({"recompute_granularity": "full", "recompute_method": "uniform"}, "full"),
        ({"recompute_granularity": "selective", "recompute_modules": None}, "selective"),
        ({"recompute_granularity": "selective", "recompute_modules": ["core_attn"]}, "selective"),
        ({"recompute_granularity": "selective", "recompute_modules": ["moe", "mlp"]}, None),
        ({"recompute_granularity": None, "checkpoint_activations": True}, "full"),
        ({"activations_checkpoint_method": "uniform"}, "full"),
        ({"recompute_granularity": None}, "none"),
        ({"checkpoint_activations": False}, "none"),
        ({}, None),
    ],
)
def test_recomputation_in_every_era(arguments, recompute):
    """What is neither none, full nor the attention core is not claimed."""
    assert derived(**arguments).get("recompute") == recompute


@pytest.mark.parametrize(("layers_recomputed", "recompute"), [(2, None), (4, "full")])
def test_block_recomputation_is_full_only_when_it_covers_a_stage(layers_recomputed, recompute):
    """16 layers on 2 x 2 (virtual) stages are 4 per stage."""
    found = derived(
        recompute_granularity="full",
        recompute_method="block",
        recompute_num_layers=layers_recomputed,
        num_layers=16,
        pipeline_model_parallel_size=2,
        virtual_pipeline_model_parallel_size=2,
    )
    assert found.get("recompute") == recompute
    assert ("recompute_note" in found) == (recompute is None)


@pytest.mark.parametrize(
    ("arguments", "note"),
    [
        (
            {"recompute_granularity": "full", "recompute_method": "block", "recompute_num_layers": 4},
            "recomputation of 4 layers per stage is not supported: no HFU",
        ),
        (
            {"activations_checkpoint_method": "block", "activations_checkpoint_num_layers": 2},
            "recomputation of 2 layers per stage is not supported: no HFU",
        ),
        (
            {"recompute_granularity": "selective", "recompute_modules": ["moe", "mlp"]},
            "recomputation of moe, mlp is not supported: no HFU",
        ),
        ({"recompute_granularity": "full", "recompute_method": "uniform"}, None),
        ({"recompute_granularity": None}, None),
    ],
)
def test_recomputation_of_parts_is_said_to_be_unsupported(arguments, note):
    """The log states it; it is only not counted."""
    assert derived(**arguments, num_layers=16).get("recompute_note") == note


@pytest.mark.parametrize(
    ("arguments", "experts", "layers"),
    [
        ({"num_experts": [1], "expert_interval": 2}, None, None),
        ({"num_experts": [64], "expert_interval": 2}, 64, 2),
        ({"num_experts": None, "moe_layer_freq": 1}, None, None),
        ({"num_experts": 8, "moe_layer_freq": [0, 1, 1]}, 8, [0, 1, 1]),
        ({"num_moe_experts": 8, "moe_layer_freq": 1}, 8, 1),
    ],
)
def test_experts_are_a_number_a_list_or_absent(arguments, experts, layers):
    """Megatron-DeepSpeed prints ``[1]`` for a dense model, Megatron ``None``."""
    found = derived(ffn_hidden_size=1024, **arguments)
    assert (found.get("experts"), found.get("moe_layers")) == (experts, layers)


@pytest.mark.parametrize(
    ("arguments", "precision"),
    [
        ({"bf16": True, "fp16": False, "fp8": None}, "bf16"),
        ({"bf16": True, "fp8": "hybrid"}, "fp8"),
        ({"bf16": True, "fp8": None, "fp4": "nvfp4"}, "fp4"),
        ({"bf16": False, "fp16": False, "params_dtype": "torch.float32"}, "fp32"),
        ({"fp16": {"enabled": True, "loss_scale": 0}, "bf16": None}, "fp16"),
        ({"bf16": False, "mixed_precision": "bf16_with_fp8_delayed_scaling_mixed"}, "fp8"),
        ({}, None),
    ],
)
def test_the_narrowest_precision_is_that_of_the_matrix_products(arguments, precision):
    """FP8 and FP4 are printed beside the type of the other layers."""
    assert derived(**arguments).get("precision") == precision


def test_a_lost_line_of_the_dump_is_not_filled_in():
    """Only v1.0, which has neither argument, means 4 x hidden; a torn dump of today does not."""
    assert derived(hidden_size=1024)["ffn"] == 4096
    assert "ffn" not in derived(hidden_size=1024, kv_channels=64)


def test_delta_layers_from_a_list():
    """Three of four layers linear: every fourth attends; none at all: beyond the last."""
    common = {"experimental_attention_variant": "gated_delta_net"}
    assert derived(**common, linear_attention_freq=[1, 1, 1, 0] * 2)["delta_every"] == 4
    assert derived(**common, linear_attention_freq=[1] * 8)["delta_every"] == 9
    assert derived(**common, linear_attention_freq=4)["delta_every"] == 4
    assert derived(**common, linear_attention_freq=[1, 1, 0, 0, 0])["delta_every"] == [1, 1, 0, 0, 0]


def test_windowed_layers_from_a_list():
    """1 for a layer within the window."""
    common = {"num_attention_heads": 4, "window_size": (128, 0)}
    assert derived(**common, window_attn_skip_freq=[1, 0, 0])["window_every"] == [1, 0, 0]
    assert derived(**common, window_attn_skip_freq=4)["window_every"] == 4


def test_a_checkpoint_overrides_the_dump():
    """``--use-checkpoint-args`` changes the shape after the arguments were printed."""
    log = [
        "------------------------ arguments ------------------------",
        "  hidden_size ..................................... 1024",
        "  num_layers ...................................... 12",
        "-------------------- end of arguments ---------------------",
    ]
    assert facts(megatron.PARSER, *log)["layers"] == 12
    assert facts(megatron.PARSER, *log, "Setting num_layers to 24 from checkpoint")["layers"] == 24


def test_the_latest_dump_holds():
    """A restart with another size prints its arguments again."""
    dump = (
        "------------------------ arguments ------------------------",
        "-------------------- end of arguments ---------------------",
    )
    log = [dump[0], "  world_size ...................................... 64", dump[1]]
    again = [dump[0], "  world_size ...................................... 32", dump[1]]
    assert facts(megatron.PARSER, *log, *again)["world_size"] == 32


# --- versions -----------------------------------------------------------------------------------

WORLD = "using world size: 8, data-parallel size: 8, context-parallel size: 1"
TODAY = "2026-08-01 00:00:00"


@pytest.mark.parametrize(
    ("log", "conventions"),
    [
        ([step(lr=EARLY)], "megatron-0.5"),
        ([step(stamp="2024-03-01 00:00:00", lr=EARLY)], "megatron-0.5"),
        ([step(stamp="2024-03-20 00:00:00", lr=EARLY)], "megatron-0.5,megatron-0.6"),
        ([step(stamp="2024-04-01 00:00:00")], "megatron-0.6"),
        ([step(stamp="2024-09-01 00:00:00")], "megatron-0.6,megatron-0.7"),
        ([step(stamp="2025-01-01 00:00:00")], "megatron-0.6,megatron-0.7,megatron-0.10"),
        ([step(stamp=TODAY)], "megatron-0.6,megatron-0.7,megatron-0.10,megatron-0.12"),
        ([f"{WORLD} tensor-model-parallel size: 1", step(stamp=TODAY)], "megatron-0.6,megatron-0.7"),
        ([f"{WORLD}, encoder-tensor-model-parallel size: 0", step(stamp=TODAY)], "megatron-0.7,megatron-0.10,megatron-0.12"),
        ([f"{WORLD}, hierarchical context-parallel sizes: Nonetensor-model-parallel size: 1", step(stamp=TODAY)], "megatron-0.10,megatron-0.12"),
        ([f"{WORLD}, hierarchical context-parallel sizes: None, tensor-model-parallel size: 1", step(stamp=TODAY)], "megatron-0.12"),
        (["  successfully saved checkpoint from iteration      10 to /c [ t 1/8, p 1/4 ]", step(stamp=TODAY)], "megatron-0.12"),
        (["  successfully loaded checkpoint from /c [ t 0, p 0 ] at iteration 5", step(stamp=TODAY)], "megatron-0.6,megatron-0.7"),
        (["Number of parameters in transformer layers in billions:  6.50", step(stamp=TODAY)], "megatron-0.6,megatron-0.7,megatron-0.10"),
        ([step(stamp="2026-08-01 00:00:00.123456")], "megatron-0.12"),
    ],
)  # fmt: skip
def test_the_formula_follows_from_layout_and_date(log, conventions):
    """One convention is a statement, several are candidates; nobody runs code from the future."""
    found = facts(megatron.PARSER, *log)
    assert found.get("convention", found.get("convention_candidates")) == conventions
    assert ("convention" in found) == ("," not in conventions)


@pytest.mark.parametrize(
    ("log", "attention"),
    [
        ([step(stamp="2024-09-01 00:00:00")], "full"),
        ([step(stamp=TODAY)], "unknown"),
        ([step(stamp="2026-08-01 00:00:00.123456")], "half"),
    ],
)
def test_attention_is_stated_only_when_all_candidates_agree(log, attention):
    """Full before 2025-03-06, half since; a log that may be either says unknown."""
    assert facts(megatron.PARSER, *log)["attention_logged"] == attention


def test_contradicting_evidence_states_no_version():
    """A fork that stamps microseconds and prints an old world-size line has new code, and no known formula."""
    found = facts(
        megatron.PARSER, f"{WORLD} tensor-model-parallel size: 1", step(stamp="2026-08-01 00:00:00.123456")
    )
    assert found["attention_logged"] == "unknown"
    assert "convention" not in found
    assert "framework_version" not in found
    assert found["step_time_includes"] == ""


@pytest.mark.parametrize(
    ("log", "includes"),
    [
        ([step(more="", lr=EARLY)], None),
        ([step(lr=EARLY)], ""),
        ([step(stamp=TODAY, more="")], ""),
        (["using world size: 8, data-parallel-size: 8, tensor-model-parallel size: 1", step(more="", lr=EARLY)], "evaluation,checkpoint"),
    ],
)  # fmt: skip
def test_what_the_step_time_contains(log, includes):
    """Evaluations and saves left the interval in core 0.5; a bare old line may be of either side."""
    assert facts(megatron.PARSER, *log).get("step_time_includes") == includes


# --- units --------------------------------------------------------------------------------------

TOKENS = " consumed tokens:     41943040 |"


def mds(rate: str, tflops: str) -> str:
    """A line of 256 samples in 5 s: 51.2 samples per second."""
    return f"{step(more='', tokens=TOKENS, lr=EARLY)} samples per second: {rate} | TFLOPs: {tflops} |"


def test_samples_per_second_a_thousand_times_too_small_are_left_out():
    """The line's own batch size and time give the bug away; the printed value keeps another name."""
    (record,) = steps(megatron_deepspeed.PARSER, mds("0.051", "120.00"))
    assert "samples_per_s" not in record.values
    assert record.values["samples_per_s_printed"] == 0.051
    assert "1000 times too small" in facts(megatron_deepspeed.PARSER, mds("0.051", "120.00"))["unit_note"]


def test_right_samples_per_second_stay():
    """51.2 per second is what the line's batch and time say."""
    (record,) = steps(megatron_deepspeed.PARSER, mds("51.200", "120.00"))
    assert record.values["samples_per_s"] == 51.2
    assert "unit_note" not in facts(megatron_deepspeed.PARSER, mds("51.200", "120.00"))


def test_gigaflops_are_noted_and_kept_as_printed():
    """120000 TFLOP/s per device cannot be."""
    (record,) = steps(megatron_deepspeed.PARSER, mds("51.200", "120000.00"))
    assert record.values["tflops_per_gpu_logged"] == 120000.0
    assert "GFLOP/s" in facts(megatron_deepspeed.PARSER, mds("51.200", "120000.00"))["unit_note"]


def test_hardware_flops_without_recomputation_are_model_flops():
    """Megatron-DeepSpeed's TFLOPs is the model's when the arguments say that nothing is recomputed."""
    dump = [
        "------------------------ arguments ------------------------",
        "  checkpoint_activations .......................... False",
        "-------------------- end of arguments ---------------------",
    ]
    line = mds("51.200", "120.00")
    assert facts(megatron_deepspeed.PARSER, line)["flops_kind"] == "hardware"
    assert facts(megatron_deepspeed.PARSER, *dump, line)["flops_kind"] == "model"


def test_the_engines_batch_stands_in_for_the_programs():
    """DeepSpeed's configuration gives the batch when neither arguments nor lines do."""
    engine = ["DeepSpeedEngine configuration:", "  train_batch_size ............. 768", "  json = {"]
    line = " iteration        1/     100 | consumed samples:          768 | elapsed time per iteration (ms): 9000.0 | learning rate: 1.000E-04 | lm loss: 9.000000E+00 | number of skipped iterations:   0 | number of nan iterations:   0 |"
    assert facts(megatron_deepspeed.PARSER, *engine, line)["global_batch_size"] == 768
    dump = [
        "------------------------ arguments ------------------------",
        "  global_batch_size ............................... 512",
        "-------------------- end of arguments ---------------------",
    ]
    assert facts(megatron_deepspeed.PARSER, *dump, *engine, line)["global_batch_size"] == 512


@given(st.decimals(min_value="0.1", max_value="9999999.9", places=1))
def test_milliseconds_are_read_without_rounding(printed):
    """A printed ``d.d`` ms is the float nearest to its thousandth."""
    assert megatron_steps.milliseconds(f"{printed}") == float(printed / 1000)


# --- lookalikes ---------------------------------------------------------------------------------

NEOX = " samples/sec: 412.500 | iteration      100/  143000 | elapsed time per iteration (ms): 2483.3 | learning rate: 2.500E-04 | lm_loss: 2.345600E+00 | number of skipped iterations:   0 | number of nan iterations:   0 |"
LINES = {"megatron": step(stamp=TODAY), "megatron_deepspeed": mds("51.200", "120.00"), "gpt_neox": NEOX}


@pytest.mark.parametrize("name", LINES)
def test_each_program_line_is_read_once_and_by_its_own_rule(name):
    """Megatron's rule leaves the other two lines alone, without calling them near misses."""
    read_by = {
        parser.name: len(steps(parser, LINES[name]))
        for parser in (megatron.PARSER, megatron_deepspeed.PARSER, gpt_neox.PARSER)
    }
    assert read_by[name] == 1
    if name != "megatron":
        assert read_by["megatron"] == 0
    for parser in (megatron.PARSER, megatron_deepspeed.PARSER, gpt_neox.PARSER):
        assert [r for r in read(parser, LINES[name]) if r.kind == "near_miss"] == []


def test_quoted_source_code_is_no_near_miss():
    """A traceback may show the lines that print the log."""
    log = [
        "    log_string += ' elapsed time per iteration (ms): {:.1f} |'.format(",
        "    print_rank_0('saving checkpoint at iteration {:7d} to {}'.format(iteration, save))",
        "    print(' > padded vocab (size: {}) with {} dummy tokens (new size: {})'.format(",
        "    print('using world size: {}, data-parallel size: {}'.format(args.world_size,",
    ]
    assert read(megatron.PARSER, *log) == []


def test_a_changed_layout_is_a_near_miss():
    """A line with the needle and without the pattern is counted, not dropped in silence."""
    (record,) = read(megatron.PARSER, "step 10 of 100 | elapsed time per iteration (ms): 5000.0 |")
    assert record.kind == "near_miss"


@given(st.integers(1, len(step(stamp=TODAY)) - 1))
def test_a_torn_line_never_gives_a_wrong_number(cut):
    """Whatever a line breaks off in is missing, or the same as in the whole line."""
    whole = step(stamp=TODAY)
    (expected,) = steps(megatron.PARSER, whole)
    for record in steps(megatron.PARSER, whole[:cut]):
        assert record.values.items() <= expected.values.items()


def test_two_lines_glued_together_are_two_records():
    """Unbuffered ranks share a physical line; each record has its own time."""
    first, second = step(1, stamp="2026-08-01 00:00:05"), step(2, stamp="2026-08-01 00:00:10")
    found = steps(megatron.PARSER, first + second)
    assert [record.values["step"] for record in found] == [1, 2]
    times = [record.values.get("time", record.line.time) for record in found]
    assert times[1] - times[0] == 5.0


def test_a_memory_report_glued_to_a_step_is_an_event():
    """The other rank's figures do not become columns of the step."""
    memory = "[Rank 2] (after 1 iterations) memory (MB) | allocated: 1.5 | max allocated: 2.5 | reserved: 3.0 | max reserved: 3.5"
    records = read(megatron.PARSER, step(stamp=TODAY) + memory)
    kinds = {record.kind: record.values for record in records if record.kind in ("step", "event")}
    assert "allocated" not in kinds["step"]
    assert kinds["event"]["mem_bytes"] == 1.5 * 2**20


def test_deepspeed_reports_beside_megatron_are_no_steps():
    """One step is one row: the engine's own line is an event."""
    report = "[2026-08-01 00:00:05,123] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, lr=[0.0001], mom=[(0.9, 0.95)]"
    records = read(megatron_deepspeed.PARSER, report, mds("51.200", "120.00"))
    assert [(r.kind, r.name) for r in records if r.kind in ("step", "event")] == [
        ("event", "engine_report"),
        ("step", "mds_iteration"),
    ]
