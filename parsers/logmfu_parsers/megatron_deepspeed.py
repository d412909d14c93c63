"""Megatron-DeepSpeed: microsoft's and BigScience's line, Megatron's other lines, and DeepSpeed's own report."""

from __future__ import annotations

import calendar
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from math import nan as NAN  # noqa: N812
from typing import Any

from logmfu import values
from logmfu.parsing import Block, Field, Item, Pairs, Rule, RuleParser, Sample, Seen
from logmfu.records import Line, Record
from logmfu.stretch import Stretch
from logmfu_parsers import deepspeed, deepspeed_engine, megatron, megatron_meaning
from logmfu_parsers.megatron_meaning import Fact
from logmfu_parsers.megatron_steps import MDS_LINE, MEGATRON_FIELDS, TEMPLATE, shifted

_FIGURES = ("global_batch_size", "step_time_s", "samples_per_s", "tflops_per_gpu_logged")
TOO_MANY_TFLOPS = 1e4
"""No accelerator does as much per device: it is GFLOP/s."""
SLOW = "samples per second is printed 1000 times too small (BigScience 2021-12-06 to 2022-01-28); left out"
GIGA = "TFLOPs is GFLOP/s (BigScience 2021-12-06 to 2022-01-05)"

ITERATION = Rule(
    name="mds_iteration",
    kind="step",
    needle="| consumed tokens: ",
    pattern=rf"\biteration +(?P<step>\d+)/ *(?P<total_steps>\d+) \|(?= consumed samples: +\d+ \| {MDS_LINE})",
    pairs=Pairs(closed="|"),
    fields={
        **MEGATRON_FIELDS,
        "elapsed time per iteration (s)": Field("step_time_s"),
        "samples per second": Field("samples_per_s"),
        "tokens per gpu per second (tgs)": Field("tokens_per_s_gpu"),
        "tokens per gpu per second(tgs)": Field("tokens_per_s_gpu"),
        "TFLOPs": Field("tflops_per_gpu_logged"),
        "actual seqlen": Field("seq_len", values.integer),
    },
    quiet=True,
    samples=(
        Sample(
            " iteration       60/    4000 | consumed samples:        15360 | consumed tokens:     31457280 | elapsed time per iteration (ms): 7001.5 | learning rate: 1.500E-04 | global batch size:   256 | lm loss: 3.250000E+00 | loss scale: 1.0 | grad norm: 1.250 | actual seqlen:  2048 | number of skipped iterations:   0 | number of nan iterations:   0 | samples per second: 36.564 | tokens per gpu per second (tgs): 1170.036 | TFLOPs: 141.50 |",
            {
                "step": 60,
                "step_time_s": 7.0015,
                "samples_per_s": 36.564,
                "tokens_per_s_gpu": 1170.036,
                "tflops_per_gpu_logged": 141.5,
                "seq_len": 2048,
            },
            version="microsoft/Megatron-DeepSpeed (2023-11)",
        ),
        Sample(
            " iteration       60/    4000 | consumed samples:        15360 | consumed tokens:     31457280 | elapsed time per iteration (ms): 7001.5 | learning rate: 1.500E-04 | global batch size:   256 | lm loss: 3.250000E+00 | loss scale: 1.0 | actual seqlen:  2048 | number of skipped iterations:   0 | number of nan iterations:   0 | samples per second: 36.564 | tokens per gpu per second(tgs): 1170.036 | TFLOPs: 141.50 |",
            {"tokens_per_s_gpu": 1170.036},
            version="a fork of it (2024)",
        ),
        Sample(
            " iteration       60/    4000 | consumed samples:       122880 | consumed tokens:    251658240 | elapsed time per iteration (s): 98.25 | learning rate: 6.000E-05 | global batch size:  2048 | lm loss: 2.250000E+00 | grad norm: 0.250 | num zeros: 0.0 | number of skipped iterations:   0 | number of nan iterations:   0 | samples per second: 20.845 | TFLOPs: 148.25 |",
            {"step_time_s": 98.25, "global_batch_size": 2048, "tflops_per_gpu_logged": 148.25},
            version="BigScience, seconds since 2022-01-28",
        ),
    ),
)

OWN: tuple[Rule, ...] = (
    Rule(
        name="save_rate",
        kind="timer",
        event="checkpoint-save",
        needle="Checkpoint Save GB: ",
        pattern=r"Checkpoint Save GB: (?P<gigabytes>[\d.]+), GB/Sec: (?P<gb_per_s>[\d.]+), Latency\(second\): (?P<seconds>[\d.]+)",
        ignore=TEMPLATE,
        samples=(
            Sample(
                "Checkpoint Save GB: 98.0, GB/Sec: 1.63, Latency(second): 60.123",
                {"seconds": 60.123, "gigabytes": 98.0},
                version="2022-08",
            ),
        ),
    ),
    Rule(
        name="effective_tflops",
        kind="event",
        event="engine_report",
        needle="Effective Tera Flops per GPU: ",
        pattern=r"Effective Tera Flops per GPU: (?P<tflops_per_gpu>[\d.]+)",
        ignore=TEMPLATE,
        samples=(
            Sample(
                "Effective Tera Flops per GPU: 41.5 and total parameters 52.005 B",
                {"tflops_per_gpu": 41.5},
                version="2021-06",
            ),
        ),
    ),
    Rule(
        name="skipped_range",
        kind="event",
        event="skip_data",
        needle="due to --skip-train-iteration-range flag",
        pattern=r"Skipped iterations (?P<first>\d+) to (?P<last>\d+) due to",
        ignore=TEMPLATE,
        samples=(
            Sample(
                "Skipped iterations 100 to 120 due to --skip-train-iteration-range flag.",
                {"first": 100, "last": 120},
                version="BigScience",
            ),
        ),
    ),
    Rule(
        name="estimated_parameters",
        kind="fact",
        event="params",
        needle="estimated model parameters: ",
        pattern=r"estimated model parameters: (?P<value>[\d.]+)",
        fields={"value": Field("value", partial(shifted, by=9))},
        ignore=TEMPLATE,
        samples=(Sample("estimated model parameters: 176.2", {"params": 176.2e9}, version="BigScience"),),
    ),
)


def _zero_stage(rows: Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
    """Of the engine's configuration only what Megatron's arguments do not say better."""
    return (fact for fact in deepspeed_engine.config_facts(rows) if fact[0] == "zero_stage")


def _reporting(rule: Rule | Block) -> Rule | Block:
    """DeepSpeed's rule as a second program's: its steps are reports of the step Megatron prints."""
    if rule is deepspeed_engine.CONFIG:
        return replace(
            deepspeed_engine.CONFIG, prefix="arg.deepspeed.", derive=_zero_stage, samples=(CONFIG_SAMPLE,)
        )
    if isinstance(rule, Rule) and rule.kind == "step":
        return replace(rule, kind="event", event="engine_report")
    return rule


CONFIG_SAMPLE = Sample(
    "DeepSpeedEngine configuration:\n"
    "  train_batch_size ............. 256\n"
    "  zero_optimization_stage ...... 1\n"
    "  json = {",
    {"arg.deepspeed.train_batch_size": 256, "zero_stage": 1},
    version="DeepSpeed 0.14.0",
)
NOT_ITS_OWN = ("named_throughput_of_step", "killing", "main_signalled")
"""DeepSpeed's rules for what others print too: Megatron's rules, and PyTorch 1.x' launcher."""
ENGINE: tuple[Rule | Block, ...] = tuple(
    _reporting(rule) for rule in deepspeed.RULES if rule.name not in NOT_ITS_OWN
)
RULES: tuple[Rule | Block, ...] = (ITERATION, *OWN, *megatron.RULES, *ENGINE)


def skim(items: Iterator[Item]) -> Iterator[Item]:
    """Known unit bugs that the line itself gives away: the value is left out, or noted where it stays.

    A stretch without such a value goes on as it is.
    """
    told: set[str] = set()
    for item in items:
        if isinstance(item, Stretch) and not item.any(ITERATION.name, _FIGURES, _faulty):
            yield item
            continue
        for record in megatron.starts(iter([item] if isinstance(item, Record) else item)):
            yield from _put_right(record, told)


def _put_right(record: Record, told: set[str]) -> Iterator[Record]:
    notes: list[str] = []
    if record.rule == ITERATION.name and record.kind == "step":
        record, notes = _checked(record)
    yield record
    for note in notes:
        if note not in told:
            told.add(note)
            yield Record("fact", "unit_note", {"value": "; ".join(sorted(told))}, record.line, "note")


def _checked(record: Record) -> tuple[Record, list[str]]:
    line = dict(record.values)
    notes = []
    if _slow(line):
        line["samples_per_s_printed"] = line.pop("samples_per_s")
        notes.append(SLOW)
    if _giga(line):
        notes.append(GIGA)
    return record._replace(values=line), notes


def _slow(values: Mapping[str, Any]) -> Any:
    """Whether (in columns: where) the samples per second are far below batch over time."""
    batch, seconds, rate, _ = (values.get(name, NAN) for name in _FIGURES)
    return (seconds > 0) & (batch > 0.1 * seconds) & (rate * seconds < 0.01 * batch)


def _giga(values: Mapping[str, Any]) -> Any:
    """Whether (in columns: where) no accelerator does as much."""
    return values.get("tflops_per_gpu_logged", NAN) > TOO_MANY_TFLOPS


def _faulty(values: Mapping[str, Any]) -> Any:
    return _slow(values) | _giga(values)


def meaning(seen: Seen) -> Iterator[Fact]:
    """Facts about the numbers; a log without Megatron-DeepSpeed's own columns is read as Megatron's."""
    batch = seen.facts.get("arg.deepspeed.train_batch_size")
    if batch and "global_batch_size" not in seen.facts and "global_batch_size" not in seen.columns:
        yield "global_batch_size", *batch
    if seen.first_step is None or (
        seen.first_step.rule == "iteration" and "tflops_per_gpu_logged" in seen.columns
    ):
        yield from megatron_meaning.meaning(seen)
        return
    yield from megatron_meaning.overridden(seen)
    line = seen.first_step.line
    yield from megatron_meaning.interval_mean(line, printing_rank="last")
    if shown := seen.columns.get("tflops_per_gpu_logged"):
        yield from _flops(seen, shown)


def _flops(seen: Seen, line: Line) -> Iterator[Fact]:
    """What ``TFLOPs`` counts: hardware FLOPs, four forward passes where three plus recomputation are done."""
    if "samples_per_s_printed" in seen.columns:
        # 2 c P T without attention and embeddings, c = 8/6 with or without recomputation (2021-12 to 2022-02-21)
        yield "framework_version", "BigScience 2021-12-06 to 2022-01-28", line
        yield "flops_kind", "hardware", line
        yield "attention_logged", "other", line
        return
    recompute, _ = seen.facts.get("recompute", (None, line))
    yield "flops_kind", "model" if recompute == "none" else "hardware", line
    yield "attention_logged", "full", line
    if "elapsed time per iteration (s): " in line.text:
        yield "framework_version", "BigScience 2022-01-28 or later", line
        yield "convention_candidates", "bigscience", line
        return
    times = [shown.time for shown in seen.rules.values() if shown.time is not None]
    if times and min(times) < calendar.timegm((2024, 8, 19, 0, 0, 0)):
        yield "framework_version", "Megatron-DeepSpeed 2022-07-11 to 2024-08-19", line
        yield "convention", "megatron-deepspeed-2022", line
    else:
        yield "framework_version", "Megatron-DeepSpeed 2022-07-11 or later", line
        yield "convention_candidates", "megatron-deepspeed-2022,megatron-deepspeed-2024", line


PARSER = RuleParser(
    name="megatron_deepspeed",
    title="Megatron-DeepSpeed",
    rules=RULES,
    skim=skim,
    refined=megatron.REFINED | {ITERATION.name},
    meaning=meaning,
    source="microsoft/Megatron-DeepSpeed to f4157bea (2024-12-24); bigscience-workshop to 8387ae17 (2023-12-07)",
)
