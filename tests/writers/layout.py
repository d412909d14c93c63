"""What a framework prints, and what its step clock contains."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from writers.plan import Plan


class Text(NamedTuple):
    """One line. ``stamped``: it carries a time stamp. ``rank``: who prints it, ``None``: not a rank."""

    text: str
    stamped: bool = False
    rank: int | None = 0


@dataclass(frozen=True, slots=True)
class Row:
    """Numbers of one step line; seconds."""

    step: int
    mean: float
    """What the framework prints as time per step."""
    busy: float
    """Steps of the interval without pauses between them, all together."""
    covered: int
    batch: int
    consumed: int
    loss: float | None
    skipped: int
    nan: int
    wait: float
    """Waiting for data in the interval, all steps together."""
    last: float
    """The last step alone, without waiting for data."""
    own_step: int
    """Steps this process has done."""
    own_mean: float
    """Mean of the steps of this process after the second, without waiting for data."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Something a framework prints about, at a time."""

    name: str
    time: float
    attempt: int
    step: int
    seconds: float = 0.0
    row: Row | None = None
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """One framework and era.

    ``clock``: ``stamps`` on step lines, ``anchored`` (stamps at the start only) or ``none``.
    ``includes_pauses``: printed step time contains evaluation and saves. ``first_line``: the first step of a
    process is printed alone and counted again. ``per_interval``: step time is interval / log interval, always.
    ``wait_in_step``: waiting for data is inside the printed step time. ``measures``: kinds of pauses whose
    size the log states. ``names``: kinds of pauses a line names. ``periods``: kinds of pauses only the argument
    dump hints at, by their interval. ``start_line``: a line says when the training loop starts; without it
    start-up and warm-up cannot be told apart. ``lines``: the functions that print, by moment.
    """

    clock: str
    resolution: float
    lines: Mapping[str, Callable[[Plan, Moment], list[Text]]]
    measures: frozenset[str]
    names: frozenset[str]
    periods: frozenset[str] = frozenset()
    start_line: bool = True
    includes_pauses: bool = False
    first_line: bool = False
    per_interval: bool = False
    wait_in_step: bool = True
    has_timers: bool = True
    save_lines: bool = True
    finish_line: bool = True
    failures: frozenset[str] = frozenset(
        {"crash", "oom", "hang", "preempted", "time_limit", "node_failure", "killed", "nan", "silent"}
    )


def when(time: float) -> datetime:
    """The printed clock at a time, never rounded up."""
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=int(time * 1e6))


def seconds_stamp(time: float) -> str:
    """``2026-03-04 05:06:07``."""
    return when(time).strftime("%Y-%m-%d %H:%M:%S")


def millis_stamp(time: float) -> str:
    """``2026-03-04 05:06:07,123``, as Python's logging prints it."""
    moment = when(time)
    return f"{moment:%Y-%m-%d %H:%M:%S},{moment.microsecond // 1000:03d}"


def micros_stamp(time: float) -> str:
    """``2026-03-04 05:06:07.123456``."""
    return when(time).strftime("%Y-%m-%d %H:%M:%S.%f")


def dotted(name: str, value: object, width: int = 48) -> str:
    """One row of an argument dump: name and dots fill ``width`` columns."""
    return f"  {name} {'.' * (width - len(name))} {value}"
