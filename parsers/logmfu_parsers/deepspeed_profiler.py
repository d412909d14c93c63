"""DeepSpeed's FLOPs profiler block.

Layouts: deepspeed/profiling/flops_profiler/profiler.py, v0.3.0 to v0.19.5 (2026-08-09). The figures are
per device and never divided by a peak; ``FLOPS`` is per second, ``flops`` a count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from logmfu import values
from logmfu.parsing import Block, Field, Sample

FIGURES = {
    "world size": Field("world_size", values.integer),
    "data parallel size": Field("data_parallel_size", values.integer),
    "model parallel size": Field("model_parallel_size", values.integer),
    "model paralel size": Field("model_parallel_size", values.integer),
    "batch size per GPU": Field("batch_size_per_gpu", values.integer),
    "params per gpu": Field("params_per_gpu", values.si_number),
    "params per GPU": Field("params_per_gpu", values.si_number),
    "params of model": Field("params", values.si_number),
    "non-expert params of model": Field("params_non_expert", values.si_number),
    "expert params of model": Field("params_expert", values.si_number),
    "fwd MACs per GPU": Field("fwd_macs_per_gpu", values.si_number),
    "fwd flops per GPU": Field("fwd_flops_per_gpu", values.si_number),
    "fwd flops of model": Field("fwd_flops", values.si_number),
    "fwd latency": Field("fwd_latency_s", values.duration),
    "bwd latency": Field("bwd_latency_s", values.duration),
    "step latency": Field("step_latency_s", values.duration),
    "iter latency": Field("iter_latency_s", values.duration),
    "fwd FLOPS per GPU": Field("fwd_FLOPS_per_gpu", values.si_number),
    "bwd FLOPS per GPU": Field("bwd_FLOPS_per_gpu", values.si_number),
    "fwd+bwd FLOPS per GPU": Field("fwd_bwd_FLOPS_per_gpu", values.si_number),
    "FLOPS per GPU": Field("FLOPS_per_gpu", values.si_number),
    "samples/second": Field("samples_per_s", values.number),
    "step": Field("step", values.integer),
    "flops_factor": Field("flops_factor", values.number),
}


def profile_facts(rows: Mapping[str, Any]) -> Iterable[tuple[str, Any, str]]:
    """Whether the profiler's FLOPs are model or hardware FLOPs, and the world size.

    The printed factor is 3 + ``recompute_fwd_factor``: 3 forward passes are the model's own, a fourth
    is recomputation (profiler.py, since v0.9.3).
    """
    if factor := rows.get("flops_factor"):
        yield "profile_flops_kind", "model" if factor <= 3 else "hardware", "flops_factor"
    if size := rows.get("world_size"):
        yield "world_size", size, "world_size"


FORWARD_FIGURES = {
    "Number of parameters": Field("params_per_gpu", values.si_number),
    "Number of multiply-accumulate operations (MACs)": Field("fwd_macs_per_gpu", values.si_number),
    # the label is "Number of floating point operations ( = 2 * MACs)"
    "Number of floating point operations (": Field("fwd_flops_per_gpu", values.si_number),
    "Latency": Field("fwd_latency_s", values.duration),
    "Floating point operations per second(FLOPS)": Field("fwd_FLOPS_per_gpu", values.si_number),
    "Profile step": Field("step", values.integer),
}

# labels are padded to 60 or 70 columns: two blanks or more before the value, one between words
_LABEL = r"^\s*+(?P<name>[A-Za-z][^\s:]*+(?: [a-zA-Z(][^\s:]*+)*?)"
_FACTOR = r"(?P<flops_factor>[\d.]++) \* fwd flops per GPU / (?:iter latency|\(fwd\+bwd latency\))"
_VALUE_COLUMN = r":\s\s++(?P<value>\S.*+)$"

PROFILE = Block(
    name="flops_profile",
    kind="profile",
    needle="Profile Summary at step",
    header=r"Profile Summary at step (?P<step>\d++):",
    row=rf"{_LABEL}(?: = (?:{_FACTOR}|\S[^:]*+))?{_VALUE_COLUMN}",
    end=r"^-{8,}",
    gather=True,
    foreign=200,
    fields=FIGURES,
    parse=values.auto,
    derive=profile_facts,
    samples=(
        Sample(
            "Profile Summary at step 7:\n"
            "Notations:\n"
            "data parallel size (dp_size), model parallel size(mp_size),\n"
            "\n"
            "world size:                                                             32      \n"
            "data parallel size:                                                     16      \n"
            "model parallel size:                                                    2       \n"
            "batch size per GPU:                                                     2       \n"
            "params per GPU:                                                         3.25 B  \n"
            "params of model = params per GPU * mp_size:                             6.5 B   \n"
            "fwd MACs per GPU:                                                       10 TMACs\n"
            "fwd flops per GPU:                                                      20 T    \n"
            "fwd flops of model = fwd flops per GPU * mp_size:                       40 T    \n"
            "fwd latency:                                                            100 ms  \n"
            "fwd FLOPS per GPU = fwd flops per GPU / fwd latency:                    200 TFLOPS\n"
            "bwd latency:                                                            200 ms  \n"
            "bwd FLOPS per GPU = 2 * fwd flops per GPU / bwd latency:                200 TFLOPS\n"
            "fwd+bwd FLOPS per GPU = 3 * fwd flops per GPU / (fwd+bwd latency):      200 TFLOPS\n"
            "step latency:                                                           100 ms  \n"
            "iter latency:                                                           400 ms  \n"
            "FLOPS per GPU = 3 * fwd flops per GPU / iter latency:                   150 TFLOPS\n"
            "samples/second:                                                         160     \n"
            "\n"
            "----------------------------- Aggregated Profile per GPU -----------------------------",
            {
                "step": 7,
                "world_size": 32,
                "data_parallel_size": 16,
                "model_parallel_size": 2,
                "batch_size_per_gpu": 2,
                "params_per_gpu": 3.25e9,
                "params": 6.5e9,
                "fwd_macs_per_gpu": 10e12,
                "fwd_flops_per_gpu": 20e12,
                "fwd_flops": 40e12,
                "fwd_latency_s": 0.1,
                "fwd_FLOPS_per_gpu": 200e12,
                "bwd_latency_s": 0.2,
                "bwd_FLOPS_per_gpu": 200e12,
                "fwd_bwd_FLOPS_per_gpu": 200e12,
                "step_latency_s": 0.1,
                "iter_latency_s": 0.4,
                "FLOPS_per_gpu": 150e12,
                "samples_per_s": 160.0,
                "flops_factor": 3.0,
            },
            "0.10.1",
        ),
        Sample(
            "Profile Summary at step 12:\n"
            "world size:                                                   8       \n"
            "model paralel size:                                           1       \n"
            "params per gpu:                                               1500.0 M\n"
            "non-expert params of model:                                   500.0 M \n"
            "expert params of model:                                       1000.0 M\n"
            "fwd flops per GPU = 2 * fwd MACs per GPU:                     9000.0 G\n"
            "fwd latency:                                                  90.0 ms \n"
            "step latency:                                                 250.0 us\n"
            "FLOPS per GPU = 4.0 * fwd flops per GPU / iter latency:       90.0 TFLOPS\n"
            "samples/second:                                               20.5    \n",
            {
                "step": 12,
                "world_size": 8,
                "model_parallel_size": 1,
                "params_per_gpu": 1.5e9,
                "params_non_expert": 5e8,
                "params_expert": 1e9,
                "fwd_flops_per_gpu": 9e12,
                "fwd_latency_s": 0.09,
                "step_latency_s": 250e-6,
                "FLOPS_per_gpu": 90e12,
                "samples_per_s": 20.5,
                "flops_factor": 4.0,
            },
            "0.9.3",
        ),
    ),
)

FORWARD_PROFILE = Block(
    name="flops_profile_forward",
    kind="profile",
    needle="Summary of forward pass:",
    header=r"^\s*+Summary of forward pass:",
    row=rf"{_LABEL}(?: = \S[^:]*+)?{_VALUE_COLUMN}",
    end=r"^-{8,}",
    gather=True,
    foreign=200,
    fields=FORWARD_FIGURES,
    parse=values.auto,
    samples=(
        Sample(
            "Summary of forward pass:\n"
            "Profile step:                   3\n"
            "Number of parameters:           25.5 M\n"
            "Number of multiply-accumulate operations (MACs):   4.0 GMACs\n"
            "Number of floating point operations ( = 2 * MACs):   8.0 G\n"
            "Latency:                        20.0 ms\n"
            "Floating point operations per second(FLOPS):   0.4 TFLOPS\n",
            {
                "step": 3,
                "params_per_gpu": 25.5e6,
                "fwd_macs_per_gpu": 4e9,
                "fwd_flops_per_gpu": 8e9,
                "fwd_latency_s": 0.02,
                "fwd_FLOPS_per_gpu": 0.4e12,
            },
            "0.3.10",
        ),
    ),
)

RULES: tuple[Block, ...] = (PROFILE, FORWARD_PROFILE)
