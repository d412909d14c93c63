"""What happened, on top of the series: stalls shaded by class, restarts, changes."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from logmfu.render.axis import Axis
from logmfu.render.ink import drawable
from logmfu.render.palette import INK, LINE, paint
from logmfu.render.quantities import words
from logmfu.render.reduction import runs
from logmfu.render.timeline import what_changed
from logmfu.report import Attempt, Report, Stall

_LANE = 0.03
"""Height of the strip along the foot in which every stall stands in full colour."""
_THINNEST = 0.0012
"""Share of the width a stall has at least, so that short ones are seen."""
_FEW = 200
"""Beyond that many stalls, the shortest stand at the foot only."""
_MOST_LABELS = 12
_HALO = {"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 0.8}

Span = tuple[float, float]


def draw_stalls(axes: Any, report: Report, axis: Axis) -> None:
    """Pale over the whole height, in full colour along the foot; touching ones of a class are one."""
    spans: dict[str, list[Span]] = defaultdict(list)
    for stall in report.stalls:
        place = _place(stall, report, axis)
        if place is not None:
            spans[stall.kind].append(place)
    for kind, places in spans.items():
        look, merged = paint(kind), _merged(places, axis.width * _THINNEST / 2)
        over_all = axes.get_xaxis_transform()
        if len(report.stalls) <= _FEW:
            pale = merged
        else:
            pale = [span for span in merged if span[1] > axis.width * _THINNEST]
        axes.broken_barh(
            pale, (0, 1), transform=over_all, color=look.fill, alpha=0.28, linewidth=0, zorder=1
        )
        axes.broken_barh(
            merged,
            (0, _LANE),
            transform=over_all,
            facecolor=look.fill,
            hatch=look.hatch,
            edgecolor="white",
            linewidth=0,
            zorder=5,
        )


def _place(stall: Stall, report: Report, axis: Axis) -> Span | None:
    least = axis.width * _THINNEST
    if axis.kind == "step":
        return None if stall.step is None else (stall.step + 0.5 - least / 2, least)
    begin = stall.elapsed_s
    if begin is None and stall.start is not None and report.start is not None:
        begin = stall.start - report.start
    if begin is None:
        return None
    start, end = axis.of_elapsed(begin), axis.of_elapsed(begin + stall.seconds)
    return start, max(end - start, least)


def _merged(places: list[Span], gap: float) -> list[Span]:
    """Spans that touch or nearly so as one."""
    joined: list[Span] = []
    for start, length in sorted(places):
        if joined and start <= joined[-1][0] + joined[-1][1] + gap:
            begin, before = joined[-1]
            joined[-1] = (begin, max(before, start + length - begin))
        else:
            joined.append((start, length))
    return joined


def draw_restarts(axes: Any, report: Report, axis: Axis) -> None:
    """A dotted line where each later attempt begins, labelled while there is room."""
    later = [
        (place, attempt)
        for attempt in report.attempts[1:]
        if (place := _start(attempt, report, axis)) is not None
    ]
    faint = 0.9 if len(later) <= _MOST_LABELS else min(0.35, max(0.05, 20 / len(later)))
    taken = -np.inf
    for place, attempt in later:
        axes.axvline(place, color=LINE, linestyle=":", linewidth=1.0, alpha=faint, zorder=6)
        if len(later) <= _MOST_LABELS and place > taken and place < axis.limits[1] - axis.width * 0.1:
            before = report.attempts[attempt.number - 2].exit if attempt.number >= 2 else ""
            text = f"attempt {attempt.number}" + (
                f" after {words(before)}" if before not in ("", "unknown") else ""
            )
            axes.annotate(
                drawable(text, 40), (place, 1), xycoords=axes.get_xaxis_transform(), xytext=(3, -3),
                textcoords="offset points", fontsize=7.5, color=INK, va="top", zorder=7, parse_math=False, bbox=_HALO,
            )  # fmt: skip
            taken = place + axis.width * (0.0065 * len(text) + 0.02)


def _start(attempt: Attempt, report: Report, axis: Axis) -> float | None:
    """Where the attempt's process began, else its first row."""
    if axis.kind != "step" and attempt.start is not None and report.start is not None:
        return axis.of_elapsed(attempt.start - report.start)
    numbers = np.asarray(report.series["attempt"]) if len(report.series) else np.array([])
    first = (
        next((part.start for part in runs(numbers) if numbers[part.start] == attempt.number), None)
        if len(numbers)
        else None
    )
    return None if first is None else float(axis.x[first])


def draw_changes(axes: Any, report: Report, axis: Axis) -> None:
    """A triangle at the foot where something changed for good; the first few say what."""
    taken = -np.inf
    for change in report.changes:
        if axis.kind != "step" and change.elapsed_s is None:
            continue
        place = float(change.step) if axis.kind == "step" else axis.of_elapsed(change.elapsed_s or 0.0)
        axes.plot(
            [place],
            [_LANE + 0.02],
            marker="^",
            markersize=5,
            color=INK,
            transform=axes.get_xaxis_transform(),
            zorder=7,
        )
        if place > taken:
            text = drawable(what_changed(change), 64)
            right = place > axis.limits[0] + axis.width * 0.6
            axes.annotate(
                text, (place, _LANE + 0.02), xycoords=axes.get_xaxis_transform(), xytext=(-6 if right else 6, 0),
                textcoords="offset points", fontsize=7.5, color=INK, va="center",
                ha="right" if right else "left", zorder=7, parse_math=False, bbox=_HALO,
            )  # fmt: skip
            taken = place + axis.width * (0.0065 * len(text) + 0.02)
