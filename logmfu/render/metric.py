"""Which quantity a picture shows: MFU, else the best the log gives, with the reason."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from logmfu.render.provenance import denominator
from logmfu.render.quantities import UNKNOWN, percent, significant
from logmfu.report import Report, Spread


@dataclass(frozen=True, slots=True)
class Metric:
    """A column of the series, its name and unit, and ``scale`` to multiply it with for an axis."""

    column: str
    name: str
    unit: str
    scale: float
    spread: Spread | None
    caption: str
    """The denominator, or why MFU is missing."""


def metric(report: Report) -> Metric | None:
    """What to draw; ``None`` when the series has no quantity at all."""
    why = f"MFU not given: {report.mfu.why_not or UNKNOWN}"
    choices = (
        Metric("mfu", "MFU", "%", 100.0, report.mfu.spread, _of_peak(report)),
        Metric("tflops_per_gpu", "TFLOP/s per device", "TFLOP/s", 1.0, report.tflops_per_gpu, why),
        Metric("tokens_per_s", "tokens per second", "tokens/s", 1.0, report.tokens_per_s, why),
        Metric("step_time_s", "step time", "s", 1.0, report.step_time_s, why),
    )
    return next((choice for choice in choices if has_values(report.series, choice.column)), None)


def has_values(series: pd.DataFrame, column: str) -> bool:
    """Whether the column is there and not all missing."""
    return column in series.columns and bool(series[column].notna().any())


def median_words(shown: Metric) -> str:
    """``median 45.5 %``; empty when not known."""
    if shown.spread is None:
        return ""
    middle = shown.spread.median
    return f"median {percent(middle) if shown.unit == '%' else f'{significant(middle)} {shown.unit}'}"


def _of_peak(report: Report) -> str:
    return "" if report.mfu.peak is None else f"MFU of {denominator(report.mfu.peak)}"
