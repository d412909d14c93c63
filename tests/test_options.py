"""Options of an analysis: what may be asked for, and what comes of it."""

from __future__ import annotations

import io

import pytest

import logmfu
from logmfu.analysis.options import GRADES, Options, grade
from logmfu.errors import OptionError


def run_of(count: int) -> logmfu.Run:
    """Steps 1 to ``count`` of 2 s each from 2026-03-04 05:00:00 on."""
    lines = [
        f" [2026-03-04 05:{2 * number // 60:02d}:{2 * number % 60:02d}] iteration {number:8d}/    1000 | "
        f"consumed samples: {number:12d} | elapsed time per iteration (ms): 2000.0 | learning rate: 1.000000E-04 | "
        "global batch size:     1 | lm loss: 2.000000E+00 | loss scale: 1.0 | grad norm: 0.500 | "
        "number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        for number in range(1, count + 1)
    ]
    return logmfu.read("-", stdin=io.BytesIO("".join(lines).encode()), parser="megatron")


FIVE = 1_772_600_400.0
"""2026-03-04 05:00:00 of the printed clock, seconds since 1970."""


def test_an_option_that_does_not_exist_is_refused():
    """The error names it, and the hint those that exist."""
    with pytest.raises(OptionError, match="no option colour") as caught:
        logmfu.analyze(run_of(2), colour="red")
    assert "peak_tflops" in caught.value.hint


def test_only_given_options_are_kept_for_provenance():
    """What was left at its default is not listed."""
    assert Options(gpu="H100 SXM", min_mfu=0.4).given() == {"gpu": "H100 SXM", "min_mfu": 0.4}
    assert Options().given() == {}
    assert logmfu.analyze(run_of(2), gpu="H100 SXM").options == {"gpu": "H100 SXM"}


@pytest.mark.parametrize(
    ("mfu", "name"),
    [
        (0.551, "excellent"),
        (0.55, "good"),
        (0.40, "good"),
        (0.399, "average"),
        (0.25, "average"),
        (0.249, "poor"),
    ],
)
def test_grades(mfu, name):
    """Above 55 % is excellent; 40 % and 25 % belong to the better side of their border."""
    assert GRADES == (0.55, 0.40, 0.25)
    assert grade(mfu) == name


@pytest.mark.parametrize("mfu", [0.0, 1.0])
def test_grades_at_the_ends(mfu):
    """Nothing is poor, all is excellent."""
    assert grade(mfu) == ("excellent" if mfu else "poor")


def test_a_whole_number_bounds_by_step():
    """``since`` and ``until`` as ints are steps, both included."""
    report = logmfu.analyze(run_of(20), since=5, until=10)
    assert (report.step_count, report.first_step, report.last_step) == (6, 5, 10)
    assert any("--since" in note for note in report.notes)


def test_a_float_bounds_by_time():
    """As floats they are times: from 05:00:10 to 05:00:20 there are steps 5 to 10 and ten seconds."""
    report = logmfu.analyze(run_of(20), since=FIVE + 10, until=FIVE + 20)
    assert (report.first_step, report.last_step, report.wall_clock_s) == (5, 10, 10.0)
    assert (report.start, report.end) == (FIVE + 10, FIVE + 20)


def test_a_bound_keeps_the_run_itself_whole():
    """Analysing a part does not change the tables that were read."""
    run = run_of(20)
    logmfu.analyze(run, since=5)
    assert logmfu.analyze(run).step_count == 20


@pytest.mark.parametrize("bounds", [{"since": 100}, {"until": 0}, {"since": FIVE + 3600}])
def test_a_part_without_a_step_is_refused(bounds):
    """Bounds outside the run leave no step: an error that says which steps there are."""
    with pytest.raises(OptionError) as caught:
        logmfu.analyze(run_of(20), **bounds)
    assert any("1 to 20" in fact for fact in caught.value.facts)


def test_facts_and_flags_fill_what_the_log_lacks():
    """A given world size and sequence length are in the report, marked as options."""
    report = logmfu.analyze(run_of(5), world_size=8, seq_len=4096, facts={"layers": 2})
    assert (report.devices, report.run["seq_len"], report.run["model"]) == (8, 4096, {"layers": 2})
    assert {line.how for line in report.facts if line.name in ("world_size", "seq_len", "layers")} == {
        "option"
    }


@pytest.mark.parametrize("text", ["bfloat16", "torch.bfloat16", "amp_bf16", "bf16"])
def test_a_precision_is_known_by_its_names(text):
    """Whatever it is called, bf16 is bf16."""
    assert logmfu.analyze(run_of(2), precision=text).run["precision"] == "bf16"


def test_a_given_zone_is_that_of_the_printed_clock():
    """Two hours east of UTC: the printed times stay as they are, with their offset."""
    report = logmfu.analyze(run_of(2), utc_offset=7200)
    assert report.utc_offset == 7200
    assert '"2026-03-04T05:00:02+02:00"' in report.to_json()
