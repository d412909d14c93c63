"""Megatron's evaluations, memory reports and exits."""

from __future__ import annotations

import regex

from logmfu import values
from logmfu.parsing import Field, Pairs, Rule, Sample
from logmfu_parsers.megatron_steps import STAMP, TEMPLATE, TIME

STEP = {"step": Field("step", values.integer), "time": TIME, "path": Field("path", values.text)}
MIB = 2.0**20
"""Megatron's MB (``torch.cuda`` bytes / 1024 / 1024)."""

EVALUATIONS: tuple[Rule, ...] = (
    Rule(
        name="evaluation",
        kind="event",
        event="eval_end",
        needle=" loss value: ",
        pattern=r"(?P<set>[\w./-]+) loss at (?:iteration +(?P<step>\d+)(?: on (?:\d+-sample draw from )?(?P<set>\w+) set)?|the end of training for (?P<set>\w+) data)[^|]*\|",
        pairs=Pairs(closed="|"),
        fields={
            "step": STEP["step"],
            "set": Field("set", values.text),
            "lm loss value": Field("loss"),
            "lm loss PPL": Field("ppl"),
        },
        ignore=TEMPLATE,
        samples=(
            Sample(
                " validation loss at iteration 1000 | lm loss value: 2.250000E+00 | lm loss PPL: 9.487736E+00 | ",
                {"step": 1000, "set": "validation", "loss": 2.25, "ppl": 9.487736},
            ),
            Sample(
                " validation loss at iteration 5000 on test set | lm loss value: 2.250000E+00 | lm loss PPL: 9.487736E+00 | ",
                {"step": 5000, "set": "test"},
                version="since 2023-07-05",
            ),
            Sample(
                " validation loss at iteration 1000 on 640-sample draw from validation set | lm loss value: 2.250000E+00 | ",
                {"set": "validation"},
                version="Megatron-DeepSpeed",
            ),
            Sample(
                " validation loss at the end of training for val data | lm loss value: 2.250000E+00 | lm loss PPL: 9.487736E+00 | ",
                {"set": "val", "loss": 2.25},
                version="up to 2023-07-05",
            ),
            Sample(
                " validation-1 loss at iteration 1000 | lm loss value: 2.250000E+00 | ",
                {"set": "validation-1"},
                version="core 0.14, several sets",
            ),
            Sample(
                " extra validation loss at iteration 1000 | consumed samples: 51200 | lm loss value: 2.250000E+00 | ",
                {"step": 1000, "consumed_samples": 51200},
                version="FlagScale",
            ),
        ),
    ),
    Rule(
        name="evaluation_starts",
        kind="event",
        event="eval_start",
        needle="Evaluating on ",
        pattern=r"Evaluating on (?P<samples>\d+) samples",
        quiet=True,
        samples=(Sample("Evaluating on 640 samples", {"samples": 640}),),
    ),
)


REASONS = {
    "after training is done": "finished",
    "exiting program at iteration": "interval",
    "exiting program after receiving": "signal",
    "exiting program after": "duration",
    "Detected kill switch at": "kill_switch",
    "Exiting program due to straggler detection.": "straggler",
}
"""What stands in the brackets of the last line, to the reason of the exit."""

EXITS: tuple[Rule, ...] = (
    Rule(
        name="exit",
        kind="event",
        needle="] datetime: ",
        pattern=rf"\[(?P<reason>{'|'.join(regex.escape(text) for text in REASONS)})(?: (?P<minutes>[\d.]+) minutes| (?P<step>\d+)| (?P<signal>SIG\w+)\.?| (?P<path>[^\],\s]+?)(?:, iteration=(?P<step>\d+))?\. ?Exiting)?\] datetime: (?P<time>{STAMP})",
        fields={
            **STEP,
            "reason": Field("reason", REASONS.__getitem__),
            "signal": Field("signal", values.text),
        },
        quiet=True,
        samples=(
            Sample(
                "[after training is done] datetime: 2025-02-03 04:05:06 ",
                {"reason": "finished", "time": 1738555506.0},
            ),
            Sample(
                "[exiting program at iteration 3000] datetime: 2025-02-03 04:05:06 ",
                {"reason": "interval", "step": 3000},
            ),
            Sample(
                "[exiting program after receiving SIGTERM.] datetime: 2025-02-03 04:05:06 ",
                {"reason": "signal", "signal": "SIGTERM"},
                version="2021-11",
            ),
            Sample(
                "[exiting program after 235.5 minutes] datetime: 2025-02-03 04:05:06 ",
                {"reason": "duration", "minutes": 235.5},
            ),
            Sample(
                "[Detected kill switch at /run/stop, iteration=1000. Exiting] datetime: 2025-02-03 04:05:06 ",
                {"reason": "kill_switch", "step": 1000},
                version="Megatron-DeepSpeed",
            ),
            Sample(
                "[Detected kill switch at /run/stop. Exiting] datetime: 2025-02-03 04:05:06 ",
                {"reason": "kill_switch", "path": "/run/stop"},
                version="BigScience",
            ),
            Sample(
                "[Exiting program due to straggler detection.] datetime: 2025-02-03 04:05:06 ",
                {"reason": "straggler"},
                version="Megatron-Bridge",
            ),
        ),
    ),
    Rule(
        name="exit_v1",
        kind="event",
        event="exit",
        needle="exiting the program at iteration ",
        pattern=rf"time: (?P<time>{STAMP}) \| exiting the program at iteration (?P<step>\d+)",
        fields=STEP,
        constants={"reason": "interval"},
        ignore=TEMPLATE,
        samples=(
            Sample(
                "rank: 0 | time: 2020-02-03 04:05:06 | exiting the program at iteration 3000",
                {"step": 3000, "time": 1580702706.0},
                version="v1.0, GPT-NeoX",
            ),
        ),
    ),
    Rule(
        name="exit_evaluation",
        kind="event",
        event="exit",
        needle="Exiting during evaluation, timelimit reached",
        pattern="timelimit reached",
        constants={"reason": "duration"},
        samples=(Sample("Exiting during evaluation, timelimit reached", {"reason": "duration"}),),
    ),
)

MEMORY: tuple[Rule, ...] = (
    Rule(
        name="memory",
        kind="event",
        needle=" memory (",
        pattern=r"(?:\[Rank (?P<rank>\d+)\] )?\(?(?P<when>after|before)(?: save_checkpoint for iteration)? (?P<step>\d+)(?: iterations)?\)? memory \([MG]B\) \|",
        pairs=Pairs(),
        fields={
            "rank": Field("rank", values.integer),
            "step": STEP["step"],
            "when": Field("when", values.text),
            "allocated": Field("mem_bytes", scale=MIB),
            "max allocated": Field("mem_max_bytes", values.first_number, MIB),
            "reserved": Field("mem_reserved_bytes", scale=MIB),
            "cached": Field("mem_reserved_bytes", scale=MIB),
            "max reserved": Field("mem_max_reserved_bytes", values.first_number, MIB),
            "max cached": Field("mem_max_reserved_bytes", values.first_number, MIB),
            "mem-allocated-gigabytes": Field("mem_bytes", scale=1e9),
            "mem-max-allocated-gigabytes": Field("mem_max_bytes", scale=1e9),
        },
        quiet=True,
        samples=(
            Sample(
                "[Rank 5] (after 10 iterations) memory (MB) | allocated: 1024.0 | max allocated: 2048.5 | reserved: 4096.0 | max reserved: 4096.0",
                {"rank": 5, "step": 10, "mem_bytes": 2.0**30, "mem_reserved_bytes": 2.0**32},
                version="v2.0",
            ),
            Sample(
                "after 10 iterations memory (MB) | allocated: 1024.0 | max allocated: 2048.5 | cached: 4096.0 | max cached: 4096.0",
                {"step": 10, "mem_max_reserved_bytes": 2.0**32},
                version="v1.0, GPT-NeoX",
            ),
            Sample(
                "[Rank 0] (before save_checkpoint for iteration 500) memory (MB) | allocated: 1024.00 | max allocated: 2048.50 | reserved: 4096.00 | max reserved: 4096.00",
                {"step": 500, "when": "before"},
                version="core 0.16",
            ),
            Sample(
                "[Rank 0] (after 20 iterations) memory (GB) | mem-allocated-gigabytes: 12.5 | mem-max-allocated-gigabytes: 31.25 | mem-alloc-retires: 0",
                {"mem_max_bytes": 31.25e9, "mem_alloc_retires": 0},
                version="Megatron-Bridge v0.2",
            ),
        ),
    ),
    Rule(
        name="worst_rank_memory",
        kind="event",
        event="memory",
        needle=" max mem usage/usage_ratio: ",
        pattern=r"\brank-(?P<rank>\d+) (?:rocm )?max mem usage/usage_ratio: (?P<mem_max_bytes>[\d.]+ ?[KMGT]i?B)",
        fields={"mem_max_bytes": Field("mem_max_bytes", values.size_bytes)},
        ignore=TEMPLATE,
        samples=(
            Sample(
                "rank-5 rocm max mem usage/usage_ratio: 64.00GB/25.00%",
                {"rank": 5, "mem_max_bytes": 2.0**36},
                version="Primus",
            ),
        ),
    ),
)

RULES: tuple[Rule, ...] = (*EVALUATIONS, *EXITS, *MEMORY)
