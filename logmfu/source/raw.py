"""Bytes as they lie on disk or come through a pipe, before anything is decompressed."""

from __future__ import annotations

import os
import sys
import tempfile
import weakref
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from logmfu.errors import SourceError
from logmfu.source.reading import Reading

BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class FilePart:
    """Bytes ``start`` to ``end`` of a regular file, as large as it was when it was opened."""

    shown: str
    path: Path
    start: int
    end: int
    identity: tuple[int, int]
    """Device and inode, to notice that a rotation put another file in its place."""
    mtime: float
    spool: Spool | None = None

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self.end - self.start

    def part(self, start: int, end: int, shown: str = "") -> FilePart:
        """A piece of the same file; offsets count from the start of this part."""
        return replace(self, shown=shown or self.shown, start=self.start + start, end=self.start + end)

    def blocks(self, reading: Reading, size: int = BLOCK, *, peek: bool = False) -> Generator[bytes]:
        """The bytes, in blocks; stops early, and says so, where the file does."""
        del peek  # a file can be opened again
        left = self.size
        with self.open() as file:
            self._check_identity(file, reading)
            file.seek(self.start)
            while left:
                try:
                    block = file.read(min(size, left))
                except OSError as error:
                    _failed(self.shown, error, reading)
                    return
                if not block:
                    reading.truncated = f"the file ends at byte {self.end - left} instead of {self.end}"
                    return
                left -= len(block)
                reading.bytes += len(block)
                yield block

    def open(self) -> BinaryIO:
        """The file opened for reading. Raises ``SourceError`` if it cannot be."""
        try:
            return self.path.open("rb", buffering=0)
        except OSError as error:
            raise unreadable(self.shown, self.path, error) from error

    def _check_identity(self, file: BinaryIO, reading: Reading) -> None:
        now = os.fstat(file.fileno())
        if (now.st_dev, now.st_ino) != self.identity:
            reading.notes.append("the file was replaced by another one after it was opened")


@dataclass(slots=True)
class Pipe:
    """A stream that can be read once; what was peeked at is kept for that one pass."""

    shown: str
    stream: BinaryIO
    seen: list[bytes] = field(default_factory=list)
    spent: bool = False
    owned: bool = False
    """Whether to close the stream when it has been read."""
    mtime: float | None = None
    size: int | None = None

    def blocks(self, reading: Reading, size: int = BLOCK, *, peek: bool = False) -> Generator[bytes]:
        """The bytes from the beginning. Raises ``SourceError`` after the pass without ``peek``."""
        if self.spent:
            raise SourceError(
                f"{self.shown} can be read only once",
                facts=["it is a pipe, not a file"],
                hint="save it to a file first",
            )
        self.spent = not peek
        for index in range(len(self.seen)):
            block = self.seen[index]
            if not peek:
                self.seen[index] = b""
            reading.bytes += len(block)
            yield block
        while block := self._next(reading, size):
            if peek:
                self.seen.append(block)
            reading.bytes += len(block)
            yield block
        if self.owned and not peek:
            self.stream.close()

    def _next(self, reading: Reading, size: int) -> bytes:
        # read1 gives what has arrived; read would wait until the block is full
        read = getattr(self.stream, "read1", self.stream.read)
        try:
            return bytes(read(size) or b"")
        except OSError as error:
            _failed(self.shown, error, reading)
            return b""


class Spool:
    """A temporary file that goes away with the last source that reads it."""

    def __init__(self, pipe: Pipe) -> None:
        handle, name = tempfile.mkstemp(prefix="logmfu-")
        self.path = Path(name)
        self._finalizer = weakref.finalize(self, self.path.unlink, missing_ok=True)
        with os.fdopen(handle, "wb") as file:
            file.writelines(pipe.blocks(Reading()))


def spooled(pipe: Pipe) -> FilePart:
    """All of a pipe in a temporary file, for what has to be read back and forth."""
    spool = Spool(pipe)
    return replace(file_part(pipe.shown, spool.path), spool=spool)


def file_part(shown: str, path: Path) -> FilePart:
    """A regular file as it is now. Raises ``SourceError`` if it cannot be looked at."""
    try:
        found = path.stat()
    except OSError as error:
        raise unreadable(shown, path, error) from error
    return FilePart(shown, path, 0, found.st_size, (found.st_dev, found.st_ino), found.st_mtime)


def unreadable(shown: str, path: Path, error: OSError) -> SourceError:
    """The error to raise for a file that the system does not let us open."""
    if isinstance(error, FileNotFoundError):
        return SourceError(
            f"{shown} is gone", facts=["it was there a moment ago"], hint="was it moved or rotated?"
        )
    if isinstance(error, PermissionError):
        return SourceError(
            f"no permission to read {shown}",
            facts=_ownership(path),
            hint="ask its owner to make it readable, or copy it",
        )
    return SourceError(f"cannot open {shown}", facts=[error.strerror or str(error)])


def _ownership(path: Path) -> list[str]:
    try:
        found = path.stat()
    except OSError:
        return ["a directory above it may not be entered"]
    me = f", you are uid {os.geteuid()}" if sys.platform != "win32" else ""
    return [f"mode {found.st_mode & 0o777:03o}, owner uid {found.st_uid}{me}"]


def _failed(shown: str, error: OSError, reading: Reading) -> None:
    """Note a read error behind which there is something to show, else raise it."""
    why = error.strerror or str(error)
    if not reading.bytes:
        raise SourceError(f"cannot read {shown}", facts=[why]) from error
    reading.truncated = f"reading failed at byte {reading.bytes}: {why}"
