"""The series in the picture: one line, or beyond some thousand steps a band from lowest to highest."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator

from logmfu.render.axis import Axis
from logmfu.render.metric import Metric, median_words
from logmfu.render.palette import LINE, LOST
from logmfu.render.reduction import Band, Floats, band, begins, floats, runs, spans_decades
from logmfu.report import Report

BUCKETS = 1_200
"""Buckets across the picture: about one and a half pixels each."""
_FEW = 60
"""Up to that many steps, each is a dot."""


def draw_curve(axes: Any, report: Report, axis: Axis, shown: Metric) -> None:
    """Every attempt's line, lost steps dashed and grey below it."""
    rows = report.series
    y = floats(rows[shown.column]) * shown.scale
    x, y = axis.x, np.where(np.isfinite(y), y, np.nan)
    lost = np.asarray(rows["lost"], dtype=bool)
    starts = {} if axis.kind == "step" else begins(rows)
    apart = np.bincount(list(starts), minlength=len(rows)).cumsum()
    for part in runs(rows["attempt"], lost, apart):
        start = starts.get(part.start)
        _draw_part(
            axes,
            x[part],
            y[part],
            begin=float(x[max(0, part.start - 1)]) if start is None else axis.of_elapsed(start),
            lost=bool(lost[part.start]),
            share=(part.stop - part.start) / len(y),
            few=len(y) <= _FEW,
        )
    _scale(axes, y, shown)
    _draw_median(axes, axis, shown)


def _draw_part(
    axes: Any, x: Floats, y: Floats, *, begin: float, lost: bool, share: float, few: bool
) -> None:
    """Stairs: a printed number holds for the time it was averaged over, and for no pause before it."""
    known = np.flatnonzero(~np.isnan(y))
    if not len(known):
        return
    if known[0] > 0:
        begin = float(x[known[0] - 1])
    reduced = band(x, y, max(2, round(BUCKETS * share)))
    line: dict[str, Any] = {"color": LOST if lost else LINE, "linewidth": 1.1, "zorder": 3.5 if lost else 4}
    line["linestyle"] = (0, (2, 1.2)) if lost else "-"
    if len(reduced.x) < len(known):
        _draw_band(axes, reduced, begin, float(x[known[-1]]), line)
        return
    dots = {"marker": "o", "markersize": 3.5, "markevery": slice(1, None)} if few or len(known) == 1 else {}
    stairs = np.insert(reduced.x, 0, begin), np.insert(reduced.middle, 0, reduced.middle[0])
    axes.plot(*stairs, drawstyle="steps-pre", **line, **dots)


def _draw_band(axes: Any, reduced: Band, begin: float, end: float, line: dict[str, Any]) -> None:
    """From lowest to highest of each bucket, the middle as the line; a bucket holds until the next."""
    x = np.concatenate([[begin], reduced.x[1:], [end]])
    low, middle, high = (np.append(each, each[-1]) for each in (reduced.low, reduced.middle, reduced.high))
    pale = {"color": line["color"], "alpha": 0.4, "linewidth": 0.8, "zorder": 3}
    axes.fill_between(x, low, high, step="post", **pale)
    axes.plot(x, middle, drawstyle="steps-post", **line)


def _scale(axes: Any, y: Floats, shown: Metric) -> None:
    """From zero, so that half as high is half as much; step times over several decades as logarithms."""
    known = y[~np.isnan(y)]
    top = float(known.max())
    if shown.column == "step_time_s" and spans_decades(known):
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_minor_formatter(FuncFormatter(lambda value, _: ""))
    else:
        axes.set_ylim(min(0.0, float(known.min())), top * 1.12 or 1.0)
        axes.yaxis.set_major_locator(MaxNLocator(6))
    axes.yaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value:,.6g}{' %' if shown.unit == '%' else ''}")
    )
    axes.grid(axis="y", color="#000000", alpha=0.08, linewidth=0.6)
    axes.set_ylabel(
        shown.name if shown.unit in ("%", "TFLOP/s", "tokens/s") else f"{shown.name} ({shown.unit})",
        fontsize=8.5,
    )


def _draw_median(axes: Any, axis: Axis, shown: Metric) -> None:
    if shown.spread is None:
        return
    height = shown.spread.median * shown.scale
    axes.axhline(height, color=LINE, linewidth=0.6, linestyle=(0, (6, 3)), alpha=0.6, zorder=2.5)
    axes.annotate(
        _stacked(median_words(shown)), (axis.limits[1], height), xytext=(5, 0), textcoords="offset points",
        fontsize=8, color=LINE, va="center", annotation_clip=False,
    )  # fmt: skip


def _stacked(text: str) -> str:
    """``median``, the number and a long unit under each other, as the margin is narrow."""
    first, _, rest = text.partition(" ")
    return f"{first}\n{rest.replace(' ', chr(10)) if len(rest) > 9 else rest}"
