"""The iteration line of Megatron-LM and of the forks that print it, in every era."""

from __future__ import annotations

from logmfu import values
from logmfu.parsing import LABEL, Field, Pairs, Rule, Sample
from logmfu.values import milliseconds as milliseconds
from logmfu.values import shifted as shifted

TEMPLATE = r"\{|%[ds.]"
"""A print template in quoted source code is not a record."""
STAMP = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?"
"""A naive local time as Megatron prints it: whole seconds, microseconds since core 0.16."""
TIME = Field("time", values.timestamp)
TFLOPS = Field("tflops_per_gpu_logged", values.first_number, also="throughput_per_gpu_tflops")
TOKENS_PER_GPU = Field("tokens_per_s_gpu", values.first_number)
MDS_LINE = r"consumed tokens: +\d+ \| elapsed time per iteration \((?:ms\): \d+\.\d |s\): )"
"""What only Megatron-DeepSpeed has: consumed tokens before an elapsed time with one decimal or in seconds."""


def _tokens(text: str) -> int:
    """``41943040`` or swiss-ai's ``12.345B``."""
    return round(values.si_number(text))


COMMON_FIELDS: dict[str, Field] = {
    "elapsed time per iteration (ms)": Field("step_time_s", milliseconds),
    "learning rate": Field("lr"),
    "lm loss": Field("loss"),
    "loss scale": Field("loss_scale"),
    "number of skipped iterations": Field("skipped", values.integer),
    "number of nan iterations": Field("nan", values.integer),
}
"""Fields of every program of the family. A field that is not named here or below keeps its own name."""
MEGATRON_FIELDS: dict[str, Field] = {
    **COMMON_FIELDS,
    "consumed samples": Field("consumed_samples", values.integer),
    "consumed tokens": Field("consumed_tokens", _tokens),
    "global batch size": Field("global_batch_size", values.integer),
    "grad norm": Field("grad_norm"),
    "num zeros": Field("num_zeros"),
}
"""Fields of Megatron's and of Megatron-DeepSpeed's line."""
STEP_FIELDS: dict[str, Field] = {
    **MEGATRON_FIELDS,
    "time": TIME,
    "throughput per GPU (TFLOP/s/GPU)": TFLOPS,
    "compute per GPU (TFLOP/s/GPU)": TFLOPS,
    "flop throughput (TFLOP/sec/GPU)": TFLOPS,
    "throughput_per_gpu_tflops": TFLOPS,
    "tokens per GPU (tokens/s/GPU)": TOKENS_PER_GPU,
    "tokens/s/GPU inst/harmonic mean": TOKENS_PER_GPU,
    "throughput (token/sec/GPU)": TOKENS_PER_GPU,
    "tokens/sec/gpu": TOKENS_PER_GPU,
    "tokens-per-second-per-gpu": TOKENS_PER_GPU,
    "Tokens/s/GPU": TOKENS_PER_GPU,
    "tokens/s": Field("tokens_per_s"),
    "throughput(samples/s)": Field("samples_per_s"),
    "params norm": Field("params_norm"),
    "seq_length": Field("seq_len", values.integer),
    "energy per GPU (J/iter/GPU)": Field("energy_j"),
    "power per GPU (W/GPU)": Field("power_w"),
    "mfu": Field("mfu_logged", values.percent),
    "hip mem usage/free/total/usage_ratio": Field("mem_bytes", values.size_bytes),
    "rocm mem usage/free/total/usage_ratio": Field("rocm_mem_bytes", values.size_bytes),
}
"""Where the fields of Megatron's line and its forks' go."""

ITERATION = Rule(
    name="iteration",
    kind="step",
    needle="elapsed time per iteration",
    pattern=rf"(?:\[(?P<time>{STAMP})\] +(?:>> +)?)?(?<!samples/sec: [\d.]+ \| +)(?<!epoch +\d+ \| +)\biteration:? +(?P<step>\d+)(?:/ *(?P<total_steps>\d+))? \|(?! consumed samples: +\d+ \| {MDS_LINE})",
    pairs=Pairs(label=rf"(?!rank-\d|(?:max )?(?:allocated|reserved)$){LABEL}", closed="|%"),
    fields=STEP_FIELDS,
    ignore=rf"\{{[:a-z_]|samples/sec: |\bepoch +\d+ \||{MDS_LINE}",
    samples=(
        Sample(
            " iteration      300/    9000 | elapsed time per iteration (ms): 641.7 | learning rate: 1.250E-04 | lm loss: 7.012345E+00 | loss scale: 32768.0 |",
            {"step": 300, "total_steps": 9000, "step_time_s": 0.6417, "lr": 1.25e-4, "loss": 7.012345},
            version="Megatron-LM v1.0 (2020-04)",
        ),
        Sample(
            " iteration      300/    9000 | consumed samples:        76800 | elapsed time per iteration (ms): 5120.5 | learning rate: 1.250E-04 | global batch size:   256 | lm loss: 3.012345E+00 | loss scale: 32768.0 | grad norm: 0.512 | num zeros: 12.0 | params norm: 812.500 | number of skipped iterations:   1 | number of nan iterations:   0 |",
            {
                "consumed_samples": 76800,
                "global_batch_size": 256,
                "skipped": 1,
                "nan": 0,
                "params_norm": 812.5,
            },
            version="Megatron-LM v2.0 (2020-12) to core 0.4",
        ),
        Sample(
            " iteration      300/    9000 | consumed samples:        76800 | elapsed time per iteration (ms): 5120.5 | throughput per GPU (TFLOP/s/GPU): 171.4 | learning rate: 1.250E-04 | global batch size:   256 | lm loss: 3.012345E+00 | loss scale: 1.0 | grad norm: 0.512 | number of skipped iterations:   0 | number of nan iterations:   0 |",
            {"tflops_per_gpu_logged": 171.4, "throughput_per_gpu_tflops": 171.4},
            version="Megatron-LM core 0.5 (2023-11)",
        ),
        Sample(
            " [2025-02-03 04:05:06] iteration      300/    9000 | consumed samples:        76800 | skipped samples:          256 | elapsed time per iteration (ms): 5120.5 | throughput per GPU (TFLOP/s/GPU): 401.7 | energy per GPU (J/iter/GPU): 2800.1 | power per GPU (W/GPU): 546.8 | learning rate: 1.250000E-04 | global batch size:   256 | lm loss: 2.512345E+00 | load_balancing_loss: 1.031000E+00 | loss scale: 1.0 | grad norm: inf | number of skipped iterations:   0 | number of nan iterations:   0 |",
            {
                "time": 1738555506.0,
                "energy_j": 2800.1,
                "load_balancing_loss": 1.031,
                "skipped_samples": 256,
            },
            version="Megatron-LM core 0.6 (2024-01) to 0.15",
        ),
        Sample(
            " [2026-02-03 04:05:06.250000] iteration      301/    9000 | consumed samples:        77056 | elapsed time per iteration (ms): 5120.5 | throughput per GPU (TFLOP/s/GPU): 401.7 | learning rate: 1.250000E-04 | global batch size:   256 | lm loss: 2.512345E+00 | mtp_1 loss: 2.750000E+00 | loss scale: 1.0 | grad norm: 0.512 | num zeros: 0 | number of skipped iterations:   0 | number of nan iterations:   0 |",
            {"time": 1770091506.25, "step": 301, "mtp_1_loss": 2.75, "num_zeros": 0.0},
            version="Megatron-LM core 0.16 (2026-01)",
        ),
        Sample(
            " iteration       60/    4000 | consumed samples:        15360 | elapsed time per iteration (ms): 7001.5/6999.0 | hip mem usage/free/total/usage_ratio: 128.00GiB/127.98GiB/255.98GiB/50.00% | throughput per GPU (TFLOP/s/GPU): 431.2/430.9 | tokens per GPU (tokens/s/GPU): 9361.5/9359.9 | learning rate: 1.000000E-04 | global batch size:   256 | lm loss: 2.250000E+00 | loss scale: 1.0 | grad norm: 0.700 | number of skipped iterations:   0 | number of nan iterations:   0 |",
            {
                "step_time_s": 7.0015,
                "tflops_per_gpu_logged": 431.2,
                "tokens_per_s_gpu": 9361.5,
                "mem_bytes": 128 * 2**30,
            },
            version="Primus v0.7 (2026-01)",
        ),
        Sample(
            "[2026-07-20 01:02:03.500000] iteration       60/    4000 | consumed samples:        15360 | elapsed time per iteration (ms): 7001.5/6999.0 | compute per GPU (TFLOP/s/GPU): 431.2 (avg 430.9)  | tokens/s/GPU inst/harmonic mean: 9361.5/9359.9 | learning rate: 1.000000E-04 | global batch size:   256 | lm loss: 2.250000E+00 | loss scale: 1.0 | grad norm: 0.700 | number of skipped iterations:   0 | number of nan iterations:   0 | hip mem usage/free/total/usage_ratio: 128.00GB/127.98GB/255.98GB/50.00%  | rocm mem usage/free/total/usage_ratio: 129.00GB/126.98GB/255.98GB/50.39%",
            {"tflops_per_gpu_logged": 431.2, "tokens_per_s_gpu": 9361.5, "rocm_mem_bytes": 129 * 2**30},
            version="Primus patch (2026-07)",
        ),
        Sample(
            " [2025-09-03 04:05:06] iteration       60/    4000 | consumed samples:        15360 | consumed tokens: 0.063B | eta: 3 days, 1:02:03 | tokens/sec/gpu: 8200.5 | elapsed time per iteration (ms): 7001.5 | learning rate: 1.000000E-04 | global batch size:   256 | lm loss: 2.250000E+00 | loss scale: 1.0 | number of skipped iterations:   0 | number of nan iterations:   0 |",
            {"consumed_tokens": 63_000_000, "tokens_per_s_gpu": 8200.5, "step_time_s": 7.0015},
            version="swiss-ai/Megatron-LM",
        ),
        Sample(
            " iteration       60/    4000 | consumed samples:        15360 | elapsed time per iteration (ms): 7001.5 | throughput (token/sec/GPU): 9361.5 | flop throughput (TFLOP/sec/GPU): 431.2 | learning rate: 1.000000E-04 | global batch size:   256 | lm loss: 2.250000E+00 | loss scale: 1.0 | grad norm: 0.700123 | number of skipped iterations:   0 | number of nan iterations:   0 |",
            {"tokens_per_s_gpu": 9361.5, "tflops_per_gpu_logged": 431.2},
            version="LoongForge",
        ),
        Sample(
            "done [2025-02-03 04:05:06] iteration      300/    9000 | consumed samples:        76800 | elapsed time per iteration (ms): 5120.5 | throughput_per_gpu_tflops: 401.7 | learning rate: 1.250000E-04 | global batch size:   256 | loss scale: 1.0 | grad norm: nan | number of skipped iterations:   0 | number of nan iterations:   1 |",
            {"time": 1738555506.0, "throughput_per_gpu_tflops": 401.7, "nan": 1},
            version="glued to another rank's text; a NaN loss leaves no field",
        ),
        Sample(
            " iteration       60/    4000 | consumed samples:        15360 | elapsed time per iteration (ms): 7001.5 | throughput per GPU (TFLOP/s/GPU): 171.4 | tokens-per-second-per-gpu: 2340.38 | learning rate: 1.000E-04 | global batch size:   256 | lm loss: 2.250000E+00 | loss scale: 1.0 |",
            {"tokens_per_s_gpu": 2340.38, "tflops_per_gpu_logged": 171.4},
            version="bigcode-project/Megatron-LM",
        ),
        Sample(
            " iteration       60/    4000 | consumed samples:        15360 | elapsed time per iteration (ms): 7001.5 | Tokens/s/GPU: 2340.4 | learning rate: 1.000E-04 | global batch size:   256 | mem usages: 0.8125 | lm loss: 2.250000E+00 | loss scale: 1.0 |",
            {"tokens_per_s_gpu": 2340.4, "mem_usages": 0.8125},
            version="ROCm/Megatron-LM branches (2023)",
        ),
        Sample(
            " iteration       60/    4000 | consumed samples:        15360 | elapsed time per iteration (ms): 7001.5 | throughput per GPU (TFLOP/s/GPU): 431.2 | tokens per GPU (tokens/s/GPU): 9361.5 | seq_length: 8192 | learning rate: 1.000000E-04 | global batch size:   256 | loss: 2.250000E+00 | grad norm: 0.700 | mfu: 45.50% |",
            {"seq_len": 8192, "loss": 2.25, "mfu_logged": 0.455},
            version="Primus with Bridge or torchtitan",
        ),
        Sample(
            " iteration       60/    4000 | consumed samples:        15360 | elapsed time per iteration (ms): 7001.5 | learning rate: 1.000000E-04 | global batch size:   256 | lm loss: 2.250000E+00 | loss scale: 1.0 | grad norm: 12",
            {"step": 60, "loss": 2.25},
            version="torn: what the line breaks off in is not read",
        ),
        Sample(
            "INFO [2026-06-03 04:05:06] >>  iteration        6/     400 | consumed samples:       1536 | consumed tokens:    6291456 | elapsed time per iteration (ms): 7001.52 | tokens/s: 149770.1 | mfu: 40.10 | learning rate: 1.000000E-05 | global batch size:   256 | lm loss: 1.250000E+00 | grad norm: 4.250 |",
            {
                "time": 1780459506.0,
                "tokens_per_s": 149770.1,
                "mfu_logged": 0.401,
                "consumed_tokens": 6291456,
            },
            version="MindSpeed-LLM FSDP2 (2026)",
        ),
        Sample(
            "iteration: 6 | consumed samples: 1536 | elapsed time per iteration (ms): 7001.5 | throughput(samples/s): 36.6 | learning rate: 1.000000E-05 | global batch size:  256 | lm loss: 1.2500 | grad norm: 0.7001",
            {"step": 6, "samples_per_s": 36.6, "loss": 1.25},
            version="MindSpeed-LLM FSDP2, short form (2026)",
        ),
    ),
)

FIRST_YEAR = Rule(
    name="iteration_2019",
    kind="step",
    needle="| learning rate ",
    pattern=r"epoch +(?P<epoch>\d+) \| iteration +(?P<step>\d+)/ *(?P<total_steps>\d+) \| elapsed time per iteration \(ms\): (?P<step_time_s>[\d.]+) \| learning rate (?P<lr>\S+) \| lm loss (?P<loss>\S+) \|(?: nsp loss (?P<nsp_loss>\S+) \|)?(?: loss scale (?P<loss_scale>[\d.]+) \|)?",
    fields={"step_time_s": Field("step_time_s", milliseconds)},
    quiet=True,
    samples=(
        Sample(
            " epoch  1 | iteration      300/    9000 | elapsed time per iteration (ms): 641.7 | learning rate 1.250E-04 | lm loss 7.012345E+00 | nsp loss 6.931000E-01 | loss scale 32768.0 |",
            {"step": 300, "step_time_s": 0.6417, "lr": 1.25e-4, "loss": 7.012345, "nsp_loss": 0.6931},
            version="Megatron-LM initial commit (2019)",
        ),
    ),
)

NAMED_THROUGHPUT = Rule(
    name="throughput_per_gpu_tflops",
    kind="step",
    needle="throughput_per_gpu_tflops",
    pattern=r"^(?!.*elapsed time per iteration)(?=(?:.*?\b(?:global_step|iteration|step|iter)[\"']?(?:\s*[:=]\s*|\s+)(?P<step>\d++))?)(?=(?:.*?\bloss[\"']?\s*[:=]\s*(?P<loss>[\d.eE+-]++))?).*?\bthroughput_per_gpu_tflops[\"']?\s*[:=]\s*[\"']?(?P<throughput_per_gpu_tflops>\d[\d.eE+-]*+)",
    fields={"throughput_per_gpu_tflops": TFLOPS},
    ignore=r"elapsed time per iteration|\{[A-Za-z_:]|=\s*[A-Za-z_(]|def |throughput_per_gpu_tflops\W*$",
    samples=(
        Sample("throughput_per_gpu_tflops: 450.0", {"throughput_per_gpu_tflops": 450.0}),
        Sample(
            "step=12 loss=2.5 throughput_per_gpu_tflops=431.5",
            {"step": 12, "loss": 2.5, "tflops_per_gpu_logged": 431.5},
        ),
        Sample(
            '{"throughput_per_gpu_tflops": 431.5, "iteration": 12}',
            {"step": 12, "throughput_per_gpu_tflops": 431.5},
        ),
    ),
)

RULES = (ITERATION, FIRST_YEAR, NAMED_THROUGHPUT)
