"""The rows of one table while a log is read: dicts first, then columns that grow in place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

CHUNK_ROWS = 20_000
"""Rows kept as dicts before they become columns: bounds the memory of a million steps."""
GROWTH = 1.25
"""Room a column takes when it is full, over what it needs."""

KEYS = ("path", "rule")
"""Columns of few texts, in the rows of every table: kept as categories."""

Places = npt.NDArray[np.int64]
"""Line numbers, or places in the order of all lines of a log."""
Values = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]


class Growing:
    """One column: a single value as long as all rows have it, an array from then on.

    Integers stay such while nothing is missing; whatever is no number makes a column of objects.
    """

    __slots__ = ("_kinds", "_length", "_value", "_values")

    def __init__(self, missing: int = 0) -> None:
        self._value: Any = np.nan
        self._values: Values | None = None
        self._length = missing
        self._kinds = {"f"} if missing else set()

    def extend(self, values: Any, count: int) -> None:
        """Add rows: an array, or the one value that all of them have."""
        end = self._length + count
        self._kinds.add(np.asarray(values).dtype.kind)
        if self._still_one(values):
            self._value = values
        else:
            self._room(end)[self._length : end] = _shared(values)
        self._length = end

    def _still_one(self, values: Any) -> bool:
        """Whether the column stays a single value."""
        if self._values is not None or isinstance(values, np.ndarray):
            return False
        return not self._length or repr(values) == repr(self._value)  # zero and minus zero are equal

    def take(self, order: npt.NDArray[np.intp] | None = None) -> Values:
        """All values in an order, a number that all rows have without room for each; nothing is kept."""
        if self._values is None and self._length > 1 and self._dtype is not object:
            return np.broadcast_to(np.array(self._value, dtype=self._dtype), self._length)
        values, self._values = self._room(self._length), None
        if order is not None:
            return values[order]
        values.resize(self._length, refcheck=False)
        return values

    def categories(self, order: npt.NDArray[np.intp] | None) -> pd.Categorical:
        """All values in an order, each text of them held once; nothing is kept."""
        if self._values is None and self._length:
            one = np.zeros(self._length, dtype=np.int8), np.broadcast_to(_shared(self._value), 1)
            return _categories(*one)
        return categories(self.take(order))

    @property
    def _dtype(self) -> npt.DTypeLike:
        if self._kinds - {"i", "f"}:
            return object
        return np.float64 if "f" in self._kinds else np.int64

    def _room(self, needed: int) -> Values:
        """The array, with room for this many rows and of a type that holds them."""
        if self._values is None:
            self._values = np.empty(needed, dtype=self._dtype)
            if self._length:
                self._values[: self._length] = _shared(self._value)
        elif self._values.dtype != self._dtype:
            self._values = self._values.astype(self._dtype)
        if len(self._values) < needed:
            self._values.resize(int(needed * GROWTH), refcheck=False)
        return self._values


def _shared(value: Any) -> Any:
    """A text as all rows can have it: numpy would make a new one for each."""
    if not isinstance(value, str):
        return value
    one = np.empty((), dtype=object)
    one[()] = value
    return one


@dataclass(slots=True)
class Rows:
    """Rows of one table. Each has a place in the order of the log."""

    _recent: list[dict[str, Any]] = field(default_factory=list)
    _recent_places: list[int] = field(default_factory=list)
    _columns: dict[str, Growing] = field(default_factory=dict)
    _places: Growing = field(default_factory=Growing)
    _length: int = 0

    def add(self, row: dict[str, Any], place: int = 0) -> None:
        """Keep one row."""
        if not row.keys() <= self._columns.keys():
            self._name(row)
        self._recent.append(row)
        self._recent_places.append(place)
        if len(self._recent) >= CHUNK_ROWS:
            self._flush()

    def add_columns(self, columns: Mapping[str, Any], places: Places) -> None:
        """Keep many rows; a value that is no array or list is that of every row, and None that of none."""
        count = len(places)
        if not count:
            return
        self._name(columns)
        for name, column in self._columns.items():
            values = columns.get(name)
            if isinstance(values, list):
                values = _folded(values)
            column.extend(np.nan if values is None else values, count)
        self._places.extend(places, count)
        self._length += count

    def _name(self, names: Iterable[str]) -> None:
        """Columns stand in the order in which they were first seen."""
        for name in names:
            self._columns.setdefault(name, Growing(missing=self._length))

    def _flush(self) -> None:
        names = dict.fromkeys(name for row in self._recent for name in row)
        columns = {name: [row.get(name) for row in self._recent] for name in names}
        self.add_columns(columns, np.array(self._recent_places, dtype=np.int64))
        self._recent, self._recent_places = [], []

    def frame(self) -> pd.DataFrame:
        """All rows, in the order of the log; they are given away."""
        self._flush()
        places = self._places.take()
        order = None if np.all(places[1:] >= places[:-1]) else np.argsort(places, kind="stable")
        columns: dict[str, pd.Series] = {}
        for name, column in self._columns.items():
            columns[name] = _series(column.categories(order) if name in KEYS else column.take(order))
        return pd.DataFrame(columns, index=range(self._length), copy=False)


def _folded(values: Sequence[Any]) -> Any:
    """One value for a list in which all are the same."""
    first = values[0]
    if first is None and all(value is None for value in values):
        return None
    plain = isinstance(first, str | int | float) and not isinstance(first, bool) and first != 0.0
    if plain and all(type(value) is type(first) and value == first for value in values):
        return first
    column = pd.Series(values)
    if column.dtype.kind in "if":
        return column.to_numpy()
    objects = pd.Series(values, dtype=object)
    return objects.where(objects.notna(), np.nan).to_numpy(copy=True)


def categories(values: Values) -> pd.Categorical:
    """Few texts as categories."""
    return _categories(*pd.factorize(values))


def _categories(codes: Values, texts: Values) -> pd.Categorical:
    """The texts stay objects: all rows of a table refer to the same ones."""
    return pd.Categorical.from_codes(codes, pd.Index(texts, dtype=object))


def numbers(frame: pd.DataFrame, name: str) -> Floats:
    """A column as floats, NaN where it holds no number; not to be written to."""
    column = frame[name]
    if column.dtype.kind not in "if":
        column = pd.to_numeric(column, errors="coerce")
    return column.to_numpy(dtype=np.float64)


def _series(values: Values | pd.Categorical) -> pd.Series:
    return pd.Series(values, dtype=values.dtype, copy=False)
