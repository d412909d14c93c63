"""DeepSpeed's lines beside the steps: start, config dump, overflow, checkpoints, memory, launcher.

Layouts: deepspeed/runtime/engine.py, runtime/config.py, runtime/fp16/loss_scaler.py, runtime/utils.py,
runtime/checkpoint_engine/, launcher/launch.py, v0.3.0 to v0.19.5 (2026-08-09).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from logmfu import values
from logmfu.parsing import Block, Field, Rule, Sample

INT = values.integer


def config_facts(rows: Mapping[str, Any]) -> Iterable[tuple[str, Any, str]]:
    """Canonical facts of a config dump.

    ``world_size`` there is the size of the data-parallel group: train_batch_size = micro batch x
    accumulation x world_size (runtime/config.py), also in a run with tensor or pipeline parallelism.
    """
    for row, name in _CANONICAL.items():
        if isinstance(rows.get(row), int) and not isinstance(rows[row], bool):
            yield name, rows[row], row
    for row, precision in _PRECISION.items():
        if rows.get(row) is True or "enabled=True" in str(rows.get(row)):
            yield "precision", precision, row


_CANONICAL = {
    "train_batch_size": "global_batch_size",
    "train_micro_batch_size_per_gpu": "micro_batch_size",
    "gradient_accumulation_steps": "grad_accumulation",
    "steps_per_print": "log_interval",
    "world_size": "data_parallel",
    "zero_optimization_stage": "zero_stage",
}
_PRECISION = {
    "bfloat16_enabled": "bf16",
    "bfloat16_config": "bf16",
    "fp16_enabled": "fp16",
    "float16_config": "fp16",
}

CONFIG = Block(
    name="config",
    kind="fact",
    needle=" configuration:",
    header=r"DeepSpeed(?:Engine|Light)? configuration:\s*+$",
    # 29 columns of name and dots; a longer name has two blanks and no dots
    row=r"^\s*+(?P<name>[a-z]\w*+) (?:\.++ | )(?P<value>(?!\{$)\S.*+)$",
    end=r"^\s*+json = ",
    prefix="arg.",
    foreign=200,
    derive=config_facts,
    samples=(
        Sample(
            "DeepSpeedEngine configuration:\n"
            "  activation_checkpointing_config  {\n"
            '    "partition_activations": false\n'
            "}\n"
            "  bfloat16_enabled ............. True\n"
            "  fp16_enabled ................. False\n"
            "  gradient_accumulation_steps .. 4\n"
            "  train_batch_size ............. 512\n"
            "  train_micro_batch_size_per_gpu  2\n"
            "  world_size ................... 64\n"
            "  zero_optimization_stage ...... 2\n"
            "  json = {",
            {
                "arg.train_micro_batch_size_per_gpu": 2,
                "global_batch_size": 512,
                "micro_batch_size": 2,
                "grad_accumulation": 4,
                "data_parallel": 64,
                "zero_stage": 2,
                "precision": "bf16",
            },
            "0.14.0",
        ),
    ),
)

START = (
    Rule(
        name="version",
        kind="event",
        event="process_start",
        needle="DeepSpeed info: version=",
        pattern=r"DeepSpeed info: version=(?P<version>[^,\s]++), git-hash=(?P<git_hash>[^,\s]++)",
        fields={"version": Field("version", values.text), "git_hash": Field("git_hash", values.text)},
        ignore=r"\{",
        samples=(
            Sample(
                "[Rank -1] DeepSpeed info: version=0.14.0, git-hash=unknown, git-branch=unknown",
                {"version": "0.14.0", "git_hash": "unknown"},
            ),
        ),
    ),
    Rule(
        name="step_zero",
        kind="event",
        event="process_start",
        needle="step=0, skipped=",
        pattern=r"(?<![\w.])step=(?P<step>0), skipped=\d",
        fields={"step": Field("step", INT)},
        samples=(Sample("[Rank 0] step=0, skipped=0, lr=[0.0001], mom=[(0.9, 0.95)]", {"step": 0}),),
    ),
)

OVERFLOW = Rule(
    name="overflow",
    kind="event",
    event="overflow",
    needle="Skipping step.",
    pattern=r"(?:(?i:overflow)!|Overflow detected\.)(?: Rank (?P<rank>\d++))? Skipping step\."
    r"(?: Attempted loss scale: (?P<loss_scale>[\d.e+]++), (?:reducing to (?P<new_loss_scale>[\d.e+]++)"
    r"|but hysteresis is (?P<hysteresis>\d++)))?",
    fields={
        "rank": Field("rank", INT),
        "loss_scale": Field("loss_scale"),
        "new_loss_scale": Field("new_loss_scale"),
        "hysteresis": Field("hysteresis", INT),
    },
    ignore=r"\{",
    samples=(
        Sample(
            "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 4096, reducing to 2048",
            {"rank": 0, "loss_scale": 4096.0, "new_loss_scale": 2048.0},
            "0.8.3",
        ),
        Sample(
            "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 4096, but hysteresis is 2. "
            "Reducing hysteresis to 1",
            {"loss_scale": 4096.0, "hysteresis": 2},
            "0.8.3",
        ),
        Sample("[deepspeed] OVERFLOW! Rank 0 Skipping step.", {"rank": 0}, "0.8.3"),
        Sample(
            "[deepscale] OVERFLOW! Rank 3 Skipping step. Attempted loss scale: 4096.0, reducing to 2048.0",
            {"rank": 3, "new_loss_scale": 2048.0},
            "0.5.0",
        ),
        Sample(
            "[Rank 0] Overflow detected. Skipping step. Attempted loss scale: 4096.0, reducing to 2048.0",
            {"loss_scale": 4096.0},
            "0.4.0",
        ),
        Sample(
            "[deepspeed] fp16 dynamic loss scale overflow! Skipping step. Attempted loss scale: 4096.0, "
            "reducing to 2048.0",
            {"new_loss_scale": 2048.0},
            "0.4.0",
        ),
    ),
)

MEMORY = (
    Rule(
        name="memory_usage",
        kind="event",
        event="memory",
        needle="Max_MA ",
        pattern=r"\bMA (?P<mem>[\d.]++ GB)\s++Max_MA (?P<mem_max>[\d.]++ GB)\s++CA (?P<cached>[\d.]++ GB)"
        r"\s++Max_CA (?P<cached_max>[\d.]++ GB)",
        fields={
            "mem": Field("mem_bytes", values.size_bytes),
            "mem_max": Field("mem_max_bytes", values.size_bytes),
            "cached": Field("cached_bytes", values.size_bytes),
            "cached_max": Field("cached_max_bytes", values.size_bytes),
        },
        ignore=r"\{",
        samples=(
            Sample(
                "MA 1.5 GB         Max_MA 2.0 GB         CA 2.5 GB         Max_CA 3 GB ",
                {"mem_bytes": 1.5 * 2**30, "cached_max_bytes": 3.0 * 2**30},
            ),
        ),
    ),
    Rule(
        name="host_memory",
        kind="event",
        event="memory",
        needle=", swap ",
        pattern=r"global_step=(?P<step>\d++), vm %: (?P<vm>[\d.]++), swap %: (?P<swap>[\d.]++)"
        r"|\d++/(?P<micro_step>\d++), vm percent: (?P<vm>[\d.]++), swap percent: (?P<swap>[\d.]++)",
        fields={
            "step": Field("step", INT),
            "micro_step": Field("micro_step", INT),
            "vm": Field("host_used", values.percent),
            "swap": Field("swap_used", values.percent),
        },
        quiet=True,
        samples=(
            Sample(
                "epoch=0/micro_step=8/global_step=4, vm %: 25.0, swap %: 50.0",
                {"step": 4, "host_used": 0.25},
            ),
            Sample(
                "0/50, vm percent: 25.0, swap percent: 50.0", {"micro_step": 50, "swap_used": 0.5}, "0.7.0"
            ),
        ),
    ),
    Rule(
        name="cache_flush",
        kind="event",
        event="memory_pressure",
        needle="allocator cache flushes since last step",
        pattern=r"(?P<flushes>\d++) (?:pytorch )?allocator cache flushes since last step",
        fields={"flushes": Field("flushes", INT)},
        ignore=r"\{",
        samples=(
            Sample(
                "3 pytorch allocator cache flushes since last step. this happens when there is high memory "
                "pressure and is detrimental to performance.",
                {"flushes": 3},
                "0.10.1",
            ),
            Sample("1 allocator cache flushes since last step", {"flushes": 1}),
        ),
    ),
)

EVALUATION = (
    Rule(
        name="evaluating",
        kind="event",
        event="eval_start",
        needle="***** Evaluating ",
        pattern=r"\*{5} Evaluating (?P<what>[\w ]++), Epoch (?P<epoch>\d++)/(?P<epochs>\d++)",
        fields={
            "what": Field("what", values.text),
            "epoch": Field("epoch", INT),
            "epochs": Field("epochs", INT),
        },
        quiet=True,
        samples=(
            Sample("***** Evaluating perplexity, Epoch 2/4 *****", {"epoch": 2, "what": "perplexity"}),
        ),
    ),
    Rule(
        name="perplexity",
        kind="event",
        event="eval_end",
        needle="ppl",
        pattern=r"^(?:'step': ?(?P<script_step>\d++), )?(?P<quote>')?ppl(?(quote)'): (?P<perplexity>[\d.]++(?:e\+?\d++)?|inf|nan)"
        r"(?:, loss: (?P<loss>[\d.]++|inf|nan))?",
        fields={
            "script_step": Field("script_step", INT),
            "quote": Field("quote", values.text),
            "perplexity": Field("perplexity"),
            "loss": Field("loss"),
        },
        quiet=True,
        samples=(
            Sample("ppl: 4.5", {"perplexity": 4.5}),
            Sample("ppl: 4.5, loss: 1.5", {"loss": 1.5}),
            Sample("'step':20, 'ppl': 64.25, 'seq_len': 128", {"perplexity": 64.25, "script_step": 20}),
        ),
    ),
    Rule(
        name="accuracy",
        kind="event",
        event="eval_end",
        needle="Accuracy of the network on",
        pattern=r"Accuracy of the network on the (?P<images>\d++) test images: (?P<accuracy>[\d.]++ ?%)",
        fields={"images": Field("images", INT), "accuracy": Field("accuracy", values.percent)},
        quiet=True,
        samples=(
            Sample(
                "Accuracy of the network on the 500 test images: 50 %", {"accuracy": 0.5, "images": 500}
            ),
        ),
    ),
)

RULES: tuple[Rule | Block, ...] = (CONFIG, *START, OVERFLOW, *MEMORY, *EVALUATION)
