"""The horizontal axis: the wall clock of the log, time since the start, or steps."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from typing import Any, Literal

import numpy as np
from matplotlib import dates
from matplotlib.ticker import FuncFormatter, MaxNLocator

from logmfu.errors import OptionError
from logmfu.render.metric import has_values
from logmfu.render.quantities import count, duration, moment, offset
from logmfu.render.reduction import Floats, floats
from logmfu.report import Report

_DATES: Any = dates
"""Without annotations in matplotlib 3.11."""
DAY = 86_400.0
_UNITS = (
    (172_800.0, "days", DAY),
    (7_200.0, "hours", 3_600.0),
    (120.0, "minutes", 60.0),
    (0.0, "seconds", 1.0),
)
_TOP_TICKS = 8


@dataclass(frozen=True, slots=True)
class Axis:
    """How elapsed seconds or steps become a position, and how positions are labelled."""

    kind: Literal["clock", "elapsed", "step"]
    report: Report
    x: Floats
    """Position of each row of the series."""
    limits: tuple[float, float]
    unit: str = ""
    per_unit: float = 1.0

    @property
    def width(self) -> float:
        """Length of the axis."""
        return self.limits[1] - self.limits[0]

    def of_elapsed(self, seconds: float) -> float:
        """Position of a moment; not for steps."""
        if self.kind == "clock":
            return ((self.report.start or 0.0) + seconds) / DAY
        return seconds / self.per_unit

    def prepare(self, axes: Any) -> None:
        """Limits, ticks and labels, the other scale along the top."""
        axes.set_xlim(*self.limits)
        if self.kind == "clock":
            locator = _DATES.AutoDateLocator(tz=UTC, minticks=4, maxticks=10)
            axes.xaxis.set_major_locator(locator)
            axes.xaxis.set_major_formatter(_date_formatter(locator))
        else:
            axes.xaxis.set_major_locator(MaxNLocator(9, integer=self.kind == "step"))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
        axes.set_xlabel(self._label(), fontsize=8.5)
        self._label_top(axes)

    def _label(self) -> str:
        if self.kind == "step":
            return "step"
        if self.kind == "elapsed":
            return f"{self.unit} of {'step time' if self.report.clock == 'reconstructed' else 'wall clock'}"
        shift = self.report.utc_offset
        zone = "zone not printed" if shift is None else offset(shift)
        return f"wall clock of the log ({zone}), from {moment(self.report.start)}"

    def _label_top(self, axes: Any) -> None:
        """At round distances: the step reached by then, or the time taken until then."""
        labels = self._top_labels()
        if not labels:
            return
        top = axes.twiny()
        top.set_xlim(*self.limits)
        top.set_xticks([position for position, _ in labels], [text for _, text in labels])
        top.tick_params(length=2, labelsize=7.5, colors="#666666", pad=1)
        for side in ("left", "right", "bottom"):
            top.spines[side].set_visible(False)
        top.spines["top"].set_visible(True)
        top.set_xlabel(
            "time taken" if self.kind == "step" else "step",
            fontsize=7.5,
            color="#666666",
            labelpad=2,
            loc="right",
        )

    def _top_labels(self) -> list[tuple[float, str]]:
        rows = self.report.series
        if len(rows) < 2 or (self.kind == "step" and not has_values(rows, "elapsed_s")):
            return []
        order = np.argsort(self.x, kind="stable")
        sorted_x = self.x[order]
        labels: list[tuple[float, str]] = []
        for position in np.linspace(*self.limits, _TOP_TICKS + 2)[1:-1]:
            found = int(np.searchsorted(sorted_x, position, side="right")) - 1
            if found >= 0:
                row = rows.iloc[int(order[found])]
                text = duration(float(row["elapsed_s"])) if self.kind == "step" else count(int(row["step"]))
                if not labels or labels[-1][1] != text:
                    labels.append((float(position), text))
        return labels


def _date_formatter(locator: Any) -> Any:
    """Ticks that say the day whenever it changes, and nothing outside of the ticks."""
    return _DATES.ConciseDateFormatter(
        locator,
        tz=UTC,
        formats=["%Y", "%Y-%m", "%m-%d", "%H:%M", "%H:%M", "%H:%M:%S"],
        zero_formats=["%Y", "%Y-%m", "%m-%d", "%m-%d", "%H:%M", "%H:%M:%S"],
        show_offset=False,
    )


def axis_of(report: Report, wanted: str) -> Axis:
    """The axis asked for, else the best the log allows; ``OptionError`` for an unknown name."""
    if wanted not in ("auto", "time", "step"):
        raise OptionError(f"no axis {wanted!r}", hint="one of auto, time, step")
    timed = has_values(report.series, "elapsed_s") or (not len(report.series) and report.wall_clock_s)
    if wanted == "step" or not timed:
        steps = _column(report, "step")
        return Axis("step", report, steps, _limits(steps, 0.0, 0.0))
    return _time_axis(report)


def _time_axis(report: Report) -> Axis:
    elapsed = _column(report, "elapsed_s")
    low, high = _limits(elapsed, 0.0, report.wall_clock_s or 0.0)
    if report.clock == "timestamps" and report.start is not None:
        return Axis(
            "clock",
            report,
            (report.start + elapsed) / DAY,
            ((report.start + low) / DAY, (report.start + high) / DAY),
        )
    unit, size = next((name, size) for least, name, size in _UNITS if high >= least)
    return Axis("elapsed", report, elapsed / size, (low / size, high / size), unit, size)


def _limits(values: Floats, first: float, last: float) -> tuple[float, float]:
    """From the first to the last value, with a margin of a hundredth."""
    known = np.append(values[~np.isnan(values)], [first, last] if last else [])
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    margin = max(high - low, 1.0) * 0.01
    return low - margin, high + margin


def _column(report: Report, name: str) -> Floats:
    if name not in report.series.columns:
        return np.full(len(report.series), np.nan)
    return floats(report.series[name])
