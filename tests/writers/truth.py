"""What really happened in an invented run, as far as its log can show it.

Rules, from the definition of the classes:

* The wall clock runs from the first to the last time stamp. What lies before or after is not there. Between
  the last stamp of one attempt and the first stamp of the next everything is ``restart_gap``, also steps that
  were never printed.
* Layouts without stamps on step lines but with stamps at the start (``anchored``) count the time of a step line as known,
  because their step clock has no holes. Layouts without any stamp have the sum of the printed intervals as
  their wall clock, and no time between attempts.
* ``productive`` is the real duration of surviving steps, noise included; ``lost_work`` that of steps after the
  last durable checkpoint of an attempt that failed, and of the step that was cut off. A planted pause keeps
  its own class in both. Surviving means: not done again, and not after the last durable checkpoint of a run
  whose last line is a failure. A log that just ends counts as still going: nothing is lost.
* ``warmup`` is what the first step of a process took beyond the others.
* Where the log cannot tell, a second answer is right too: ``accept`` holds all right answers, ``kind`` the best.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Span:
    """Seconds of the run in one class. ``stall`` is the index of the planted stall they belong to."""

    start: float
    end: float
    kind: str
    accept: frozenset[str]
    attempt: int
    step: int | None = None
    stall: int | None = None

    @property
    def seconds(self) -> float:
        """Length of the span."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class PlantedStall:
    """A pause or slow stretch that was planted.

    ``step``: the step after which the pause began, or the slow step. ``first`` to ``last`` are the printed steps
    around it: a finding with a step in between points at it. ``measured``: a timer or two stamps give
    its size. ``eligible``: large enough, inside the wall clock, followed by a printed line, so that it must be found.
    """

    kind: str
    step: int
    start: float
    seconds: float
    attempt: int
    accept: frozenset[str]
    first: int
    last: int
    measured: bool
    eligible: bool

    @property
    def has_evidence(self) -> bool:
        """The log names the cause: only one answer is right."""
        return len(self.accept) == 1


@dataclass(frozen=True, slots=True)
class TrueAttempt:
    """One process start. ``exits``, ``lost_steps`` and ``durable_step`` list every right answer."""

    number: int
    first_step: tuple[int, int]
    """The first step it did and the first it printed."""
    last_step: int | None
    """Last printed step."""
    exits: frozenset[str]
    lost_steps: frozenset[int | None]
    durable_step: frozenset[int | None]


@dataclass(frozen=True, slots=True)
class TrueChange:
    """Something changed for good. ``required``: it must be reported; else it may be."""

    kind: str
    first: int
    last: int
    required: bool


@dataclass(frozen=True, slots=True)
class Truth:
    """Everything an analysis of the log should find."""

    clock: str
    start: float | None
    end: float | None
    wall_clock_s: float
    spans: tuple[Span, ...]
    stalls: tuple[PlantedStall, ...]
    attempts: tuple[TrueAttempt, ...]
    saves: tuple[tuple[int, int, bool], ...]
    """(attempt, step, durable)"""
    evals: tuple[tuple[int, int], ...]
    """(attempt, step)"""
    changes: tuple[TrueChange, ...]
    printed: tuple[tuple[int, int], ...] = field(repr=False, default=())
    """(attempt, step) of every step line."""

    @property
    def ledger(self) -> dict[str, float]:
        """Seconds per class; they add up to the wall clock."""
        seconds: Counter[str] = Counter()
        for span in self.spans:
            seconds[span.kind] += span.seconds
        return dict(seconds)

    def bounds(self, kind: str) -> tuple[float, float]:
        """Least and most seconds of a class that are right."""
        least = sum(span.seconds for span in self.spans if span.accept == {kind})
        most = sum(span.seconds for span in self.spans if kind in span.accept)
        return least, most
