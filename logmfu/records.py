"""The values that travel from a source to the tables: lines in, records out.

Both are named tuples: immutable, and cheap enough to make millions of.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

Kind = Literal["step", "timer", "event", "fact", "profile", "near_miss"]
"""What a record is.

``step``      one printed training step (or interval of steps); values are columns of ``steps``
``timer``     one named duration; values ``seconds`` or ``min_s`` and ``max_s``
``event``     something happened; the name is one of :data:`logmfu.schema.EVENTS`
``fact``      something the log states about the run or about its own numbers; value ``value``
``profile``   one profiler result; values are its figures
``near_miss`` a line had a rule's needle and not its pattern; value ``reason``
"""


class Line(NamedTuple):
    """One line of a log with its envelopes (rank, host and time prefixes, colours) taken off.

    Times are seconds since 1970 of the wall clock *as printed*, counted as if that clock were UTC:
    a naive ``1970-01-01 00:01:00`` is 60.0 everywhere.
    """

    text: str
    path: str = ""
    number: int = 0
    """Physical line number from 1, counted by line feeds."""
    time: float | None = None
    """Time stamp in the framework's own text or logger prefix (the innermost one)."""
    outer_time: float | None = None
    """Time stamp put on by a collector (CRI, docker, kubectl, syslog ...): when the line arrived."""
    utc_offset: int | None = None
    """Seconds east of UTC, when the stamp that ``time`` (else ``outer_time``) came from prints it."""
    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    stream: str | None = None
    level: str | None = None
    origin: str | None = None
    """``file.py:line[:function]`` of a logger prefix."""


class Record(NamedTuple):
    """One thing a parser understood, with the line that shows it."""

    kind: Kind
    name: str
    """Event, timer or fact name; for the other kinds the rule's name."""
    values: Mapping[str, Any]
    line: Line
    rule: str = ""
