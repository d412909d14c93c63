"""The series and its marks as the JSON a page's script draws: reduced, every extreme kept."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from logmfu.render.metric import has_values, metric
from logmfu.render.palette import paint
from logmfu.render.quantities import words
from logmfu.render.reduction import begins, floats, kept_rows, spans_decades
from logmfu.report import Report, Stall

_MOST_STALLS = 5_000
_STRETCHES_OF = 5
"""Stalls a stretch has room for: of so many kinds."""
_DIGITS = 5
"""Significant digits of a drawn value: more than a screen has."""


@dataclass(frozen=True, slots=True)
class _Panel:
    """One chart: a column, its title, unit and the factor to show it with."""

    column: str
    title: str
    unit: str
    scale: float = 1.0


def chart_data(report: Report, *, points: int, names: dict[str, str]) -> dict[str, Any] | None:
    """What the page's script needs; ``None`` when there is nothing to draw."""
    panels = list(_panels(report))
    if len(report.series) < 2 or not panels:
        return None
    starts = begins(report.series)
    beside = [n for start in starts for n in (max(0, start - 1), start)]
    kept = kept_rows(report.series, [panel.column for panel in panels], points, also=beside)
    rows = report.series.iloc[kept]
    paths = list(dict.fromkeys(str(path) for path in rows["path"].dropna()))
    index = {path: n for n, path in enumerate(paths)}
    return {
        "total": len(report.series),
        "clock": report.clock,
        "start": report.start,
        "wall": report.wall_clock_s,
        "panels": [_drawn(panel, rows) for panel in panels],
        "step": _integers(rows["step"]),
        "elapsed": _elapsed(rows),
        "begins": [[int(np.searchsorted(kept, n)), round(start, 2)] for n, start in starts.items()],
        "attempt": _integers(rows["attempt"]),
        "lost": _integers(rows["lost"]),
        "line": _integers(rows["line"]),
        "path": [index.get(str(path), 0) for path in rows["path"]],
        "paths": [names.get(path, path) for path in paths],
        **_marks(report),
    }


def _drawn(panel: _Panel, rows: pd.DataFrame) -> dict[str, Any]:
    logarithmic = panel.column == "step_time_s" and spans_decades(floats(rows[panel.column]))
    return {
        "title": panel.title,
        "unit": panel.unit,
        "log": logarithmic,
        "y": _values(rows[panel.column], panel.scale),
    }


def as_script(data: dict[str, Any]) -> str:
    """JSON that cannot end the element it stands in."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _panels(report: Report) -> Iterator[_Panel]:
    shown = metric(report)
    if shown is None:
        return
    yield _Panel(shown.column, shown.name, shown.unit, shown.scale)
    others = (_Panel("step_time_s", "step time", "s"), _Panel("loss", "loss", ""))
    yield from (
        panel
        for panel in others
        if panel.column != shown.column and has_values(report.series, panel.column)
    )


def _values(column: pd.Series[Any], scale: float = 1.0) -> list[float | None]:
    numbers = floats(column) * scale
    return [float(f"{number:.{_DIGITS}g}") if np.isfinite(number) else None for number in numbers.tolist()]


def _elapsed(rows: pd.DataFrame) -> list[float | None] | None:
    if not has_values(rows, "elapsed_s"):
        return None
    return [
        round(number, 2) if np.isfinite(number) else None for number in floats(rows["elapsed_s"]).tolist()
    ]


def _integers(column: pd.Series[Any]) -> list[int]:
    """Differences from row to row: a tenth of the characters of the numbers themselves."""
    numbers = np.asarray(column.fillna(0), dtype=np.int64)
    return [int(n) for n in np.diff(numbers, prepend=0)]


def _marks(report: Report) -> dict[str, Any]:
    longest = _pauses(report.stalls)
    kinds = list(dict.fromkeys(stall.kind for stall in longest))
    start = report.start
    return {
        "kinds": [
            {"name": words(kind), "day": paint(kind).fill, "night": paint(kind).night or paint(kind).fill}
            for kind in kinds
        ],
        "stalls": [
            [
                kinds.index(stall.kind),
                stall.step,
                _since(stall.elapsed_s, stall.start, start),
                round(stall.seconds, 3),
            ]
            for stall in longest
        ],
        "restarts": [
            [attempt.number, _since(None, attempt.start, start)] for attempt in report.attempts[1:]
        ],
    }


def _pauses(stalls: Sequence[Stall]) -> list[Stall]:
    """The stalls a chart can show, longest first: all, or of each kind the longest in every short stretch."""
    longest = sorted(stalls, key=lambda stall: -stall.seconds)
    if len(longest) <= _MOST_STALLS:
        return longest
    places = [float(stall.step or 0) if stall.elapsed_s is None else stall.elapsed_s for stall in longest]
    width = max(places) * _STRETCHES_OF / _MOST_STALLS or 1.0
    first: dict[tuple[str, int], Stall] = {}
    for stall, place in zip(longest, places, strict=True):
        first.setdefault((stall.kind, int(place / width)), stall)
    return list(first.values())


def _since(elapsed: float | None, moment: float | None, start: float | None) -> float | None:
    if elapsed is not None:
        return round(elapsed, 2)
    return round(moment - start, 2) if moment is not None and start is not None else None
