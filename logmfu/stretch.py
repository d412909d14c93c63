"""Many like lines between two others, as columns: what a parser may look at all at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from logmfu.records import Line, Record

Array = npt.NDArray[Any]


def listed(value: Any, count: int) -> list[Any]:
    """A column as a list: an array, a list, or the one value that all rows have."""
    if isinstance(value, np.ndarray):
        rows: list[Any] = value.tolist()
        return rows
    return value if isinstance(value, list) else [value] * count


@dataclass(slots=True)
class Part:
    """The lines of one layout in a stretch, one record each."""

    rule: str
    line: Line
    """A line of the layout: all but text, number and times is that of all."""
    numbers: Array
    """Line numbers, in order."""
    values: dict[str, Any]
    """Columns: an array or list, or the one value that all lines have."""
    times: Mapping[str, Any]
    """The columns ``inner`` and ``outer``; None where the lines have no such stamp."""

    def column(self, name: str) -> Array:
        """One column, with a value for each line."""
        value = self.times[name] if name in self.times else self.values.get(name)
        one = np.asarray(np.nan if value is None else value)
        return np.broadcast_to(one, len(self.numbers)) if one.ndim == 0 else one


@dataclass(slots=True)
class Stretch:
    """Lines one behind the other, but for lines that say nothing. Iteration gives their records, in order."""

    path: str
    parts: Sequence[Part]
    records: Callable[[], Iterator[Record]]

    def __iter__(self) -> Iterator[Record]:
        """Each record by itself."""
        return self.records()

    @property
    def rules(self) -> set[str]:
        """Names of the rules that gave the records."""
        return {part.rule for part in self.parts}

    @property
    def last(self) -> Part:
        """The part with the last line."""
        return max(self.parts, key=lambda part: part.numbers[-1])

    def figures(self, rule: str) -> dict[str, Any]:
        """The values of a rule's last record."""
        part = max((part for part in self.parts if part.rule == rule), key=lambda part: part.numbers[-1])
        return {name: part.column(name)[-1:].tolist()[0] for name in part.values}

    def column(self, rule: str, name: str) -> tuple[Array, Array]:
        """Line numbers and values of one column of a rule's records, in order."""
        parts = [part for part in self.parts if part.rule == rule]
        if not parts:
            return np.empty(0, dtype=np.int64), np.empty(0)
        numbers = np.concatenate([part.numbers for part in parts])
        values = np.concatenate([part.column(name) for part in parts])
        order = np.argsort(numbers, kind="stable")
        return numbers[order], values[order]

    def any(self, rule: str, names: Sequence[str], test: Callable[[Mapping[str, Array]], Any]) -> bool:
        """Whether a test of some columns, as far as a rule's lines have them, holds for any of its records."""
        with np.errstate(all="ignore"):
            return any(
                bool(np.any(test({name: part.column(name) for name in names if name in part.values})))
                for part in self.parts
                if part.rule == rule
            )

    def shift(self, rule: str, name: str, by: int) -> None:
        """Add a number to all values of a column."""
        for part in self.parts:
            if part.rule == rule:
                part.values[name] = part.values[name] + by
