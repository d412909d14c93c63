"""Bytes to UTF-8 text and numbered lines, whatever wrote them and however it died."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from logmfu.source.reading import Reading

MAX_LINE = 64 << 20
"""Longest line in bytes that is handed out in one piece."""

_BOMS = (  # the four-byte marks first: one of them begins like a two-byte one
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_HOLE = 8
"""So many NUL bytes in a row are a hole a crashed node left: text on either side does not belong
together. Fewer are dropped (every second byte is NUL where UTF-16 was appended to another encoding)."""
_HOLES = re.compile(rb"\0{%d,}" % _HOLE)
_SEPARATOR = re.compile(rb"[\r\n]")
_WIDE = re.compile(rb"([\t\n\r -~])\0(?!\0)")
_NEVER_IN_TEXT = bytes(set(range(32)) - set(b"\a\b\t\n\v\f\r\x1b")) + b"\x7f"
_BINARY_SHARE = 0.04
"""More control characters than this are not text: random bytes have 0.098, logs have next to none."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """How the characters of an input are written."""

    name: str = "utf-8"
    bom: int = 0
    """Length in bytes of the mark at the beginning."""


UTF8 = Encoding()


def encoding_of(head: bytes) -> Encoding:
    """The encoding the first bytes show by a mark, or by where their NUL bytes are."""
    for mark, name in _BOMS:
        if head.startswith(mark):
            return Encoding(name, len(mark))
    for name, low, high in (("utf-16-le", 0, 1), ("utf-16-be", 1, 0)):
        # the start too: UTF-16 may have been appended to a few lines in another encoding
        if all(_nuls(part, low) < 0.05 and _nuls(part, high) > 0.5 for part in (head, head[:8])):
            return Encoding(name)
    return UTF8


def _nuls(head: bytes, first: int) -> float:
    """Share of NUL bytes among every second one, from ``first`` on."""
    every_second = head[first::2]
    return every_second.count(0) / max(len(every_second), 1)


def is_binary(head: bytes, encoding: Encoding) -> bool:
    """Whether the first bytes hold too many control characters for a text; NUL holes do not count."""
    text = head[encoding.bom :]
    if encoding.name != "utf-8":
        text = text.decode(encoding.name, errors="replace").encode()
    text = _WIDE.sub(rb"\1", _HOLES.sub(b"", text))
    junk = len(text) - len(text.translate(None, _NEVER_IN_TEXT))
    return junk > _BINARY_SHARE * len(text)


def utf8(blocks: Iterable[bytes], encoding: Encoding, reading: Reading) -> Iterator[bytes]:
    """The text as UTF-8, without byte order mark and NUL bytes, in blocks that are not empty.

    A hole of NUL bytes becomes a carriage return, so that no number is pasted together across it.
    """
    reading.encoding = encoding.name
    text = _without_mark(blocks, encoding.bom)
    if encoding.name != "utf-8":
        text = _transcoded(text, encoding.name, reading)
    for block in _without_nuls(text, reading):
        if block:
            reading.ends_with_newline = block.endswith(b"\n")
            yield block


def _without_mark(blocks: Iterable[bytes], length: int) -> Iterator[bytes]:
    for block in blocks:
        yield block[length:] if length else block
        length -= min(length, len(block))


def _transcoded(blocks: Iterable[bytes], name: str, reading: Reading) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(name)(errors="replace")
    broken = 0
    for block in blocks:
        text = decoder.decode(block)
        broken += text.count("\ufffd")
        yield text.encode()
    text = decoder.decode(b"", True)
    _note(reading, broken + text.count("\ufffd"), f"broken {name} sequences replaced")
    yield text.encode()


def _without_nuls(blocks: Iterable[bytes], reading: Reading) -> Iterator[bytes]:
    dropped = waiting = 0  # NULs at the end of a block wait for the next: the hole may go on
    for block in blocks:
        if not waiting and b"\0" not in block:
            yield block
            continue
        # a hole may be gigabytes (a log truncated under its writer): comparing is 20 times faster
        kept = b"" if block == bytes(len(block)) else block.rstrip(b"\0")
        dropped += block.count(0) if kept else len(block)
        if kept:
            yield _HOLES.sub(b"\r", bytes(min(waiting, _HOLE)) + kept).replace(b"\0", b"")
            waiting = 0
        waiting += len(block) - len(kept)
    _note(reading, dropped, "NUL bytes dropped")


def _note(reading: Reading, count: int, what: str) -> None:
    if count:
        reading.notes.append(f"{count} {what}")


def counted(blocks: Iterable[bytes], reading: Reading) -> Iterator[bytes]:
    """The same blocks, with their lines counted."""
    for block in blocks:
        feeds = block.count(b"\n")
        reading.lines += feeds
        yield block
    reading.lines += not reading.ends_with_newline


def numbered(blocks: Iterable[bytes], reading: Reading, *, number: int = 1) -> Iterator[tuple[int, str]]:
    """Physical line number and text, for each piece between line feeds and carriage returns.

    The pieces of a line share its number; empty ones are left out unless all of the line is empty.
    ``number`` is that of the first line.
    """
    tally = _Tally()
    begun = handed = False  # whether the current line was seen in part, and a piece of it handed out
    for text in _decoded(_whole_pieces(blocks, tally), tally):
        lines = text.split("\n")
        rest = lines.pop()
        reading.lines = number - 1 + len(lines) + bool(rest or (begun and not lines))
        if begun or "\r" in text:
            yield from _pieces(lines, number, handed)
        else:
            yield from enumerate(lines, number)
        if lines:
            number += len(lines)
            begun = handed = False
        for piece in filter(None, rest.split("\r")):
            yield number, piece
            handed = True
        begun = begun or bool(rest)
    if begun and not handed:
        yield number, ""
    _note(reading, tally.broken, "broken UTF-8 sequences replaced")
    _note(reading, tally.cuts, f"cuts in lines longer than {MAX_LINE >> 20} MiB")


@dataclass(slots=True)
class _Tally:
    broken: int = 0
    cuts: int = 0


def _pieces(lines: Iterable[str], number: int, handed: bool) -> Iterator[tuple[int, str]]:
    for each, line in enumerate(lines, number):
        pieces = [piece for piece in line.split("\r") if piece]
        if not pieces and not handed:
            yield each, ""
        for piece in pieces:
            yield each, piece
        handed = False


def _whole_pieces(blocks: Iterable[bytes], tally: _Tally) -> Iterator[bytes]:
    """Blocks that end behind a line feed or carriage return, at a cut in what is too long, or at the end."""
    held: list[bytes] = []
    length = 0
    for block in blocks:
        end = max(block.rfind(b"\n"), block.rfind(b"\r")) + 1
        if end:
            yield from _cut(b"".join((*held, block[:end])), tally)
            held, length = [], 0
        held.append(block[end:])
        length += len(block) - end
        if length > MAX_LINE:
            *parts, rest = _cut(b"".join(held), tally)
            yield from parts
            held, length = [rest], len(rest)
    yield from _cut(b"".join(held), tally)


def _cut(block: bytes, tally: _Tally) -> Iterator[bytes]:
    """The block, what stands before its first line feed or carriage return cut if it is too long."""
    start = 0
    if len(block) > MAX_LINE:
        first = _SEPARATOR.search(block)
        end = first.start() if first else len(block)
        while end - start > MAX_LINE:
            stop = _character_border(block, start + MAX_LINE)
            tally.cuts += 1
            yield block[start:stop]
            start = stop
    if start < len(block):
        yield block[start:]


def _character_border(block: bytes, position: int) -> int:
    """The start of the character the position is in: at most three bytes before it."""
    for border in range(position, position - 4, -1):
        if block[border] & 0xC0 != 0x80:
            return border
    return position


def _decoded(blocks: Iterable[bytes], tally: _Tally) -> Iterator[str]:
    """The text of blocks, carriage returns before line feeds taken off."""
    for block in blocks:
        try:
            text = block.decode()
        except UnicodeDecodeError:
            text = block.decode(errors="replace")
            tally.broken += text.count("\ufffd") - block.count(b"\xef\xbf\xbd")
        yield text.replace("\r\n", "\n") if "\r" in text else text
