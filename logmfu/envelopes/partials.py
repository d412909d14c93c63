"""Lines a container runtime cut into pieces: joined again, within bounds."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from logmfu.envelopes.collectors import container
from logmfu.envelopes.found import Found
from logmfu.envelopes.loggers import dated

LIMIT = 1 << 20
"""Characters a joined line may have; runtimes cut at 16 KiB, so this is 64 pieces."""


@dataclass(slots=True)
class _Pending:
    number: int
    found: Found
    pieces: list[str] = field(default_factory=list)
    size: int = 0


Whole = tuple[int, Found, str]
"""Number of the first physical line, its fields, the joined text."""


class Partials:
    """Unfinished lines, one per stream."""

    __slots__ = ("_pending",)

    def __init__(self) -> None:
        self._pending: dict[str | None, _Pending] = {}

    def add(self, number: int, found: Found, text: str, *, full: bool) -> list[Whole]:
        """Take one piece; give back the whole line when it is complete or grows too long."""
        pending = self._pending.get(found.stream)
        if pending is None:
            if full:
                return [(number, found, text)]
            pending = self._pending[found.stream] = _Pending(number, found)
        pending.pieces.append(text)
        pending.size += len(text)
        if full or pending.size >= LIMIT:
            return [self._take(found.stream)]
        return []

    def waiting(self, stream: str | None) -> bool:
        """Whether a line of this stream is unfinished."""
        return stream in self._pending

    def part(self, number: int, found: Found, text: str) -> list[Whole]:
        """A carriage return ended the unfinished line; ``text`` begins the next one."""
        whole = self._take(found.stream)
        return [whole, *self.add(number, found.outer(), text, full=False)]

    def last(self) -> list[Whole]:
        """What is left at the end of the log, in the order it began."""
        return [self._take(stream) for stream in list(self._pending)]

    def _take(self, stream: str | None) -> Whole:
        pending = self._pending.pop(stream)
        return pending.number, pending.found, "".join(pending.pieces)


def unpack(text: str, found: Found) -> tuple[str, bool] | None:
    """Text of a CRI or docker JSON line and whether the line ends with it; None for other lines."""
    if text.startswith("{"):
        return _docker(text, found)
    return container(text, found)


def _docker(text: str, found: Found) -> tuple[str, bool] | None:
    if '"log"' not in text:
        return None
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        return None
    log = entry.get("log") if isinstance(entry, dict) else None
    if not isinstance(log, str) or not (entry.keys() & {"stream", "time"}):
        return None
    _docker_fields(entry, found)
    return log.removesuffix("\n").removesuffix("\r"), log.endswith("\n")


def _docker_fields(entry: dict[str, Any], found: Found) -> None:
    stream, time = entry.get("stream"), entry.get("time")
    if stream in ("stdout", "stderr"):
        found.stream = stream
    if isinstance(time, str):
        dated(time, found)
