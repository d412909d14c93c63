"""What shall happen in an invented run: its shape, and the things planted in it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Save:
    """A checkpoint after every ``every`` steps; training stands still for ``seconds``.

    Asynchronous: the pause is only the hand-over, and the save is durable ``writes_for`` seconds later,
    at the top of the first step that starts after that.
    """

    every: int
    seconds: float
    asynchronous: bool = False
    writes_for: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Eval:
    """An evaluation after every ``every`` steps."""

    every: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DataWait:
    """The batch of one step comes ``seconds`` late, once."""

    step: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Collect:
    """A garbage collection of ``seconds`` inside every ``every``-th step; no line says so."""

    every: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow:
    """Steps ``first`` to ``last`` take ``factor`` times as long; ``last=None``: for good."""

    first: int
    factor: float
    last: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """From step ``first`` on each step is a little slower, ``factor`` times as long at the last step."""

    first: int
    factor: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ramp:
    """Batch-size ramp-up: ``stages`` equal steps up to the full batch until step ``until``."""

    until: int
    stages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NanLoss:
    """The loss is not a number from ``step`` on, in every attempt."""

    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """The optimizer skips ``step`` (loss-scale overflow); it takes its time all the same."""

    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The attempt ends inside step ``at_step + 1``, ``fraction`` of a step after ``at_step`` was done.

    ``kind``: ``crash oom nan hang preempted time_limit node_failure killed silent``. ``silent``: the log just
    ends; as the last thing of a run it is also what a run that is still going looks like.
    ``restart_after``: seconds until the next process starts; ``None`` ends the run. ``ran_for``: how long
    the watchdog waited (hang). ``in_save``: it happens halfway through the save at ``at_step`` instead.
    """

    at_step: int
    kind: str
    fraction: float = 0.4
    restart_after: float | None = None
    ran_for: float = 600.0
    in_save: bool = False


Event = Save | Eval | DataWait | Collect | Slow | Drift | Ramp | NanLoss | Skip | Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One run. Times in seconds; ``start`` is ISO time of the first process start.

    ``noise``: standard deviation of a step over its mean. ``outliers``: chance that a step takes up to
    ``outlier_size`` longer, for no reason; these belong to the noise. ``timers``: the framework prints its
    per-step timers. ``launcher``: the launcher prints stamped lines when an attempt fails.
    """

    framework: str = "megatron-0.12"
    steps: int = 1000
    step_time: float = 5.0
    noise: float = 0.01
    outliers: float = 0.0
    outlier_size: float = 0.5
    log_interval: int = 10
    batch: int = 512
    seq_len: int = 4096
    world_size: int = 64
    tflops: float = 400.0
    seed: int = 0
    start: str = "2026-03-04T05:06:07"
    initialise: float = 21.0
    build: float = 34.0
    load_data: float = 12.0
    restore: float = 25.0
    warmup: float = 15.0
    timers: bool = False
    launcher: bool = True
    envelope: str | None = None
    events: tuple[Event, ...] = ()

    @property
    def began(self) -> float:
        """Start as seconds since 1970 of the printed clock."""
        return datetime.fromisoformat(self.start).replace(tzinfo=UTC).timestamp()

    def all(self, kind: type) -> list[Any]:
        """Events of one type, in the order they were given."""
        return [event for event in self.events if isinstance(event, kind)]

    def one(self, kind: type) -> Any:
        """The only event of a type, or ``None``."""
        return next(iter(self.all(kind)), None)

    def batch_at(self, step: int) -> int:
        """Sequences in one step."""
        ramp = self.one(Ramp)
        if ramp is None or step > ramp.until:
            return self.batch
        stage = (step - 1) * ramp.stages // ramp.until
        return self.batch * (stage + 1) // (ramp.stages + 1)

    def consumed(self) -> list[int]:
        """Sequences seen after step 0, 1, 2 ..."""
        return [0, *accumulate(self.batch_at(step) for step in range(1, self.steps + 1))]
