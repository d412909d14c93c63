"""Megatron-LM, every era, and the forks that print its line: what ``pretrain_*.py`` writes to stdout."""

from __future__ import annotations

from collections.abc import Iterator

from logmfu.parsing import RuleParser
from logmfu.records import Record
from logmfu_parsers import (
    megatron_checkpoints,
    megatron_devices,
    megatron_events,
    megatron_reports,
    megatron_startup,
    megatron_steps,
    megatron_timers,
)
from logmfu_parsers.megatron_meaning import meaning

RULES = (
    *megatron_steps.RULES,
    *megatron_startup.RULES,
    *megatron_devices.RULES,
    *megatron_timers.RULES,
    *megatron_checkpoints.RULES,
    *megatron_events.RULES,
    *megatron_reports.RULES,
)


REFINED = frozenset({"world_size"})
"""Rules whose records ``starts`` looks at."""


def starts(records: Iterator[Record]) -> Iterator[Record]:
    """The world-size line marks a process start: it comes first, and also where no dump follows."""
    for record in records:
        if record.rule == "world_size" and record.name == "world_size":
            yield Record("event", "process_start", {}, record.line, record.rule)
        yield record


PARSER = RuleParser(
    name="megatron",
    title="Megatron-LM",
    rules=RULES,
    refine=starts,
    refined=REFINED,
    meaning=meaning,
    source="NVIDIA/Megatron-LM v1.0 (2020-04) to d98e8a64dd (2026-08-22); forks to 2026-08",
)
