"""From what was asked for (names, globs, directories, ``-``) to the sources that are there."""

from __future__ import annotations

import difflib
import errno
import glob
import os
import re
import stat
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import BinaryIO, TypeVar

from logmfu.errors import SourceError
from logmfu.source.archives import Member, members
from logmfu.source.inputs import Source
from logmfu.source.raw import FilePart, Pipe, file_part, spooled, unreadable
from logmfu.source.recognition import Unfit, recognise

_NO_LOGS = tuple(
    ".png .jpg .jpeg .gif .svg .pdf .ico .webp .html .htm .css .md .rst .csv .parquet .xlsx .report.json "  # noqa: SIM905
    ".py .pyc .ipynb .sh .c .cc .cpp .cu .cuh .h .hpp .o .so .a .js .ts .yaml .yml .toml .ini .cfg .lock "
    ".bin .pt .pth .ckpt .safetensors .npy .npz .pkl .pickle .h5 .idx .db .sqlite .arrow "
    ".tar .tgz .tbz2 .txz .whl .jar .nsys-rep .qdrep .ncu-rep .pb .prof".split()
)
"""Endings of pictures, documents, our own reports, code, settings, weights, data, profiles."""
Item = TypeVar("Item")
_ROTATED = re.compile(r"(?P<base>.+?)[.-](?:(?P<number>\d{1,4})|\d{4}-?\d\d-?\d\d(?:[-_T.]?\d+)?)")
"""What log rotation calls the pieces of ``base``: ``base.1`` is the youngest, or they are dated."""
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".lz4")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_SHOWN = 5


def open_sources(paths: Sequence[str | PathLike[str]], *, stdin: BinaryIO | None = None) -> list[Source]:
    """The logs behind names, globs, directories, zip archives and ``-``, each file once.

    Names keep their order, but for the pieces of a rotated log, which come oldest first, as a shell's
    ``run.log*`` does not give them; what a glob, a directory or an archive holds is sorted naturally. What
    was left out stands in the notes of the first source. Raises ``SourceError`` for an input that
    is missing, forbidden, binary or holds no log, and for an empty one if it is the only one.
    """
    if isinstance(paths, str | PathLike):
        paths = [paths]
    search = _Search(stdin)
    for path in _pieces_in_order([os.fspath(path) for path in paths]):
        search.add(path)
    return search.result()


@dataclass(slots=True)
class _Search:
    stdin: BinaryIO | None
    sources: list[Source] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    empty: list[Unfit] = field(default_factory=list)
    seen: dict[tuple[int, int], str] = field(default_factory=dict)

    def result(self) -> list[Source]:
        if not self.sources:
            raise self.empty[0].error() if self.empty else SourceError("no input", hint="name a log, or -")
        self.sources[0].notes[:0] = [*self.notes, *(f"{unfit.what}: left out" for unfit in self.empty)]
        self.sources[0].reading.notes[:] = self.sources[0].notes
        return self.sources

    def add(self, name: str) -> None:
        """One argument of the user."""
        if name == "-":
            self._named(self._standard_input())
            return
        if not name:
            raise SourceError("an input has an empty name", hint="is a shell variable not set?")
        if _URL.match(name):
            raise SourceError(
                f"{name} is an address, and only files are read", hint="download it first: curl -LO …"
            )
        path = Path(name if _exists(name) else os.path.expanduser(name))  # noqa: PTH111 - never raises
        if path.is_dir():
            self._directory(path)
        elif _exists(str(path)):
            self._named(self._place(path))
        elif glob.has_magic(name):
            self._glob(str(path))
        else:
            raise _missing(path)

    def _named(self, place: FilePart | Pipe | None) -> None:
        """A file the user named: if it is no log, that is an error."""
        if not place:
            return
        found = self._recognised(place)
        if not isinstance(found, Unfit):
            self.sources += found
        elif found.empty:
            self.empty.append(found)
        else:
            raise found.error()

    def _glob(self, pattern: str) -> None:
        found = [Path(name) for name in glob.glob(pattern, recursive=True)]  # noqa: PTH207 - Path has no absolute ones
        files = [path for path in found if not stat.S_ISDIR(_mode(path))]
        if not files:
            raise SourceError(
                f"no file matches {shown(pattern)}", facts=["only directories do"] if found else []
            )
        self._found(files, {}, f"no log matches {shown(pattern)}")

    def _directory(self, path: Path) -> None:
        try:
            visible = [entry for entry in path.iterdir() if not entry.name.startswith(".")]
        except OSError as error:
            raise unreadable(shown(path), path, error) from error
        left_out: dict[str, list[str]] = {}
        files = []
        for entry in _in_order(visible, lambda entry: entry.name):
            if stat.S_ISDIR(_mode(entry)):
                left_out.setdefault("directories not searched", []).append(shown(entry.name))
            elif _no_log(entry.name):
                left_out.setdefault("no logs by their names", []).append(shown(entry.name))
            else:
                files.append(entry)
        self._found(files, left_out, f"no log in the directory {shown(path)}")

    def _found(self, files: Iterable[Path], left_out: dict[str, list[str]], nothing: str) -> None:
        """Files the user did not name one by one: what is no log is left out, and noted."""
        useful = 0
        for path in _in_order(files, str):
            if not stat.S_ISREG(_mode(path)):
                left_out.setdefault("no files (pipes, devices, links to nothing)", []).append(
                    shown(path.name)
                )
            elif place := self._place(path):
                found = self._recognised(place)
                if isinstance(found, Unfit):
                    left_out.setdefault("left out", []).append(found.what)
                else:
                    self.sources += found
                    useful += 1
            else:
                useful += 1  # read already
        notes = [_listed(names, what) for what, names in left_out.items()]
        if not useful:
            raise SourceError(
                nothing, facts=notes, hint="name the log, or a pattern such as 'dir/**/*.log'"
            )
        self.notes += notes

    def _place(self, path: Path) -> FilePart | Pipe | None:
        """The bytes behind a path; ``None`` for a file that is read already."""
        name = shown(path)
        mode = _mode(path)
        if stat.S_ISFIFO(mode):
            return _named_pipe(name, path)
        if not stat.S_ISREG(mode):
            raise SourceError(f"{name} is not a file", facts=["it is a device or a socket"])
        part = file_part(name, path)
        if part.identity in self.seen:
            self.notes.append(f"{name} is the same file as {self.seen[part.identity]}, which is read once")
            return None
        self.seen[part.identity] = name
        return part

    def _standard_input(self) -> Pipe | None:
        if any(source.path.split("!")[0] == "-" for source in self.sources):
            return None
        stream = self.stdin or sys.stdin.buffer
        size, mtime = _redirected(stream)
        return Pipe("-", stream, size=size, mtime=mtime)

    def _recognised(self, place: FilePart | Pipe) -> list[Source] | Unfit:
        found = recognise(place.shown, place)
        if isinstance(found, bytes):
            return self._archive(spooled(place) if isinstance(place, Pipe) else place)
        return found if isinstance(found, Unfit) else [found]

    def _archive(self, archive: FilePart) -> list[Source] | Unfit:
        inside, note = members(archive)
        sources: list[Source] = []
        left_out: list[str] = []
        for member in _in_order(inside, lambda member: member.name):
            found = _member(member)
            if isinstance(found, Source):
                sources.append(found)
            else:
                left_out.append(found)
        facts = [_listed(left_out, f"no logs in {archive.shown}")] if left_out else []
        facts += [note] if note else []
        if not sources:
            return Unfit(
                f"no log in the archive {archive.shown}", tuple(facts), "unpack it and look inside"
            )
        self.notes += facts
        return sources


def _mode(path: Path) -> int:
    """What kind of file it is; 0 for a link to nothing. Raises ``SourceError`` if we may not know."""
    try:
        return path.stat().st_mode
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP) and path.is_symlink():
            return 0
        raise unreadable(shown(path), path, error) from error


def _named_pipe(name: str, path: Path) -> Pipe:
    try:
        return Pipe(name, path.open("rb"), owned=True)
    except OSError as error:
        raise unreadable(name, path, error) from error


def _redirected(stream: BinaryIO) -> tuple[int | None, float | None]:
    """Size and last change of the file behind standard input, if there is one (``< run.log``)."""
    try:
        status = os.fstat(stream.fileno())
    except (OSError, AttributeError):  # io.UnsupportedOperation of a buffer is an OSError
        return None, None
    return (status.st_size, status.st_mtime) if stat.S_ISREG(status.st_mode) else (None, None)


def _member(member: Member) -> Source | str:
    """The source in one member of an archive, or what to call it if it is none."""
    path = PurePosixPath(member.name)
    if any(part.startswith((".", "__MACOSX")) for part in path.parts) or _no_log(path.name):
        return shown(member.name)
    found = recognise(member.place.shown, member.place, member.codecs)
    if isinstance(found, Source):
        if found.codecs == member.codecs:  # the checksum is of what was packed, not of what is in that
            found.crc = member.crc
        return found
    return found.what if isinstance(found, Unfit) else shown(member.name)


def _missing(path: Path) -> SourceError:
    try:
        near = difflib.get_close_matches(path.name, os.listdir(path.parent), n=3)  # noqa: PTH208 - names only
    except OSError:
        near = []
        facts = [f"there is no directory {shown(path.parent)}"]
    else:
        facts = [f"the directory {shown(path.parent)} is there, the file is not"]
    hint = " or ".join(shown(path.with_name(name)) for name in near)
    return SourceError(f"there is no file {shown(path)}", facts=facts, hint=hint)


def _exists(name: str) -> bool:
    """Whether something has that name. Raises ``SourceError`` if we may not know, or it leads nowhere."""
    path = Path(name)
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        if path.is_symlink():
            raise SourceError(
                f"{shown(name)} is a link to nothing", facts=[f"to {shown(path.readlink())}"]
            ) from error
        return False
    except ValueError as error:
        raise SourceError(f"{shown(name)} cannot be the name of a file", facts=[str(error)]) from error
    except OSError as error:
        raise unreadable(shown(name), path, error) from error
    return True


def _no_log(name: str) -> bool:
    return _plain(name).casefold().endswith(_NO_LOGS)


def _in_order(items: Iterable[Item], name: Callable[[Item], str]) -> list[Item]:
    """Sorted by name; the pieces of a rotated log together, the oldest first and the log itself last."""
    found = list(items)
    bases = {_plain(name(item)) for item in found}
    return sorted(found, key=lambda item: _age(name(item), bases))


def _pieces_in_order(names: list[str]) -> list[str]:
    """The same names; where pieces of one log are among them, those are in order."""
    bases = {_plain(name) for name in names}
    places: dict[tuple[str, str], list[int]] = {}
    for at, name in enumerate(names):
        places.setdefault(_age(name, bases)[0], []).append(at)
    ordered = list(names)
    for mine in places.values():
        sorted_names = sorted((names[at] for at in mine), key=lambda name: _age(name, bases))
        for at, name in zip(mine, sorted_names, strict=True):
            ordered[at] = name
    return ordered


def _age(name: str, bases: Collection[str]) -> tuple[tuple[str, str], int, int, tuple[str, str]]:
    """A key to sort by: the log a name belongs to, pieces of it before itself, the oldest first."""
    plain = _plain(name)
    piece = _ROTATED.fullmatch(plain)
    if piece is None or piece["base"] not in bases:
        return _natural(plain), 1, 0, _natural(name)
    return _natural(piece["base"]), 0, -int(piece["number"] or 0), _natural(name)


def _plain(name: str) -> str:
    """A name without the endings of compressed files."""
    ending = next((ending for ending in _COMPRESSED if name.casefold().endswith(ending)), "")
    return name[: len(name) - len(ending)]


def _natural(name: str) -> tuple[str, str]:
    """A key that sorts ``rank2`` before ``rank10``."""
    return re.sub(r"[0-9]+", lambda digits: digits[0].zfill(20), name.casefold()), name


def _listed(names: Sequence[str], what: str) -> str:
    more = len(names) - _SHOWN
    return f"{what}: " + ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def shown(path: str | PathLike[str]) -> str:
    """A file name that is safe to print, whatever bytes it is made of."""
    name = os.fsencode(path).decode("utf-8", "replace")
    return "".join(char if char.isprintable() else "\ufffd" for char in name)
