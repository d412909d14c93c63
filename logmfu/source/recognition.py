"""What the first bytes of an input show: compression, archive, text or none of these."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from logmfu.errors import SourceError
from logmfu.source.compression import FOREIGN, ZIP_MAGIC, Codec, codec_of, unpacked
from logmfu.source.inputs import Source
from logmfu.source.raw import FilePart, Pipe
from logmfu.source.reading import Reading
from logmfu.source.text import Encoding, encoding_of, is_binary

_HEAD = 1 << 16
_ENOUGH = 1 << 12
"""So much of a pipe is waited for."""
_ELSEWHERE = "did the job die before its first line? look at its other outputs"
_DEPTH = 2
"""Compressions inside each other that are undone (a ``.log.gz`` in a zip archive)."""
_PATIENCE = 64 << 20
"""NUL bytes at the start of a pipe after which we stop looking for text: they are kept in memory."""


@dataclass(frozen=True, slots=True)
class Unfit:
    """Why an input is no log: an error for a file that was named, a note for one that was found."""

    what: str
    facts: tuple[str, ...] = ()
    hint: str = ""
    empty: bool = False

    def error(self) -> SourceError:
        """The same, to be raised."""
        return SourceError(self.what, facts=self.facts, hint=self.hint)


def recognise(path: str, place: FilePart | Pipe, codecs: tuple[Codec, ...] = ()) -> Source | Unfit | bytes:
    """The source a place holds, or why it is none; its first bytes if it is a zip archive."""
    outer = len(codecs)
    while True:
        reading = Reading()
        head = _sample(place, codecs, reading)
        inner = codec_of(head)
        if not inner or len(codecs) >= outer + _DEPTH:
            break
        codecs = (*codecs, inner)
    if head.startswith(ZIP_MAGIC) and not codecs:
        return head
    encoding = encoding_of(head)
    return _unfit(path, head, encoding, codecs, reading) or Source(path, place, codecs, encoding)


def _sample(place: FilePart | Pipe, codecs: tuple[Codec, ...], reading: Reading) -> bytes:
    """The first bytes behind a hole of NUL bytes, of which an even number is left out."""
    sample = b""
    piped = isinstance(place, Pipe)
    enough = _ENOUGH if piped else _HEAD
    with closing(place.blocks(reading, _HEAD, peek=True)) as raw:
        for block in unpacked(raw, codecs, reading, _HEAD):
            if (
                sample or len(block) & 1 or block != bytes(len(block))
            ):  # comparing is fast, and holes are large
                sample += block
                hole = len(sample) - len(sample.lstrip(b"\0"))
                if hole >= 8:
                    sample = sample[hole & ~1 :]
            if len(sample) >= enough or (piped and reading.bytes > _PATIENCE):
                break
    return sample


def _unfit(
    path: str, head: bytes, encoding: Encoding, codecs: tuple[Codec, ...], reading: Reading
) -> Unfit | None:
    if not head.strip(b"\0")[encoding.bom :]:
        return _nothing_in(path, codecs, reading)
    for magic, name in FOREIGN:
        if head.startswith(magic):
            return Unfit(f"{path} is {name}, which is not read", hint="unpack it first")
    if head.startswith(ZIP_MAGIC):
        return Unfit(f"{path} is a zip archive inside another compressed file", hint="unpack it first")
    if head[257:262] == b"ustar":
        return Unfit(f"{path} is a tar archive, which is not read", hint="unpack it and give its log files")
    if is_binary(head, encoding):
        return Unfit(
            f"{path} is not text", (f"it begins {head[:16].hex(' ')}",), "give the log, a text file"
        )
    return None


def _nothing_in(path: str, codecs: tuple[Codec, ...], reading: Reading) -> Unfit:
    if reading.truncated:
        return Unfit(f"nothing can be read from {path}", (reading.truncated,), "look for another copy")
    if reading.bytes and not codecs:
        return Unfit(
            f"there is no text in {path}",
            ("it holds nothing but NUL bytes or a byte order mark",),
            _ELSEWHERE,
            empty=True,
        )
    facts = ("there is nothing in it once decompressed",) if codecs else ()
    return Unfit(f"{path} is empty", facts, _ELSEWHERE, empty=True)
