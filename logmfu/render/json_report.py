"""The report as JSON: the versioned contract ``logmfu.report/1``."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

import logmfu
from logmfu.report import Evidence, Incident, Report, Spread, Stall, Utilization, iso
from logmfu.schema import SCHEMA_ID


def render(report: Report) -> str:
    """The whole report as indented JSON text."""
    return json.dumps(document(report), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def document(report: Report) -> dict[str, Any]:
    """The report as plain values, in the order of the contract."""
    plain: dict[str, Any] = _plain(
        {
            "schema": SCHEMA_ID,
            "logmfu_version": logmfu.__version__,
            "name": report.name,
            "inputs": [asdict(file) for file in report.inputs],
            "parser": report.parser,
            "run": dict(report.run),
            "clock": report.clock,
            "start": iso(report.start, report.utc_offset),
            "end": iso(report.end, report.utc_offset),
            "wall_clock_s": report.wall_clock_s,
            "steps": {
                "count": report.step_count,
                "first": report.first_step,
                "last": report.last_step,
                "step_time_s": _spread(report.step_time_s),
            },
            "mfu": _utilization(report.mfu),
            "hfu": _utilization(report.hfu),
            "tflops_per_gpu": _spread(report.tflops_per_gpu),
            "tokens_per_s": _spread(report.tokens_per_s),
            "attempts": [_attempt(report, attempt) for attempt in report.attempts],
            "ledger": [asdict(entry) for entry in report.ledger],
            "goodput": report.goodput,
            "stalls": [_stall(report, stall) for stall in report.stalls],
            "changes": [_change(change) for change in report.changes],
            "saves": report.saves,
            "data_wait": report.data_wait,
            "suspects": list(report.suspects),
            "profiles": [
                {
                    "FLOPS_per_gpu": p.flops_per_gpu,
                    "step": p.step,
                    "figures": dict(p.figures),
                    "evidence": _lines(p.evidence),
                }
                for p in report.profiles
            ],
            "incidents": [_incident(report, incident) for incident in report.incidents],
            "coverage": _coverage(report),
            "facts": [asdict(fact) for fact in report.facts],
            "losses": list(report.losses),
            "gates": list(report.tripped),
            "options": dict(report.options),
            "notes": list(report.notes),
        }
    )
    return plain


def _spread(spread: Spread | None) -> dict[str, Any] | None:
    return None if spread is None else asdict(spread)


def _utilization(use: Utilization) -> dict[str, Any]:
    spread, peak = use.spread, use.peak
    return {
        "median": spread.median if spread else None,
        "p5": spread.p5 if spread else None,
        "p95": spread.p95 if spread else None,
        "effective": use.effective,
        "grade": use.grade,
        "basis": use.basis,
        "attention": use.attention,
        "convention": use.convention,
        "peak_tflops": peak.tflops if peak else None,
        "peak_source": peak.source if peak else None,
        "peak_evidence": peak.evidence if peak else None,
        "device": peak.device if peak else None,
        "precision": peak.precision if peak else None,
        "alternatives": dict(use.alternatives),
        "logged_over_computed": use.logged_over_computed,
        "explanation": use.explanation,
        "why_not": use.why_not,
    }


def _lines(evidence: tuple[Evidence, ...]) -> list[dict[str, Any]]:
    return [asdict(item) for item in evidence]


def _attempt(report: Report, attempt: Any) -> dict[str, Any]:
    values = {name: getattr(attempt, name) for name in attempt.__slots__}
    values["start"], values["end"] = (iso(time, report.utc_offset) for time in (attempt.start, attempt.end))
    return values


def _stall(report: Report, stall: Stall) -> dict[str, Any]:
    return {**asdict(stall), "start": iso(stall.start, report.utc_offset)}


def _change(change: Any) -> dict[str, Any]:
    values = asdict(change)
    seconds = change.unit == "s"
    return {
        **values,
        "before_s": change.before if seconds else None,
        "after_s": change.after if seconds else None,
    }


def _incident(report: Report, incident: Incident) -> dict[str, Any]:
    return {**asdict(incident), "time": iso(incident.time, report.utc_offset)}


def _coverage(report: Report) -> dict[str, Any]:
    values = asdict(report.coverage)
    values["near_miss_examples"] = values.pop("examples")
    return values


def _plain(value: Any) -> Any:
    """JSON-ready: dataclasses to dicts, numpy scalars to Python's, not-a-number to null."""
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if hasattr(value, "item") and not isinstance(value, str | bytes):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)
