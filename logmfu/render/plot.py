"""The picture for a ticket: utilization over the run, stalls shaded by class, the ledger as a bar.

The same report gives the same bytes: no date, no random identifier, no setting of the user.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from os import PathLike, fspath
from pathlib import Path
from textwrap import wrap
from typing import Any, cast

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from logmfu.errors import OptionError
from logmfu.redaction import mask_secrets
from logmfu.render.axis import Axis, axis_of
from logmfu.render.curves import draw_curve
from logmfu.render.ink import DPI, SIZE, STYLE, drawable
from logmfu.render.marks import draw_changes, draw_restarts, draw_stalls
from logmfu.render.metric import Metric, metric
from logmfu.render.palette import FAINT, INK, LINE, LOST, paint
from logmfu.render.quantities import UNKNOWN, count, duration, percent, plural, words
from logmfu.report import LEDGER_KINDS, Report

FORMATS = ("png", "svg", "pdf")
_LEFT, _RIGHT = 0.07, 0.91
_COLUMNS = 4
_VISIBLE = 0.0002
"""Share of the bar that is not thinner than a hair."""
"""Entries of the legend beside each other."""
_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "ModDate": None, "Producer": None, "Creator": None},
}


def figure(report: Report, *, axis: str = "auto") -> Figure:
    """The picture; ``axis`` is ``time``, ``step`` or ``auto``: wall clock where the log has one."""
    masked = mask_secrets(report)
    with _style():
        return _figure(masked, axis_of(masked, axis))


def save(report: Report, path: str | PathLike[str], *, axis: str = "auto") -> None:
    """Write the picture as PNG (twice the pixels), SVG or PDF, by the path's extension."""
    kind = Path(fspath(path)).suffix.lower().lstrip(".")
    if kind not in FORMATS:
        raise OptionError(f"no picture format {kind!r}", hint=f"one of {', '.join(FORMATS)}")
    picture = figure(report, axis=axis)
    with _style():
        picture.savefig(fspath(path), format=kind, metadata=_METADATA[kind])


def png(report: Report, *, dpi: int = DPI) -> bytes:
    """The picture as PNG, for a page to carry."""
    written = BytesIO()
    picture = figure(report)
    with _style():
        picture.savefig(written, format="png", dpi=dpi, metadata=_METADATA["png"])
    return written.getvalue()


@contextmanager
def _style() -> Iterator[None]:
    """Matplotlib's defaults and ours, whatever the user's own settings are."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(cast("Any", STYLE))
        yield


def _figure(report: Report, axis: Axis) -> Figure:
    picture = Figure(figsize=SIZE, dpi=DPI)
    FigureCanvasAgg(picture)
    entries = _legend(report)
    legend_height = 0.027 * -(-len(entries) // _COLUMNS) + 0.015
    has_ledger = bool(report.ledger)
    bar_bottom = legend_height + 0.012
    main_bottom = bar_bottom + (0.175 if has_ledger else 0.08)
    shown = metric(report)
    main = picture.add_axes((_LEFT, main_bottom, _RIGHT - _LEFT, 0.835 - main_bottom))
    _draw_main(main, report, axis, shown)
    if has_ledger:
        _draw_ledger(picture.add_axes((_LEFT, bar_bottom, _RIGHT - _LEFT, 0.055)), report)
    _draw_title(picture, report, shown)
    if entries:
        picture.legend(
            handles=entries, loc="lower left", bbox_to_anchor=(_LEFT - 0.005, 0.005), ncols=_COLUMNS,
            frameon=False, handlelength=1.8, columnspacing=1.6, borderaxespad=0.0,
        )  # fmt: skip
    return picture


def _draw_main(axes: Any, report: Report, axis: Axis, shown: Metric | None) -> None:
    axis.prepare(axes)
    draw_stalls(axes, report, axis)
    if shown is None:
        axes.set_yticks([])
        axes.text(
            0.5, 0.5, _nothing(report), transform=axes.transAxes, ha="center", va="center", color=FAINT
        )
    else:
        draw_curve(axes, report, axis, shown)
    draw_restarts(axes, report, axis)
    draw_changes(axes, report, axis)


def _nothing(report: Report) -> str:
    return "no step was printed" if not report.step_count else "the steps carry no number that can be drawn"


def _draw_title(picture: Figure, report: Report, shown: Metric | None) -> None:
    name = drawable(report.name, 70)
    picture.text(_LEFT, 0.955, name, fontsize=13, weight="bold", color=INK, parse_math=False)
    picture.text(_LEFT, 0.922, drawable(_facts(report), 150), fontsize=8.5, color=FAINT, parse_math=False)
    caption = shown.caption if shown else f"MFU not given: {report.mfu.why_not or UNKNOWN}"
    lines = wrap(drawable(caption, 400), 145, max_lines=2, placeholder=" …")
    picture.text(
        _LEFT, 0.910, "\n".join(lines), fontsize=8.5, va="top", parse_math=False,
        color="#8B1A1A" if shown is None or shown.column != "mfu" else FAINT,
    )  # fmt: skip


def _facts(report: Report) -> str:
    parts = [
        _devices(report),
        duration(report.wall_clock_s) if report.wall_clock_s is not None else "",
        plural(report.step_count, "printed step"),
        plural(len(report.attempts), "attempt") if report.attempts else "",
        f"goodput {percent(report.goodput)}" if report.goodput is not None else "",
        f"MFU over the wall clock {percent(report.mfu.effective)}"
        if report.mfu.effective is not None
        else "",
    ]
    return "  ·  ".join(part for part in parts if part)


def _devices(report: Report) -> str:
    if not report.devices:
        return ""
    accelerator = report.run.get("accelerator")
    if not accelerator:
        return plural(report.devices, "device")
    return f"{count(report.devices)} × {drawable(str(accelerator), 40)}"


def _draw_ledger(axes: Any, report: Report) -> None:
    """One bar, as long as the wall clock."""
    left = 0.0
    for entry in report.ledger:
        look = paint(entry.kind)
        axes.barh(
            0, entry.share, left=left, color=look.fill, hatch=look.hatch, edgecolor="white", linewidth=0.6
        )
        label = f"{words(entry.kind)} {percent(entry.share)}"
        if entry.share > 0.0085 * len(label) + 0.01 and not look.hatch:
            axes.text(
                left + entry.share / 2, 0, label, ha="center", va="center_baseline", fontsize=8,
                color="white" if look.dark else "black",
            )  # fmt: skip
        left += entry.share
    axes.set_xlim(0, max(left, 1e-9))
    axes.set_ylim(-0.4, 0.4)
    axes.axis("off")
    clock = "step time" if report.clock == "reconstructed" else "wall clock"
    axes.set_title(
        f"where {duration(report.wall_clock_s)} of {clock} went", loc="left", fontsize=8.5, color=INK, pad=3
    )


def _legend(report: Report) -> list[Any]:
    """Classes that take time or are shaded, in the ledger's order, then the lines."""
    entries = {
        entry.kind: f"{words(entry.kind)}  {duration(entry.seconds)} ({percent(entry.share)})"
        for entry in report.ledger
        if entry.share >= _VISIBLE
    }
    shaded = {stall.kind: words(stall.kind) for stall in report.stalls}
    labels = shaded | entries
    order = [
        *(kind for kind in LEDGER_KINDS if kind in labels),
        *(kind for kind in labels if kind not in LEDGER_KINDS),
    ]
    handles: list[Any] = [
        Patch(
            facecolor=paint(kind).fill,
            hatch=paint(kind).hatch,
            edgecolor="white",
            linewidth=0,
            label=drawable(labels[kind], 60),
        )
        for kind in order
    ]
    if len(report.series) and bool(report.series["lost"].any()):
        handles.append(
            Line2D([], [], color=LOST, linestyle=(0, (2, 1.2)), label="steps done again later, or lost")
        )
    if len(report.attempts) > 1:
        handles.append(Line2D([], [], color=LINE, linestyle=":", label="restart"))
    return handles
