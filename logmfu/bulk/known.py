"""Which lines of a unit have a layout, and what such a line means to the blocks that are open."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from logmfu.bulk.columns import undated
from logmfu.bulk.layout import Role
from logmfu.bulk.units import Unit
from logmfu.records import Line

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Mark:
    """What is known of the lines of one layout."""

    rule: str
    role: Role
    strange: frozenset[str]
    line: Line

    def passes(self, failures: Iterable[str], blocks: Iterable[str]) -> bool:
        """Whether it is known what such a line is to blocks that are open, without a look at it."""
        row_of = self.rule if self.role == "row" else None
        return all(name in self.strange for name in failures) and all(
            name in self.strange or name == row_of for name in blocks
        )


class Known:
    """The lines of one unit that have a layout."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._layouts = [(group.layout, np.array(group.rows)) for group in unit.groups]
        self._columns = unit.regular
        headers = [rows for one, rows in self._layouts if one.role == "header"]
        headers += [rows for one, rows in self._columns if one.role == "header"]
        self._headers: list[int] = np.sort(np.concatenate(headers)).tolist() if headers else []

    def header(self, start: int, end: int) -> int:
        """The first header from ``start`` on; ``end`` if there is none before."""
        at = bisect_left(self._headers, start)
        return min(self._headers[at], end) if at < len(self._headers) else end

    def __getitem__(self, row: int) -> Mark | None:
        """What is known of a line."""
        return self._marks[self._numbers[row]]

    @cached_property
    def _marks(self) -> list[Mark | None]:
        layouts = (Mark(one.rule.name, one.role, one.strange, one.line) for one, _ in self._layouts)
        columns = (Mark(one.rule, one.role, one.strange, one.line) for one, _ in self._columns)
        return [None, *layouts, *columns]

    @cached_property
    def _numbers(self) -> list[int]:
        numbers = np.zeros(self._unit.count, dtype=np.int64)
        texts = (b"".join(group.text) for group in self._unit.groups)
        odd = [undated(group.layout, text) for group, text in zip(self._unit.groups, texts, strict=True)]
        odd += [set(found.odd) for found, _ in self._columns]
        lines = [rows for _, rows in (*self._layouts, *self._columns)]
        for number, (rows, strange) in enumerate(zip(lines, odd, strict=True), start=1):
            numbers[rows] = number
            numbers[rows[list(strange)]] = 0
        listed: list[int] = numbers.tolist()
        return listed
