"""Real logs from outside this repository give the figures that people found in them.

The logs are not shipped. ``LOGMFU_REAL_LOGS`` names a folder with them and with ``expected.tsv``: one row per file,
an empty cell where the file does not decide it. Without the folder nothing here runs.
"""

from __future__ import annotations

import csv
import math
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import logmfu
from logmfu.report import Report

BESIDE = Path(__file__).parents[2] / "shared" / "logs"
FOLDER = Path(os.environ.get("LOGMFU_REAL_LOGS") or BESIDE)
PARSERS = frozenset({"megatron", "megatron_deepspeed", "gpt_neox", "deepspeed"})


def _rows() -> list[dict[str, str]]:
    table = FOLDER / "expected.tsv"
    if not table.is_file():
        return []
    with table.open(encoding="utf-8", newline="") as lines:
        return [row for row in csv.DictReader(lines, delimiter="\t") if row["parser"] in PARSERS]


ROWS = _rows()
pytestmark = pytest.mark.skipif(not ROWS, reason="no folder of real logs; LOGMFU_REAL_LOGS names one")
each_file = pytest.mark.parametrize("row", ROWS, ids=lambda row: row["file"])


@cache
def run_of(file: str) -> logmfu.Run:
    """The log, read without being told the format."""
    return logmfu.read(FOLDER / file)


@cache
def report_of(file: str) -> Report:
    """The log, analysed without any option."""
    return logmfu.analyze(run_of(file))


def found(file: str) -> dict[str, str | float | None]:
    """The cells of ``expected.tsv`` as logmfu fills them."""
    run, report = run_of(file), report_of(file)
    return {
        "parser": run.parser,
        "steps": report.step_count,
        "first_step": report.first_step,
        "last_step": report.last_step,
        "attempts": len(report.attempts),
        "throughput_median": float(run.steps["tflops_per_gpu_logged"].median()),
        "step_time_median_s": float(run.steps["step_time_s"].median()),
        "saves": report.saves.count if report.saves else 0,
        "evals": int((run.events["event"] == "eval_end").sum()),
    }


@each_file
def test_figures_are_those_people_found(row: dict[str, str]):
    """Parser, step rows, first and last step, attempts, medians of throughput and step time, saves, evaluations."""
    cells = found(row["file"])
    decided = [name for name in cells if row[name] != ""]
    medians = [name for name in decided if "median" in name]
    whole = [name for name in decided if name not in medians]
    assert {name: str(cells[name]) for name in whole} == {name: row[name] for name in whole}
    # Six significant digits are given.
    assert {name: cells[name] for name in medians} == pytest.approx(
        {name: float(row[name]) for name in medians}, rel=5.1e-6
    )


@each_file
def test_every_line_is_read_or_explained(row: dict[str, str]):
    """No line of these logs looks like something known and cannot be read."""
    run = run_of(row["file"])
    assert run.coverage.near_misses == 0, run.coverage.examples


@each_file
def test_ledger_adds_up_to_the_wall_clock(row: dict[str, str]):
    """The classes of the ledger sum to the wall clock, to the microsecond; without a clock there is no ledger."""
    report = report_of(row["file"])
    total = sum(entry.seconds for entry in report.ledger)
    assert total == pytest.approx(report.wall_clock_s or 0.0, abs=1e-6)


@each_file
def test_missing_utilization_is_explained(row: dict[str, str]):
    """None of these logs names an accelerator that decides the peak without an option, or the report gives one."""
    report = report_of(row["file"])
    assert (report.mfu.spread is None) == (report.mfu.why_not is not None)


@each_file
def test_every_finding_is_shown_by_lines_of_the_file(row: dict[str, str]):
    """Evidence names a line that exists."""
    report = report_of(row["file"])
    lines = sum(file.lines for file in report.inputs)
    cited = [
        item.line
        for found in (*report.stalls, *report.changes, *report.incidents, *report.attempts)
        for item in found.evidence
    ]
    assert all(1 <= line <= lines for line in cited)


@dataclass(frozen=True, slots=True)
class Finding:
    """A stall that people found: its kinds that are right, its step, lines that show it, its size in seconds."""

    file: str
    kind: str
    step: int
    lines: frozenset[int] = frozenset()
    seconds: tuple[float, float] = (0.0, math.inf)


def _found(
    file: str, kind: str, step: int, *lines: int, s: tuple[float, float] = (0.0, math.inf)
) -> Finding:
    return Finding(file, kind, step, frozenset(lines), s)


FINDINGS = (
    _found("bigscience-megds3d-n16-dsoff.log", "warmup", 1, s=(17.0, 19.0)),  # 144.9 s against 126.7 s
    _found("bigscience-tr1-13b.log", "checkpoint", 33240, 18, 21, s=(57.4, 57.6)),
    _found("megatron-4090-infini.log", "warmup", 1, s=(5.9, 6.3)),  # 19.1 s against 13.0 s
    _found("mbridge-llama-out1.log", "slow_steps", 10, s=(8.5, 8.8)),  # 9.1 s against 0.45 s
    _found("megatron-alps-1861140.log", "checkpoint", 50, 2477, s=(17.8, 18.0)),
    _found("megatron-alps-1861140.log", "checkpoint", 100, s=(1.0, 1.15)),
    _found("megatron-alps-1861140.log", "checkpoint", 150, s=(1.0, 1.15)),
    _found("megatron-alps-1861140.log", "checkpoint", 200, s=(1.0, 1.15)),
    _found("megatron-alps-1861140.log", "checkpoint", 250, s=(1.0, 1.15)),
    _found("megatron-alps-1861140.log", "checkpoint", 300, 2760, s=(1.0, 1.15)),
    _found("megatron-alps-2611435-ckpts.log", "warmup", 1, s=(105.0, 106.5)),
    _found("megatron-alps-2611435-ckpts.log", "checkpoint", 50, 2567, s=(42.1, 42.3)),
    _found("megatron-alps-2611435-ckpts.log", "checkpoint", 100, s=(1.25, 1.37)),
    _found("megatron-alps-2611435-ckpts.log", "checkpoint", 150, s=(1.25, 1.38)),
    _found("megatron-alps-2611435-ckpts.log", "checkpoint", 200, s=(1.25, 1.37)),
    _found("megatron-alps-3108434.log", "data_wait", 735, 10484, 10493, s=(11.1, 11.4)),
    _found("megatron-alps-3108456.log", "data_wait", 288, 6999, 7008, s=(11.3, 11.6)),
    *(_found("megds-moe-125m-kernel.log", "evaluation", step) for step in range(100, 2101, 100)),
    *(_found("megds-randomltd-125m-baseline.log", "evaluation", step) for step in range(100, 401, 100)),
    *(_found("neox-70m-512steps.log", "evaluation", step, s=(13.0, 13.5)) for step in (128, 256, 384)),
    _found("neox-70m-512steps.log", "checkpoint", 1),
    *(_found("dschat-step1-opt1.3b.log", "evaluation", 460 * epoch) for epoch in range(1, 16)),
    # The last evaluation and the saved model share 16.3 s; the launcher's lines come after.
    _found("dschat-step1-opt1.3b.log", "unknown", 7360, 1662, 1664, s=(16.2, 16.4)),
    _found("primus-dsv2lite-fp8-baseline.log", "warmup", 1, s=(46.0, 46.4)),  # 78.3 s against 32.1 s
    _found("primus-dsv4-p57r2-trace.log", "slow_steps", 7, s=(0.65, 0.7)),  # 1.12 s against 0.44 s
    _found("primus-dsv4-smoke-ep8.log", "warmup", 1, s=(29.5, 30.5)),
)
"""Facts people read in the files. Where the log shows no cause, ``slow_steps`` is right and a name is wrong."""


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda one: f"{one.file}-{one.kind}-{one.step}")
def test_stall_is_found_with_its_lines(finding: Finding):
    """Kind, step, size, and the lines that show it."""
    here = [stall for stall in report_of(finding.file).stalls if stall.step == finding.step]
    fitting = [stall for stall in here if stall.kind == finding.kind]
    assert len(fitting) == 1, here
    assert finding.seconds[0] <= fitting[0].seconds <= finding.seconds[1]
    assert finding.lines <= {item.line for item in fitting[0].evidence}


EXITS = (
    ("bigscience-megdszero-n16.log", ("time_limit",), 6117),
    ("bigscience-meglm-n32-pp32.log", ("killed",), 2103),
    ("bigscience-meglm-n4-pp4.log", ("killed",), 1577),
    ("ds-randomltd-gpt-crash.log", ("interrupted",), 439),
    ("megds-moe-125m-kernel.log", ("interrupted",), 3953),
    ("megds-alcf-10143818.log", ("finished", "finished", "running"), None),
    ("megatron-alps-2256087.log", ("running",), None),
)
"""Ends of attempts. ``running``: the log stops without a word."""


@pytest.mark.parametrize(("file", "exits", "line"), EXITS, ids=[file for file, _, _ in EXITS])
def test_attempts_end_as_the_log_says(file: str, exits: tuple[str, ...], line: int | None):
    """Every attempt's end, and the line that shows the last one's."""
    attempts = report_of(file).attempts
    assert tuple(attempt.exit for attempt in attempts) == exits
    assert line is None or line in {item.line for item in attempts[-1].evidence}


def test_error_of_a_device_is_found():
    """The uncorrectable memory error that ended an attempt is an incident with its line."""
    incidents = report_of("bigscience-tr1-13b.log").incidents
    assert 45 in {item.line for one in incidents if one.kind == "ecc_error" for item in one.evidence}


@pytest.mark.parametrize("file", ["megatron-alps-2256087.log", "megatron-alps-2256087.log.gz"])
def test_quiet_run_has_no_findings(file: str):
    """A run without checkpoint, evaluation and pause: the first step is all there is to say."""
    report = report_of(file)
    assert [(stall.kind, stall.step) for stall in report.stalls] == [("warmup", 1)]
    assert not report.changes
    assert not report.incidents


STATED = (
    ("ds-dataeff-gpt-checkbase.log", "step_counter_note"),
    ("ds-randomltd-gpt-crash.log", "step_counter_note"),
    ("dschat-step3-rlhf-opt1.3b.log", "engines_note"),
    ("bigscience-tr8b-104b.log", "unit_note"),
)
"""Files in which a figure is open to doubt, and the fact that says so."""


@pytest.mark.parametrize(("file", "fact"), STATED, ids=[file for file, _ in STATED])
def test_doubt_is_stated(file: str, fact: str):
    """Where a file does not decide a figure the report says what was done, and shows the line."""
    report = report_of(file)
    stated = [one for one in report.facts if one.name == fact]
    assert stated
    assert stated[0].line > 0
    assert str(stated[0].value) in report.notes
