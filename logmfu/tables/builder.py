"""Records to tables, as they come: nothing is held but what is kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from logmfu.records import Line, Record
from logmfu.schema import INCIDENTS
from logmfu.tables.facts import Facts
from logmfu.tables.run import Miss, ProfileRecord

CHUNK_ROWS = 20_000
"""Rows kept as dicts before they become columns: bounds the memory of a million steps."""
EXAMPLES = 20
"""Near misses kept with their text; the rest is only counted."""
TEXT = 300
"""Characters of a line kept with an event or near miss."""
LOOK_BACK = 1000
"""Lines before a failure or a start in which the last time stamp is looked for."""
LIFE = ("process_start", "startup", "training_start", "exit")
"""Events whose text may carry a time stamp of the moment itself: it counts like a stamp before the line."""

Both = tuple[float | None, float | None]
"""Inner and outer stamp of a line."""


@dataclass(slots=True)
class Stamps:
    """First and last time stamp of one file, on each of its two clocks."""

    first: Both | None = None
    last: Both | None = None
    last_line: int = 0
    previous: Both | None = None
    """The stamp before the last one, on an earlier line."""
    previous_line: int = 0

    def take(self, both: Both, number: int) -> None:
        """A line with a stamp was read."""
        if self.first is None:
            self.first = both
        if number != self.last_line:
            self.previous, self.previous_line = self.last, self.last_line
        self.last, self.last_line = both, number


@dataclass(slots=True)
class Rows:
    """Rows of one table: dicts first, columns later."""

    recent: list[dict[str, Any]] = field(default_factory=list)
    chunks: list[pd.DataFrame] = field(default_factory=list)

    def add(self, row: dict[str, Any]) -> None:
        """Keep one row."""
        self.recent.append(row)
        if len(self.recent) >= CHUNK_ROWS:
            self._flush()

    def _flush(self) -> None:
        if self.recent:
            self.chunks.append(pd.DataFrame(self.recent))
            self.recent = []

    def frame(self) -> pd.DataFrame:
        """All rows, in the order they came."""
        self._flush()
        return pd.concat(self.chunks, ignore_index=True) if self.chunks else pd.DataFrame()


class TableBuilder:
    """Takes lines (for their stamps) and records (for their values)."""

    def __init__(self) -> None:
        self.steps, self.events, self.timers = Rows(), Rows(), Rows()
        self.facts = Facts()
        self.profiles: list[ProfileRecord] = []
        self.misses: list[Miss] = []
        self.near_misses = 0
        self.matched = 0
        self.stamps: dict[str, Stamps] = {}
        self.utc_offset: int | None = None
        self._last_matched: tuple[str, int] = ("", -1)

    def watch(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Pass lines on, remembering the first and last stamp of each file."""
        for line in lines:
            if line.time is not None or line.outer_time is not None:
                self.stamp(line)
            yield line

    def stamp(self, line: Line) -> None:
        """Remember the stamps of a line that has one."""
        self._stamps(line.path).take((line.time, line.outer_time), line.number)
        if self.utc_offset is None:
            self.utc_offset = line.utc_offset

    def _stamps(self, path: str) -> Stamps:
        return self.stamps.setdefault(path, Stamps())

    def add(self, record: Record) -> None:
        """Take one record."""
        line = record.line
        if record.kind == "near_miss":
            self._miss(record)
            return
        if (line.path, line.number) != self._last_matched and record.rule != "meaning":
            self._last_matched = (line.path, line.number)
            self.matched += 1
        match record.kind:
            case "step":
                self.steps.add({**record.values, **_place(record)})
            case "timer":
                self.timers.add({"timer": record.name, **record.values, **_place(record)})
            case "event":
                self.events.add(self._event(record))
            case "fact":
                self.facts.add(record.name, record.values.get("value"), line.path, line.number)
            case "profile":
                self.profiles.append(ProfileRecord(dict(record.values), line.path, line.number))

    def _miss(self, record: Record) -> None:
        self.near_misses += 1
        if len(self.misses) < EXAMPLES:
            line = record.line
            self.misses.append(
                Miss(line.path, line.number, record.rule, record.values["reason"], line.text[:TEXT])
            )

    def _event(self, record: Record) -> dict[str, Any]:
        values = dict(record.values)
        row = {"event": record.name, "text": record.line.text.strip()[:TEXT], **_place(record)}
        for key in ("step", "seconds", "rank", "host"):
            if key in values:
                row[key] = values.pop(key)
        if record.name in INCIDENTS or record.name == "process_start":
            row["before_inner"], row["before_outer"] = self._before(record.line)
        if (own := values.pop("time", None)) is not None:
            row["inner"] = own
            if record.name in LIFE:
                self._stamps(record.line.path).take((own, record.line.outer_time), record.line.number)
        row["details"] = values
        return row

    def _before(self, line: Line) -> Both:
        stamps = self.stamps.get(line.path, Stamps())
        for number, both in ((stamps.last_line, stamps.last), (stamps.previous_line, stamps.previous)):
            if both and line.number - LOOK_BACK <= number < line.number:
                return both
        return (None, None)


def _place(record: Record) -> dict[str, Any]:
    line = record.line
    return {
        "rule": record.rule,
        "path": line.path,
        "line": line.number,
        "inner": line.time,
        "outer": line.outer_time,
        "rank": line.rank,
        "host": line.host,
    }
