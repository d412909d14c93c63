"""A run as tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from logmfu.tables.facts import Facts


@dataclass(frozen=True, slots=True)
class ReadFile:
    """One input as it was read. ``note`` says what was wrong with it."""

    path: str
    bytes: int
    lines: int
    note: str = ""
    last_s: float | None = None
    """Last time stamp in the file, seconds since 1970 of the run's clock; none where another file goes on."""


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A line that had a rule's needle and not its layout."""

    path: str
    line: int
    rule: str
    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """What became of the lines: ``matched`` gave a record, ``near_misses`` nearly, ``other`` neither."""

    lines: int
    matched: int
    near_misses: int
    other: int
    examples: tuple[NearMiss, ...] = ()


@dataclass(frozen=True, slots=True)
class ProfileRecord:
    """One profiler result with its line."""

    figures: Mapping[str, Any]
    path: str
    line: int


@dataclass(frozen=True, slots=True)
class Run:
    """Everything that was read from the logs of one run.

    ``steps``, ``events`` and ``timers`` are DataFrames with the columns of :mod:`logmfu.schema`.
    Times are the log's own printed clock without a zone; ``start`` and ``end`` are its first and last
    time stamp in seconds since 1970 of that clock.
    """

    steps: pd.DataFrame
    events: pd.DataFrame
    timers: pd.DataFrame
    facts: Facts
    profiles: tuple[ProfileRecord, ...]
    inputs: tuple[ReadFile, ...]
    coverage: Coverage
    parser: str
    parser_title: str
    start: float | None
    end: float | None
    utc_offset: int | None
    resolution_s: float
    """Finest step of the time stamps: 1.0 for whole seconds."""
    attempt_starts: tuple[float | None, ...] = ()
    """First time stamp of each attempt."""
    attempt_ends: tuple[float | None, ...] = ()
    """Last time stamp of each attempt."""
    going_on: bool = False
    """The first attempt had done steps before: a part of a run."""
    notes: tuple[str, ...] = field(default=())
