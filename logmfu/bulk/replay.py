"""Records of lines that were read as columns, made one by one in the order of the lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from logmfu.bulk.columns import Columns
from logmfu.parsing import Rule, made
from logmfu.records import Line, Record

Rows = npt.NDArray[np.int64]
Numbered = tuple[int, list[Record]]
Reread = Callable[[int, bytes], list[Record]]
"""Number and bytes of a line to its records, as the rules give them."""
STRETCH = 4096
"""Lines whose records are made at once."""


class Replay:
    """The records of some columns whose lines were kept."""

    def __init__(
        self, columns: Sequence[tuple[Columns, Rows]], rules: Mapping[str, Rule], reread: Reread, base: int
    ) -> None:
        self._columns = [(found, rows, np.argsort(rows, kind="stable")) for found, rows in columns]
        self._rules, self._reread, self._base = rules, reread, base
        self._records = self._all()
        self._next = next(self._records, None)

    def between(self, start: int, end: int) -> Iterator[Numbered]:
        """Records of rows from ``start`` to before ``end``; asked for in order, rows left out are gone."""
        while self._next is not None and self._next[0] < end:
            row, records = self._next
            if row >= start:
                yield row, records
            self._next = next(self._records, None)

    def _all(self) -> Iterator[Numbered]:
        """Rows with their records, in order."""
        every = np.sort(np.concatenate([np.empty(0, np.int64), *(rows for _, rows, _ in self._columns)]))
        for at in range(0, len(every), STRETCH):
            first, last = every[at], every[min(at + STRETCH, len(every)) - 1]
            stretch: list[Numbered] = []
            for found, rows, order in self._columns:
                low, high = np.searchsorted(rows, [first, last + 1], sorter=order)
                if low < high:
                    stretch += self._some(found, rows, order[low:high])
            yield from sorted(stretch, key=_row)

    def _some(self, found: Columns, rows: Rows, chosen: Rows) -> Iterator[Numbered]:
        """The rows ``chosen`` of one layout."""
        rule, numbers = self._rules[found.rule], rows[chosen].tolist()
        path, same = found.line.path, found.line[5:]
        lines = [
            Line(text, path, number, time, outer, *same)
            for text, number, time, outer in zip(
                found.texts.some(chosen) if found.texts else (),
                (rows[chosen] + self._base + 1).tolist(),
                _chosen(found.inner, chosen),
                _chosen(found.outer, chosen),
                strict=True,
            )
        ]
        records = [_records(rule, values, lines, chosen) for values in found.records]
        for at, number, *several in zip(chosen.tolist(), numbers, *records, strict=True):
            odd = found.odd.get(at)
            yield number, (several if odd is None else self._reread(self._base + number + 1, odd))


def _row(one: Numbered) -> int:
    return one[0]


def _records(rule: Rule, values: Mapping[str, Any], lines: Sequence[Line], chosen: Rows) -> list[Record]:
    """One record of each line."""
    columns = [_chosen(value, chosen) for value in values.values()]
    if not columns:
        return [made(rule, {}, line) for line in lines]
    names = tuple(values)
    return [
        made(rule, dict(zip(names, row, strict=True)), line)
        for line, *row in zip(lines, *columns, strict=True)
    ]


def _chosen(value: Any, chosen: Rows) -> list[Any]:
    if isinstance(value, np.ndarray):
        some: list[Any] = value[chosen].tolist()
        return some
    if isinstance(value, list):
        return [value[at] for at in chosen.tolist()]
    return [value] * len(chosen)
