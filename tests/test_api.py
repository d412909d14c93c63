"""The Python names people hold on to, as in a notebook."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import logmfu
from logmfu import schema
from logmfu.errors import FormatError, OptionError, PluginError, SourceError

ROOT = Path(__file__).parent.parent
LOG = ROOT / "fixtures" / "megatron" / "0.12-64gpu-hang-restart.log"
PROFILE = ROOT / "fixtures" / "deepspeed" / "0.12-16gpu-profiler-alone.log"


@pytest.fixture(scope="module")
def run() -> logmfu.Run:
    """A run of 600 steps with a restart."""
    return logmfu.read(LOG)


def test_public_names():
    """What ``import logmfu`` offers; a change is a line in CHANGELOG.md."""
    assert logmfu.__all__ == ["Report", "Run", "__version__", "analyze", "read"]
    assert all(getattr(logmfu, name) for name in logmfu.__all__)
    with pytest.raises(AttributeError, match="no attribute 'parse'"):
        logmfu.parse  # noqa: B018


def test_import_is_light():
    """``import logmfu`` loads no pandas until something is read."""
    code = "import sys, logmfu; print(*{'pandas', 'numpy', 'matplotlib'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_tables_have_their_columns_and_types(run: logmfu.Run):
    """The columns of the schema come first, in order, with their types; the program's own follow."""
    for frame, columns in (
        (run.steps, schema.STEPS),
        (run.events, schema.EVENT_COLUMNS),
        (run.timers, schema.TIMER_COLUMNS),
    ):
        assert list(frame.columns[: len(columns)]) == [column.name for column in columns]
        for column in columns:
            assert str(frame[column.name].dtype) == column.dtype, column.name


def test_named_throughput_is_a_column(run: logmfu.Run):
    """Megatron's throughput under the name people use for it, equal to the common column."""
    assert run.steps["throughput_per_gpu_tflops"].equals(
        run.steps["tflops_per_gpu_logged"].rename("throughput_per_gpu_tflops")
    )
    assert run.steps["throughput_per_gpu_tflops"].median() == 406.3


def test_profile_without_steps_is_a_result():
    """DeepSpeed's profiler alone gives FLOPS_per_gpu, and no error."""
    report = logmfu.analyze(logmfu.read(PROFILE))
    assert report.step_count == 0
    assert [profile.flops_per_gpu for profile in report.profiles]


def test_facts_are_a_mapping_with_places(run: logmfu.Run):
    """A fact, and the line that states it."""
    assert run.facts["world_size"] == 64
    assert run.facts.get("no such fact") is None
    assert run.facts.where("seq_len").line == 23
    assert run.facts.where("seq_len").path == str(LOG)


def test_report_in_every_form(run: logmfu.Run, tmp_path: Path):
    """JSON, Markdown, HTML and a figure from one report."""
    report = logmfu.analyze(run, gpu="H100 SXM")
    assert report.to_json().startswith("{")
    assert "41.1" in report.to_markdown()
    assert report.to_html().lower().startswith("<!doctype html>")
    figure = report.plot()
    figure.savefig(tmp_path / "mfu.png")
    assert (tmp_path / "mfu.png").stat().st_size > 10_000


def test_analysis_leaves_the_run_alone(run: logmfu.Run):
    """The same run can be analysed again, with other options, and gives the same again."""
    before = run.steps.copy(), run.events.copy(), run.timers.copy(), dict(run.facts)
    first = logmfu.analyze(run, gpu="H100 SXM").to_json()
    logmfu.analyze(run, gpu="A100", since=500, facts={"run_name": "other"})
    assert logmfu.analyze(run, gpu="H100 SXM").to_json() == first
    for frame, after in zip(before, (run.steps, run.events, run.timers), strict=False):
        pd.testing.assert_frame_equal(frame, after)
    assert dict(run.facts) == before[3]


def test_tables_may_be_changed_after_the_analysis():
    """In a notebook they belong to the reader; the report's own series is changed in a copy."""
    run = logmfu.read(LOG)
    report = logmfu.analyze(run)
    for name in run.steps:
        run.steps.loc[0, name] = run.steps.loc[1, name]
    assert run.steps.loc[0, "step"] == run.steps.loc[1, "step"]
    before = report.series["loss"].tolist()
    own = report.series.copy()
    own.loc[0, "loss"] = 99.0
    assert report.series["loss"].tolist() == before


@pytest.mark.parametrize(
    "paths", [LOG, str(LOG), [LOG], [str(LOG)]], ids=["path", "text", "paths", "texts"]
)
def test_paths_in_any_form(paths):
    """One path or several, as text or as ``Path``."""
    assert len(logmfu.read(paths).steps) == 64


def test_errors_are_ones_own(run: logmfu.Run, tmp_path: Path):
    """What was done wrong tells the class of the error; its text is for people."""
    poem = tmp_path / "poem.log"
    poem.write_text("roses are red\n")
    with pytest.raises(SourceError, match=r"there is no file"):
        logmfu.read(tmp_path / "missing.log")
    with pytest.raises(FormatError, match="no parser understands"):
        logmfu.read(poem)
    with pytest.raises(PluginError, match="no parser called"):
        logmfu.read(LOG, parser="nonsense")
    with pytest.raises(OptionError, match="no step"):
        logmfu.analyze(run, since=10_000)
    with pytest.raises(OptionError, match="no option colour"):
        logmfu.analyze(run, colour="red")


def test_window_by_time_takes_everything_of_that_time(run: logmfu.Run):
    """Timers and lines without a stamp go with the step before them: one attempt, no later save."""
    report = logmfu.analyze(run, until=1_772_589_360.0)  # 2026-03-04 01:56:00
    assert (report.step_count, report.last_step, len(report.attempts)) == (3, 30, 1)
    assert {stall.kind for stall in report.stalls} <= {"warmup", "startup"}
    later = logmfu.analyze(run, since=1_772_589_360.0)
    assert report.step_count + later.step_count == 64
