"""Records to tables, as they come: nothing is held but what is kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from logmfu.parsing import Block, Rule
from logmfu.records import Line, Record
from logmfu.schema import INCIDENTS
from logmfu.stamps import EARLY, AnyStamps, Between, Both, Stamps
from logmfu.stretch import listed
from logmfu.tables.facts import Facts
from logmfu.tables.rows import Places, Rows
from logmfu.tables.run import NearMiss, ProfileRecord

EXAMPLES = 20
"""Near misses kept with their text; the rest is only counted."""
TEXT = 300
"""Characters of a line kept with an event or near miss."""
_OWN = ("step", "seconds", "rank", "host")
"""Values of an event that have columns; the others are its details."""


class TableBuilder:
    """Takes lines (for their stamps) and records (for their values)."""

    def __init__(self) -> None:
        self.steps, self.events, self.timers = Rows(), Rows(), Rows()
        self.facts = Facts()
        self.profiles: list[ProfileRecord] = []
        self._misses: list[tuple[int, NearMiss]] = []
        self.near_misses = 0
        self.matched = 0
        self.stamps: dict[str, AnyStamps] = {}
        self.utc_offset: int | None = None
        self.place = 0
        """Where in the log the builder is, when rows do not come in its order."""
        self.between: dict[str, Between] = {}
        """Of each file, what shows whether all its lines are on one clock."""
        self._step_before: dict[str, Line] = {}
        self._other: dict[str, Line] = {}
        """First stamped line after a step line that is perhaps no step line."""
        self._stamped: set[str] = set()
        self._seen: dict[str, set[int]] = {}
        """Lines of each file that gave records: a block gives some of its first line when it ends."""

    def watch(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Pass lines on, remembering the first and last stamp of each file."""
        for line in lines:
            if line.time is not None or line.outer_time is not None:
                self.stamp(line)
            yield line

    def stamp(self, line: Line) -> None:
        """Remember the stamps of a line that has one."""
        if line.path not in self._stamped:
            self.first_stamp(line)
        stamps = self.stamps.setdefault(line.path, Stamps())
        if isinstance(stamps, Stamps):
            stamps.take((line.time, line.outer_time), line.number)
        if line.path in self._step_before and line.path not in self._other and line.number <= EARLY:
            self._other[line.path] = line

    def first_stamp(self, line: Line) -> None:
        """Take the zone of the first line of a file that has a stamp."""
        self._stamped.add(line.path)
        self.zone(line)

    def zone(self, line: Line) -> None:
        """Take the zone of a line, if none is known yet."""
        if self.utc_offset is None:
            self.utc_offset = line.utc_offset

    def add(self, record: Record) -> None:
        """Take one record."""
        line = record.line
        if record.kind == "near_miss":
            self._miss(record)
            return
        if record.rule != "meaning" and line.number not in (
            seen := self._seen.setdefault(line.path, set())
        ):
            seen.add(line.number)
            self.matched += 1
        self.zone(line)
        match record.kind:
            case "step":
                self.steps.add({**record.values, **_place(record)}, self.place)
                if line.path not in self.between:
                    self._next_step(line)
            case "timer":
                self.timers.add({"timer": record.name, **record.values, **_place(record)}, self.place)
            case "event":
                self.events.add(self._event(record), self.place)
            case "fact":
                self.facts.add(record.name, record.values.get("value"), line.path, line.number)
            case "profile":
                self.profiles.append(ProfileRecord(dict(record.values), line.path, line.number))

    def add_columns(
        self,
        rule: Rule | Block,
        records: Sequence[Mapping[str, Any]],
        shared: Mapping[str, Any],
        numbers: Places,
        places: Places,
        *,
        texts: Sequence[str] = (),
    ) -> None:
        """Take the records that a rule or block gives of the lines ``numbers`` of a file: the same of every line.

        ``records``: values as columns. ``shared``: those of the lines themselves. ``texts``: the lines, for events.
        """
        self.matched += len(numbers)
        shared = {"rule": rule.name, "line": numbers, **shared}
        name = rule.event or rule.name
        for record in records:
            values = dict(record)
            if rule.kind == "event":
                own = {key: values.pop(key) for key in _OWN if key in values}
                shown = [text.strip()[:TEXT] for text in texts]
                columns = {
                    "event": name,
                    "text": shown,
                    **shared,
                    **own,
                    "details": _dicts(values, len(numbers)),
                }
                self.events.add_columns(columns, places)
            elif rule.kind == "timer":
                self.timers.add_columns({"timer": values.pop("name", name), **values, **shared}, places)
            else:
                self.steps.add_columns({**values, **shared}, places)

    def _next_step(self, line: Line) -> None:
        other = self._other.get(line.path)
        if other and other.number == line.number:
            del self._other[line.path]
        elif other:
            self.between[line.path] = (_both(self._step_before[line.path]), _both(other), _both(line))
        self._step_before[line.path] = line

    def _miss(self, record: Record) -> None:
        self.near_misses += 1
        line = record.line
        miss = NearMiss(line.path, line.number, record.rule, record.values["reason"], line.text[:TEXT])
        self._misses.append((self.place, miss))
        if len(self._misses) > 2 * EXAMPLES:
            self._misses = sorted(self._misses, key=itemgetter(0))[:EXAMPLES]

    @property
    def misses(self) -> list[NearMiss]:
        """The first near misses of the log."""
        return [miss for _, miss in sorted(self._misses, key=itemgetter(0))[:EXAMPLES]]

    def _event(self, record: Record) -> dict[str, Any]:
        values = dict(record.values)
        row = {"event": record.name, "text": record.line.text.strip()[:TEXT], **_place(record)}
        row.update({key: values.pop(key) for key in _OWN if key in values})
        if record.name in INCIDENTS or record.name == "process_start":
            line = record.line
            row["before_inner"], row["before_outer"] = self.stamps.get(line.path, Stamps()).before(
                line.number
            )
        if (own := values.pop("time", None)) is not None:
            row["inner"] = own
        row["details"] = values
        return row


def _dicts(columns: Mapping[str, Any], count: int) -> list[dict[str, Any]]:
    """Columns as a dict for each row."""
    lists = [listed(value, count) for value in columns.values()]
    names = tuple(columns)
    return (
        [dict(zip(names, row, strict=True)) for row in zip(*lists, strict=True)]
        if lists
        else [{} for _ in range(count)]
    )


def _both(line: Line) -> Both:
    return line.time, line.outer_time


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
