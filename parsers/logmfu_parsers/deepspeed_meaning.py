"""What DeepSpeed's numbers contain, drawn from what a log has shown.

The timers run from forward to the end of ``step()`` (utils/timer.py), the pipeline's over
``train_batch()`` (runtime/pipe/engine.py): evaluation, checkpoints and a user's own data loading between
steps are outside either.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from logmfu.parsing import Seen
from logmfu.records import Line
from logmfu_parsers.deepspeed_versions import LAST_STEP, span_text, spans_of

Facts = Iterable[tuple[str, Any, Line]]


def meaning(seen: Seen) -> Facts:
    """Facts about the printed numbers, each with the line that proves it."""
    for facts in (_printing, _kind, _profile, _version, _world, _saves):
        yield from facts(seen)


def _printing(seen: Seen) -> Facts:
    for rule in ("step", "throughput", "micro_throughput", "pipeline_step"):
        if rule in seen.rules:
            yield "printing_rank", "first", seen.rules[rule]
            return


def _kind(seen: Seen) -> Facts:
    for column, rule, kind in (
        ("step_time_s", "pipeline_step", "interval_mean"),
        ("CurrSamplesPerSec", "throughput", "single_step"),
        ("CurrSamplesPerSec", "micro_throughput", "single_step"),
        ("SamplesPerSec", "micro_throughput", "running_mean"),
    ):
        if column in seen.columns and rule in seen.rules:
            if rule == "pipeline_step" and LAST_STEP.note in str(seen.facts.get("unit_note")):
                kind = "single_step"
            yield "step_time_includes", "", seen.columns[column]
            yield "step_time_kind", kind, seen.columns[column]
            return


def _profile(seen: Seen) -> Facts:
    accumulation = seen.facts.get("grad_accumulation", (1, None))[0]
    if "flops_profile" in seen.rules and isinstance(accumulation, int) and accumulation > 1:
        text = (
            f"with {accumulation} micro steps to a step the profiler prints a block for each; latencies add up "
            "over them (only the first block's forward and backward are of one micro step), and its "
            "samples/second leaves the accumulation out"
        )
        yield "profile_note", text, seen.rules["flops_profile"]


def _version(seen: Seen) -> Facts:
    """The range of versions whose source has its print call on the line the prefix names."""
    if "framework_version" in seen.facts:
        return
    for rule in ("throughput", "micro_throughput", "step", "step_zero"):
        if (line := seen.rules.get(rule)) and (spans := spans_of(line.origin)):
            yield "framework_version", span_text(spans), line
            return


def _world(seen: Seen) -> Facts:
    """The data-parallel size, where nothing in the log speaks of another kind of parallelism."""
    if "world_size" in seen.facts or "pipeline_step" in seen.rules or "data_parallel" not in seen.facts:
        return
    size, line = seen.facts["data_parallel"]
    yield "world_size", size, line
    note = (
        "world_size is the configuration's number of data-parallel ranks; "
        "a run with tensor, pipeline or sequence parallelism has more devices"
    )
    yield "world_size_note", note, line


def _saves(seen: Seen) -> Facts:
    begun = seen.rules.get("save_begins") or seen.rules.get("save_begins_early")
    if begun and not seen.rules.keys() & {"save_ready", "zero_saved"}:
        yield "save_note", "DeepSpeed does not print the end of a save since 0.17.1", begun
