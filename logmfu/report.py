"""What the analysis found, as plain data. Renderers read it; nothing here formats.

Times are seconds since 1970 of the log's own printed clock (see :class:`logmfu.records.Line`);
``None`` means not known, and a ``why_not`` or a note says why. Shares and utilizations are 0 to 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Literal

import pandas as pd

from logmfu.tables import Coverage

Confidence = Literal["measured", "marked", "inferred"]
Clock = Literal["timestamps", "reconstructed", "none"]

LEDGER_KINDS: dict[str, str] = {
    "productive": "steps at the run's own pace that survived",
    "slow_steps": "step time above the run's own pace, no named cause",
    "data_wait": "waiting for the next batch",
    "checkpoint": "training blocked by a save",
    "evaluation": "validation between steps",
    "gc": "periodic garbage collection",
    "startup": "process start to the first step",
    "warmup": "what the first step took beyond the run's own pace",
    "restore": "loading a checkpoint",
    "lost_work": "steps done again later, or lost",
    "hang": "silence before a kill",
    "restart_gap": "between the last line of an attempt and the first of the next",
    "unknown": "the log does not say",
}
"""Classes of the ledger, in the order they are shown, with their meaning."""

EXITS = (
    "finished", "crash", "oom", "hang", "nan", "preempted", "time_limit", "node_failure", "killed",
    "interrupted", "running", "unknown",
)  # fmt: skip
"""Ways an attempt can end. ``running``: the log ends in the middle of normal work."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A line that shows a finding."""

    path: str
    line: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class InputFile:
    """One file that was read. ``note`` says what was wrong with it (cut off, not all text ...)."""

    path: str
    bytes: int
    lines: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and the 5th and 95th percentile of a quantity, with the number of values behind it."""

    median: float
    p5: float
    p95: float
    count: int = 0


@dataclass(frozen=True, slots=True)
class Peak:
    """The denominator of a utilization: dense TFLOP/s of one device at one precision."""

    tflops: float
    device: str
    precision: str
    source: str
    evidence: str
    """What was seen for this very number; a recalled one says so."""
    how: str
    """Where the device name or number came from: option, log, fact."""


@dataclass(frozen=True, slots=True)
class Utilization:
    """MFU or HFU: a share of peak, with everything needed to compare it."""

    spread: Spread | None = None
    effective: float | None = None
    """Over the wall clock: model FLOPs of surviving steps / (wall clock x devices x peak)."""
    grade: str | None = None
    basis: Literal["logged", "computed"] | None = None
    attention: str | None = None
    """``full``, ``half`` or ``unknown``: how attention is counted in the numerator."""
    convention: str | None = None
    peak: Peak | None = None
    alternatives: Mapping[str, float] = field(default_factory=dict)
    """Median under other conventions, attention counts or peaks, by name."""
    logged_over_computed: float | None = None
    explanation: str | None = None
    """Why the logged number differs from the computed one, or that it does not."""
    why_not: str | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One process start and what came of it."""

    number: int
    first_step: int | None
    last_step: int | None
    steps: int
    """Printed step lines."""
    start: float | None
    end: float | None
    exit: str
    exit_text: str
    lost_steps: int | None
    """Steps done again later, or lost for good: from the last durable checkpoint to the last step."""
    lost_s: float | None
    restart_gap_s: float | None
    """From the last line of this attempt to the first of the next."""
    catch_up_s: float | None
    """Time in this attempt until the furthest step of earlier attempts was passed again."""
    durable_step: int | None
    """Step of the last complete checkpoint when the attempt ended."""
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One class of the wall clock. Seconds of all entries add up to ``Report.wall_clock_s``."""

    kind: str
    seconds: float
    share: float
    gpu_hours: float | None
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Stall:
    """A pause or slow stretch. ``step`` is the step after which it began (or the slow step itself)."""

    kind: str
    step: int | None
    start: float | None
    seconds: float
    gpu_hours: float | None
    confidence: Confidence
    evidence: tuple[Evidence, ...] = ()
    text: str = ""
    elapsed_s: float | None = None
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class Change:
    """From ``step`` on something is different for good."""

    step: int
    kind: str
    """``step_time``, ``trend``, ``accounting``, ``loss_spike``, ``nan``, ``batch_size``."""
    before: float
    after: float
    unit: str
    text: str
    evidence: tuple[Evidence, ...] = ()
    elapsed_s: float | None = None


@dataclass(frozen=True, slots=True)
class Incident:
    """A failure line, classified."""

    kind: str
    time: float | None
    rank: int | None
    host: str | None
    step: int | None
    text: str
    role: str
    """``first``: the first sign of trouble; ``cascade``: follows from another one; ``sign``: neither is sure."""
    attempt: int
    evidence: tuple[Evidence, ...] = ()
    count: int = 1
    """Lines of this kind in this attempt."""
    elapsed_s: float | None = None


@dataclass(frozen=True, slots=True)
class SaveSummary:
    """Checkpoints: what they cost."""

    count: int
    open: int
    """Started and never seen complete."""
    asynchronous: bool | None
    blocking_s: Spread | None
    total_s: float
    share: float | None
    trend_s_per_save: float | None
    interval_steps: float | None
    optimal_interval_s: float | None
    """Young/Daly: sqrt(2 x save cost x mean time between failures), when there were failures."""
    why_not: str | None = None


@dataclass(frozen=True, slots=True)
class DataWaitSummary:
    """Waiting for data: how much, the worst, and where it sits."""

    share: float | None
    total_s: float
    worst_s: float | None
    worst_step: int | None
    pattern: str | None
    """``epoch_start``, ``spread``, ``single`` or ``None``."""
    why_not: str | None = None


@dataclass(frozen=True, slots=True)
class Suspect:
    """One thing that may hold the steady state down."""

    name: str
    """network, pipeline_bubble, data_loader, recomputation, checkpoints, communication, optimizer ..."""
    share: float | None
    """Part of the step time (or of peak) it costs."""
    how: Literal["measured", "computed", "not_visible"]
    text: str
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Profile:
    """One profiler result: DeepSpeed's FLOPs profiler or its autotuner's metrics."""

    step: int | None
    flops_per_gpu: float | None
    """FLOP/s of one device over the whole iteration."""
    figures: Mapping[str, Any]
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class FactLine:
    """A fact and where it was read; ``path`` is empty for options."""

    name: str
    value: Any
    path: str
    line: int
    how: str = "log"


@dataclass(frozen=True, slots=True)
class Report:
    """Everything the analysis found.

    ``series`` is one row per step with the columns ``step, time, elapsed_s, step_time_s, iterations, mfu, hfu, tflops_per_gpu, tokens_per_s, loss, attempt, lost,
    path, line``. It shares memory with the tables of the run and cannot be written to: change a copy of it.
    """

    name: str
    """Short name of the run for titles: its run name, else its first file's name."""
    inputs: tuple[InputFile, ...]
    parser: str
    parser_title: str
    run: Mapping[str, Any]
    """world_size, accelerator, precision, model, global_batch_size, seq_len, log_interval, ..."""
    facts: tuple[FactLine, ...]
    clock: Clock
    utc_offset: int | None
    """Seconds east of UTC of the printed clock, when the log says."""
    start: float | None
    end: float | None
    wall_clock_s: float | None
    step_count: int
    first_step: int | None
    last_step: int | None
    step_time_s: Spread | None
    mfu: Utilization
    hfu: Utilization
    attempts: tuple[Attempt, ...]
    ledger: tuple[LedgerEntry, ...]
    goodput: float | None
    stalls: tuple[Stall, ...]
    changes: tuple[Change, ...]
    incidents: tuple[Incident, ...]
    saves: SaveSummary | None
    data_wait: DataWaitSummary | None
    suspects: tuple[Suspect, ...]
    profiles: tuple[Profile, ...]
    coverage: Coverage
    notes: tuple[str, ...]
    losses: tuple[str, ...]
    """The largest losses in words, with what to do or switch on next; at most three."""
    series: pd.DataFrame
    tokens_per_s: Spread | None = None
    tflops_per_gpu: Spread | None = None
    """As logged, else computed."""
    gpu_hour_price: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options that were given, for provenance."""
    tripped: tuple[str, ...] = ()
    """Gates that were asked for and tripped, in words."""

    @property
    def devices(self) -> int | None:
        """World size, when known."""
        return self.run.get("world_size")

    def to_json(self) -> str:
        """The report as JSON text; its layout is the versioned contract."""
        from logmfu.render import json_report

        return json_report.render(self)

    def to_markdown(self, *, dialect: str = "github") -> str:
        """The report as Markdown for a ticket."""
        from logmfu.render import markdown

        return markdown.render(self, dialect=dialect)

    def to_html(self) -> str:
        """The report as one self-contained HTML page."""
        from logmfu.render import html

        return html.render(self)

    def plot(self, *, axis: str = "auto") -> Any:
        """A matplotlib figure of MFU with stalls and events."""
        from logmfu.render import plot

        return plot.figure(self, axis=axis)


def iso(seconds: float | None, utc_offset: int | None = None) -> str | None:
    """ISO 8601 text of a time; with an offset only when the log printed one."""
    if seconds is None:
        return None
    moment = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=round(seconds * 1e6))
    naive = moment.replace(tzinfo=None)
    zoned = naive if utc_offset is None else naive.replace(tzinfo=timezone(timedelta(seconds=utc_offset)))
    return zoned.isoformat()
