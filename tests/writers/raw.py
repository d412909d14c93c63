"""What a simulation notes while it runs, before it is known what the log shows of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from writers.plan import Failure


@dataclass(slots=True)
class RawStall:
    """A planted pause before it is known which lines got printed around it.

    ``in_step``: inside steps ``begin`` to ``step``; else after ``step``.
    """

    kind: str
    begin: int
    step: int
    start: float
    seconds: float
    attempt: int
    in_step: bool
    measured: bool
    accept: frozenset[str]


@dataclass(slots=True)
class RawAttempt:
    """One attempt as it went."""

    number: int
    first_step: int
    training: float = 0.0
    last_done: int = 0
    durable: int = 0
    failure: Failure | None = None
    printed: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Interval:
    """What a framework adds up between two step lines."""

    busy: float = 0.0
    paused: float = 0.0
    wait: float = 0.0
    count: int = 0
    skipped: int = 0
    nan: int = 0
