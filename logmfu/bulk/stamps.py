"""Time stamps of lines nobody asked for while they were read."""

from __future__ import annotations

import re
from copy import copy
from functools import cache

from logmfu.bulk.scan import Database, Found, database
from logmfu.envelopes import Envelopes
from logmfu.records import Line

_MAY_BE = rb"\d\d:\d\d:\d\d|\d{13}\t|\x1b|\[0m|\\u001b"
"""What a line with a stamp holds: a clock, milliseconds since 1970, or control sequences that hide them."""


_CLOCK = re.compile(_MAY_BE)


@cache
def _may_be() -> Database:
    return database([_MAY_BE], first_only=True)


def may_be_stamped(block: bytes) -> bool:
    """Whether any line of a block may have a stamp."""
    hits: list[int] = []
    _may_be().scan(block, match_event_handler=lambda number, *_: hits.append(number))
    return bool(hits)


def may_have_stamp(line: bytes) -> bool:
    """The same of one line."""
    return _CLOCK.search(line) is not None


def has_stamp(block: bytes, found: Found, stamps: LineStamps) -> bool:
    """Whether any line of a block has one."""
    timed = (group.first for group in found.groups if group.layout.inner or group.layout.outer)
    if any(stamps.of(0, line) for line in timed):
        return True
    if not may_be_stamped(block):
        return False
    return any(stamps.of(0, line) for line in block.split(b"\n"))


def pieces(line: bytes) -> list[str]:
    """The text of a physical line, cut where carriage returns are."""
    text = line.decode(errors="replace")
    if "\r" not in text:
        return [text]
    return [piece for piece in text.split("\r") if piece] or [""]


class LineStamps:
    """Reads the stamps of raw lines of one file."""

    def __init__(self, envelopes: Envelopes) -> None:
        self._envelopes = copy(envelopes)

    def of(self, number: int, raw: bytes) -> Line | None:
        """The last piece of a line that has a stamp; None if none has."""
        stamped = self._stamped(number, raw)
        return stamped[-1] if stamped else None

    def first(self, number: int, raw: bytes) -> Line | None:
        """The first one."""
        stamped = self._stamped(number, raw)
        return stamped[0] if stamped else None

    def _stamped(self, number: int, raw: bytes) -> list[Line]:
        lines = self._envelopes.lines((number, piece) for piece in pieces(raw))
        return [line for line in lines if line.time is not None or line.outer_time is not None]
