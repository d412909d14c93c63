"""DeepSpeed: the step line, the throughput line, the pipeline engine, and the wall-clock breakdown.

Layouts: deepspeed/utils/timer.py, runtime/engine.py and runtime/pipe/engine.py, v0.3.0 to v0.19.5
(2026-08-09), checked on runs of 0.14.5 and 0.19.8.
"""

from __future__ import annotations

from logmfu import values
from logmfu.parsing import Block, Field, Pairs, Rule, RuleParser, Sample
from logmfu_parsers import (
    deepspeed_checkpoints,
    deepspeed_counters,
    deepspeed_engine,
    deepspeed_launcher,
    deepspeed_meaning,
    deepspeed_metrics,
    deepspeed_profiler,
)

INT = values.integer
TEMPLATE = r"\{"
"""A print template in quoted source code is not a record."""

STEP = Rule(
    name="step",
    kind="step",
    needle=", skipped=",
    pattern=r"(?<![\w.])step=(?P<step>[1-9]\d*+), skipped=(?P<skipped>\d++), "
    r"lr=\[(?:[a-z_][\w.]*+\()?+(?P<lr>[-+]?\d[\d.]*+(?:e[-+]?\d++)?|nan|inf)?",
    fields={"step": Field("step", INT), "skipped": Field("skipped_total", INT), "lr": Field("lr")},
    ignore=rf"\bstep=0,|{TEMPLATE}",
    samples=(
        Sample(
            "[Rank 0] step=100, skipped=2, lr=[0.0003, 0.0001], mom=[(0.9, 0.95), (0.9, 0.95)]",
            {"step": 100, "skipped_total": 2, "lr": 0.0003},
            "0.14.0",
        ),
        Sample(
            "rank:0 step=50, skipped=0, lr=[1e-05], mom=[[0.9, 0.999]]", {"step": 50, "lr": 1e-5}, "0.1.0"
        ),
        Sample("[Rank 0] step=20, skipped=0, lr=[np.float64(0.002)], mom=[0.9]", {"lr": 0.002}, "0.16.5"),
        Sample("[Rank 0] step=30, skipped=1, lr=[], mom=[]", {"step": 30}),
    ),
)

# Samples per second are of the whole job; memory is printed in GB and means GiB.
_THROUGHPUT = {
    "epoch": Field("epoch", INT),
    "RunningAvgSamplesPerSec": Field("RunningAvgSamplesPerSec"),
    "CurrSamplesPerSec": Field("CurrSamplesPerSec", also="samples_per_s"),
    "MemAllocated": Field("mem_bytes", values.size_bytes),
    "MaxMemAllocated": Field("mem_max_bytes", values.size_bytes),
}

THROUGHPUT = Rule(
    name="throughput",
    kind="step",
    needle="/global_step=",
    pattern=r"epoch=(?P<epoch>\d++)/micro_step=(?P<micro_step>\d++)/global_step=(?P<step>\d++), (?=RunningAvg)",
    pairs=Pairs(",", "="),
    fields={**_THROUGHPUT, "micro_step": Field("micro_step", INT), "step": Field("step", INT)},
    ignore=rf"vm %|{TEMPLATE}",
    samples=(
        Sample(
            "epoch=0/micro_step=400/global_step=100, RunningAvgSamplesPerSec=150.5, CurrSamplesPerSec=160.25, "
            "MemAllocated=2.0GB, MaxMemAllocated=16.0GB",
            {
                "step": 100,
                "micro_step": 400,
                "epoch": 0,
                "RunningAvgSamplesPerSec": 150.5,
                "CurrSamplesPerSec": 160.25,
                "samples_per_s": 160.25,
                "mem_bytes": 2.0 * 2**30,
                "mem_max_bytes": 16.0 * 2**30,
            },
            "0.14.0",
        ),
    ),
)

MICRO_THROUGHPUT = Rule(
    name="micro_throughput",
    kind="step",
    needle="SamplesPerSec=",
    # Counts micro steps; deepspeed_counters turns them into steps where the log allows it.
    pattern=r"(?<![\w/=.])(?P<epoch>\d++)/(?P<micro_step>\d++), (?=(?:RunningAvg)?SamplesPerSec=)",
    pairs=Pairs(",", "="),
    fields={
        **_THROUGHPUT,
        "micro_step": Field("micro_step", INT, also="step"),
        "SamplesPerSec": Field("SamplesPerSec", also="samples_per_s"),
    },
    ignore=rf"global_step=|E\dE latency=|{TEMPLATE}",
    samples=(
        Sample(
            "0/100, SamplesPerSec=150.5", {"step": 100, "micro_step": 100, "samples_per_s": 150.5}, "0.3.0"
        ),
        Sample(
            "1/200, RunningAvgSamplesPerSec=150.5, CurrSamplesPerSec=160.25, MemAllocated=2.0GB, MaxMemAllocated=16.0GB",
            {"epoch": 1, "RunningAvgSamplesPerSec": 150.5, "samples_per_s": 160.25},
            "0.7.0",
        ),
    ),
)

PIPELINE = Rule(
    name="pipeline_step",
    kind="step",
    needle=" iter time (s): ",
    pattern=r"steps: (?P<step>\d++) loss: (?P<loss>\S++)(?: moe_loss: (?P<moe_loss>\S++))?(?: \w++: \S++)*?"
    r" iter time \(s\): (?P<iter_time>\S++) samples/sec: (?P<samples>\S++)",
    fields={
        "step": Field("step", INT),
        "loss": Field("loss"),
        "moe_loss": Field("moe_loss"),
        "iter_time": Field("step_time_s"),
        "samples": Field("samples_per_s"),
    },
    ignore=TEMPLATE,
    samples=(
        Sample(
            "steps: 100 loss: 2.5000 iter time (s): 0.500 samples/sec: 512.000",
            {"step": 100, "loss": 2.5, "step_time_s": 0.5, "samples_per_s": 512.0},
            "0.9.0",
        ),
        Sample(
            "steps: 100 loss: 2.5000 moe_loss: 0.0125 iter time (s): 0.500 samples/sec: 512.000",
            {"moe_loss": 0.0125, "step_time_s": 0.5},
            "0.19.5",
        ),
    ),
)

TIMERS = Rule(
    name="wall_clock",
    kind="timer",
    needle="time (ms) | ",
    # the rank, or a name only this program uses, tells the line from another program's timers
    pattern=r"(?:(?:\brank=\d++|\[Rank -?\d++\]) time \(ms\)|^\s*+time \(ms\)(?= \| (?:fwd|bwd|optimizer_|pipe_|batch_input)))"
    r" \| (?P<name>\w++): (?P<ms>[\d.]++)|(?!^)\G[ |(,)]++(?P<name>\w++): (?P<ms>[\d.]++)",
    fields={"name": Field("name", values.text), "ms": Field("seconds", scale=1e-3)},
    quiet=True,
    samples=(
        Sample(
            "[Rank 0] time (ms) | fwd: 200.00 | bwd: 400.00 | step: 12.50",
            {"fwd": 0.2, "bwd": 0.4, "step": 0.0125},
        ),
        Sample(
            "[Rank 0] rank=0 time (ms) | forward: 200.00 | backward_inner: 400.00",
            {"backward_inner": 0.4},
            "0.5.0",
        ),
        Sample(
            "[Rank 0] time (ms) | fwd: 200.00 (fwd_moe: 100.00, top_k: 2.00)",
            {"fwd_moe": 0.1, "top_k": 0.002},
        ),
    ),
)

PHASES = Rule(
    name="rlhf_phases",
    kind="timer",
    needle="|E2E latency=",
    pattern=r"\|(?P<name>E2E latency|Gather latency|Generate time|Training time|Others)=(?P<seconds>[\d.]++)",
    fields={"name": Field("name", values.text), "seconds": Field("seconds")},
    ignore=TEMPLATE,
    samples=(
        Sample(
            "|E2E latency=8.00s |Gather latency=0.00s (0.00%) |Generate time=5.00s (62.50%) |Training time=2.50s (31.25%) "
            "|Others=0.50 (6.25%)|CurSamplesPerSec=8.00 |AvgSamplesPerSec=8.00",
            {"E2E latency": 8.0, "Generate time": 5.0, "Others": 0.5},
        ),
    ),
)

STEPS: tuple[Rule, ...] = (STEP, THROUGHPUT, MICRO_THROUGHPUT, PIPELINE)
"""Rules whose records are steps."""
RULES: tuple[Rule | Block, ...] = (
    *STEPS,
    TIMERS,
    PHASES,
    *deepspeed_engine.RULES,
    *deepspeed_checkpoints.RULES,
    *deepspeed_launcher.RULES,
    *deepspeed_profiler.RULES,
    *deepspeed_metrics.RULES,
)

PARSER = RuleParser(
    name="deepspeed",
    title="DeepSpeed",
    rules=RULES,
    skim=deepspeed_counters.skim,
    refined=deepspeed_counters.REFINED,
    meaning=deepspeed_meaning.meaning,
    source="deepspeedai/DeepSpeed v0.3.0 to v0.19.5 (2026-08-09)",
)
