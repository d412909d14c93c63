"""Megatron's timers: one line per rank up to 2022-08-10, a block over all ranks since."""

from __future__ import annotations

from logmfu import values
from logmfu.parsing import Block, Field, Rule, Sample
from logmfu_parsers.megatron_steps import milliseconds

MS = Field("seconds", milliseconds)
_ROW_MINMAX = r"^\s*(?P<name>[A-Za-z][\w/ -]*?) \.*: \((?P<min_s>[\d.]+), (?P<max_s>[\d.]+)\)\s*$"
_ROW_MAX = r"^\s*(?P<name>[A-Za-z][\w/ -]*?) \.+: (?P<seconds>[\d.]+)\s*$"
_ROW_ALL = r"^\s*(?P<section>[A-Za-z][\w/-]*):\s*$|^\s*rank +(?P<rank>\d+): (?P<seconds>[\d.]+)\s*$"

RULES: tuple[Rule | Block, ...] = (
    Block(
        name="timers",
        kind="timer",
        needle=" across ranks (ms):",
        header=r"^\s*(?:INFO:[\w.]+:)?(?:\(min, max\) time|max time|times) across ranks \(ms\):",
        row=f"{_ROW_MINMAX}|{_ROW_MAX}|{_ROW_ALL}",
        foreign=20,
        fields={
            "min_s": Field("min_s", milliseconds),
            "max_s": Field("max_s", milliseconds, also="seconds"),
            "seconds": MS,
            "rank": Field("rank", values.integer),
        },
        samples=(
            Sample(
                "(min, max) time across ranks (ms):\n"
                "    forward-backward ...............................: (4100.50, 4110.75)\n"
                "    train/valid/test-data-iterators-setup ..........: (20.00, 21.50)",
                {"forward-backward": {"min_s": 4.1005, "max_s": 4.11075}},
                version="since 2022-08-10; minmax is the default since core 0.5",
            ),
            Sample(
                "max time across ranks (ms):\n    save-checkpoint ................................: 12345.67",
                {"save-checkpoint": {"seconds": 12.34567}},
                version="--timing-log-option max, core 0.5",
            ),
            Sample(
                "times across ranks (ms):\n  optimizer:\n     rank  0: 101.50\n     rank 10: 102.25",
                {"optimizer": {"rank": 10, "seconds": 0.10225}},
                version="--timing-log-option all, core 0.5",
            ),
        ),
    ),
    Rule(
        name="timer_line",
        kind="timer",
        needle="time (ms) |",
        pattern=r"(?:^\s*time \(ms\)(?! \| (?:fwd|bwd|optimizer_|pipe_|batch_input))|(?!^)\G) \| (?P<name>[A-Za-z][^|:]*): (?P<seconds>\d+\.\d+)",
        fields={"name": Field("name", values.text), "seconds": MS},
        quiet=True,
        samples=(
            Sample(
                "time (ms) | forward-compute: 2500.12 | backward-compute: 2000.34 | optimizer: 50.10 | batch generator: 1.60",
                {"forward-compute": {"seconds": 2.50012}, "batch generator": {"seconds": 0.0016}},
                version="up to 2022-08-10; BigScience, Megatron-DeepSpeed, GPT-NeoX",
            ),
        ),
    ),
)
