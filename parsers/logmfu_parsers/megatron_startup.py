"""What Megatron prints before the first iteration: arguments, sizes, parameters, stages of the start."""

from __future__ import annotations

from functools import partial
from typing import Any

from logmfu import values
from logmfu.parsing import Block, Field, Rule, Sample
from logmfu_parsers import megatron_arguments
from logmfu_parsers.megatron_steps import STAMP, TEMPLATE, TIME, shifted

WHOLE = {"value": Field("value", values.integer)}
SIZES = {
    "world": "world_size",
    "data-parallel": "data_parallel",
    "context-parallel": "context_parallel",
    "tensor-model-parallel": "tensor_parallel",
    "model-parallel": "tensor_parallel",
    "pipeline-model-parallel": "pipeline_parallel",
}
"""Parts of the world-size line; those it has beside them (encoder, hierarchical) are left alone."""

PARAMETERS = {
    "Total number of parameters": "params",
    "Total number of active parameters": "params_active",
    "Number of parameters in transformer block": "params.transformer block",
    "Number of parameters in transformer layers": "params.transformer layers",
    "Number of parameters in embedding layers": "params.embedding layers",
    "Number of parameters in most loaded shard": "params.most loaded shard",
}

_ROW = r"^\s*(?:(?P<name>[A-Za-z_]\w*+) \.++|(?P<name>\w{46,}+) ) (?P<value>\S.*)$"
_NOT_NEOX = r"(?<!\.(?:updated|default))(?<!\.{9})$"
"""GPT-NeoX pads its values with dots and a word."""


def _yaml(text: str) -> Any:
    """A scalar as YAML dumps it: ``null``, ``true``, ``false`` or a Python literal."""
    return {"null": None, "true": True, "false": False}.get(text.strip(), values.literal(text))


ARGUMENTS = Block(
    name="arguments",
    kind="fact",
    needle=" arguments ---",
    header=r"-{5,} arguments -{5,}",
    row=_ROW.removesuffix("$") + _NOT_NEOX,
    end=r"-{5,} end of arguments -{5,}",
    event="process_start",
    prefix="arg.",
    derive=megatron_arguments.facts,
    samples=(
        Sample(
            "------------------------ arguments ------------------------\n"
            "  bf16 ............................................ True\n"
            "  inference_dynamic_batching_enable_prefix_caching  False\n"
            "  num_layers ...................................... 24\n"
            "  padded_vocab_size ............................... None\n"
            "-------------------- end of arguments ---------------------",
            {"arg.num_layers": 24, "layers": 24, "precision": "bf16", "arg.padded_vocab_size": None},
            version="Megatron-LM, dots to column 48 (2020-12)",
        ),
        Sample(
            "-------------------- arguments --------------------\n"
            "  hidden_size ..................... 1024\n"
            "---------------- end of arguments ----------------",
            {"hidden": 1024, "ffn": 4096},
            version="Megatron-LM v1.0 (2020-04)",
        ),
    ),
)

BRIDGE_CONFIG = Block(
    name="bridge_config",
    kind="fact",
    needle="_target_: megatron.bridge.training.config.ConfigContainer",
    header=r"^\s*_target_: megatron\.bridge\.training\.config\.ConfigContainer",
    row=r"^(?:(?P<section>[a-z_]+):$|(?: {2})?(?P<name>[a-z]\w*+): (?P<value>\S.*)$)",
    end=r"^\s*$",
    event="process_start",
    prefix="arg.",
    parse=_yaml,
    derive=megatron_arguments.facts,
    samples=(
        Sample(
            "_target_: megatron.bridge.training.config.ConfigContainer\n"
            "mixed_precision: bf16_mixed\n"
            "model:\n"
            "  gated_linear_unit: true\n"
            "  hidden_size: 2048\n"
            "  mtp_num_layers: null\n",
            {"precision": "bf16", "glu": True, "hidden": 2048, "arg.mtp_num_layers": None},
            version="Megatron-Bridge v0.1 (2025-08)",
        ),
    ),
)

RULES: tuple[Rule | Block, ...] = (
    ARGUMENTS,
    BRIDGE_CONFIG,
    Rule(
        name="world_size",
        kind="fact",
        needle="using world size: ",
        pattern=r"(?:(?<=None)|(?<![-\w]))(?P<name>world|data-parallel|context-parallel|tensor-model-parallel|model-parallel|pipeline-model-parallel)[- ]size: (?P<value>\d+)",
        fields={"name": Field("name", SIZES.__getitem__), **WHOLE},
        ignore=TEMPLATE,
        samples=(
            Sample(
                "using world size: 32, data-parallel size: 4, context-parallel size: 1, hierarchical context-parallel sizes: None, tensor-model-parallel size: 4, pipeline-model-parallel size: 2",
                {
                    "world_size": 32,
                    "data_parallel": 4,
                    "context_parallel": 1,
                    "tensor_parallel": 4,
                    "pipeline_parallel": 2,
                },
                version="Megatron-LM core 0.13",
            ),
            Sample(
                "using world size: 32, data-parallel size: 4, context-parallel size: 1, hierarchical context-parallel sizes: Nonetensor-model-parallel size: 4, encoder-tensor-model-parallel size: 0, pipeline-model-parallel size: 2, encoder-pipeline-model-parallel size: 0",
                {"world_size": 32, "tensor_parallel": 4, "pipeline_parallel": 2},
                version="Megatron-LM core 0.10 to 0.12",
            ),
            Sample(
                "using world size: 16 and model-parallel size: 2 ",
                {"world_size": 16, "tensor_parallel": 2},
                version="Megatron-LM v1.0",
            ),
        ),
    ),
    Rule(
        name="padded_vocab",
        kind="fact",
        event="vocab",
        needle="padded vocab (size: ",
        pattern=r"padded vocab \(size: \d+\) with -?\d+ dummy tokens \(new size: (?P<value>\d+)\)",
        fields=WHOLE,
        ignore=TEMPLATE,
        samples=(
            Sample(
                " > padded vocab (size: 50257) with 431 dummy tokens (new size: 50688)", {"vocab": 50688}
            ),
        ),
    ),
    Rule(
        name="parameter_type",
        kind="fact",
        event="precision",
        needle=" for parameters ...",
        pattern=r"using torch\.(?P<value>bfloat16|float16|half|float32|float) for parameters",
        fields={"value": Field("value", {"bfloat16": "bf16", "float32": "fp32", "float": "fp32"}.get)},
        quiet=True,
        samples=(Sample("using torch.bfloat16 for parameters ...", {"precision": "bf16"}),),
    ),
    Rule(
        name="checkpoint_argument",
        kind="fact",
        needle=" from checkpoint",
        pattern=r"\bSetting (?P<name>[a-z]\w+) to (?P<value>\S.*?) from checkpoint",
        fields={"name": Field("name", "arg.{}".format), "value": Field("value", values.literal)},
        quiet=True,
        samples=(
            Sample(
                "Setting num_layers to 32 from checkpoint",
                {"arg.num_layers": 32},
                version="--use-checkpoint-args",
            ),
        ),
    ),
    Rule(
        name="train_iterations",
        kind="fact",
        event="train_steps",
        needle="setting training iterations to ",
        pattern=r"setting training iterations to (?P<value>\d+)",
        fields=WHOLE,
        ignore=TEMPLATE,
        samples=(Sample("setting training iterations to 5000", {"train_steps": 5000}),),
    ),
    Rule(
        name="rank_parameters",
        kind="fact",
        event="params_on_rank",
        needle="number of parameters on ",
        pattern=r"number of parameters on [^:]*model parallel rank \(?(?P<model_rank>[\d, ]+?)\)?(?:: |  +)(?P<value>[\d.]+)(?: (?P<unit>Billion))?",
        fields={"model_rank": Field("model_rank", values.text)},
        ignore=TEMPLATE,
        samples=(
            Sample(
                " > number of parameters on (tensor, pipeline) model parallel rank (3, 1): 805560320",
                {"params_on_rank": 805560320},
            ),
            Sample(
                " > number of parameters on model parallel rank 2            52.005 Billion",
                {"params_on_rank": 52.005},
                version="Megatron-DeepSpeed 2021",
            ),
        ),
    ),
    Rule(
        name="parameters",
        kind="fact",
        needle=" in billions: ",
        pattern=r"(?P<name>Total number of (?:active )?parameters|Number of parameters in (?:transformer block|transformer layers|embedding layers|most loaded shard)) in billions: +(?P<value>[\d.]+)",
        fields={
            "name": Field("name", PARAMETERS.__getitem__),
            "value": Field("value", partial(shifted, by=9)),
        },
        quiet=True,
        samples=(
            Sample("Total number of parameters in billions: 8.03", {"params": 8.03e9}, version="core 0.6"),
            Sample("Total number of active parameters in billions: 2.66", {"params_active": 2.66e9}),
            Sample(
                "Number of parameters in transformer block in billions:  7.50",
                {"params.transformer block": 7.5e9},
            ),
            Sample(
                "Number of parameters in transformer layers in billions:  7.50",
                {"params.transformer layers": 7.5e9},
                version="core 0.6 to 0.11",
            ),
        ),
    ),
    Rule(
        name="startup_stage",
        kind="event",
        event="startup",
        needle="] datetime: ",
        pattern=rf"\[(?P<stage>(?:after|before) (?!training is done|the start of training)[^\]]+)\] datetime: (?P<time>{STAMP})",
        fields={"time": TIME, "stage": Field("stage", values.text)},
        quiet=True,
        samples=(
            Sample(
                "[after megatron is initialized] datetime: 2025-02-03 04:05:06 ",
                {"stage": "after megatron is initialized", "time": 1738555506.0},
            ),
            Sample(
                "[before library-setup] datetime: 2026-02-03 04:05:06.250000",
                {"time": 1770091506.25},
                version="core 0.16",
            ),
        ),
    ),
    Rule(
        name="training_starts",
        kind="event",
        event="training_start",
        needle="[before the start of training step] datetime: ",
        pattern=rf"datetime: (?P<time>{STAMP})",
        fields={"time": TIME},
        samples=(
            Sample(
                "[before the start of training step] datetime: 2025-02-03 04:05:06 ", {"time": 1738555506.0}
            ),
        ),
    ),
    Rule(
        name="training",
        kind="event",
        event="training_start",
        needle="training ",
        pattern=r"^\s*(?:training \.\.\.|Starting training loop at iteration (?P<step>\d+))\s*$",
        quiet=True,
        samples=(
            Sample("training ...", version="every era"),
            Sample("Starting training loop at iteration 40", {"step": 40}, version="Megatron-Bridge"),
        ),
    ),
    Rule(
        name="initialization",
        kind="timer",
        event="initialize-megatron",
        needle="time to initialize megatron (seconds): ",
        pattern=r"\(seconds\): (?P<seconds>[\d.]+)",
        quiet=True,  # the clock may have been set back meanwhile: negative
        samples=(Sample("time to initialize megatron (seconds): 12.345", {"seconds": 12.345}),),
    ),
)
