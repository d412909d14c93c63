"""The rows of one table while a log is read: dicts first, columns later, a value once where all rows have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

CHUNK_ROWS = 20_000
"""Rows kept as dicts before they become columns: bounds the memory of a million steps."""

Places = npt.NDArray[np.int64]
"""Line numbers, or places in the order of all lines of a log."""
Values = npt.NDArray[Any]


@dataclass(slots=True)
class _Part:
    """Some rows: an array for each column, or the one value that all rows have."""

    columns: dict[str, Any]
    places: Places


@dataclass(slots=True)
class Rows:
    """Rows of one table. Each has a place in the order of the log."""

    recent: list[dict[str, Any]] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    parts: list[_Part] = field(default_factory=list)

    def add(self, row: dict[str, Any], place: int = 0) -> None:
        """Keep one row."""
        self.recent.append(row)
        self.places.append(place)
        if len(self.recent) >= CHUNK_ROWS:
            self._flush()

    def add_columns(self, columns: Mapping[str, Any], places: Places) -> None:
        """Keep many rows; a value that is no array or list is that of every row."""
        if len(places):
            self.parts.append(_Part({name: _folded(values) for name, values in columns.items()}, places))

    def _flush(self) -> None:
        names = dict.fromkeys(name for row in self.recent for name in row)
        columns = {name: [row.get(name) for row in self.recent] for name in names}
        self.add_columns(columns, np.array(self.places, dtype=np.int64))
        self.recent, self.places = [], []

    def frame(self) -> pd.DataFrame:
        """All rows, in the order of the log; they are given away, column by column, to be held only once."""
        self._flush()
        parts, self.parts = self.parts, []
        names = dict.fromkeys(name for part in parts for name in part.columns)
        places = np.concatenate([part.places for part in parts]) if parts else np.empty(0, dtype=np.int64)
        order = None if np.all(places[1:] >= places[:-1]) else np.argsort(places, kind="stable")
        columns: dict[str, pd.Series] = {}
        for name in names:
            whole = _joined(parts, name, len(places))
            columns[name] = _series(whole if order is None else whole[order])
        return pd.DataFrame(columns, index=range(len(places)), copy=False)


def _folded(values: Any) -> Any:
    """One value for an array in which all are the same; NaN for None, so that it needs no column of objects."""
    if isinstance(values, list):
        values = _array(values)
    if not isinstance(values, np.ndarray):
        return np.nan if values is None else values
    first = values[0]
    if values.dtype == object:
        plain = first is None or type(first) is str
        same = plain and all(value == first for value in values.tolist())
        return _folded(first) if same else values
    alike = values == first if first == first else np.isnan(values)
    return first if bool(alike.all()) else values


def _array(values: Sequence[Any]) -> Values:
    """Numbers as such, everything else as it is."""
    column = pd.Series(values, dtype=None if len(values) else "float64")
    return column.to_numpy() if column.dtype.kind in "if" else np.array(pd.Series(values, dtype=object))


def _joined(parts: Sequence[_Part], name: str, length: int) -> Values:
    """A column of all parts, taken out of them; missing where a part has none."""
    pieces = [part.columns.pop(name, np.nan) for part in parts]
    whole = np.empty(length, dtype=_common([_kind(piece) for piece in pieces]))
    at = 0
    for index, part in enumerate(parts):
        whole[at : at + len(part.places)] = pieces[index]
        pieces[index] = None
        at += len(part.places)
    return whole


def _kind(piece: Any) -> str:
    """``i``, ``f``, or another letter for everything that is no number."""
    return str(np.asarray(piece).dtype.kind)


def _common(kinds: Sequence[str]) -> npt.DTypeLike:
    """The type that holds all values: one of numbers, else objects."""
    if set(kinds) - {"i", "f"}:
        return object
    return np.float64 if "f" in kinds else np.int64


def _series(values: Values) -> pd.Series:
    return pd.Series(values, dtype=values.dtype, copy=False)
