"""What is put onto a ticket, and what came of it. Nothing here knows a log, an analysis or a network."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

PICTURES = frozenset({".png", ".jpg", ".jpeg", ".gif"})
"""File types that every ticket system shows in place; SVG is not among them."""

_CUT = "\n\n(cut: this is more than one comment holds; the report's files have the rest)"
_SPARE = len("\n{noformat}")
_FENCE = re.compile(r"(`{3,}|\{noformat\}|\{code\})")


@dataclass(frozen=True, slots=True)
class Parcel:
    """A text in several dialects and the files that belong to it."""

    title: str
    body_by_dialect: Callable[[str], str]
    """Dialects: ``github``, ``jira``, ``slack``, ``plain``."""
    files: tuple[Path, ...]
    key: str = ""
    """What makes two parcels the same report, so that the later one replaces the earlier; empty: the title."""

    @property
    def mark(self) -> str:
        """Twelve hexadecimal digits that stand for the key on the ticket."""
        return hashlib.sha256((self.key or self.title).encode()).hexdigest()[:12]

    def name(self, file: Path) -> str:
        """Name of a file on the ticket: with the mark, so that no other run's file has the same one."""
        stem = re.sub(r"[^A-Za-z0-9_.-]+", "-", file.stem).strip("-.") or "report"
        return f"{stem}.{self.mark}{file.suffix.lower()}"

    def body(self, dialect: str, limit: int, *, size: Callable[[str], int] = len) -> str:
        """The text in one dialect, cut between two lines when ``size`` of it is more than ``limit``."""
        return fitted(self.body_by_dialect(dialect).strip(), limit, size=size)


@dataclass(frozen=True, slots=True)
class Sent:
    """What was done: where the report is now, and whether it replaced an earlier one."""

    url: str
    updated: bool
    notes: tuple[str, ...] = ()


def is_picture(file: Path) -> bool:
    """Whether a ticket system shows this file in place."""
    return file.suffix.lower() in PICTURES


def fitted(text: str, limit: int, *, size: Callable[[str], int] = len) -> str:
    """``text``, or its first whole lines and a sentence that says that the rest was cut."""
    if size(text) <= limit:
        return text
    lines = text.splitlines()
    room = limit - size(_CUT) - _SPARE
    ends = accumulate(size(line) + 1 for line in lines)
    kept = [line for line, end in zip(lines, ends, strict=True) if end <= room]
    return _closed("\n".join(kept).rstrip()) + _CUT


def _closed(text: str) -> str:
    """A block of fixed-width text that was cut open would swallow what follows it."""
    open_fence = ""
    for line in text.splitlines():
        found = _FENCE.match(line)
        if found and not open_fence:
            open_fence = found[1]
        elif found and line.startswith(open_fence):
            open_fence = ""
    return f"{text}\n{open_fence}" if open_fence else text
