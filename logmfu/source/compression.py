"""Compressed streams, told by their first bytes and read up to where they end or break.

Magic numbers: RFC 1952 (gzip), RFC 8878 (zstd, and the skippable frames it shares with lz4),
the bzip2, xz and lz4 frame format descriptions, APPNOTE.TXT of PKWARE (zip).
"""

from __future__ import annotations

import bz2
import lzma
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from logmfu.source.reading import Reading

_PIECE = 1 << 12
"""Compressed bytes given to a decompressor at once. When a stream is damaged, what was decoded of
the last piece is lost, and a hostile piece expands to at most a few MB with ``_LIMIT``."""
_LIMIT = 1 << 18


class Engine(Protocol):
    """What the decompressors of zlib, bz2, lzma, lz4 and zstd have in common."""

    @property
    def eof(self) -> bool:
        """Whether the end of the stream was reached."""

    @property
    def unused_data(self) -> bytes | None:
        """What was given after the end of the stream."""

    def decompress(self, data: bytes, limit: int, /) -> bytes:
        """The next bytes, about ``limit`` of them at most."""


@dataclass(frozen=True, slots=True)
class Codec:
    """One compression format."""

    name: str
    engine: Callable[[], Engine]
    limit: int
    many: bool = True
    """Whether several streams may follow each other."""


def _lz4() -> Engine:
    from lz4.frame import LZ4FrameDecompressor

    engine: Engine = LZ4FrameDecompressor()
    return engine


def _zstd() -> Engine:
    if sys.version_info >= (3, 14):
        from compression.zstd import ZstdDecompressor
    else:
        from backports.zstd import ZstdDecompressor
    return ZstdDecompressor()


# zlib and lz4 expand by at most 1032 and 255 times, so a piece needs no limit (0 and -1 say so):
# zlib has no needs_input to tell of more to come, lz4 gives a wrong one when there is a limit.
GZIP = Codec("gzip", partial(zlib.decompressobj, 31), 0)
DEFLATE = Codec("deflate", partial(zlib.decompressobj, -15), 0, many=False)
BZIP2 = Codec("bzip2", bz2.BZ2Decompressor, _LIMIT)
XZ = Codec("xz", lzma.LZMADecompressor, _LIMIT)
ZSTD = Codec("zstd", _zstd, _LIMIT)
LZ4 = Codec("lz4", _lz4, -1)

_MAGIC = (
    (b"\x1f\x8b\x08", GZIP),
    *(
        (b"BZh%d" % level + block, BZIP2)
        for level in range(1, 10)
        for block in (b"1AY&SY", b"\x17rE8P\x90")
    ),
    (b"\xfd7zXZ\0", XZ),
    (b"\x28\xb5\x2f\xfd", ZSTD),
    (b"\x04\x22\x4d\x18", LZ4),
)
ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
FOREIGN = (
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"\x1f\x9d", "a file of the old compress program (.Z)"),
    (b"\x02\x21\x4c\x18", "an lz4 file in the legacy format"),
)
"""Compressed formats that are not read, and what to call them."""


def codec_of(head: bytes) -> Codec | None:
    """The compression whose mark the first bytes carry."""
    start = _after_skippable(head)
    # two bytes of a mark and then the end: a stream cut inside the mark
    return next(
        (
            codec
            for magic, codec in _MAGIC
            if start.startswith(magic) or (len(head) > 1 and magic.startswith(head))
        ),
        None,
    )


def _after_skippable(head: bytes) -> bytes:
    """What follows skippable frames (pzstd writes one first); they carry no data."""
    while head[1:4] == b"\x2a\x4d\x18" and head[0] & 0xF0 == 0x50:
        head = head[8 + int.from_bytes(head[4:8], "little") :]
    return head


def decompressed(blocks: Iterable[bytes], codec: Codec, reading: Reading) -> Iterator[bytes]:
    """The content of all streams that follow each other; a cut or damage goes to ``reading``."""
    failures = _failures(codec)
    engine: Engine | None = None
    fed = streams = produced = 0
    for data in _pieces(blocks):
        fed += len(data)
        while data or (engine and not getattr(engine, "needs_input", True)):
            if engine is None:
                data = data.lstrip(b"\0")  # padding between streams
                if not data:
                    break
                engine, produced = codec.engine(), 0
            try:
                out = engine.decompress(data, codec.limit)
            except failures as error:
                _broken(reading, codec, fed, str(error), trailing=bool(streams) and not produced)
                return
            produced += len(out)
            if out:
                yield out
            data = b""
            if engine.eof:
                data, engine, streams = engine.unused_data or b"", None, streams + 1
                if not codec.many:
                    return
    if (engine or not streams) and not reading.truncated:
        reading.truncated = f"the {codec.name} stream ends early, at byte {fed}"


def _broken(reading: Reading, codec: Codec, fed: int, why: str, *, trailing: bool) -> None:
    if trailing:
        reading.notes.append(f"what follows the {codec.name} data, from about byte {fed}, was not read")
    else:
        reading.truncated = f"the {codec.name} stream is damaged near byte {fed} ({why})"


def _failures(codec: Codec) -> tuple[type[Exception], ...]:
    """What a decompressor raises on damaged data."""
    common = (zlib.error, lzma.LZMAError, OSError, EOFError, RuntimeError, ValueError)
    if codec.name != ZSTD.name:
        return common
    if sys.version_info >= (3, 14):
        from compression.zstd import ZstdError
    else:
        from backports.zstd import ZstdError
    return (*common, ZstdError)


def _pieces(blocks: Iterable[bytes]) -> Iterator[bytes]:
    for block in blocks:
        for start in range(0, len(block), _PIECE):
            yield block[start : start + _PIECE]


def checked(blocks: Iterable[bytes], crc: int, reading: Reading) -> Iterator[bytes]:
    """The same blocks; notes it when they end and do not have that CRC-32."""
    found = 0
    for block in blocks:
        found = zlib.crc32(block, found)
        yield block
    if found != crc and not reading.truncated:
        reading.notes.append("the checksum does not match: some of this text is damaged")


def gathered(parts: Iterable[bytes], size: int) -> Iterator[bytes]:
    """The same bytes in blocks of at least ``size``, but for the last."""
    held: list[bytes] = []
    length = 0
    for part in parts:
        held.append(part)
        length += len(part)
        if length >= size:
            yield b"".join(held)
            held, length = [], 0
    if held:
        yield b"".join(held)


def unpacked(
    blocks: Iterator[bytes], codecs: tuple[Codec, ...], reading: Reading, size: int
) -> Iterator[bytes]:
    """The bytes with all compressions undone, outermost first."""
    for codec in codecs:
        blocks = gathered(decompressed(blocks, codec, reading), size)
    return blocks
