"""A source to blocks of whole lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from logmfu.source import Reading
from logmfu.source.text import MAX_LINE

SIZE = 1 << 20
"""Bytes of a block; a longer line makes a longer block."""


@dataclass(slots=True)
class Broken:
    """Counts byte sequences that are no UTF-8, as the reference does while it decodes."""

    count: int = 0

    def look(self, block: bytes) -> None:
        """Take a block of whole characters into account."""
        if block.isascii():
            return
        try:
            block.decode()
        except UnicodeDecodeError:
            self.count += block.decode(errors="replace").count("\ufffd") - block.count(b"\xef\xbf\xbd")

    def note(self, reading: Reading) -> None:
        """Say how many there were."""
        if self.count:
            reading.note(f"{self.count} broken UTF-8 sequences replaced")


def blocks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Blocks that end with a line feed, but for the last.

    After a block without a line feed that is longer than a line may be, ``chunks`` goes on inside of its line.
    """
    held: list[bytes] = []
    length = 0
    for chunk in chunks:
        held.append(chunk)
        length += len(chunk)
        if length < SIZE:
            continue
        whole = b"".join(held)
        end = whole.rfind(b"\n") + 1
        if end:
            yield whole[:end]
        elif length > MAX_LINE:
            yield whole
            return
        held, length = [whole[end:]], length - end
    if length:
        yield b"".join(held)
