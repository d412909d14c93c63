"""The autotuner's ``metrics.json``, and figures printed under DeepSpeed's and Megatron's own names.

Layout: ``metrics.json`` as an autotuning run of 0.19 writes it, on one line or indented. The names
``FLOPS_per_gpu`` and ``throughput_per_gpu_tflops`` are read as ``name: value``, ``name=value`` or JSON.
"""

from __future__ import annotations

from logmfu import values
from logmfu.parsing import Block, Field, Rule, Sample

NUMBER = r"[-+]?(?:\d[\d.]*+(?:[eE][-+]?\d++)?+|nan|inf)"

METRICS_FIELDS = {
    # microseconds: seen in a 0.19 autotuning run, where latency is (fwd + bwd + step) x accumulation
    "fwd": Field("fwd_latency_s", values.number, 1e-6),
    "bwd": Field("bwd_latency_s", values.number, 1e-6),
    "step": Field("step_latency_s", values.number, 1e-6),
    "latency": Field("iter_latency_s", values.number, 1e-6),
    "FLOPS_per_gpu": Field("FLOPS_per_gpu"),
    "throughput": Field("samples_per_s"),
    "rank": Field("rank", values.integer),
}

METRICS = Rule(
    name="metrics_json",
    kind="profile",
    needle='"latency"',
    pattern=r'\{(?=[^{}]*"FLOPS_per_gpu": )(?=[^{}]*"fwd": (?P<fwd>NUM))(?=[^{}]*"bwd": (?P<bwd>NUM))'
    r'(?=[^{}]*"step": (?P<step>NUM))(?=[^{}]*"latency": (?P<latency>NUM))'
    r'(?=[^{}]*"FLOPS_per_gpu": (?P<FLOPS_per_gpu>NUM))(?=[^{}]*"throughput": (?P<throughput>NUM))'
    r'(?:(?=[^{}]*"rank": (?P<rank>\d++)))?'.replace("NUM", NUMBER),
    fields=METRICS_FIELDS,
    quiet=True,
    samples=(
        Sample(
            '{"fwd": 50000.0, "bwd": 100000.0, "step": 10000.0, "latency": 160000.0, '
            '"FLOPS_per_gpu": 1.5e+14, "throughput": 200.0, "rank": 0}',
            {
                "fwd_latency_s": 0.05,
                "iter_latency_s": 0.16,
                "FLOPS_per_gpu": 1.5e14,
                "samples_per_s": 200.0,
                "rank": 0,
            },
            "0.19",
        ),
    ),
)

METRICS_BLOCK = Block(
    name="metrics_json_lines",
    kind="profile",
    needle='"fwd"',
    header=rf'^\s*+"fwd": (?P<fwd>{NUMBER}),?\s*+$',
    row=rf'^\s*+"(?P<name>bwd|step|latency|FLOPS_per_gpu|throughput|rank)": (?P<value>{NUMBER}),?\s*+$',
    end=r"^\s*+\}",
    gather=True,
    foreign=0,
    fields=METRICS_FIELDS,
    samples=(
        Sample(
            '{\n    "fwd": 50000.0,\n    "bwd": 100000.0,\n    "step": 10000.0,\n    "latency": 160000.0,\n'
            '    "FLOPS_per_gpu": 1.5e+14,\n    "throughput": 200.0,\n    "rank": 0\n}',
            {
                "rank": 0,
                "bwd_latency_s": 0.1,
                "step_latency_s": 0.01,
                "FLOPS_per_gpu": 1.5e14,
                "samples_per_s": 200.0,
            },
            "0.19",
        ),
    ),
)

# a printed value: no term of an expression in quoted source code, and no initial zero
_VALUE = rf"(?!0++(?:\.0*+)?+(?![\d.eE])){NUMBER}"
_FLOPS = rf"\bFLOPS_per_gpu[\"']?\s*+[:=]\s*+(?P<flops>{_VALUE}(?: ?[KMGTP]?FLOPS?\b)?+)(?!\s*+[-*+/<>=%])"
_TFLOPS = rf"\bthroughput_per_gpu_tflops[\"']?\s*+[:=]\s*+(?P<tflops>{_VALUE})(?!\s*+[-*+/<>=%])"
_AT_STEP = r"(?i:(?:\b|_)(?:step|iteration)s?)[\"']?\s*+[=:#]?\s*+(?P<step>\d++)(?![\d.eE])"
# in an autotuner's metrics a "step" is a duration
_NO_METRICS = r'(?!.*"latency")'
_STEP = {"step": Field("step", values.integer)}
_FLOPS_FIELD = {"flops": Field("FLOPS_per_gpu", values.si_number)}
_TFLOPS_FIELD = {"tflops": Field("tflops_per_gpu_logged", also="throughput_per_gpu_tflops")}

NAMED = (
    Rule(
        name="named_flops_of_step",
        kind="step",
        needle="FLOPS_per_gpu",
        pattern=rf"^{_NO_METRICS}(?=.*?{_AT_STEP})(?=.*?{_FLOPS})",
        fields=_STEP | _FLOPS_FIELD,
        quiet=True,
        samples=(
            Sample("step 20 loss 2.5 FLOPS_per_gpu: 1.25e14", {"step": 20, "FLOPS_per_gpu": 1.25e14}),
            Sample('{"FLOPS_per_gpu": 1.5e14, "global_step": 30}', {"step": 30, "FLOPS_per_gpu": 1.5e14}),
        ),
    ),
    Rule(
        name="named_throughput_of_step",
        kind="step",
        needle="throughput_per_gpu_tflops",
        pattern=rf"^(?=.*?{_AT_STEP})(?=.*?{_TFLOPS})",
        fields=_STEP | _TFLOPS_FIELD,
        quiet=True,
        samples=(
            Sample(
                "step=40, throughput_per_gpu_tflops=450.0", {"step": 40, "throughput_per_gpu_tflops": 450.0}
            ),
        ),
    ),
    Rule(
        name="named_flops",
        kind="profile",
        needle="FLOPS_per_gpu",
        pattern=rf"^{_NO_METRICS}(?!.*?{_AT_STEP.replace('?P<step>', '')})(?=.*?{_FLOPS})",
        fields=_FLOPS_FIELD,
        quiet=True,
        samples=(
            Sample("tuned: FLOPS_per_gpu=250 TFLOPS", {"FLOPS_per_gpu": 2.5e14}),
            Sample('    "FLOPS_per_gpu": 2e14,', {"FLOPS_per_gpu": 2e14}),
        ),
    ),
)

RULES: tuple[Rule | Block, ...] = (METRICS, METRICS_BLOCK, *NAMED)
