"""Which lines of a unit have a layout, and what such a line is to the blocks that are open."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Set

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

    def rows_shown(self, row: int, shown: Set[str]) -> Set[str]:
        """The block, of those not ``shown`` yet, that a line is a row of where it is open."""
        new = (
            (kind.row_of, rows)
            for kind, rows in zip(self._kinds, self._rows, strict=True)
            if kind.row_of not in {"", *shown}
        )
        return {name for name, rows in new if row in rows}

    def kinds(self, shown: Set[str]) -> list[LineKind | None]:
        """The kind of each line, as far as it is known; not of rows of blocks that were not ``shown``."""
        if self._shown != shown:
            self._listed, self._shown = self._list(shown), set(shown)
        return self._listed

    def _list(self, shown: Set[str]) -> list[LineKind | None]:
        numbers = np.zeros(self._unit.count, dtype=np.int64)
        odd = [undated(group.layout, b"".join(group.text)) for group in self._unit.groups]
        odd += [set(found.odd) for found, _ in self._unit.regular]
        for number, (kind, rows, strange) in enumerate(zip(self._kinds, self._rows, odd, strict=True), 1):
            if not kind.row_of or kind.row_of in shown:
                numbers[rows] = number
                numbers[rows[list(strange)]] = 0
        kinds = np.array([None, *self._kinds], dtype=object)
        listed: list[LineKind | None] = kinds[numbers].tolist()
        return listed


def _of_layout(one: Layout) -> LineKind:
    return _kind(one.role, one.rule.name, one)


def _of_columns(one: Columns) -> LineKind:
    return _kind(one.role, one.rule, one)


def _kind(role: str, name: str, one: Layout | Columns) -> LineKind:
    return LineKind(one.line, one.strange, name if role == "row" else "", name if role == "header" else "")
