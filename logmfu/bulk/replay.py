"""Records of lines that were read as columns, in the order of the lines: one by one, or a stretch at once."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from logmfu.bulk.columns import Columns
from logmfu.parsing import Block, Rule, made
from logmfu.records import Line, Record
from logmfu.stretch import Part, Stretch, listed

Rows = npt.NDArray[np.int64]
Reread = Callable[[int, bytes], list[Record]]
"""Number and bytes of a line to its records, as the rules give them."""
Place = Callable[[int], None]
"""Told the number of a line before its records are given out."""
SIZE = 4096
"""Lines that become records, or a stretch, at once."""
WORTH = 64
"""Lines from which on a stretch is worth it."""


class Replay:
    """The records of some columns whose lines were kept: the rows of one unit."""

    def __init__(
        self,
        columns: Sequence[tuple[Columns, Rows]],
        rules: Mapping[str, Rule | Block],
        *,
        base: int,
        reread: Reread,
        place: Place,
    ) -> None:
        self._columns = [found for found, _ in columns]
        self._rules, self._base, self._reread, self._place = rules, base, reread, place
        rows = np.concatenate([np.empty(0, np.int64), *(rows for _, rows in columns)])
        owner = np.repeat(np.arange(len(columns)), [len(rows) for _, rows in columns])
        within = np.concatenate([np.empty(0, np.int64), *(np.arange(len(rows)) for _, rows in columns)])
        order = np.argsort(rows, kind="stable")
        self._rows, self._owner, self._within = rows[order], owner[order], within[order]
        self._sorted: list[int] = self._rows.tolist()
        self._made: list[list[Record]] = []
        self._first = 0
        """Position of the first of the records that are made."""

    def records(self, start: int, end: int) -> Iterator[Record]:
        """Records of rows from ``start`` to before ``end``."""
        for at in range(*self._positions(start, end)):
            if not self._first <= at < self._first + len(self._made):
                self._first, self._made = at, self._some(at, min(at + SIZE, len(self._sorted)))
            self._place(self._base + self._sorted[at] + 1)
            yield from self._made[at - self._first]

    def stretches(self, start: int, end: int) -> Iterator[Record | Stretch]:
        """The same, where many rows come as stretches."""
        low, high = self._positions(start, end)
        for at in range(low, high, SIZE):
            past = min(at + SIZE, high)
            stretch = self._stretch(at, past) if past - at >= WORTH else None
            if stretch:
                yield stretch
            else:
                yield from self.records(self._sorted[at], self._sorted[past - 1] + 1)

    def _positions(self, start: int, end: int) -> tuple[int, int]:
        return bisect_left(self._sorted, start), bisect_left(self._sorted, end)

    def _chosen(self, low: int, high: int) -> Iterator[tuple[Columns, Rows, Rows]]:
        """Columns that have rows in a range of positions; which of theirs, and their positions from its begin."""
        owner = self._owner[low:high]
        for one in np.unique(owner).tolist():
            mine = np.flatnonzero(owner == one)
            yield self._columns[one], self._within[low + mine], mine

    def _some(self, low: int, high: int) -> list[list[Record]]:
        out: list[list[Record]] = [[]] * (high - low)
        for found, chosen, places in self._chosen(low, high):
            numbers = self._rows[low + places] + self._base + 1
            lines = _lines(found, chosen, numbers)
            rule = self._rules[found.rule]
            several = [_records(rule, values, lines, chosen) for values in found.records]
            for at, place, number, records in zip(
                chosen.tolist(), places.tolist(), numbers.tolist(), zip(*several, strict=True), strict=True
            ):
                odd = found.odd.get(at)
                out[place] = list(records) if odd is None else self._reread(number, odd)
        return out

    def _stretch(self, low: int, high: int) -> Stretch | None:
        """A range of positions; None unless each line gives one row of numbers, all read as columns."""
        parts = []
        for found, chosen, places in self._chosen(low, high):
            numeric = self._rules[found.rule].kind in ("step", "timer")
            if not numeric or len(found.records) != 1 or not found.odd.keys().isdisjoint(chosen.tolist()):
                return None
            values = {name: picked(value, chosen) for name, value in found.records[0].items()}
            times = {"inner": picked(found.inner, chosen), "outer": picked(found.outer, chosen)}
            numbers = self._rows[low + places] + self._base + 1
            parts.append(Part(found.rule, found.line, numbers, values, times))
        first, last = self._sorted[low], self._sorted[high - 1] + 1
        return Stretch(parts[0].line.path, parts, lambda: self.records(first, last))


def picked(value: Any, chosen: npt.NDArray[Any]) -> Any:
    """Some rows of a column."""
    if isinstance(value, np.ndarray):
        return value[chosen]
    if isinstance(value, list):
        return [value[at] for at in np.arange(len(value))[chosen].tolist()]
    return value


def _lines(found: Columns, chosen: Rows, numbers: Rows) -> list[Line]:
    path, same = found.line.path, found.line[5:]
    return [
        Line(text, path, number, time, outer, *same)
        for text, number, time, outer in zip(
            found.texts.some(chosen) if found.texts else (),
            numbers.tolist(),
            listed(picked(found.inner, chosen), len(chosen)),
            listed(picked(found.outer, chosen), len(chosen)),
            strict=True,
        )
    ]


def _records(
    rule: Rule | Block, values: Mapping[str, Any], lines: Sequence[Line], chosen: Rows
) -> list[Record]:
    """One record of each line."""
    columns = [listed(picked(value, chosen), len(chosen)) for value in values.values()]
    if not columns:
        return [made(rule, {}, line) for line in lines]
    names = tuple(values)
    rows = zip(*columns, strict=True)
    return [
        made(rule, dict(zip(names, row, strict=True)), line) for line, row in zip(lines, rows, strict=True)
    ]
