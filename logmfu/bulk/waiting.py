"""Lines of known layouts that wait to become columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from logmfu.bulk.layout import Layout


class Waiting:
    """Lines by layout, with a number for each."""

    def __init__(self) -> None:
        self._lines: dict[int, tuple[Layout, list[int], list[bytes]]] = {}
        self.size = 0
        """Bytes of the lines."""

    def hold(self, layout: Layout, numbers: Sequence[int], text: Sequence[bytes]) -> None:
        """Keep lines of one layout: their text in pieces of one or several."""
        _, held_numbers, held_text = self._lines.setdefault(id(layout), (layout, [], []))
        held_numbers += numbers
        held_text += text
        self.size += len(numbers) * layout.width

    def take(self) -> Iterator[tuple[Layout, list[int], bytes]]:
        """Give everything out; nothing is held any more."""
        lines, self._lines, self.size = self._lines, {}, 0
        return ((layout, numbers, b"".join(text)) for layout, numbers, text in lines.values() if numbers)
