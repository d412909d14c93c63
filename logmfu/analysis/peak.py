"""The denominator: which device, which precision, which peak, and why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from logmfu import hardware
from logmfu.analysis.options import Options
from logmfu.report import Peak
from logmfu.tables import Facts

SIXTEEN_BIT = ("bf16", "fp16")
NARROW = ("fp8", "fp4")


@dataclass(frozen=True, slots=True)
class Denominator:
    """A peak, or the reason why there is none. ``others``: peaks of the same device at other precisions."""

    peak: Peak | None = None
    why_not: str | None = None
    others: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def denominator(facts: Facts, options: Options) -> Denominator:
    """The peak to divide by: the user's number, else the named device's row, else the log's device's row."""
    precision = options.precision or facts.get("precision")
    named = options.gpu or facts.get("accelerator")
    how = "option --gpu" if options.gpu else _where(facts, "accelerator")
    if options.peak_tflops is not None:
        return _given(options.peak_tflops, named, precision)
    if not named:
        return Denominator(
            why_not="the log does not name the accelerator: give --gpu NAME (`logmfu peaks` lists them) or --peak-tflops X"
        )
    device = hardware.find(str(named))
    if device is None:
        return Denominator(
            why_not=f"{hardware.explain(str(named))}: give --gpu NAME (`logmfu peaks` lists them) or --peak-tflops X"
        )
    return _of_device(device, precision, how)


def _where(facts: Facts, name: str) -> str:
    if name not in facts:
        return ""
    stated = facts.where(name)
    return f"{stated.path}:{stated.line}" if stated.path else f"option --set {name}"


def _given(tflops: float, named: Any, precision: Any) -> Denominator:
    suspect = hardware.sparse_suspect(
        tflops, device=str(named) if named else None, precision=str(precision or "bf16")
    )
    if suspect:
        return Denominator(
            why_not=f"--peak-tflops {tflops:g} is refused: {suspect.text}. Give {suspect.dense:g}, or the precision it belongs to"
        )
    device = (hardware.find(str(named)) if named else None) or "device not named"
    return Denominator(
        Peak(
            tflops,
            device,
            str(precision or "not stated"),
            "given",
            "given by the user",
            "option --peak-tflops",
        )
    )


def _of_device(device: str, precision: Any, how: str) -> Denominator:
    rows = {row.precision: row for row in hardware.rows() if row.device == device}
    notes: tuple[str, ...] = ()
    if precision is None:
        peaks = {rows[name].tflops for name in SIXTEEN_BIT if name in rows}
        if len(peaks) != 1:
            return Denominator(
                why_not=f"the log does not state the precision, and peaks of {device} differ: give --precision"
            )
        precision = next(name for name in SIXTEEN_BIT if name in rows)
        notes = (
            f"precision is not in the log: the 16-bit peak of {device} is used; --precision says otherwise",
        )
    row = rows.get(hardware.precision_of(str(precision)) or str(precision))
    if row is None:
        known = ", ".join(rows)
        return Denominator(
            why_not=f"no {precision} peak is known for {device} (known: {known}): give --peak-tflops X"
        )
    evidence = "recalled only: check it before relying on it" if row.recalled else row.evidence
    others = {
        f"{name} peak": other.tflops
        for name, other in rows.items()
        if name in (*SIXTEEN_BIT, *NARROW) and name != row.precision
    }
    relevant = others if row.precision in NARROW else {}
    scope = () if row.scope == "device" else (f"one device of the world size is one {row.scope}",)
    return Denominator(
        Peak(row.tflops, row.device, row.precision, row.source, evidence, how),
        None,
        relevant,
        (*notes, *scope),
    )
