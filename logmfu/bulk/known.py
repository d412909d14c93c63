"""Which lines of a unit have a layout, and what such a line is to the blocks that are open."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Set
from functools import cached_property

import numpy as np
import numpy.typing as npt

from logmfu.bulk.columns import Columns, undated
from logmfu.bulk.layout import Layout
from logmfu.bulk.units import Unit
from logmfu.parsing import LineKind

Rows = npt.NDArray[np.int64]


class Known:
    """The lines of one unit that have a layout."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._rows = [np.array(group.rows) for group in unit.groups] + [rows for _, rows in unit.regular]
        self._kinds = [_of_layout(group.layout) for group in unit.groups]
        self._kinds += [_of_columns(found) for found, _ in unit.regular]
        headers = [rows for kind, rows in zip(self._kinds, self._rows, strict=True) if kind.opens]
        self._headers: list[int] = np.sort(np.concatenate(headers)).tolist() if headers else []
        self._listed: list[LineKind | None] = []
        self._shown: Set[str] | None = None
        """What the list was made for."""

    def header(self, start: int, end: int) -> int:
        """The first header from ``start`` on; ``end`` if there is none before."""
        at = bisect_left(self._headers, start)
        return min(self._headers[at], end) if at < len(self._headers) else end

    def is_header(self, row: int) -> bool:
        """Whether a line opens a block, as far as its shape tells."""
        return self.header(row, row + 1) == row

    def row_of(self, row: int) -> str:
        """The block that a line is a row of where it is open, as far as its shape tells."""
        number = int(self._numbers[row])
        return self._kinds[number - 1].row_of if number else ""

    def kinds(self, shown: Set[str]) -> list[LineKind | None]:
        """The kind of each line, as far as it is known; not of rows of blocks that were not ``shown``."""
        if self._shown != shown:
            self._listed, self._shown = self._list(shown), set(shown)
        return self._listed

    @cached_property
    def _numbers(self) -> Rows:
        """Which of the kinds each line is of, counted from 1."""
        numbers = np.zeros(self._unit.count, dtype=np.int64)
        odd = [undated(group.layout, b"".join(group.text)) for group in self._unit.groups]
        odd += [set(found.odd) for found, _ in self._unit.regular]
        for number, (rows, strange) in enumerate(zip(self._rows, odd, strict=True), start=1):
            numbers[rows] = number
            numbers[rows[list(strange)]] = 0
        return numbers

    def _list(self, shown: Set[str]) -> list[LineKind | None]:
        known = [kind if not kind.row_of or kind.row_of in shown else None for kind in self._kinds]
        listed: list[LineKind | None] = np.array([None, *known], dtype=object)[self._numbers].tolist()
        return listed


def _of_layout(one: Layout) -> LineKind:
    return _kind(one.role, one.rule.name, one)


def _of_columns(one: Columns) -> LineKind:
    return _kind(one.role, one.rule, one)


def _kind(role: str, name: str, one: Layout | Columns) -> LineKind:
    return LineKind(one.line, one.strange, name if role == "row" else "", name if role == "header" else "")
