"""Step lines of one layout, all at once: a table of bytes to columns of numbers.

A decimal of up to 15 digits and a power of ten up to 22 are exact as float64, so their quotient is the
float64 nearest to the printed number, as Python's ``float`` gives it (Clinger 1990, section 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from logmfu.bulk.layout import Cell, Layout, Number, Role, Stamp
from logmfu.records import Line

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]
ROWS = 16_384
"""Lines converted at once."""
_POWERS = 10.0 ** np.arange(23)
_UNREADABLE = object()
_MEMO = 1 << 16


@dataclass(slots=True)
class Columns:
    """Lines of one layout: values by column, and the lines that could not be read that way."""

    rule: str
    """Name of the rule or block."""
    role: Role
    strange: frozenset[str]
    """Names of the blocks that the lines are surely no part of."""
    line: Line
    """A line of the layout: its rank and host are those of all."""
    records: tuple[dict[str, Any], ...]
    """The values of each record that a line gives: an array or list, or the one value that all lines have."""
    inner: Floats | None
    outer: Floats | None
    odd: dict[int, bytes] = field(default_factory=dict)
    """Lines to be read one by one, by their position; their rows hold nothing."""
    replayed: bool = False
    """The records have to be looked at one by one."""
    texts: Texts | None = None
    """The lines, where records or a table need them."""

    @property
    def size(self) -> int:
        """Bytes it takes, about."""
        columns = [self.inner, self.outer, *(value for one in self.records for value in one.values())]
        arrays = sum(value.nbytes for value in columns if isinstance(value, np.ndarray))
        lists = sum(8 * len(value) for value in columns if isinstance(value, list))
        return arrays + lists + (len(self.texts.raw) if self.texts else 0)


@dataclass(slots=True)
class Texts:
    """Lines of one width; the text without its envelopes begins at ``prefix`` in each."""

    raw: bytes
    width: int
    prefix: int

    def some(self, chosen: npt.NDArray[np.int64]) -> list[str]:
        """The texts of some lines."""
        width, prefix, raw = self.width, self.prefix, self.raw
        return [raw[at + prefix : at + width].decode() for at in (chosen * width).tolist()]


def columns(layout: Layout, raw: bytes) -> Columns:
    """The columns of lines of one layout, which stand side by side without line feeds.

    Where all lines have the same number there is but that one.
    """
    size = ROWS * layout.width
    whole = _joined([_columns(layout, raw[at : at + size]) for at in range(0, len(raw), size)])
    whole.records = tuple({name: _folded(value) for name, value in one.items()} for one in whole.records)
    return whole


def _folded(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    bits = value.view(np.int64)  # zero and minus zero are equal, and not the same
    return value[0].item() if bool((bits == bits[0]).all()) else value


def _joined(parts: Sequence[Columns]) -> Columns:
    whole = parts[0]
    if len(parts) == 1:
        return whole
    for at, record in enumerate(whole.records):
        for name, first in record.items():
            pieces = [part.records[at][name] for part in parts]
            if isinstance(first, np.ndarray):
                record[name] = np.concatenate(pieces)
            elif isinstance(first, list):
                record[name] = [one for piece in pieces for one in piece]
    whole.inner, whole.outer = _times_of([p.inner for p in parts]), _times_of([p.outer for p in parts])
    whole.odd = {ROWS * at + row: raw for at, part in enumerate(parts) for row, raw in part.odd.items()}
    return whole


def _times_of(parts: Sequence[Floats | None]) -> Floats | None:
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if known else None


def _columns(layout: Layout, raw: bytes) -> Columns:
    width = layout.width
    digits = Digits(np.frombuffer(raw, np.uint8).reshape(-1, width))
    for cell in (cell for cells in layout.records for cell in cells):
        digits.want(*(cell.number.spans if cell.number else ()))
    for stamp in (layout.inner, layout.outer):
        if stamp:
            digits.want(*stamp.spans)
    read = digits.read()
    odd: set[int] = set()
    records = []
    for cells in layout.records:
        values: dict[str, Any] = dict(layout.constants)
        for cell in cells:
            value = (
                _numbers(cell.number, cell.scale, read) if cell.number else _texts(cell, raw, width, odd)
            )
            values.update(dict.fromkeys(cell.columns, value))
        records.append(values)
    inner, outer = (_times(stamp, read, odd) for stamp in (layout.inner, layout.outer))
    unread = {row: raw[row * width : (row + 1) * width] for row in sorted(odd)}
    return Columns(
        layout.rule.name, layout.role, layout.strange, layout.line, tuple(records), inner, outer, unread
    )


def undated(layout: Layout, raw: bytes) -> set[int]:
    """Lines of a layout whose stamp is an impossible date: it is no stamp, and they may be of another rank."""
    digits, odd = Digits(np.frombuffer(raw, np.uint8).reshape(-1, layout.width)), set[int]()
    stamps = [stamp for stamp in (layout.inner, layout.outer) if stamp]
    digits.want(*(span for stamp in stamps for span in stamp.spans))
    read = digits.read() if stamps else {}
    for stamp in stamps:
        _times(stamp, read, odd)
    return odd


class Digits:
    """Integers that stand at given places of every line."""

    def __init__(self, table: Bytes) -> None:
        self._table = table
        self._spans: dict[tuple[int, int], int] = {}
        self._width = 0

    def want(self, *spans: tuple[int, int]) -> None:
        """Ask for the integers in these spans, all of digits."""
        for span in spans:
            if span not in self._spans:
                self._spans[span] = self._width
                self._width += span[1] - span[0]

    def read(self) -> dict[tuple[int, int], Floats]:
        """The integers, by span."""
        places = [place for start, end in self._spans for place in range(start, end)]
        digits = np.ascontiguousarray(self._table[:, places].T) - ord("0")
        found = {}
        for (start, end), row in self._spans.items():
            number = digits[row].astype(np.int64)
            for digit in digits[row + 1 : row + end - start]:
                number *= 10
                number += digit
            found[start, end] = number.astype(np.float64)
        return found


def _numbers(number: Number, scale: float, read: dict[tuple[int, int], Floats]) -> npt.NDArray[Any]:
    decimals = number.decimals[1] - number.decimals[0]
    mantissa = read[number.digits]
    if decimals:
        mantissa = mantissa * _POWERS[decimals] + read[number.decimals]
    if number.negative:
        mantissa = -mantissa
    if number.whole:
        whole = mantissa.astype(np.int64)
        return whole * scale if scale != 1.0 else whole
    if number.exponent:
        value = _scaled(mantissa, read[number.exponent], number.shrinks, decimals)
    else:
        power = number.power - decimals
        value = mantissa / _POWERS[-power] if power < 0 else mantissa * _POWERS[power]
    return value * scale if scale != 1.0 else value


def _scaled(mantissa: Floats, exponent: Floats, shrinks: bool, decimals: int) -> Floats:
    """Mantissa times a power of ten; one by one where that is not exact."""
    power = (-exponent if shrinks else exponent).astype(np.int64) - decimals
    small = np.abs(power) <= 22
    factor = _POWERS[np.where(small, np.abs(power), 0)]
    out: Floats = np.where(power < 0, mantissa / factor, mantissa * factor)
    for row in np.flatnonzero(~small).tolist():
        out[row] = float(f"{mantissa[row]:.0f}e{int(power[row])}")  # minus zero keeps its sign
    return out


def _texts(cell: Cell, raw: bytes, width: int, odd: set[int]) -> Any:
    """Values of a field that is read by a function of its own, once for each text."""
    if cell.same:
        return _parsed(cell, raw[cell.start : cell.end])
    memo: dict[bytes, Any] = {}
    length = cell.end - cell.start
    out = []
    for row, start in enumerate(range(cell.start, len(raw), width)):
        text = raw[start : start + length]
        value = memo.get(text, memo)
        if value is memo:
            value = memo[text] = _parsed(cell, text)
            if len(memo) > _MEMO:
                memo.clear()
        if value is _UNREADABLE:
            odd.add(row)
            value = None
        out.append(value)
    return out


def _parsed(cell: Cell, text: bytes) -> Any:
    try:
        value = cell.parse(text.decode())
        return value * cell.scale if cell.scale != 1.0 else value
    except (ValueError, OverflowError):
        return _UNREADABLE


def _times(stamp: Stamp | None, read: dict[tuple[int, int], Floats], odd: set[int]) -> Floats | None:
    """Seconds since 1970 of a stamp; lines with an impossible date are odd."""
    if stamp is None:
        return None
    year, month, day, hour, minute, second = (read[span].astype(np.int64) for span in stamp.spans[:6])
    possible = (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1)
    months = (year - 1970).astype("datetime64[Y]").astype("datetime64[M]") + (
        np.where(possible, month, 1) - 1
    )
    days = months.astype("datetime64[D]") + (day - 1)
    possible &= (days.astype("datetime64[M]") == months) & (hour <= 23) & (minute <= 59) & (second <= 60)
    odd.update(np.flatnonzero(~possible).tolist())
    midnight = days.astype("datetime64[s]").astype(np.int64)
    fraction = np.zeros(len(days))
    if len(stamp.spans) == 7:
        start, end = stamp.spans[6]
        fraction = read[stamp.spans[6]] / 10.0 ** (end - start)
    times: Floats = (midnight + (hour * 3600 + minute * 60 + second)) + fraction
    return times
