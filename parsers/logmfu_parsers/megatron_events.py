"""What Megatron prints beside its iteration lines: timers, checkpoints, evaluations, memory, trouble, exits."""

from __future__ import annotations

from functools import partial

import regex

from logmfu import values
from logmfu.parsing import Block, Field, Pairs, Rule, Sample
from logmfu_parsers.megatron_steps import STAMP, TEMPLATE, TIME, milliseconds, shifted

MS = Field("seconds", milliseconds)
STEP = {"step": Field("step", values.integer), "time": TIME, "path": Field("path", values.text)}
MIB = 2.0**20
"""Megatron's MB (``torch.cuda`` bytes / 1024 / 1024)."""
_ROW_MINMAX = r"^\s*(?P<name>[A-Za-z][\w/ -]*?) \.*: \((?P<min_s>[\d.]+), (?P<max_s>[\d.]+)\)\s*$"
_ROW_MAX = r"^\s*(?P<name>[A-Za-z][\w/ -]*?) \.+: (?P<seconds>[\d.]+)\s*$"
_ROW_ALL = r"^\s*(?P<section>[A-Za-z][\w/-]*):\s*$|^\s*rank +(?P<rank>\d+): (?P<seconds>[\d.]+)\s*$"

TIMERS: tuple[Rule | Block, ...] = (
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

CHECKPOINTS: tuple[Rule, ...] = (
    Rule(
        name="save_start",
        kind="event",
        needle="saving checkpoint at iteration",
        pattern=r"saving checkpoint at iteration +(?P<step>\d+) to (?P<path>\S+)",
        fields=STEP,
        ignore=TEMPLATE,
        samples=(
            Sample(
                "saving checkpoint at iteration    1000 to /ckpt in torch_dist format",
                {"step": 1000, "path": "/ckpt"},
                version="core 0.6",
            ),
            Sample(
                " [2026-02-03 04:05:06.250000] saving checkpoint at iteration    1000 to /ckpt in torch_dist format",
                {"time": 1770091506.25},
                version="core 0.16",
            ),
            Sample(
                "global rank 0 is saving checkpoint at iteration     500 to /ckpt/iter_0000500/mp_rank_00/model_optim_rng.pt",
                {"step": 500},
                version="v1.0",
            ),
        ),
    ),
    Rule(
        name="save_scheduled",
        kind="event",
        needle="scheduled an async checkpoint save at iteration",
        pattern=r"scheduled an async checkpoint save at iteration +(?P<step>\d+) to (?P<path>\S+)",
        fields=STEP,
        ignore=TEMPLATE,
        samples=(
            Sample(
                "  scheduled an async checkpoint save at iteration    1000 to /ckpt",
                {"step": 1000},
                version="core 0.7",
            ),
            Sample(
                "  [2026-02-03 04:05:06.250000] scheduled an async checkpoint save at iteration    1000 to /ckpt",
                {"time": 1770091506.25},
                version="core 0.16",
            ),
        ),
    ),
    Rule(
        name="save_end",
        kind="event",
        needle="successfully saved ",
        pattern=r"successfully saved (?:(?P<local>local )?checkpoint (?:at|from) iteration +(?P<step>\d+)(?: to (?P<path>\S+))?|(?P<path>/\S*iter_(?P<step>\d+)\S*))",
        fields={**STEP, "local": Field("local", "local ".__eq__)},
        ignore=TEMPLATE,
        samples=(
            Sample(
                "  successfully saved checkpoint at iteration    1000 to /ckpt",
                {"step": 1000, "path": "/ckpt"},
                version="v2.0 to core 0.6",
            ),
            Sample(
                "  successfully saved checkpoint from iteration    1000 to /ckpt [ t 1/8, p 1/4 ]",
                {"step": 1000},
                version="core 0.7; bracket since 0.12",
            ),
            Sample(
                "  [2026-02-03 04:05:06.250000] successfully saved checkpoint from iteration    1000 to /ckpt [ t 1/8, gtp_remat 1/1, p 1/4 ]",
                {"time": 1770091506.25},
                version="core 0.16; gtp_remat in 0.19",
            ),
            Sample(
                "  successfully saved local checkpoint from iteration    1000",
                {"step": 1000, "local": True},
                version="core 0.9",
            ),
            Sample(
                "  successfully saved /ckpt/iter_0000500/mp_rank_00/model_optim_rng.pt",
                {"step": 500},
                version="v1.0",
            ),
        ),
    ),
    Rule(
        name="load_start",
        kind="event",
        needle=" checkpoint from ",
        pattern=r"\bloading (?:distributed |release )*checkpoint from (?P<path>\S+)(?: at iteration +(?P<step>\d+))?",
        fields=STEP,
        quiet=True,
        samples=(
            Sample(
                " loading checkpoint from /ckpt at iteration 1000",
                {"step": 1000, "path": "/ckpt"},
                version="up to core 0.5",
            ),
            Sample(
                " loading distributed checkpoint from /ckpt at iteration 1000",
                {"step": 1000},
                version="core 0.6",
            ),
            Sample(" loading release checkpoint from /ckpt", {"path": "/ckpt"}),
        ),
    ),
    Rule(
        name="load_end",
        kind="event",
        needle="successfully loaded ",
        pattern=r"successfully loaded (?:checkpoint from (?P<path>\S+)(?: +\[[^\]]*\])? at iteration +(?P<step>\d+)|(?P<path>/\S*iter_(?P<step>\d+)\S*))",
        fields=STEP,
        quiet=True,
        samples=(
            Sample(
                "  successfully loaded checkpoint from /ckpt at iteration 1000",
                {"step": 1000},
                version="up to core 0.5",
            ),
            Sample(
                "  successfully loaded checkpoint from /ckpt [ t 1/8, p 1/4 ] at iteration 1000",
                {"step": 1000},
                version="core 0.10",
            ),
            Sample(
                "  successfully loaded /ckpt/iter_0000500/mp_rank_00/model_optim_rng.pt",
                {"step": 500},
                version="v1.0",
            ),
        ),
    ),
    Rule(
        name="load_none",
        kind="event",
        needle="will not load any checkpoints and will start from random",
        pattern="will not load any checkpoints",
        samples=(Sample("    will not load any checkpoints and will start from random"),),
    ),
)

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

TROUBLE: tuple[Rule, ...] = (
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
            "step": STEP["step"],
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
)

REPORTS: tuple[Rule, ...] = (
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
        fields={"time": TIME, "step": STEP["step"], "what": Field("what", values.text)},
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

RULES: tuple[Rule | Block, ...] = (*TIMERS, *CHECKPOINTS, *EVALUATIONS, *EXITS, *MEMORY, *TROUBLE, *REPORTS)
