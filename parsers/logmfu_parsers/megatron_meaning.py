"""What the numbers of a Megatron log mean, and the line that shows it.

The label ``throughput per GPU (TFLOP/s/GPU)`` has stood for five formulas. Which one a log has follows
from the layout of its lines, its argument names and its date; what these leave open stays open.
Dates are those of commits on Megatron-LM's main branch, tags those that contain them first.
"""

from __future__ import annotations

import calendar
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import regex

from logmfu.parsing import Seen
from logmfu.records import Line
from logmfu_parsers import megatron_arguments

Fact = tuple[str, Any, Line]
CONVENTIONS = (
    ("megatron-0.5", 5),
    ("megatron-0.6", 6),
    ("megatron-0.7", 7),
    ("megatron-0.10", 10),
    ("megatron-0.12", 12),
)
"""Conventions of ``throughput per GPU`` with the core version that starts each."""
NEWEST = 99
DATES = ((2024, 3, 13, 5), (2024, 4, 3, 6), (2024, 9, 11, 9), (2025, 3, 6, 11))
"""Before this day no code newer than core 0.x existed: the formula changed on it."""
BOTH = "evaluation,checkpoint"
"""Up to 2023-11-22 (b60ca1a8c5) the interval timer ran on during evaluations and saves."""

TEXTS: tuple[tuple[str, str, int, int], ...] = (
    ("world_size", r"data-parallel-size:", 0, 4),
    ("world_size", r"context-parallel size: \d+ tensor-", 4, 8),
    ("world_size", r"encoder-tensor-model-parallel size", 9, 13),
    ("world_size", r"context-parallel sizes: \S+?tensor-", 10, 12),
    ("world_size", r"context-parallel sizes: [^,]*, tensor-", 13, NEWEST),
    ("save_start", r"in \w+ format", 6, NEWEST),
    ("save_end", r"checkpoint at iteration", 0, 6),
    ("save_end", r"checkpoint from iteration", 7, NEWEST),
    ("save_end", r"\[ t \d+/\d+", 12, NEWEST),
    ("load_end", r"\[ t \d+, p \d+ \]", 6, 9),
    ("load_end", r"\[ t \d+/\d+", 10, NEWEST),
    ("iteration", r"throughput per GPU \(TFLOP/s/GPU\): ", 5, NEWEST),
    ("iteration", r"learning rate: \d\.\d{6}E", 6, NEWEST),
    ("iteration", r"learning rate: \d\.\d{3}E", 0, 6),
    ("iteration", r"mtp_1 loss: ", 12, NEWEST),
    ("iteration", r"energy per GPU", 13, NEWEST),
)
"""Rule, text on its first line, and the first and last core version (0.x) that prints it so."""


USUAL: dict[str, tuple[Any, ...]] = {
    "use_packed_seq_params": (False, None),
    "rl_use_sequence_packing": (False, None),
    "experimental_attention_variant": (None, "gated_delta_net"),
    "compress_ratios": (None, []),
}
"""Values of arguments with which attention is counted in full or half; with any other it is not."""


@dataclass(slots=True)
class Versions:
    """The core versions (0.x) a log can come from, with the lines that say so."""

    low: int = 0
    high: int = NEWEST
    low_line: Line | None = None
    high_line: Line | None = None

    def narrow(self, low: int, high: int, line: Line) -> None:
        """Take one piece of evidence into account."""
        if low > self.low:
            self.low, self.low_line = low, line
        if high < self.high:
            self.high, self.high_line = high, line

    @property
    def conventions(self) -> list[str]:
        """Conventions these versions print; none when the evidence contradicts itself (a fork)."""
        ends = [start - 1 for _, start in CONVENTIONS[1:]] + [NEWEST]
        spans = zip(CONVENTIONS, ends, strict=True)
        return [name for (name, start), end in spans if max(start, self.low) <= min(end, self.high)]

    def line(self, otherwise: Line) -> Line:
        """A line that shows the range."""
        return self.low_line or self.high_line or otherwise

    def __str__(self) -> str:
        if self.low and self.high < NEWEST:
            return f"core 0.{self.low}" if self.low == self.high else f"core 0.{self.low} to 0.{self.high}"
        return f"core 0.{self.low} or later" if self.low else f"core 0.{self.high} or earlier"


def interval_mean(line: Line, *, printing_rank: str) -> Iterator[Fact]:
    """What forks from before 2023-11-22 print: the mean of an interval that ran on during evaluations and saves."""
    yield "step_time_kind", "interval_mean", line
    yield "step_time_includes", BOTH, line
    yield "printing_rank", printing_rank, line


def meaning(seen: Seen) -> Iterator[Fact]:
    """Facts about a log of Megatron-LM or of a fork that prints its line."""
    yield from overridden(seen)
    if seen.first_step is None:
        return
    line = seen.first_step.line
    yield "step_time_kind", "interval_mean", line
    if seen.first_step.rule != "iteration":
        return
    fork = list(_fork(seen, line))
    yield from fork
    if fork:
        return
    versions = core_versions(seen, line)
    yield "printing_rank", "last" if "consumed_samples" in seen.columns else "unknown", line
    if microseconds(line):
        yield "first_line_repeated", True, line
    if versions.low > versions.high:  # a fork: what newer versions print is there, so is something older
        if versions.low >= 5:
            yield "step_time_includes", "", versions.line(line)
        yield from _flops(seen, [])
        return
    if versions.low or versions.high < NEWEST:
        yield "framework_version", str(versions), versions.line(line)
    if versions.low >= 5:
        yield "step_time_includes", "", versions.line(line)
    elif versions.high < 5:
        yield "step_time_includes", BOTH, versions.high_line or line
    yield from _flops(seen, versions.conventions, versions.line(line))


def overridden(seen: Seen) -> Iterator[Fact]:
    """Facts whose argument a checkpoint replaced after the dump."""
    if "checkpoint_argument" not in seen.rules:
        return
    arguments = {name[4:]: value for name, (value, _) in seen.facts.items() if name.startswith("arg.")}
    for name, value, shown in megatron_arguments.facts(arguments):
        line = seen.facts[f"arg.{shown}"][1]
        if "from checkpoint" in line.text:
            yield name, value, line


def core_versions(seen: Seen, step: Line) -> Versions:
    """The core versions whose layout, arguments and date fit."""
    found = Versions()
    for rule, text, low, high in TEXTS:
        line = seen.rules.get(rule)
        if line is not None and regex.search(text, line.text):
            found.narrow(low, high, line)
    if "params.transformer layers" in seen.facts:
        found.narrow(6, 11, seen.facts["params.transformer layers"][1])
    _narrow_by_arguments(found, seen)
    if microseconds(step):
        found.narrow(16, NEWEST, step)
    time = first_time(seen)
    if time is None:
        found.narrow(0, 5, step)
    else:
        found.narrow(0, newest_on(time), step)
    return found


def _narrow_by_arguments(found: Versions, seen: Seen) -> None:
    dump = seen.rules.get("arguments")
    if dump is None:
        return
    groups = seen.facts.get("arg.num_query_groups")
    if "arg.padded_vocab_size" in seen.facts:
        found.narrow(14, NEWEST, seen.facts["arg.padded_vocab_size"][1])
    if groups is not None and groups[0] is None:
        found.narrow(13, NEWEST, groups[1])
    if "arg.log_throughput" in seen.facts:
        found.narrow(5, NEWEST, seen.facts["arg.log_throughput"][1])
    elif "arg.num_layers" in seen.facts:
        found.narrow(0, 4, dump)


def first_time(seen: Seen) -> float | None:
    """Wall clock of the first step line: its own stamp, else one its logger put on."""
    if seen.first_step is None:
        return None
    own = seen.first_step.values.get("time")
    return seen.first_step.line.time if own is None else own


def newest_on(time: float) -> int:
    """The newest core version (0.x) whose FLOPs formula existed at this time."""
    for year, month, day, version in DATES:
        if time < calendar.timegm((year, month, day, 0, 0, 0)):
            return version
    return NEWEST


def microseconds(line: Line) -> bool:
    """Whether the iteration line is stamped finer than milliseconds: core 0.16 (c40b6ea070, 2026-01-16)."""
    if regex.search(r"\[20[^\]]{17}\.\d{6}\] +iteration", line.text):
        return True
    return line.time is not None and round(line.time * 1e6) % 1000 != 0


def _flops(seen: Seen, conventions: list[str], shown: Line | None = None) -> Iterator[Fact]:
    """Megatron never counts recomputation; attention is halved since 8873b55d6a (2025-03-06)."""
    line = seen.columns.get("tflops_per_gpu_logged")
    if line is None:
        return
    yield "flops_kind", "model", line
    if (unlike := _own_count(seen)) is not None:
        yield "attention_logged", "other", unlike
        return
    if len(conventions) == 1:
        yield "convention", conventions[0], shown or line
    elif conventions:
        yield "convention_candidates", ",".join(conventions), shown or line
    attention = {"half" if name == "megatron-0.12" else "full" for name in conventions}
    yield "attention_logged", attention.pop() if len(attention) == 1 else "unknown", shown or line


def _own_count(seen: Seen) -> Line | None:
    """The argument with which the printed FLOPs follow neither form of attention.

    Packed sequences are counted document by document (5e4fc931, core 0.18), sparse and compressed
    attention by forms of their own.
    """
    for name, usual in USUAL.items():
        value, line = seen.facts.get(f"arg.{name}", (None, None))
        if line is not None and value not in usual:
            return line
    return None


def _fork(seen: Seen, line: Line) -> Iterator[Fact]:
    """Facts about a fork whose line gives it away and whose numbers are not upstream's."""
    bridge = seen.rules.get("bridge_config") or seen.rules.get("bridge_report")
    if bridge is not None:
        yield "framework_version", "Megatron-Bridge", bridge
        yield "printing_rank", "last", line
        yield "step_time_includes", "", bridge
        yield from _flops(seen, ["megatron-0.12"])
    elif "core attn ratio (%): " in line.text:
        half = "core attn ratio (%): 50.0 " in line.text
        yield "framework_version", "MindSpeed-LLM 2.3 or later", line
        yield "printing_rank", "last", line
        yield "step_time_includes", "", line
        yield from _flops(seen, ["megatron-0.12"] if half else [])
    elif (memory := line.text.find("hip mem usage")) >= 0 and memory < line.text.find("throughput per GPU"):
        yield from _primus_trainer(seen, line)
    elif (
        "max_memory_allocated(GB)" in line.text
        or "tokens_per_s" in seen.columns
        or "samples_per_s" in seen.columns
    ):
        yield "framework_version", "MindSpeed-LLM FSDP2", line
        yield "printing_rank", "first", line
        if "mfu_logged" in seen.columns:
            yield "attention_logged", "full", seen.columns["mfu_logged"]
    elif regex.search(r"flop throughput \(TFLOP/sec/GPU\)|tokens-per-second-per-gpu", line.text):
        yield "printing_rank", "last", line
        yield from _flops(seen, [])


def _primus_trainer(seen: Seen, line: Line) -> Iterator[Fact]:
    """Primus' own trainer: its own full-attention form up to v0.6, Megatron's since e4d52d6a (v0.7)."""
    newer = "GiB" in line.text
    yield "framework_version", "Primus v0.7" if newer else "Primus v0.2 to v0.6", line
    yield "printing_rank", "last", line
    yield "step_time_includes", "", line
    yield from _flops(seen, ["megatron-0.12"] if newer else ["megatron-0.7"])
