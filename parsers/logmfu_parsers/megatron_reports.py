"""Megatron's second opinions: stragglers, reruns, energy, and throughput said elsewhere than on the iteration line."""

from __future__ import annotations

from functools import partial

from logmfu import values
from logmfu.parsing import Field, Pairs, Rule, Sample
from logmfu_parsers.megatron_steps import STAMP, TEMPLATE, TIME, milliseconds, shifted

STEP = Field("step", values.integer)

RULES: tuple[Rule, ...] = (
    Rule(
        name="straggler",
        kind="event",
        needle="| MnRtt/Rnk: ",
        pattern=r"\| MnRtt/Rnk: (?P<min_s>[\d.]+)ms/(?P<fastest_rank>\d+) \| MxRtt/Rnk: (?P<max_s>[\d.]+)ms/(?P<slowest_rank>\d+) \|",
        pairs=Pairs(),
        fields={"min_s": Field("min_s", milliseconds), "max_s": Field("max_s", milliseconds)},
        ignore=TEMPLATE,
        samples=(
            Sample(
                "[2025-02-03 04:05:06] | MnRtt/Rnk: 4001.50ms/3 | MxRtt/Rnk: 4123.25ms/17 | MnPwr/Rnk: 401.00W/5 | MnEtpt/Rnk: 130.12TF/17",
                {"min_s": 4.0015, "slowest_rank": 17, "mnetpt_rnk": "130.12TF/17"},
                version="--log-straggler, 2024-04",
            ),
        ),
    ),
    Rule(
        name="straggler_warning",
        kind="event",
        event="straggler",
        needle="STRAGGLER DETECTION WARNING: ",
        pattern=r"Affected ranks: (?P<ranks>.+)",
        fields={"ranks": Field("ranks", values.text)},
        ignore=TEMPLATE,
        samples=(
            Sample(
                "STRAGGLER DETECTION WARNING: Some GPUs have worse relative performance. Affected ranks: 3, 11",
                {"ranks": "3, 11"},
                version="Megatron-Bridge",
            ),
        ),
    ),
    Rule(
        name="unexpected_result",
        kind="event",
        event="rerun",
        needle="nexpected result",
        pattern=r"Unexpected result (?P<result>\S+) on rank (?P<rank>\d+) at iteration #(?P<step>\d+) invocation #\d+ \(message='(?P<message>[^']*)|Rank (?P<rank>\d+), node (?P<host>[^,]+), device \d+, iteration #?(?P<step>\d+): (?:Unexpected result (?P<result>\S+) \(message='(?P<message>[^']*)|(?P<message>\w+ rerun: unexpected result is (?:not )?reproducible))",
        fields={
            "result": Field("result", values.text),
            "message": Field("message", values.text),
            "host": Field("host", values.text),
            "step": STEP,
        },
        quiet=True,
        samples=(
            Sample(
                "Unexpected result nan on rank 5 at iteration #1234 invocation #1 (message='found NaN in local forward loss calculation')",
                {
                    "result": "nan",
                    "rank": 5,
                    "step": 1234,
                    "message": "found NaN in local forward loss calculation",
                },
                version="2024-12",
            ),
            Sample(
                "Rank 5, node n7, device 5, iteration 1234: Unexpected result nan (message='found NaN in local grad norm')",
                {"host": "n7", "step": 1234},
            ),
            Sample(
                "Rank 5, node n7, device 5, iteration #1234: First rerun: unexpected result is not reproducible within the tolerance (0.0)!",
                {"rank": 5, "message": "First rerun: unexpected result is not reproducible"},
            ),
        ),
    ),
    Rule(
        name="verdict",
        kind="event",
        event="rerun",
        needle=" error!",
        pattern=r"(?P<message>Possible (?:transient|persistent) error)!",
        fields={"message": Field("message", values.text)},
        quiet=True,
        samples=(Sample("Possible transient error!", {"message": "Possible transient error"}),),
    ),
    Rule(
        name="energy",
        kind="fact",
        event="energy_total_j",
        needle="Total training energy (GPU): ",
        pattern=r"\(GPU\): (?P<value>[\d.]+) MJ",
        fields={"value": Field("value", partial(shifted, by=6))},
        ignore=TEMPLATE,
        samples=(
            Sample(
                "Total training energy (GPU): 123.5 MJ", {"energy_total_j": 123.5e6}, version="core 0.13"
            ),
        ),
    ),
    Rule(
        name="bridge_report",
        kind="event",
        event="engine_report",
        needle=" GPU utilization: ",
        pattern=r"Step Time : (?P<step_time_s>[\d.]+)s GPU utilization: (?P<tflops_per_gpu>[\d.]+)(?:MODEL_)?TFLOP/s/GPU",
        ignore=TEMPLATE,
        samples=(
            Sample(
                "Step Time : 9.12s GPU utilization: 612.3MODEL_TFLOP/s/GPU",
                {"step_time_s": 9.12, "tflops_per_gpu": 612.3},
                version="Megatron-Bridge v0.2",
            ),
            Sample(
                "Step Time : 9.12s GPU utilization: 612.3TFLOP/s/GPU",
                {"tflops_per_gpu": 612.3},
                version="Megatron-Bridge v0.1",
            ),
        ),
    ),
    Rule(
        name="progress_file",
        kind="event",
        event="engine_report",
        needle="\t# GPUs: ",
        pattern=rf"^(?:(?P<time>{STAMP})\t)?Job ID: (?P<job_id>[^\t]*)\t# GPUs: (?P<gpus>\d+)\t(?P<what>[^\t]+)(?:\tIteration: (?P<step>\d+))?(?:\tJob throughput: (?P<job_tflops_per_gpu>[\d.]+) \S+)?",
        fields={"time": TIME, "step": STEP, "what": Field("what", values.text)},
        ignore=TEMPLATE,
        samples=(
            Sample(
                "2025-02-03 04:05:06\tJob ID: 77\t# GPUs: 64\tSaved checkpoint\tIteration: 1000\tJob throughput: 400.1 TFLOP/s/GPU\tCumulative throughput: 390.2 TFLOP/s/GPU",
                {"step": 1000, "gpus": 64, "job_tflops_per_gpu": 400.1},
                version="--log-progress",
            ),
            Sample("2025-02-03 04:05:06\tJob ID: 77\t# GPUs: 64\tStarting job", {"what": "Starting job"}),
        ),
    ),
)
