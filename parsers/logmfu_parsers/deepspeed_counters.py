"""What one DeepSpeed line says about another: which steps its counters mean, and which units.

Three counters are printed. ``step=`` goes on after a resume; ``global_step=`` in the throughput line
(since v0.8.0) counts the steps of this process; the older ``epoch/count`` counts its micro steps
(utils/timer.py). A throughput line is a step record only where its step can be told from the log;
otherwise it becomes an ``engine_report`` event and a note says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from logmfu.parsing import Item
from logmfu.records import Line, Record
from logmfu.stretch import Stretch
from logmfu_parsers.deepspeed_versions import (
    MILLISECONDS,
    Fault,
    Span,
    Version,
    parse_version,
    possible_faults,
    spans_of,
)

IMPOSSIBLE = 2.0
"""A step cannot take this many times the wall clock of a step: the printed time is not in seconds."""
AS_PRINTED = {"step_time_s": "iter_time", "samples_per_s": "samples_per_sec"}
"""Where doubtful figures of the pipeline's line go: under the program's own names."""


def skim(items: Iterator[Item]) -> Iterator[Item]:
    """Records with their steps and units put right, and facts that say what was done.

    A stretch in which every line is the expected one goes on as it is.
    """
    counters = Counters()
    for item in items:
        if isinstance(item, Record):
            yield from counters.see(item)
        elif counters.skim(item):
            yield item
        else:
            for record in item:
                yield from counters.see(record)


@dataclass(slots=True)
class Process:
    """What the running process has shown of its counters."""

    step: int | None = None
    """Latest ``step=``."""
    figures: Mapping[str, Any] = field(default_factory=dict)
    time: float | None = None
    interval: int | None = None
    wall: float | None = None
    """Seconds per step between the last two ``step=`` lines."""
    resumed_at: int = 0
    adjacent: bool = False
    """The latest line that counts anything was a ``step=`` line."""


class Counters:
    """State over a log: version, configuration, and the running process."""

    def __init__(self) -> None:
        self._path = ""
        self._process = Process()
        self._version: Version | None = None
        self._spans: tuple[Span, ...] = ()
        self._accumulation: int | None = None
        self._every: int | None = None
        self._milliseconds = False
        self._told: set[str] = set()

    def see(self, record: Record) -> Iterator[Record]:
        """The record as it is to be read, and facts about it."""
        if record.line.path != self._path:
            self._path, self._process = record.line.path, Process()
        handle = _HANDLERS.get(record.rule)
        if record.kind == "near_miss" or handle is None:
            yield record
            return
        self._spans = spans_of(record.line.origin) or self._spans
        yield from handle(self, record)
        self._process.adjacent = record.rule == "step"

    def skim(self, stretch: Stretch) -> bool:
        """Take note of a stretch, if all its lines fit: steps at the usual distance, throughput in between."""
        process, every = self._process, self._process.interval
        if (
            stretch.path != self._path
            or process.step is None
            or every is None
            or self._every not in (None, every)
        ):
            return False
        lines, steps = stretch.column("step", "step")
        if not len(steps) or not stretch.rules <= {"step", "throughput"}:
            return False
        if steps[0] != process.step + every or (steps[1:] - steps[:-1] != every).any():
            return False
        after, own = stretch.column("throughput", "step")
        latest = process.step + every * lines.searchsorted(after)
        resumed, fresh = (
            (latest <= own + by) & (own + by < latest + every) for by in (process.resumed_at, 0)
        )
        if not (resumed.all() or (fresh.all() and not resumed.any())):
            return False
        if resumed.all():
            stretch.shift("throughput", "step", process.resumed_at)
        self._note(stretch, int(steps[-1]), every)
        return True

    def _note(self, stretch: Stretch, step: int, every: int) -> None:
        """The state after a stretch."""
        process = self._process
        _, stamps = stretch.column("step", "inner")
        times = [process.time, *(None if time != time else time for time in stamps[-2:].tolist())]
        process.wall = _per_step(times[-2], times[-1], every)
        process.step, process.time = step, times[-1]
        process.figures = stretch.figures("step")
        process.adjacent = stretch.last.rule == "step"
        for part in sorted(stretch.parts, key=lambda part: int(part.numbers[-1])):
            self._spans = spans_of(part.line.origin) or self._spans

    def _start(self, record: Record) -> Iterator[Record]:
        if self._process.step is not None:
            self._process = Process()
            self._accumulation = self._every = None
        yield record
        if version := record.values.get("version"):
            self._version = parse_version(version)
            yield Record("fact", "framework_version", {"value": version}, record.line, record.rule)

    def _config(self, record: Record) -> Iterator[Record]:
        value = record.values.get("value")
        if record.name == "grad_accumulation":
            self._accumulation = value
        elif record.name == "log_interval":
            self._every = value
        yield record

    def _load(self, record: Record) -> Iterator[Record]:
        if self._process.step is None and (step := record.values.get("step")):
            self._process.resumed_at = step
        yield record

    def _zero_saved(self, record: Record) -> Iterator[Record]:
        # From v0.7.0 on the checkpoint engine says when a save is ready: this line is but a part of it.
        if "checkpoint engine" not in self._told:
            yield record

    def _engine_saves(self, record: Record) -> Iterator[Record]:
        self._told.add("checkpoint engine")
        yield record

    def _step(self, record: Record) -> Iterator[Record]:
        process, step = self._process, record.values["step"]
        if step == process.step and not _alike(record.values, process.figures):
            yield from self._tell(
                "engines_note",
                "two engines print the same step numbers; their lines are one row",
                record.line,
            )
        if process.step is not None and step > process.step:
            process.interval = step - process.step
            process.wall = _per_step(process.time, record.line.time, process.interval)
        process.step, process.time, process.figures = step, record.line.time, dict(record.values)
        yield record

    def _throughput(self, record: Record) -> Iterator[Record]:
        yield from self._placed(record, self._global(record.values["step"]))

    def _micro_throughput(self, record: Record) -> Iterator[Record]:
        micro = record.values["micro_step"]
        per_step = self._accumulation or self._guess(micro)
        step = self._global(micro // (per_step or 1)) if micro % (per_step or 1) == 0 else None
        if per_step != 1 and step is not None:
            known = f"{per_step} to a step; `step` is in steps"
            unknown = "and gradient accumulation is not printed: `step` may be in micro steps"
            text = f"the throughput lines count micro steps, {known if per_step else unknown}"
            yield from self._tell("step_counter_note", text, record.line)
        yield from self._placed(record, step)

    def _global(self, own: int) -> int | None:
        """The step of the run for this process's own count; None where it does not fit ``step=``.

        A checkpoint loaded for its weights alone does not move the counters, so both sums are tried.
        """
        fitting = (step for step in (own + self._process.resumed_at, own) if self._fits(step))
        return next(fitting, None)

    def _guess(self, micro: int) -> int | None:
        """Micro steps per step, from a throughput line right after its ``step=`` line."""
        process = self._process
        if process.step and process.adjacent and not process.resumed_at and micro % process.step == 0:
            self._accumulation = micro // process.step
        return self._accumulation

    def _fits(self, step: int) -> bool:
        """Whether a line of this step can stand after the latest ``step=`` line."""
        process = self._process
        if process.step is None:
            return True
        every = self._every or process.interval or 1
        return process.step <= step < process.step + every

    def _placed(self, record: Record, step: int | None) -> Iterator[Record]:
        if step is not None:
            yield record._replace(values={**record.values, "step": step})
            return
        yield from self._tell(
            "step_counter_note",
            "the throughput lines' counter does not fit `step=`: they are kept as events, not as steps",
            record.line,
        )
        kept = {name: value for name, value in record.values.items() if name != "step"}
        yield record._replace(kind="event", name="engine_report", values=kept)

    def _pipeline(self, record: Record) -> Iterator[Record]:
        if not AS_PRINTED.keys() <= record.values.keys():
            yield record
            return
        fault, doubts = self._fault(record)
        every = 1 if fault is MILLISECONDS else self._every or self._process.interval
        if fault and every:
            yield from self._tell("unit_note", f"{fault.note}; corrected", record.line)
            yield record._replace(values=fault.undo(record.values, every))
        elif fault or (MILLISECONDS in doubts and self._process.time is not None):
            # Known to be wrong, or the next stamp will tell: no figure is better than this one.
            yield record._replace(
                values={AS_PRINTED.get(name, name): value for name, value in record.values.items()}
            )
        else:
            if doubts:
                notes = "; ".join(doubt.note for doubt in doubts)
                text = f"not corrected, the version is not printed: {notes}"
                yield from self._tell("unit_note", text, record.line)
            yield record

    def _fault(self, record: Record) -> tuple[Fault | None, tuple[Fault, ...]]:
        """The error the line is known to have, else those it may have."""
        faults = possible_faults(self._version, self._spans)
        if self._version is not None:
            return (faults[0] if faults else None), ()
        if MILLISECONDS not in faults:
            return None, faults
        wall = self._process.wall
        if wall and record.values["step_time_s"] > IMPOSSIBLE * wall:
            self._milliseconds = True
        if self._milliseconds:
            return MILLISECONDS, ()
        return None, faults if wall is None else tuple(one for one in faults if one is not MILLISECONDS)

    def _tell(self, name: str, text: str, line: Line) -> Iterator[Record]:
        if (key := f"{name}: {text}") not in self._told:
            self._told.add(key)
            yield Record("fact", name, {"value": text}, line, "note")


_HANDLERS: dict[str, Callable[[Counters, Record], Iterator[Record]]] = {
    "version": Counters._start,
    "step_zero": Counters._start,
    "config": Counters._config,
    "loading": Counters._load,
    "loaded": Counters._load,
    "load_begins": Counters._load,
    "load_ends": Counters._load,
    "save_begins": Counters._engine_saves,
    "save_begins_early": Counters._engine_saves,
    "zero_saved": Counters._zero_saved,
    "step": Counters._step,
    "throughput": Counters._throughput,
    "micro_throughput": Counters._micro_throughput,
    "pipeline_step": Counters._pipeline,
}
REFINED = frozenset(_HANDLERS)
"""Rules whose records ``skim`` looks at."""


def _alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two records have the same values; NaN is like NaN."""
    return one.keys() == other.keys() and all(
        value == other[name] or (value != value and other[name] != other[name])
        for name, value in one.items()
    )


def _per_step(before: float | None, after: float | None, steps: int) -> float | None:
    if before is None or after is None or after <= before:
        return None
    return (after - before) / steps
