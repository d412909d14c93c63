"""Takes off what launchers, schedulers and collectors put before a program's own lines.

Prefixes nest (a container runtime's time, a host, a rank, a logger), so they come off repeatedly, from the
outside in. What they say is kept on the :class:`~logmfu.records.Line`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from logmfu.envelopes.clocks import MONTHS, Years, written_date
from logmfu.envelopes.collectors import ray
from logmfu.envelopes.found import Found
from logmfu.envelopes.labels import LOOKS_LIKE_HOST, Labels
from logmfu.envelopes.layouts import TABLE
from logmfu.envelopes.loggers import LEVEL
from logmfu.envelopes.partials import Partials, Whole, unpack
from logmfu.records import Line

__all__ = ["Envelopes", "strip"]

LEARN = 20_000
"""Lines after which :meth:`Envelopes.lines` stops learning labels by itself."""
_TELLING = 120
"""Characters of a line in which its prefixes stand."""
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_DEPTH = 8
"""Prefixes one line may have; deeper nesting is somebody's text."""

_SGR = re.compile(r"\x1b\[[0-9;]*+m")
_ANSI = re.compile(
    r"(?:\x1b|\^\[|\\u001b)\[[0-9;:?]*+[ -/]*+[@-~]"  # colours, cursor moves, and their lossy copies
    r"|\x1b\][^\x07\x1b]*+(?:\x07|\x1b\\)?+|\x1b[@-Z\\^_c=>78]?"
)
_BARE_SGR = re.compile(r"\[\d{1,3}(?:;\d{1,3})*+m")
_GLUE = (
    rf"|\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d(?:,\d{{3}}\] \[(?:{LEVEL})\] \[|\.\d{{6}}\] )"
    r"|\d{1,9},\d{1,7}\]<std(?:out|err)>:)"
)
_GLUED = re.compile(
    r"\[(?:default\d{1,7}\]:|rank\d{1,7}\]:(?= ?Traceback \(| ?\[[IWEF][ \d]|[VDIWECF]\d{4} )" + _GLUE
)
_GLUED_RANK = re.compile(r"\[(?:(?:default|rank)\d{1,7}\]:" + _GLUE)
"""For lines that begin with such a rank themselves: there it cannot be the program's own text."""
_BLANK = (" ", "\t")
_RANK = re.compile(r"\[Rank (\d{1,7})\][ :]")
_MAYBE = re.compile(
    rf"[ \t]*+(?:[\d(]|\{{\"|[VDIWECF][01]\d{{3}} |(?:{LEVEL})[: ]"
    rf"|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|{'|'.join(MONTHS)}) )"
).match


def _beginnings(texts: Sequence[str]) -> list[bytes]:
    """How lines begin, with every run of digits as a single zero."""
    import numpy as np  # not needed to import this package

    digits = np.frombuffer("\n".join(texts).encode(errors="replace").translate(_DIGITS), dtype=np.uint8)
    zero = digits == ord("0")
    goes_on = np.append(False, zero[1:] & zero[:-1])
    return [line[:_TELLING] for line in digits[~goes_on[: len(digits)]].tobytes().split(b"\n")]


class Envelopes:
    """The prefixes of one file.

    Every line is judged by itself, except for what only the file as a whole can tell: which bare labels
    (``12: ``, ``worker-1: ``) are labels, and the year of stamps that print none. :meth:`learn` finds that
    out from some lines of the file and freezes it; from then on :meth:`take` gives the same for a line
    whichever other lines it is asked for. Without :meth:`learn`, :meth:`lines` learns while it reads and
    freezes after ``LEARN`` lines: then the first line of a host still carries its name.

    ``year`` and ``until`` (the file's last change, seconds since 1970) give the year of stamps without one;
    a stamp with a full date wins over both.
    """

    __slots__ = ("_labels", "_path", "_years")

    def __init__(self, path: str = "", *, year: int | None = None, until: float | None = None) -> None:
        self._path = path
        self._years = Years(year=year, until=until)
        self._labels = Labels()

    def learn(self, head: Iterable[str]) -> None:
        """Find out labels and date from raw lines (the first ones, or samples of the whole), and freeze."""
        written = None
        plain: set[bytes] = set()
        """Beginnings, but for their numbers, of lines that say nothing about labels."""
        skipped = 0
        """Lines with such a beginning that are still to be counted."""
        texts = list(head)
        for text, beginning in zip(texts, _beginnings(texts) if texts else (), strict=True):
            if beginning in plain:
                skipped += beginning != b""
                continue
            self._labels.seen(skipped)
            skipped, before = 0, self._labels.found
            if "[" in text or "\r" in text or self._maybe(text) or LOOKS_LIKE_HOST.match(text):
                self.take(0, text)
            else:
                self._labels.seen(bool(text))
            if self._labels.found == before and len(plain) < LEARN:
                plain.add(beginning)
            written = written or written_date(text)
        self._labels.seen(skipped)
        if written is not None:
            self._years.anchor(written)
        self._labels.freeze()
        self._years.freeze()

    def take(self, number: int, text: str) -> list[Line]:
        """The lines in one physical line: several where a carriage return parts it or lines were glued.

        Pieces of a line that a container runtime cut are not joined here.
        """
        opened = self._container(text)
        if opened is None:
            return self._pieces(number, text, Found(self._years))
        inner, _, found = opened
        return self._pieces(number, inner, found)

    def lines(self, raw: Iterable[tuple[int, str]]) -> Iterator[Line]:
        """Lines of ``(physical number, text)``; text after a carriage return has its line's number again."""
        partials, path, frozen, learned = Partials(), self._path, self._labels.frozen, 0
        last, before = 0, None
        for number, text in raw:
            same = before is not None and number == last
            if frozen and not same and "[" not in text and not self._maybe(text):
                before = None
                yield Line(text, path, number)
                continue
            last = number
            if same and before is not None:
                before = before.outer()
                if partials.waiting(before.stream):
                    yield from self._joined(partials.part(number, before, text))
                else:
                    yield from self._inside(number, text, before)
                continue
            opened = self._container(text)
            if opened is None:
                before = Found(self._years)
                yield from self._inside(number, text, before)
            else:
                inner, full, before = opened
                yield from self._joined(partials.add(number, before, inner, full=full))
            if not frozen:
                learned += 1
                if learned == LEARN:
                    self._labels.freeze()
                    frozen = True
        yield from self._joined(partials.last())

    def _maybe(self, text: str) -> bool:
        """Whether a line without a bracket can have anything to take off."""
        if _MAYBE(text) or "\x1b" in text or "\\u001b" in text:
            return True
        hosts = self._labels.hosts
        return bool(hosts) and text.partition(" ")[0] in hosts

    def _container(self, text: str) -> tuple[str, bool, Found] | None:
        if not text.startswith(("{", "1", "2")):
            return None
        found = Found(self._years)
        opened = unpack(text, found)
        return (*opened, found) if opened else None

    def _joined(self, wholes: list[Whole]) -> Iterator[Line]:
        for number, found, text in wholes:
            yield from self._pieces(number, text, found)

    def _pieces(self, number: int, text: str, found: Found) -> list[Line]:
        """Lines of the pieces between carriage returns; each inherits what the prefixes before it said."""
        if "\r" not in text:
            return self._inside(number, text, found)
        lines = []
        for piece in text.rstrip("\r").split("\r"):
            lines += self._inside(number, piece, found)
            found = found.outer()
        return lines

    def _inside(self, number: int, text: str, found: Found) -> list[Line]:
        if "\x1b" in text or "[0m" in text or "\\u001b" in text:
            text = _plain(text)
        if not self._labels.frozen:
            self._labels.seen(bool(text))
        text = self._peel(text, found)
        if "[" in text:
            glued = _GLUED_RANK if found.nested else _GLUED
            if glued.search(text, 1):
                return self._apart(number, text, found, glued)
        return [self._line(number, text, found)]

    def _apart(self, number: int, text: str, found: Found, glued: re.Pattern[str]) -> list[Line]:
        """Glued lines, each with its own prefix; what stood before the first belongs to all."""
        starts = [0, *(match.start() for match in glued.finditer(text, 1)), len(text)]
        lines = []
        for start, end in pairwise(starts):
            mine = found if start == 0 else found.outer()
            piece = text[start:end] if start == 0 else self._peel(text[start:end], mine)
            lines.append(self._line(number, piece, mine))
        return lines

    def _peel(self, text: str, found: Found) -> str:
        """Text without its prefixes."""
        for _ in range(_DEPTH):
            rest = None
            body = text.lstrip(" \t") if text[:1] in _BLANK else text
            for layout in TABLE.get(body[:2], ()) if body[:1] != "(" else (ray,):
                rest = layout(body, found)
                if rest is not None:
                    break
            if rest is None and not (found.logger or found.nested or found.task):
                rest = self._labels.take(text, found)
            if rest is None:
                return text
            text = rest
        return text

    def _line(self, number: int, text: str, found: Found) -> Line:
        rank = _RANK.match(text) if text.startswith("[Rank ") else None
        if rank:
            found.rank = int(rank[1])
        if found.task:
            self._labels.place(found)
        return found.line(text, self._path, number)


def strip(text: str, *, path: str = "", number: int = 0) -> Line:
    """One line by itself, as far as it can be told without the rest of its file."""
    return Envelopes(path).take(number, text)[0]


def _plain(text: str) -> str:
    """Text without terminal control sequences; colours, the most frequent, go first."""
    text = _SGR.sub("", text)
    if "\x1b" in text or "^[" in text or "\\u001b" in text:
        text = _ANSI.sub("", text)
    return _BARE_SGR.sub("", text) if "[0m" in text else text
