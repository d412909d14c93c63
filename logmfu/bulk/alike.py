"""Lines of one shape: which layout they have, and how they are found without looking for needles.

Whoever has looked at one line of a shape knows which needles all others have.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from logmfu.bulk.layout import Layout
from logmfu.bulk.uniform import SHAPE, shape

Bytes = npt.NDArray[np.uint8]
Rows = npt.NDArray[np.int64]
SHARE = 0.5
"""Share of the bytes of a block that lines of known lengths need for this to be done before the scanner."""
SAMPLE = 16
"""Every so many lines are looked at to estimate that."""
PART = 1 / 16
"""Part of the lines of one length that a shape must have, not to count as tried in vain."""
VAIN = 2
"""Shapes of one length that are tried in vain in a block before the rest is sorted by shape."""
_SHAPE = np.frombuffer(SHAPE, np.uint8)
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""Odd, so that no word is lost: 2 to the power of 64 by the golden ratio (Knuth, TAOCP 3, section 6.4)."""
FEW = 8
"""Lines of one length in a block below which a look at each does as well."""


class Variants:
    """The layouts of one shape: other ranks, other hosts."""

    def __init__(self, first: Layout, raw: bytes) -> None:
        self._layouts: dict[bytes, Layout] = {}
        self._fixed, self._positive, self.width = first.fixed, first.positive, first.width
        self._places = [at for start, end in self._fixed for at in range(start, end)]
        self.example = np.frombuffer(shape(raw), np.uint8)
        """The shape itself."""
        self._least = self.example.copy()
        """Of each byte of a line the least one."""
        self._above = np.where(self._least == ord("0"), 9, 0).astype(np.uint8)
        """How far above it others may be."""
        for at in self._positive:
            self._least[at], self._above[at] = ord("1"), 8
        self.add(first, raw)

    def __len__(self) -> int:
        return len(self._layouts)

    def add(self, layout: Layout, raw: bytes) -> bool:
        """Take a layout with one of its lines; False if it is no variant of the first."""
        alike = (layout.fixed, layout.positive) == (self._fixed, self._positive)
        if alike:
            self._layouts[self._key(raw)] = layout
        return alike

    def of(self, raw: bytes) -> Layout | None:
        """The layout of a line of the shape."""
        if any(raw.startswith(b"0", at) for at in self._positive):
            return None
        return self._layouts.get(self._key(raw))

    def find(self, table: Bytes) -> Iterator[tuple[Layout, npt.NDArray[np.bool_]]]:
        """Which rows of a table of bytes have which layout."""
        fits: npt.NDArray[np.bool_] = np.all(table - self._least <= self._above, axis=1)
        if not fits.any():
            return
        if not self._places:
            yield self._layouts[b""], fits
            return
        keys = np.ascontiguousarray(table[:, self._places]).view(f"V{len(self._places)}").ravel()
        for key, layout in self._layouts.items():
            mine = fits & (keys == np.void(key))
            if mine.any():
                yield layout, mine

    def _key(self, raw: bytes) -> bytes:
        return b"".join(raw[start:end] for start, end in self._fixed)


class Shapes:
    """All shapes that have layouts, by the length of their lines."""

    def __init__(self) -> None:
        self._by_width: dict[int, list[Variants]] = {}
        self._keyed: dict[tuple[int, int], list[Variants]] = {}
        self._known = np.zeros(1, dtype=bool)
        """Whether a shape has this length; the last entry stands for all greater ones."""

    def add(self, variants: Variants) -> None:
        """Take another one: it is the first to be tried from now on."""
        self._by_width.setdefault(variants.width, []).insert(0, variants)
        key = int(_keys(variants.example.reshape(1, -1))[0])
        self._keyed.setdefault((variants.width, key), []).append(variants)
        self._known = np.zeros(max(self._by_width) + 2, dtype=bool)
        self._known[list(self._by_width)] = True

    def many(self, feeds: Rows) -> bool:
        """Whether about half of a block is lines that may have a known shape, given where its lines end."""
        widths = np.diff(feeds, prepend=-1)[::SAMPLE] - 1
        return bool(widths[self._has(widths)].sum() > SHARE * widths.sum())

    def find(self, block: bytes, feeds: Rows, rows: Rows) -> Iterator[tuple[Layout, Rows, bytes]]:
        """Which of some rows have which layout, and their text without line feeds."""
        if not len(rows):
            return
        data = np.frombuffer(block, np.uint8)
        widths = feeds[rows] - np.where(rows > 0, feeds[rows - 1] + 1, 0)
        known = self._has(widths)
        rows, widths = rows[known], widths[known]
        for width in np.unique(widths).tolist():
            mine = rows[widths == width]
            if len(mine) >= FEW:
                yield from self._of_width(width, mine, _table(data, feeds, mine, width))

    def _has(self, widths: Rows) -> npt.NDArray[np.bool_]:
        return self._known[np.minimum(widths, len(self._known) - 1)]

    def _of_width(self, width: int, rows: Rows, table: Bytes) -> Iterator[tuple[Layout, Rows, bytes]]:
        several, vain = self._by_width[width], 0
        for variants in list(several):
            if vain == VAIN:
                yield from self._by_key(width, rows, table)
                return
            left = np.ones(len(rows), dtype=bool)
            for layout, mine in variants.find(table):
                left &= ~mine
                yield (
                    layout,
                    *((rows, table.tobytes()) if mine.all() else (rows[mine], table[mine].tobytes())),
                )
            taken = len(rows) - np.count_nonzero(left)
            if taken < PART * len(rows):
                vain += 1
            else:
                several.remove(variants)
                several.insert(
                    0, variants
                )  # numbers grow: what many had here, many will have in the next block
            if taken == len(rows):
                return
            if taken:
                rows, table = rows[left], table[left]

    def _by_key(self, width: int, rows: Rows, table: Bytes) -> Iterator[tuple[Layout, Rows, bytes]]:
        """The same where lines of one length have many shapes: each is compared with its own alone."""
        keys = _keys(table)
        order = np.argsort(keys, kind="stable")
        for mine in np.split(order, np.flatnonzero(np.diff(keys[order])) + 1):
            for variants in self._keyed.get((width, int(keys[mine[0]])), ()):
                for layout, fits in variants.find(table[mine]):
                    yield layout, rows[mine[fits]], table[mine[fits]].tobytes()


def _keys(table: Bytes) -> npt.NDArray[np.uint64]:
    """A number for each row that is the same for rows of the same shape, and seldom for others."""
    words = -(-table.shape[1] // 8)
    padded = np.zeros((len(table), 8 * words), dtype=np.uint8)
    padded[:, : table.shape[1]] = _SHAPE[table]
    factors = _FACTOR ** np.arange(1, words + 1, dtype=np.uint64)
    mixed: npt.NDArray[np.uint64] = (padded.view(np.uint64) * factors).sum(axis=1, dtype=np.uint64)
    return mixed


def _table(data: Bytes, feeds: Rows, rows: Rows, width: int) -> Bytes:
    """Lines of one length, a row each."""
    starts = feeds[rows] - width
    first, last = int(starts[0]), int(feeds[rows[-1]])
    if (last - first + 1) == len(rows) * (width + 1) and last < len(data):  # one behind the other
        return data[first : last + 1].reshape(len(rows), width + 1)[:, :width]
    windows: npt.NDArray[Any] = np.lib.stride_tricks.sliding_window_view(data, width)
    return windows[starts]
