"""Zip archives: which members there are and where their bytes lie.

An archive that was cut off has lost the directory at its end; its members are then found by the
headers in front of them (APPNOTE.TXT of PKWARE, sections 4.3.7 and 4.3.9).
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from logmfu.errors import SourceError
from logmfu.source.compression import BZIP2, DEFLATE, XZ, ZSTD, Codec
from logmfu.source.raw import BLOCK, FilePart
from logmfu.source.reading import Reading

_HEADER = struct.Struct("<4s5H3I2H")
_MARK = b"PK\x03\x04"
_ENCRYPTED, _SIZE_BEHIND, _UTF8_NAME = 0x1, 0x8, 0x800
_METHODS: dict[int, tuple[Codec, ...]] = {0: (), 8: (DEFLATE,), 12: (BZIP2,), 93: (ZSTD,), 95: (XZ,)}


@dataclass(frozen=True, slots=True)
class Member:
    """One file in a zip archive."""

    name: str
    place: FilePart
    method: int
    encrypted: bool
    crc: int | None

    @property
    def codecs(self) -> tuple[Codec, ...]:
        """How to decompress it. Raises ``SourceError`` if that is not known or needs a password."""
        if self.encrypted:
            raise SourceError(
                f"{self.place.shown} is encrypted", hint="unpack the archive with its password first"
            )
        if self.method not in _METHODS:
            raise SourceError(
                f"{self.place.shown} is compressed with zip method {self.method}", hint="unpack it first"
            )
        return _METHODS[self.method]


def members(archive: FilePart) -> tuple[list[Member], str]:
    """The files in the archive, and a note when its directory is missing."""
    try:
        with archive.open() as file, zipfile.ZipFile(file) as opened:
            listed = [info for info in opened.infolist() if not info.is_dir()]
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError, struct.error):
        note = (
            f"{archive.shown} has no directory at its end (cut off?): members were found by their headers"
        )
        return list(_scanned(archive)), note
    return [_located(archive, info) for info in listed], ""


def _located(archive: FilePart, info: zipfile.ZipInfo) -> Member:
    header = _bytes_at(archive, info.header_offset, _HEADER.size)
    if len(header) < _HEADER.size or not header.startswith(_MARK):
        raise SourceError(
            f"{archive.shown} is damaged", facts=[f"no member where {info.filename} should begin"]
        )
    *_, name_length, extra_length = _HEADER.unpack(header)
    start = info.header_offset + _HEADER.size + name_length + extra_length
    place = archive.part(start, start + info.compress_size, _shown(archive, info.filename))
    encrypted = bool(info.flag_bits & _ENCRYPTED)
    return Member(info.filename, place, info.compress_type, encrypted, info.CRC)


def _scanned(archive: FilePart) -> Iterator[Member]:
    """Members in the order of their headers, the last one perhaps not complete."""
    position: int | None = 0
    while position is not None:
        header = _bytes_at(archive, position, _HEADER.size)
        if len(header) < _HEADER.size or not header.startswith(_MARK):
            return
        _, _, flags, method, _, _, crc, packed, _, name_length, extra_length = _HEADER.unpack(header)
        raw_name = _bytes_at(archive, position + _HEADER.size, name_length)
        name = raw_name.decode("utf-8" if flags & _UTF8_NAME else "cp437", errors="replace")
        start = position + _HEADER.size + name_length + extra_length
        known = not flags & _SIZE_BEHIND and packed != 0xFFFFFFFF
        end = start + packed if known else archive.size
        place = archive.part(start, end, _shown(archive, name))
        if not name.endswith("/"):
            yield Member(name, place, method, bool(flags & _ENCRYPTED), crc if known else None)
        position = end if known else _end_of_deflate(archive, start, method)


def _end_of_deflate(archive: FilePart, start: int, method: int) -> int | None:
    """Where the next header begins behind a member that does not say how long it is."""
    if method != zipfile.ZIP_DEFLATED:
        return None
    engine, taken = zlib.decompressobj(-15), 0
    try:
        for block in archive.part(start, archive.size).blocks(Reading(), BLOCK >> 6):
            engine.decompress(block)
            taken += len(block)
            if engine.eof:
                end = start + taken - len(engine.unused_data)
                found = _bytes_at(archive, end, 32).find(_MARK)  # behind a descriptor of 12 to 24 bytes
                return end + found if found >= 0 else None
    except zlib.error:
        return None
    return None


def _bytes_at(archive: FilePart, position: int, length: int) -> bytes:
    start = min(max(position, 0), archive.size)
    end = min(start + length, archive.size)
    return b"".join(archive.part(start, end).blocks(Reading()))


def _shown(archive: FilePart, name: str) -> str:
    printable = "".join(char if char.isprintable() else "\ufffd" for char in name)
    return f"{archive.shown}!{printable}"
