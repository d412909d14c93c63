"""GPT-NeoX: its line and arguments, what it keeps of Megatron's output, and DeepSpeed's own report."""

from __future__ import annotations

import calendar
from collections.abc import Iterator
from typing import Any

from logmfu import values
from logmfu.parsing import Block, Field, Pairs, Rule, RuleParser, Sample, Seen
from logmfu.records import Line
from logmfu_parsers import megatron, megatron_arguments, megatron_meaning
from logmfu_parsers.megatron_deepspeed import ENGINE
from logmfu_parsers.megatron_meaning import Fact
from logmfu_parsers.megatron_steps import COMMON_FIELDS, TEMPLATE, shifted


def _padded(text: str) -> Any:
    """``32..........................updated``: the value without its dots and the word that says who set it."""
    bare = text.strip().removesuffix("updated").removesuffix("default")
    return values.literal(bare.rstrip("."))


def _teraflops(text: str) -> float:
    """``120.5TFLOPS``, with a decimal prefix that follows the size of the number."""
    number, prefix = text.removesuffix("FLOPS")[:-1], text.removesuffix("FLOPS")[-1:]
    return shifted(number, by={"K": -9, "M": -6, "G": -3, "T": 0, "P": 3}.get(prefix, 0))


OWN: tuple[Rule | Block, ...] = (
    Rule(
        name="neox_iteration",
        kind="step",
        needle="elapsed time per iteration",
        pattern=r"samples/sec: (?P<samples_per_s>[\d.]+) \| iteration +(?P<step>\d+)/ *(?P<total_steps>\d+) \|",
        pairs=Pairs(closed="|"),
        fields={
            **COMMON_FIELDS,
            "lm_loss": Field("loss"),
            "approx flops per GPU": Field("tflops_per_gpu_logged", _teraflops),
            "MFU": Field("mfu_logged", values.percent),
            "HFU": Field("hfu_logged", values.percent),
        },
        quiet=True,
        samples=(
            Sample(
                " samples/sec: 206.500 | iteration       40/  143000 | elapsed time per iteration (ms): 4958.8 | learning rate: 1.500E-04 | approx flops per GPU: 1.1PFLOPS | lm loss: 5.250000E+00 | loss scale: 4096.0 | number of skipped iterations:   0 | number of nan iterations:   0 |",
                {"loss": 5.25, "tflops_per_gpu_logged": 1100.0},
                version="2021-03",
            ),
            Sample(
                " samples/sec: 206.500 | iteration       40/  143000 | elapsed time per iteration (ms): 4958.8 | learning rate: 1.500E-04 | approx flops per GPU: 112.5TFLOPS | lm_loss: 5.250000E+00 | loss scale: 4096.0 | number of skipped iterations:   0 | number of nan iterations:   0 |",
                {
                    "samples_per_s": 206.5,
                    "step": 40,
                    "step_time_s": 4.9588,
                    "tflops_per_gpu_logged": 112.5,
                    "loss": 5.25,
                },
                version="2021-05",
            ),
            Sample(
                " samples/sec: 206.500 | iteration       40/  143000 | elapsed time per iteration (ms): 4958.8 | learning rate: 1.500E-04 | approx flops per GPU: 980.5GFLOPS | MFU: 30.25% | HFU: 40.50% | lm_loss: 5.250000E+00 | number of skipped iterations:   0 | number of nan iterations:   0 |",
                {"tflops_per_gpu_logged": 0.9805, "mfu_logged": 0.3025, "hfu_logged": 0.405},
                version="2024-12",
            ),
        ),
    ),
    Block(
        name="arguments",
        kind="fact",
        needle=" arguments ---",
        header=r"-{5,} arguments -{5,}",
        row=r"^\s*(?P<name>[A-Za-z_]\w*+) (?:\.++ | )(?P<value>\S.*)$",
        end=r"-{5,} end of arguments -{5,}",
        event="process_start",
        prefix="arg.",
        parse=_padded,
        derive=megatron_arguments.facts,
        samples=(
            Sample(
                "-------------------- arguments --------------------\n"
                "  hidden_size ..................... 1024........................updated\n"
                "  intermediate_size ............... None........................default\n"
                "  num_attention_heads ............. 16..........................updated\n"
                "  fp16 ............................ {'enabled': True, 'loss_scale': 0}updated\n"
                "---------------- end of arguments ----------------",
                {"hidden": 1024, "head_dim": 64, "arg.intermediate_size": None, "precision": "fp16"},
            ),
        ),
    ),
    Rule(
        name="neox_evaluation",
        kind="event",
        event="eval_end",
        needle=" results at ",
        pattern=r"(?P<set>\w+) results at (?:iteration +(?P<step>\d+)|the end of training for (?P<set>\w+) data)[^|]*\|",
        pairs=Pairs(closed="|"),
        fields={
            "set": Field("set", values.text),
            "lm_loss value": Field("loss"),
            "lm_loss_ppl value": Field("ppl"),
        },
        quiet=True,
        samples=(
            Sample(
                " validation results at iteration 1000 | lm_loss value: 2.250000E+00 | lm_loss_ppl value: 9.487736E+00 | ",
                {"step": 1000, "loss": 2.25, "ppl": 9.487736},
                version="2021-06-24",
            ),
            Sample(
                " test results at the end of training for test data | lm_loss value: 2.250000E+00 | lm_loss_ppl value: 9.487736E+00 | ",
                {"set": "test"},
            ),
        ),
    ),
    Rule(
        name="neox_parameters",
        kind="fact",
        event="params",
        needle=" > total params: ",
        pattern=r"total params: (?P<value>[\d,]+)",
        fields={"value": Field("value", values.integer)},
        ignore=TEMPLATE,
        samples=(Sample(" > total params: 70,426,624", {"params": 70426624}),),
    ),
    Rule(
        name="neox_resume",
        kind="event",
        event="load_end",
        needle="Loading checkpoint and starting from iteration ",
        pattern=r"starting from iteration (?P<step>\d+)",
        ignore=TEMPLATE,
        samples=(Sample("Loading checkpoint and starting from iteration 1000", {"step": 1000}),),
    ),
)
KEPT = (
    "world_size",
    "padded_vocab",
    "training",
    "nvidia_device",
    "amd_device",
    "timer_line",
    "memory",
    "exit_v1",
)
"""Megatron's rules for what GPT-NeoX still prints as Megatron did."""
MEGATRON = tuple(rule for rule in megatron.RULES if rule.name in KEPT)


def meaning(seen: Seen) -> Iterator[Fact]:
    """Facts about the numbers: rank 0 prints, and the interval's time is divided by the log interval."""
    if seen.first_step is None:
        return
    line = seen.first_step.line
    yield from megatron_meaning.interval_mean(line, printing_rank="first")
    if shown := seen.columns.get("tflops_per_gpu_logged"):
        yield from _flops(seen, shown)


def _flops(seen: Seen, line: Line) -> Iterator[Fact]:
    """``approx flops`` was T(6P + 60shL), without recomputation, up to 2023-09-27, then the 96BsLh2 form."""
    peak = seen.facts.get("arg.peak_theoretical_tflops")
    if "mfu_logged" in seen.columns or peak is not None:
        if peak is not None and isinstance(peak[0], int | float):
            yield "logged_peak_tflops", float(peak[0]), peak[1]
        yield "framework_version", "2024-12-19 or later", line
        yield "convention", "gpt-neox", line
        yield "flops_kind", "hardware", line
        yield "attention_logged", "full", line
        return
    times = [shown.time for shown in seen.rules.values() if shown.time is not None]
    if times and min(times) < calendar.timegm((2023, 9, 27, 0, 0, 0)):
        yield "framework_version", "before 2023-09-27", line
        yield "flops_kind", "unknown", line
        yield "attention_logged", "other", line
        return
    if times and min(times) < calendar.timegm((2023, 12, 6, 0, 0, 0)):
        yield "framework_version", "before 2023-12-06", line
        yield "unit_note", "approx flops leaves out the logits in code of 2023-09-27 to 2023-12-06", line
    else:
        yield "convention_candidates", "gpt-neox", line
    yield "flops_kind", "unknown", line
    yield "attention_logged", "unknown", line


PARSER = RuleParser(
    name="gpt_neox",
    title="GPT-NeoX",
    rules=(*OWN, *MEGATRON, *ENGINE),
    refine=megatron.starts,
    refined=megatron.REFINED,
    meaning=meaning,
    source="EleutherAI/gpt-neox 2021-03 to ea7aefd8 (2026-05-20)",
)
