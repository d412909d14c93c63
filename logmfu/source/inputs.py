"""One input, and how to tell by its first bytes what it is."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from logmfu.errors import SourceError
from logmfu.source.compression import Codec, checked, unpacked
from logmfu.source.raw import BLOCK, FilePart, Pipe
from logmfu.source.reading import Reading
from logmfu.source.text import UTF8, Encoding, counted, numbered, utf8

_HEAD = 1 << 16


@dataclass(slots=True)
class Source:
    """One log: chunks of UTF-8 or numbered lines, as often as wanted (a pipe: once).

    Each pass starts a new ``reading``. Files are read to the end they had when they were opened.
    """

    path: str
    """The input as shown to people: ``run.log``, ``-``, ``logs.zip!run.log``."""
    place: FilePart | Pipe
    codecs: tuple[Codec, ...] = ()
    encoding: Encoding = UTF8
    crc: int | None = None
    notes: list[str] = field(default_factory=list)
    """What was noticed before the first byte was read; every ``reading`` starts with it."""
    progress: Callable[[int], None] | None = None
    """Called with the number of bytes just taken from the file, so that they add up to ``size``."""
    reading: Reading = field(default_factory=Reading)
    memo: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """What later stages found out about this input and will want again."""

    def __post_init__(self) -> None:
        self.reading = self._new_reading()

    @property
    def size(self) -> int | None:
        """Bytes on disk; ``None`` for a pipe."""
        return self.place.size

    @property
    def mtime(self) -> float | None:
        """Last change, in seconds since 1970 UTC; ``None`` for a pipe."""
        return self.place.mtime

    @property
    def splittable(self) -> bool:
        """Whether ``range`` works: a plain UTF-8 file without a checksum over the whole of it."""
        plain = isinstance(self.place, FilePart) and not self.codecs and self.crc is None
        return plain and self.encoding.name == "utf-8"

    @property
    def separate(self) -> bool:
        """Whether another process can open it: a file, or a part of one, as it lies on disk."""
        return isinstance(self.place, FilePart) and self.place.spool is None

    def chunks(self, size: int = BLOCK, *, count: bool = True) -> Iterator[bytes]:
        """The text as UTF-8 in blocks of any length around ``size``, without NULs and mark.

        Without ``count`` whoever reads has to fill in ``reading.lines``. Raises ``SourceError`` when the file went away, or a pipe was read before.
        """
        self.reading = reading = self._new_reading()
        text = self._text(reading, size)
        return counted(text, reading) if count else text

    def lines(self) -> Iterator[tuple[int, str]]:
        """Physical line number from 1 and text; pieces between carriage returns share a number.

        Raises ``SourceError`` when the file went away, or a pipe was read before.
        """
        self.reading = reading = self._new_reading()
        return numbered(self._text(reading, BLOCK), reading)

    def head(self, max_bytes: int = BLOCK) -> list[tuple[int, str]]:
        """The lines that end within the first ``max_bytes`` of text (at least the start of one).

        What is taken from a pipe for that is kept for the full pass; ``reading`` stays as it is.
        """
        reading = Reading()
        text = b"".join(self._first(reading, max_bytes))
        if len(text) >= max_bytes:
            text = text[:max_bytes]
            text = text[: text.rfind(b"\n") + 1] or text
        return list(numbered([text], reading))

    def range(self, start: int, end: int, size: int = BLOCK, *, count: bool = True) -> Iterator[bytes]:
        """As ``chunks``, of the lines whose first byte lies in ``start`` to ``end`` of the file.

        Ranges that cover the file without overlap give every line once. Each starts a ``reading``
        of its own. Raises ``SourceError`` if the source is not ``splittable``.
        """
        if not self.splittable or not isinstance(self.place, FilePart):
            raise SourceError(f"{self.path} cannot be read in parts", facts=["it is no plain UTF-8 file"])
        first, last = (_line_start(self.place, position) for position in (start, max(start, end)))
        self.reading = reading = self._new_reading()
        encoding = Encoding("utf-8", self.encoding.bom if first == 0 else 0)
        blocks = self._watched(self.place.part(first, last).blocks(reading, size))
        text = utf8(blocks, encoding, reading)
        return counted(text, reading) if count else text

    def _new_reading(self) -> Reading:
        return Reading(notes=list(self.notes), encoding=self.encoding.name)

    def _first(self, reading: Reading, max_bytes: int) -> Iterator[bytes]:
        taken = 0
        with closing(self._text(reading, _HEAD, peek=True)) as blocks:
            for block in blocks:
                yield block
                taken += len(block)
                if taken >= max_bytes:
                    return

    def _text(self, reading: Reading, size: int, *, peek: bool = False) -> Generator[bytes]:
        raw = self.place.blocks(reading, size, peek=peek)
        content = unpacked(raw if peek else self._watched(raw), self.codecs, reading, size)
        if self.crc is not None:
            content = checked(content, self.crc, reading)
        yield from utf8(content, self.encoding, reading)

    def _watched(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        for block in blocks:
            if self.progress:
                self.progress(len(block))
            yield block


def _line_start(part: FilePart, position: int) -> int:
    """Offset of the first line that starts at ``position`` or after it."""
    if position <= 0:
        return 0
    start = position - 1
    for block in part.part(min(start, part.size), part.size).blocks(Reading(), _HEAD):
        found = block.find(b"\n")
        if found >= 0:
            return start + found + 1
        start += len(block)
    return part.size
