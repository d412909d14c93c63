"""MFU and HFU: small cases whose figures can be checked in the head, and reasons where there is none.

The model has 10 layers, hidden size 1000, ffn 4000, no gate, vocabulary 10,000 and sequences of 1000. Per token that is
6 x (120 + 10) million for the weights and 120 million for full attention: 900 million FLOPs (half attention: 840). A step of
1000 sequences is 900 TFLOP; at 9 s on one device 100 TFLOP/s, and against a peak of 200 an MFU of 50 %.
"""

from __future__ import annotations

from typing import Any

import pytest
from logs import report_of, steps, trained

from logmfu import Report

SHAPE = {"layers": 10, "hidden": 1000, "heads": 10, "ffn": 4000, "glu": False, "vocab": 10_000}
SMALL = {"peak_tflops": 200.0, "world_size": 1, "seq_len": 1000}


def report(tflops: float | None = None, **options: Any) -> Report:
    """20 steps of 9 s and 1000 sequences each."""
    return report_of(trained(0) + steps(1, 20, start=0, took=9.0, batch=1000, tflops=tflops), **options)


def test_logged_flops_over_the_peak():
    """400 TFLOP/s of an H100's 989.4 is 40.4 %: good, as logged, and the peak says where it is from."""
    mfu = report(400.0, gpu="H100 SXM", precision="bf16").mfu
    assert mfu.spread.median == pytest.approx(400 / 989.4)
    assert f"{mfu.spread.median:.1%}" == "40.4%"
    assert (mfu.grade, mfu.basis, mfu.why_not) == ("good", "logged", None)
    assert (mfu.peak.tflops, mfu.peak.device, mfu.peak.how) == (989.4, "H100 SXM5", "option --gpu")
    assert mfu.peak.source


def test_computed_where_the_log_prints_none():
    """Shape, batch and step time give 100 TFLOP/s: 50 % of 200."""
    found = report(facts=SHAPE, **SMALL)
    assert (found.mfu.basis, found.mfu.attention, found.mfu.convention) == ("computed", "full", "canonical")
    assert found.mfu.spread.median == pytest.approx(0.5)
    assert found.tflops_per_gpu.median == pytest.approx(100.0)
    assert found.tokens_per_s.median == pytest.approx(1e6 / 9)


def test_half_attention_when_asked():
    """840 instead of 900 million: 46.7 %; the other count is an alternative."""
    mfu = report(facts=SHAPE, attention="half", **SMALL).mfu
    assert mfu.spread.median == pytest.approx(0.5 * 840 / 900)
    assert mfu.alternatives["computed, attention full"] == pytest.approx(0.5)


def test_logged_half_attention_is_converted_when_full_is_asked():
    """The log counts half and prints 93.3 TFLOP/s: 46.7 % as logged, 50 % with full attention."""
    logged, full = (report(840 / 9, facts=SHAPE, attention=how, **SMALL).mfu for how in ("logged", "full"))
    assert (logged.basis, full.basis) == ("logged", "computed")
    assert logged.spread.median == pytest.approx(0.4667, abs=3e-4)
    assert full.spread.median == pytest.approx(0.5)
    assert "half" in logged.explanation


def test_a_printed_number_that_is_the_computed_one():
    """100 TFLOP/s printed, 100 computed: the ratio is 1 and the explanation says equal."""
    mfu = report(100.0, facts=SHAPE, **SMALL).mfu
    assert mfu.logged_over_computed == pytest.approx(1.0)
    assert mfu.explanation.startswith("equal")


def test_a_printed_number_of_the_whole_job_is_replaced():
    """Three devices, and the log prints the 100 TFLOP/s of all: 33.3 per device is 16.7 %, and a note says why."""
    facts = {**SHAPE, "convention": "canonical"}
    found = report(100.0, facts=facts, peak_tflops=200.0, world_size=3, seq_len=1000)
    assert (found.mfu.basis, found.mfu.spread.median) == ("computed", pytest.approx(1 / 6))
    assert "whole job" in found.mfu.explanation
    assert any("not used for MFU" in note for note in found.notes)


def test_a_printed_number_that_nothing_explains_is_noted():
    """270 TFLOP/s printed where 100 are computed: the ratio is shown, and a note warns."""
    found = report(270.0, facts=SHAPE, **{**SMALL, "peak_tflops": 500.0})
    assert found.mfu.logged_over_computed == pytest.approx(2.7)
    assert any("not explained" in note for note in found.notes)


# Recomputation


@pytest.mark.parametrize(
    ("recompute", "flops"),
    [("none", 900), ("selective", 900 + 40), ("full", 900 + 280), ("early-stop", 900 + 200)],
)
def test_hardware_flops_by_recomputation(recompute, flops):
    """A forward pass of the layers more is 280 million FLOPs, of the attention core 40; early stop spares 80."""
    found = report(facts={**SHAPE, "recompute": recompute}, **SMALL)
    assert found.mfu.spread.median == pytest.approx(0.5)
    assert found.hfu.spread.median == pytest.approx(0.5 * flops / 900)


def test_logged_model_flops_get_the_same_ratio():
    """100 TFLOP/s of model FLOPs printed, full recomputation: HFU is 1180/900 of MFU."""
    found = report(100.0, facts={**SHAPE, "recompute": "full"}, **SMALL)
    assert found.hfu.spread.median / found.mfu.spread.median == pytest.approx(1180 / 900)


def test_recompute_not_known():
    """Without the setting there is no HFU, and the flag is named."""
    hfu = report(400.0, gpu="H100 SXM", precision="bf16").hfu
    assert hfu.spread is None
    assert "--set recompute" in hfu.why_not


def test_printed_hardware_flops_are_hfu():
    """131.1 TFLOP/s with recomputation in them: HFU 65.6 % as logged, MFU 50 % computed."""
    facts = {**SHAPE, "recompute": "full", "flops_kind": "hardware"}
    found = report(1180 / 9, facts=facts, **SMALL)
    assert (found.hfu.basis, found.mfu.basis) == ("logged", "computed")
    assert found.hfu.spread.median == pytest.approx(1180 / 1800, abs=3e-4)
    assert found.mfu.spread.median == pytest.approx(0.5)


def test_printed_hardware_flops_are_not_mfu():
    """The same without a shape: HFU is known, MFU is withheld and the reason says so."""
    found = report(100.0, facts={"flops_kind": "hardware"}, peak_tflops=200.0)
    assert found.hfu.spread.median == pytest.approx(0.5)
    assert (found.mfu.spread, found.mfu.grade, found.mfu.effective) == (None, None, None)
    assert "HFU" in found.mfu.why_not
    assert "--model" in found.mfu.why_not


def test_hardware_flops_without_recomputation_are_mfu():
    """Nothing is computed twice: both are 50 %."""
    found = report(100.0, facts={"flops_kind": "hardware", "recompute": "none"}, peak_tflops=200.0)
    assert (found.mfu.spread.median, found.hfu.spread.median) == (0.5, 0.5)


# The denominator


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, ("does not name the accelerator", "--gpu NAME", "--peak-tflops X")),
        ({"gpu": "X9000"}, ("'X9000' is not in the table", "--gpu NAME")),
        ({"gpu": "H100 SXM", "precision": "fp4"}, ("no fp4 peak", "--peak-tflops X")),
        ({"peak_tflops": 1979.0}, ("1979", "sparse bf16 figure of H100 SXM5", "989.4")),
        ({"peak_tflops": 1979.0, "gpu": "H100 SXM", "precision": "bf16"}, ("sparse", "989.4")),
    ],
    ids=["no device", "unknown device", "no such peak", "sparse peak", "sparse peak of the device"],
)
def test_no_mfu_without_a_sound_peak(options, words):
    """MFU is withheld, never guessed; the reason names what to give."""
    mfu = report(400.0, **options).mfu
    assert (mfu.spread, mfu.grade, mfu.effective, mfu.peak) == (None, None, None, None)
    assert [word for word in words if word not in mfu.why_not] == []


def test_more_than_the_peak_is_refused():
    """4000 TFLOP/s of 989.4 cannot be: no figure, and the likely causes."""
    found = report(4000.0, gpu="H100 SXM", precision="bf16")
    assert (found.mfu.spread, found.mfu.grade) == (None, None)
    assert "404% of peak is impossible" in found.mfu.why_not
    assert found.series["mfu"].isna().all()


def test_exactly_the_peak_is_not_refused():
    """200 of 200 is 100 %."""
    assert report(200.0, peak_tflops=200.0).mfu.spread.median == 1.0


def test_fp8_prints_both_peaks():
    """400 TFLOP/s is 20.2 % of the FP8 peak and 40.4 % of the BF16 peak; both are there."""
    mfu = report(400.0, gpu="H100 SXM", precision="fp8").mfu
    assert (mfu.peak.precision, mfu.spread.median) == ("fp8", pytest.approx(400 / 1978.9))
    assert mfu.alternatives["against the bf16 peak"] == pytest.approx(400 / 989.4)


def test_precision_not_known_is_noted():
    """Where both 16-bit peaks are the same it is used, with a note that names the flag."""
    found = report(400.0, gpu="H100 SXM")
    assert found.mfu.spread.median == pytest.approx(400 / 989.4)
    assert any("precision is not in the log" in note and "--precision" in note for note in found.notes)


def test_a_device_and_a_number_given_together():
    """The number given is the one divided by."""
    mfu = report(400.0, gpu="H100 SXM", precision="bf16", peak_tflops=800.0).mfu
    assert mfu.spread.median == 0.5
    assert mfu.peak.evidence == "given by the user"


# Over the wall clock


def test_effective_mfu_is_step_mfu_times_the_productive_share():
    """180 s of steps in 200 s of wall clock at 50 %: 45 %."""
    lines = steps(1, 10, start=0, took=9.0, tflops=100.0) + steps(11, 20, start=110, took=9.0, tflops=100.0)
    found = report_of(trained(0) + lines, peak_tflops=200.0)
    assert (found.wall_clock_s, found.goodput) == (200.0, 0.9)
    assert found.mfu.spread.median == 0.5
    assert found.mfu.effective == pytest.approx(0.45)


def test_lost_steps_do_not_count_for_effective_mfu():
    """Ten steps of 9 s at 50 % and an out-of-memory error without a save: nothing survived."""
    end = "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB.\n"
    head = "using world size: 8, data-parallel size: 8, tensor-model-parallel size: 1, pipeline-model-parallel size: 1\n"
    saved = "  successfully saved checkpoint from iteration       5 to /ckpt/run [ t 1/1, p 1/1 ]\n"
    lines = steps(1, 5, start=0, took=9.0, tflops=100.0)
    lines += saved + steps(6, 10, start=45, took=9.0, tflops=100.0)
    found = report_of(head + trained(0) + lines + end, peak_tflops=200.0)
    assert found.mfu.spread.median == 0.5
    assert found.mfu.effective == pytest.approx(0.25)
    assert found.goodput == 0.5


@pytest.mark.parametrize(
    ("percent", "name"),
    [(56, "excellent"), (55, "good"), (40, "good"), (39, "average"), (25, "average"), (24, "poor")],
)
def test_grades_at_their_borders(percent, name):
    """Excellent is above 55 %, good from 40 %, average from 25 %, poor below."""
    assert report(float(percent), peak_tflops=100.0).mfu.grade == name


def test_own_grade_bands():
    """With bands of 60, 50 and 40 an MFU of 45 % is average."""
    assert report(45.0, peak_tflops=100.0, grade_bands=(0.6, 0.5, 0.4)).mfu.grade == "average"
