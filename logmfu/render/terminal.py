"""The summary on a terminal: what run, how long, how well used, what went wrong - in its first lines."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from typing import TypeVar

import numpy as np

from logmfu.render.escape import terminal as safe
from logmfu.render.quantities import count, duration, plural, significant
from logmfu.report import Attempt, Evidence, Report, SaveSummary, Spread, Stall, Utilization, iso

Item = TypeVar("Item")
NARROW, WIDE = 60, 110
BLOCKS = " ▁▂▃▄▅▆▇█"
PLOT_ROWS = 5
BOLD, DIM, RED, GREEN, YELLOW = "1", "2", "31", "32", "33"
GRADE_COLOURS = {"excellent": GREEN, "good": GREEN, "average": YELLOW, "poor": RED}
CLEAN_EXITS = ("finished", "running")


def render(
    report: Report, *, width: int = 80, colour: bool = False, verbose: bool = False, plot: bool = False
) -> str:
    """The summary as text of at most ``width`` columns; ``colour`` adds escape codes, never needed to read it."""
    page = _Page(min(max(width, NARROW), WIDE), colour)
    _headline(page, report)
    if plot:
        page.lines.extend(_plot(report, page.width))
    _ledger(page, report)
    _attempts(page, report)
    _trouble(page, report, verbose)
    _stalls(page, report, verbose)
    _saves(page, report)
    _advice(page, report, verbose)
    _small_print(page, report, verbose)
    return "\n".join(page.lines) + "\n"


class _Page:
    """Lines of one width."""

    def __init__(self, width: int, colour: bool) -> None:
        self.width = width
        self._colour = colour
        self.lines: list[str] = []

    def paint(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colour and text else text

    def add(self, text: str, *, indent: int = 0, first: str | None = None, code: str = "") -> None:
        """Wrap a paragraph; ``first`` starts its first line instead of the indentation."""
        start = " " * indent if first is None else first
        wrapped = textwrap.wrap(
            text, self.width, initial_indent=start, subsequent_indent=" " * max(indent, len(start)),
            break_on_hyphens=False,
        )  # fmt: skip
        self.lines.extend(self.paint(line, code) for line in wrapped)

    def title(self, text: str) -> None:
        self.lines.extend(["", self.paint(text, BOLD)])


def _percent(share: float) -> str:
    """A share with one decimal; what is there and rounds to nothing says so."""
    return "<0.1 %" if 0 < share < 0.0005 else f"{100 * share:.1f} %"


def _headline(page: _Page, report: Report) -> None:
    page.add(" · ".join(_identity(report)), code=BOLD)
    page.add(" · ".join(_extent(report)))
    _utilization(page, "MFU", report.mfu)
    effective = (
        [] if report.mfu.effective is None else [f"{_percent(report.mfu.effective)} over the wall clock"]
    )
    goodput = (
        []
        if report.goodput is None or report.wall_clock_s is None
        else [f"goodput {_percent(report.goodput)}"]
    )
    if effective or goodput:
        page.add(" · ".join([*effective, *goodput]), indent=5)
    if report.hfu.spread is not None and report.hfu.spread == report.mfu.spread:
        page.add("the same: nothing is recomputed", indent=5, first="HFU  ")
    elif report.mfu.spread is not None or report.hfu.spread is not None:
        _utilization(page, "HFU", report.hfu)
    _speed(page, report)
    _what_went_wrong(page, report)


def _identity(report: Report) -> Iterator[str]:
    yield safe(report.name, limit=60)
    yield safe(report.parser_title or report.parser, limit=40)
    accelerator = report.mfu.peak.device if report.mfu.peak else report.run.get("accelerator")
    devices = report.devices
    if devices or accelerator:
        many = f"{devices} devices" if devices != 1 else "1 device"
        yield (
            " x ".join(safe(str(part)) for part in (devices, accelerator) if part) if accelerator else many
        )
    if report.run.get("precision"):
        yield safe(str(report.run["precision"]))


def _extent(report: Report) -> Iterator[str]:
    if report.start is not None:
        first, last = (
            str(iso(time, report.utc_offset))[:19].replace("T", " ") for time in (report.start, report.end)
        )
        yield f"{first} to {last}"
    if report.wall_clock_s:
        rebuilt = " of printed step time" if report.clock == "reconstructed" else ""
        yield f"{duration(report.wall_clock_s)}{rebuilt}"
    steps = f"{count(report.step_count)} step line{'s' * (report.step_count != 1)}"
    if report.first_step is not None:
        steps += f", step {report.first_step} to {report.last_step}"
    yield steps
    if len(report.attempts) > 1:
        yield f"{len(report.attempts)} attempts"


def _utilization(page: _Page, name: str, use: Utilization) -> None:
    if use.spread is None:
        page.add(
            f"not stated: {use.why_not or 'nothing in the log says it'}",
            indent=5,
            first=f"{name}  ",
            code=YELLOW,
        )
        return
    grade = f" {use.grade}" if use.grade else ""
    colour = GRADE_COLOURS.get(use.grade or "", "")
    spread = use.spread
    head = f"{_percent(spread.median)}{grade} (p5 {_percent(spread.p5)}, p95 {_percent(spread.p95)})"
    page.add(f"{head}; {_denominator(use)}", indent=5, first=f"{name}  ", code=colour)
    for name_of, value in use.alternatives.items():
        page.add(f"{_percent(value)} {name_of}", indent=5)
    if use.explanation:
        page.add(use.explanation, indent=5)


def _denominator(use: Utilization) -> str:
    counted = {"full": "attention counted in full", "half": "causal attention counted in half"}
    parts = [f"{use.basis} FLOPs", counted.get(use.attention or "", f"attention count {use.attention}")]
    if use.peak:
        doubt = f", {use.peak.evidence}" if "recalled" in use.peak.evidence else ""
        parts.append(
            f"peak {use.peak.tflops:g} TFLOP/s dense {use.peak.precision} per device ({use.peak.source}{doubt})"
        )
    return ", ".join(parts)


def _speed(page: _Page, report: Report) -> None:
    parts = [
        _spread("step", report.step_time_s, "s"),
        _spread("TFLOP/s per device", report.tflops_per_gpu, ""),
        _spread("tokens/s", report.tokens_per_s, ""),
    ]
    known = [part for part in parts if part]
    if known:
        page.add("median " + ", ".join(known), indent=5)
    for profile in report.profiles[:4]:
        if profile.flops_per_gpu is not None:
            at = "" if profile.step is None else f" at step {profile.step}"
            page.add(
                f"profiler{at}: {significant(profile.flops_per_gpu / 1e12)} TFLOP/s per device", indent=5
            )


def _spread(name: str, spread: Spread | None, unit: str) -> str:
    return "" if spread is None else f"{name} {significant(spread.median, 4)}{' ' + unit if unit else ''}"


def _what_went_wrong(page: _Page, report: Report) -> None:
    lost = [entry for entry in report.ledger if entry.kind != "productive" and entry.share >= 0.005]
    lost.sort(key=lambda entry: -entry.seconds)
    named = ", ".join(f"{entry.kind.replace('_', ' ')} {_percent(entry.share)}" for entry in lost[:4])
    if named:
        page.add(f"lost to {named}", indent=5)
    ends = [attempt for attempt in report.attempts if attempt.exit not in CLEAN_EXITS]
    for attempt in ends[:3]:
        page.add(
            _ending(attempt, begins=attempt.number > 1 or "since" not in report.options), indent=5, code=RED
        )
    if len(ends) > 3:
        page.add(f"... and {len(ends) - 3} more attempts that failed", indent=5, code=RED)


def _ending(attempt: Attempt, *, begins: bool) -> str:
    at = f" after step {attempt.last_step}" if attempt.last_step is not None else ""
    at = at or " before the first step" * begins
    lost = f", {plural(attempt.lost_steps, 'step')} lost" if attempt.lost_steps else ""
    text = f": {safe(attempt.exit_text, limit=120)}" if attempt.exit_text else ""
    return f"attempt {attempt.number} ended{at}{lost}: {attempt.exit}{text}{_where(attempt.evidence)}"


def _where(evidence: tuple[Evidence, ...]) -> str:
    if not evidence:
        return ""
    path = evidence[0].path.rsplit("/", 1)[-1]
    return f" [{safe(path, limit=50)}:{evidence[0].line}]"


def _plot(report: Report, width: int) -> list[str]:
    """MFU (else TFLOP/s, else step time) over the steps as a few rows of blocks: the median of each column."""
    series = report.series
    for name, title, scale in (  # noqa: B007 - the title of the first usable series is used below
        ("mfu", "MFU %", 100.0),
        ("tflops_per_gpu", "TFLOP/s per device", 1.0),
        ("step_time_s", "step time, s", 1.0),
    ):
        values = series[name].to_numpy(dtype=float) * scale if name in series else np.array([])
        known = np.isfinite(values)
        if known.sum() >= 4:
            break
    else:
        return []
    columns = min(width - 9, int(known.sum()))
    heights = np.array([np.median(part) for part in np.array_split(values[known], columns)])
    top, bottom = float(heights.max()), 0.0 if name != "step_time_s" else min(0.0, float(heights.min()))
    levels = np.round((heights - bottom) / max(top - bottom, 1e-12) * PLOT_ROWS * 8).astype(int)
    lines = ["", f"{title} by step"]
    for row in range(PLOT_ROWS - 1, -1, -1):
        label = significant(top) if row == PLOT_ROWS - 1 else significant(bottom) if row == 0 else ""
        cells = "".join(BLOCKS[int(np.clip(level - row * 8, 0, 8))] for level in levels)
        lines.append(f"{label:>7} {cells}".rstrip())
    return lines


def _ledger(page: _Page, report: Report) -> None:
    if not report.ledger or not report.wall_clock_s:
        return
    page.title(f"Where the time went ({duration(report.wall_clock_s)} of wall clock)")
    room = page.width - 54
    for entry in sorted(report.ledger, key=lambda item: -item.seconds):
        bar = "█" * round(entry.share * room)
        hours = "" if entry.gpu_hours is None else f"{entry.gpu_hours:>11,.2f} GPU-h"
        name = entry.kind.replace("_", " ")
        page.lines.append(
            f"  {name:<12}{duration(entry.seconds):>14} {_percent(entry.share):>7}{hours} {bar}".rstrip()
        )
    if report.gpu_hour_price is not None:
        lost = [entry for entry in report.ledger if entry.kind != "productive" and entry.cost]
        lost.sort(key=lambda entry: -(entry.cost or 0.0))
        total = sum(entry.cost or 0.0 for entry in lost)
        named = ", ".join(f"{entry.kind.replace('_', ' ')} {entry.cost:,.2f}" for entry in lost[:4])
        page.add(
            f"not productive: {total:,.2f} at {report.gpu_hour_price:g} per GPU-hour ({named})", indent=2
        )


def _attempts(page: _Page, report: Report) -> None:
    if len(report.attempts) < 2:
        return
    page.title("Attempts")
    for attempt in report.attempts:
        page.add(
            ", ".join(_attempt(attempt)) + _where(attempt.evidence), indent=5, first=f"  {attempt.number}. "
        )


def _attempt(attempt: Attempt) -> Iterator[str]:
    if attempt.first_step is None:
        yield "no step"
    elif attempt.first_step == attempt.last_step:
        yield f"step {attempt.first_step}"
    else:
        yield f"steps {attempt.first_step} to {attempt.last_step}"
    yield attempt.exit.replace("_", " ")
    if attempt.durable_step is not None:
        yield f"last complete checkpoint {attempt.durable_step}"
    if attempt.lost_steps:
        yield f"{plural(attempt.lost_steps, 'step')} lost"
    elif attempt.lost_steps is None:
        yield "steps lost not known"
    if attempt.restart_gap_s is not None:
        yield f"next start after {duration(attempt.restart_gap_s)}"
    if attempt.catch_up_s is not None:
        yield f"caught up after {duration(attempt.catch_up_s)}"


def _saves(page: _Page, report: Report) -> None:
    if report.saves is not None:
        page.title("Saves")
        page.add(", ".join(_save_parts(report.saves)), indent=2)
    waits = report.data_wait
    if waits is not None and waits.share is not None and waits.worst_s is not None:
        page.title("Waits for data")
        text = f"{_percent(waits.share)} of the timed step time, longest mean {significant(waits.worst_s)} s per step"
        page.add(f"{text} at step {waits.worst_step}", indent=2)


def _save_parts(saves: SaveSummary) -> Iterator[str]:
    yield f"{count(saves.count)} complete"
    if saves.open:
        yield f"{count(saves.open)} never seen complete"
    if saves.asynchronous:
        yield "asynchronous"
    if saves.blocking_s is not None:
        spread = saves.blocking_s
        yield f"blocking {significant(spread.median)} s each (p95 {significant(spread.p95)} s)"
    elif saves.why_not:
        yield saves.why_not
    if saves.optimal_interval_s is not None:
        yield f"Young/Daly interval {duration(saves.optimal_interval_s)}"


def _trouble(page: _Page, report: Report, verbose: bool) -> None:
    if report.incidents:
        page.title("Incidents")
        shown = (
            report.incidents
            if verbose
            else [i for i in report.incidents if i.role != "cascade"] or report.incidents[:3]
        )
        for incident in _cut(shown, verbose):
            rank = "" if incident.rank is None else f" rank {incident.rank}"
            many = f" ({incident.count} lines)" if incident.count > 1 else ""
            code = RED if incident.role == "first" else ""
            page.add(
                f"{incident.kind}{rank}{many}, {incident.role}: {safe(incident.text, limit=160)}{_where(incident.evidence)}",
                indent=4, first="  ", code=code,
            )  # fmt: skip
        hidden = len(report.incidents) - len(shown)
        if hidden > 0:
            page.add(f"... and {hidden} that follow from these (-v shows them)", indent=2)
    changes = [change for change in report.changes if verbose or change.kind != "batch_size"]
    if changes:
        page.title("Changes")
        for change in _cut(changes, verbose):
            page.add(f"{safe(change.text, limit=200)}{_where(change.evidence[-1:])}", indent=4, first="  ")
        _rest(page, len(changes), verbose)


def _stalls(page: _Page, report: Report, verbose: bool) -> None:
    if not report.stalls:
        return
    ranked = sorted(report.stalls, key=lambda stall: -stall.seconds)
    shown = list(_cut(ranked, verbose))
    many = f", the {len(shown)} longest" if len(shown) < len(ranked) else ""
    page.title(f"Stalls ({len(ranked)}{many})")
    for stall in sorted(shown, key=lambda item: item.elapsed_s or 0.0):
        page.add(_stall(stall), indent=4, first="  ")


def _stall(stall: Stall) -> str:
    at = "" if stall.step is None else f" step {stall.step}"
    text = f": {safe(stall.text, limit=120)}" if stall.text else ""
    return f"{stall.kind.replace('_', ' ')}{at}, {duration(stall.seconds)}, {stall.confidence}{text}{_where(stall.evidence)}"


def _cut(items: Iterable[Item], verbose: bool, most: int = 6) -> Iterable[Item]:
    listed = list(items)
    return listed if verbose else listed[:most]


def _rest(page: _Page, total: int, verbose: bool, most: int = 6) -> None:
    if not verbose and total > most:
        page.add(f"... and {total - most} more (-v shows them)", indent=2)


def _advice(page: _Page, report: Report, verbose: bool) -> None:
    if report.losses:
        page.title("Largest losses, and what to do")
        for index, text in enumerate(report.losses, start=1):
            page.add(safe(text), indent=5, first=f"  {index}. ")
    if verbose and report.suspects:
        page.title("What holds the steady state down")
        for suspect in report.suspects:
            page.add(f"{suspect.text} ({suspect.how.replace('_', ' ')})", indent=4, first="  ")


def _small_print(page: _Page, report: Report, verbose: bool) -> None:
    page.lines.append("")
    for note in report.notes:
        page.add(safe(note), indent=6, first="note: ", code=YELLOW)
    for file in report.inputs:
        if file.note:
            page.add(
                f"{safe(file.path, limit=60)}: {safe(file.note)}", indent=6, first="note: ", code=YELLOW
            )
    coverage = report.coverage
    text = f"{count(coverage.lines)} lines read, {count(coverage.matched)} understood by `{report.parser}`"
    if coverage.near_misses:
        text += f", {count(coverage.near_misses)} nearly (`logmfu explain` shows them)"
    page.add(text, code=DIM)
    for gate in report.tripped:
        page.add(gate, indent=6, first="gate: ", code=RED)
