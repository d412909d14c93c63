"""The schema as text: tables, events, facts, and the JSON schema of the report."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from logmfu import report as model
from logmfu import schema
from logmfu.schema import Column


def render(part: str | None) -> str:
    """One part, or all tables with events and facts."""
    if part == "report":
        return json.dumps(report_schema(), indent=2) + "\n"
    parts: dict[str, Callable[[], Iterable[str]]] = {
        "steps": lambda: _table("steps", (*schema.STEPS, *schema.MORE_STEPS)),
        "events": lambda: [
            *_table("events", schema.EVENT_COLUMNS),
            "",
            *_names("event names", schema.EVENTS),
        ],
        "timers": lambda: _table("timers", schema.TIMER_COLUMNS),
        "facts": lambda: _names("facts", schema.FACTS),
    }
    chosen = [part] if part else list(parts)
    return "\n\n".join("\n".join(parts[name]()) for name in chosen) + "\n"


def _table(title: str, columns: Sequence[Column]) -> Iterator[str]:
    yield f"{title}:"
    for column in columns:
        unit = f" [{column.unit}]" if column.unit else ""
        yield f"  {column.name:<28} {column.dtype:<15} {column.meaning}{unit}"


def _names(title: str, names: Mapping[str, str]) -> Iterator[str]:
    yield f"{title}:"
    for name, meaning in names.items():
        yield f"  {name:<24} {meaning}"


def report_schema() -> dict[str, Any]:
    """JSON schema of ``logmfu.report/1``, made from the report's own classes."""
    text, number, whole = {"type": "string"}, {"type": ["number", "null"]}, {"type": ["integer", "null"]}
    spread = _of(model.Spread | None)
    share = {"type": ["number", "null"]}
    utilization = {
        "type": "object",
        "required": ["median", "p5", "p95", "why_not"],
        "properties": {
            **dict.fromkeys(
                ("median", "p5", "p95", "effective", "peak_tflops", "logged_over_computed"), share
            ),
            **{
                key: {"type": ["string", "null"]}
                for key in (
                    "grade",
                    "basis",
                    "attention",
                    "convention",
                    "peak_source",
                    "peak_evidence",
                    "device",
                    "precision",
                    "explanation",
                    "why_not",
                )
            },
            "alternatives": {"type": "object", "additionalProperties": number},
        },
    }
    listed = {
        "inputs": model.InputFile, "attempts": model.Attempt, "ledger": model.LedgerEntry, "stalls": model.Stall,
        "changes": model.Change, "incidents": model.Incident, "suspects": model.Suspect, "facts": model.FactLine,
    }  # fmt: skip
    times = {
        "start": {"type": ["string", "null"]},
        "end": {"type": ["string", "null"]},
        "time": {"type": ["string", "null"]},
        "before": number,
        "after": number,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": schema.SCHEMA_ID,
        "title": "logmfu report",
        "type": "object",
        "required": [
            "schema",
            "logmfu_version",
            "inputs",
            "parser",
            "run",
            "clock",
            "steps",
            "mfu",
            "hfu",
            "attempts",
            "ledger",
            "stalls",
            "coverage",
            "notes",
        ],
        "properties": {
            "schema": {"const": schema.SCHEMA_ID},
            "logmfu_version": text,
            "name": text,
            "parser": text,
            "run": {"type": "object"},
            "clock": {"enum": ["timestamps", "reconstructed", "none"]},
            "start": times["start"],
            "end": times["end"],
            "wall_clock_s": number,
            "goodput": number,
            "steps": {
                "type": "object",
                "properties": {
                    "count": {"type": "integer"},
                    "first": whole,
                    "last": whole,
                    "step_time_s": spread,
                },
            },
            "mfu": utilization,
            "hfu": utilization,
            "tflops_per_gpu": spread,
            "tokens_per_s": spread,
            **{name: {"type": "array", "items": _of(kind, times)} for name, kind in listed.items()},
            "saves": _of(model.SaveSummary | None),
            "data_wait": _of(model.DataWaitSummary | None),
            "profiles": {"type": "array", "items": {"type": "object"}},
            "coverage": {
                "type": "object",
                "properties": {
                    key: {"type": "integer"} for key in ("lines", "matched", "near_misses", "other")
                },
            },
            **{key: {"type": "array", "items": text} for key in ("losses", "gates", "notes")},
            "options": {"type": "object"},
        },
    }


_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


def _of(kind: Any, override: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """JSON schema of a type of the report model."""
    if kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        properties = {
            item.name: (override or {}).get(item.name) or _of(hints[item.name]) for item in fields(kind)
        }
        return {"type": "object", "properties": properties, "required": list(properties)}
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is UnionType:
        return {"anyOf": [_of(argument) for argument in arguments]}
    if origin is tuple:
        return {"type": "array", "items": _of(arguments[0])}
    return {} if kind is Any else {"type": "object"}
