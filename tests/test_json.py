"""The JSON report is a contract: it fits its own published schema, and the names in it do not move."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import logmfu
from logmfu.render.columns import render as schema_text
from logmfu.report import Evidence, Report
from logmfu.tables import NearMiss

ROOT = Path(__file__).parent.parent
LOGS = sorted((ROOT / "fixtures").glob("*/*.log"))
HANG = ROOT / "fixtures" / "megatron" / "0.12-64gpu-hang-restart.log"
SCHEMA = json.loads(schema_text("report"))
TOP = (
    "schema logmfu_version name inputs parser run clock start end wall_clock_s steps mfu hfu tflops_per_gpu tokens_per_s"
    " attempts ledger goodput stalls changes saves data_wait suspects profiles incidents coverage facts losses gates"
    " options notes"
)
"""Keys of the report, in order. A change here is a line in CHANGELOG.md."""
PARTS = {
    "steps": "count first last step_time_s",
    "mfu": "median p5 p95 effective grade basis attention peak_tflops peak_source precision why_not",
    "hfu": "median basis why_not",
    "attempts": "first_step last_step start end exit lost_steps evidence",
    "ledger": "kind seconds share gpu_hours",
    "stalls": "kind step start seconds gpu_hours confidence evidence",
    "incidents": "kind time rank text evidence",
    "coverage": "lines matched near_misses other near_miss_examples",
    "inputs": "path bytes lines",
}
"""Keys that programs rely on, by part; there may be more."""


@cache
def report_of(log: Path) -> Report:
    """The report of a fixture."""
    return logmfu.analyze(logmfu.read(log), gpu="H100 SXM", gpu_hour_price=2.0)


def strict(text: str) -> dict:
    """JSON without the constants that are not JSON."""

    def refuse(constant: str) -> float:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_schema_is_a_schema():
    """``logmfu schema report`` prints a valid JSON schema of the version that reports name."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$id"] == "logmfu.report/1"


@pytest.mark.parametrize("log", LOGS, ids=lambda log: f"{log.parent.name}/{log.name}")
def test_report_fits_the_schema(log: Path):
    """Every fixture's report validates, and holds no NaN."""
    jsonschema.Draft202012Validator(SCHEMA).validate(strict(report_of(log).to_json()))


def test_schema_refuses_what_is_no_report():
    """The schema is not a formality: a missing part, a wrong type and a wrong version fail."""
    good = strict(report_of(HANG).to_json())
    check = jsonschema.Draft202012Validator(SCHEMA)
    for bad in (
        {name: value for name, value in good.items() if name != "ledger"},
        {**good, "schema": "logmfu.report/2"},
        {**good, "wall_clock_s": "long"},
        {**good, "stalls": [{**good["stalls"][0], "seconds": None}]},
        {**good, "clock": "sundial"},
    ):
        assert not check.is_valid(bad)


def test_keys_are_those_of_the_contract():
    """Names and order of the top level, and the names inside the parts."""
    report = strict(report_of(HANG).to_json())
    assert list(report) == TOP.split()
    for part, names in PARTS.items():
        entries = report[part] if isinstance(report[part], list) else [report[part]]
        assert entries, part
        for entry in entries:
            assert set(names.split()) <= entry.keys(), part


def test_numbers_are_fractions_and_seconds():
    """Shares are 0 to 1, the ledger adds up, hours follow from seconds and devices, money from hours."""
    report = strict(report_of(HANG).to_json())
    assert report["mfu"]["median"] == pytest.approx(406.3 / 989.4, rel=1e-9)
    assert sum(entry["seconds"] for entry in report["ledger"]) == pytest.approx(
        report["wall_clock_s"], abs=1e-6
    )
    assert sum(entry["share"] for entry in report["ledger"]) == pytest.approx(1.0)
    for entry in report["ledger"]:
        assert entry["gpu_hours"] == pytest.approx(entry["seconds"] * 64 / 3600)
        assert entry["cost"] == pytest.approx(entry["gpu_hours"] * 2.0)


def test_times_have_an_offset_only_when_the_log_has_one():
    """A naive clock stays naive; with a zone given it carries it."""
    run = logmfu.read(HANG)
    assert strict(logmfu.analyze(run).to_json())["start"] == "2026-03-04T01:52:50"
    there = logmfu.analyze(run, utc_offset=2 * 3600)
    assert strict(there.to_json())["start"] == "2026-03-04T01:52:50+02:00"


def test_absent_knowledge_is_null_with_a_reason():
    """Without the accelerator there is no MFU, no peak, and a reason that names the option."""
    mfu = strict(logmfu.analyze(logmfu.read(HANG)).to_json())["mfu"]
    assert mfu["median"] is None
    assert mfu["peak_tflops"] is None
    assert "--gpu" in mfu["why_not"]


@given(text=st.text())
def test_any_text_of_a_log_survives(text: str):
    """Whatever stands in a line comes back out of the JSON as it was."""
    report = report_of(HANG)
    miss = NearMiss("x.log", 1, "rule", "reason", text)
    coverage = replace(report.coverage, examples=(miss,))
    hostile = replace(
        report,
        coverage=coverage,
        notes=(text,),
        stalls=(replace(report.stalls[0], evidence=(Evidence("x.log", 1, text),)),),
    )
    out = strict(hostile.to_json())
    assert out["notes"] == [text]
    assert out["coverage"]["near_miss_examples"][0]["text"] == text
    assert out["stalls"][0]["evidence"][0]["text"] == text


@given(number=st.floats() | st.integers(-(2**63), 2**63))
def test_any_number_is_json(number: float):
    """Numbers that JSON has no word for become null."""
    out = strict(replace(report_of(HANG), goodput=number).to_json())["goodput"]
    assert out == (number if math.isfinite(number) else None)
