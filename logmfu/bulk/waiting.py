"""Step lines that wait to become columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from logmfu.bulk.layout import Layout


class Waiting:
    """Lines by layout, with a number for each."""

    def __init__(self) -> None:
        self._lines: dict[int, tuple[Layout, list[int], list[bytes]]] = {}
        self.size = 0
        """Bytes of the lines."""

    def hold(self, layout: Layout, numbers: Sequence[int], lines: Sequence[bytes]) -> None:
        """Keep lines of one layout."""
        _, held_numbers, held_lines = self._lines.setdefault(id(layout), (layout, [], []))
        held_numbers += numbers
        held_lines += lines
        self.size += len(lines) * layout.width

    def take(self) -> Iterator[tuple[Layout, list[int], list[bytes]]]:
        """Give everything out; nothing is held any more."""
        lines, self._lines, self.size = self._lines, {}, 0
        return (entry for entry in lines.values() if entry[1])
