"""Text, CSV and JSON of evaluations by hand and of the table of peaks."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from logmfu.flops.evaluate import ADDED, Evaluation
from logmfu.hardware import PeakRow

_COLUMNS = ("convention", "attention", "counts", *ADDED)


def text(found: Evaluation) -> str:
    """One evaluation for people, every number with its unit and its denominator."""
    lines = [f"convention           {found.convention}: {found.title}"]
    lines += [f"                     attention {found.attention}, recomputation {found.recompute}"]
    lines += _numbers(found)
    lines += _peak(found.peak)
    lines += [f"MFU otherwise        {share:.2%} {name}" for name, share in found.alternatives.items()]
    if found.not_counted:
        lines.append(f"not counted          {', '.join(found.not_counted)}")
    lines += [f"note                 {note}" for note in found.notes]
    return "\n".join(lines)


def side_by_side(found: Sequence[Evaluation]) -> str:
    """Conventions as rows, with the ratio of each to the first."""
    head = (
        "convention",
        "attention",
        "prints",
        "FLOPs/token",
        "ratio",
        "TFLOP/s",
        "MFU",
        "HFU",
        "not counted",
    )
    first = found[0].flops_per_token or 1.0
    rows = [
        (
            one.convention,
            one.attention,
            one.counts,
            _number(one.flops_per_token, ".4e"),
            _number((one.flops_per_token or 0.0) / first, ".3f"),
            _number(one.tflops_per_device, ".1f"),
            _number(one.mfu, ".1%"),
            _number(one.hfu, ".1%"),
            ", ".join(one.not_counted),
        )
        for one in found
    ]
    notes = [f"note: {note}" for note in found[0].notes]
    return "\n".join([aligned([head, *rows]), *notes])


def as_json(found: Evaluation | Sequence[Evaluation]) -> str:
    """Evaluations as JSON; shares are 0 to 1."""
    plain = asdict(found) if isinstance(found, Evaluation) else [asdict(one) for one in found]
    return json.dumps(plain, indent=2, ensure_ascii=False)


def as_csv(found: Sequence[Evaluation]) -> str:
    """Evaluations as CSV: convention, attention, what is printed, and the five numbers."""
    return rows_csv([{name: getattr(one, name) for name in _COLUMNS} for one in found])


def rows_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as CSV with the columns of the first."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows({name: "" if value is None else value for name, value in row.items()} for row in rows)
    return out.getvalue().rstrip("\n")


def rows_json(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as a JSON list; empty cells are null."""
    plain = [{name: None if value == "" else value for name, value in row.items()} for row in rows]
    return json.dumps(plain, indent=2, ensure_ascii=False)


def rows_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as an aligned table."""
    head = tuple(rows[0])
    return aligned([head, *(tuple(_cell(row.get(name)) for name in head) for row in rows)])


def peaks(rows: Sequence[PeakRow], form: str, *, names: Sequence[str] = ()) -> str:
    """Rows of the table of peaks as ``json``, ``csv`` or ``table``; ``names`` of a single device below the table."""
    plain = [asdict(row) for row in rows]
    if form != "table":
        return {"json": rows_json, "csv": rows_csv}[form](plain)
    shown = ("device", "precision", "tflops", "scope", "evidence", "source")
    lines = [rows_text([{name: row[name] for name in shown} for row in plain])]
    if names:
        lines += [f"note: {note}" for note in dict.fromkeys(row.note for row in rows) if note]
        lines.append(f"names in logs: {', '.join(names)}")
    return "\n".join(lines)


def aligned(rows: Iterable[Sequence[str]]) -> str:
    """Columns padded to their widest cell, two blanks apart."""
    table = [list(row) for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    )


def _numbers(found: Evaluation) -> list[str]:
    per = f"                     {found.counts} FLOPs"
    wanted = (
        ("FLOPs per token      ", found.flops_per_token, ".6g", per if found.counts == "hardware" else ""),
        ("FLOPs per iteration  ", found.flops_per_iteration, ".6g", ""),
        ("TFLOP/s per device   ", found.tflops_per_device, ".2f", ""),
        ("MFU                  ", found.mfu, ".2%", ""),
        ("HFU                  ", found.hfu, ".2%", ""),
    )
    return [
        f"{label}{_number(value, form)}{tail}" for label, value, form, tail in wanted if value is not None
    ]


def _peak(peak: PeakRow | None) -> list[str]:
    if peak is None:
        return []
    head = f"of                   {peak.tflops:g} TFLOP/s, dense {peak.precision}, {peak.device}"
    return (
        [head]
        if peak.source == peak.evidence
        else [f"{head}: {peak.source}", f"                     evidence: {peak.evidence}"]
    )


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str("" if value is None else value)
