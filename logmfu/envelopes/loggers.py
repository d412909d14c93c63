"""Prefixes of a program's own loggers: each function is ``(text, found) -> rest, or None``.

Every pattern is anchored and linear. Sources: PyTorch torch/_logging/_internal.py and c10 Logging.cpp,
absl-py 2.5, Python's logging, loguru, rich.
"""

from __future__ import annotations

import re

from logmfu.envelopes.clocks import date_s, day_s, fraction_s, moment, offset_s
from logmfu.envelopes.collectors import DATED, collected
from logmfu.envelopes.found import Found

LEVEL = "TRACE|DEBUG|INFO|NOTICE|WARNING|WARN|ERROR|CRITICAL|FATAL|SUCCESS"
"""Names of levels."""
_DATE, _CLOCK, _FRACTION = r"(\d{4}-\d\d-\d\d)", r"(\d\d:\d\d:\d\d)", r"(?:[.,](\d{1,9}))?+"
LETTERS = {
    "V": "DEBUG",
    "D": "DEBUG",
    "I": "INFO",
    "W": "WARNING",
    "E": "ERROR",
    "F": "FATAL",
    "C": "CRITICAL",
}
_ORIGIN = r"([^\s\[\]:]{1,200}:\d++(?::[\w<>]++)?+)"
_STAMP = re.compile(rf"\[{_DATE}[ T_]{_CLOCK}{_FRACTION}(Z|[+-]\d\d:?\d\d)?\]")
_STAMP_TAIL = re.compile(
    rf" \[({LEVEL})\] \[{_ORIGIN}\]"  # a level and a place, in brackets
    rf"| ([\w.]{{1,120}}): \[({LEVEL})\]"  # torch.distributed.run: [WARNING]
    rf"| (?:\[NODE-\d+\(([\w.-]+)\)\] )?\[({LEVEL})\](?=\s|$)"
    rf"| ({LEVEL}) +\[([\w.]{{1,120}}:\d+)(?:, rank=(\d{{1,7}}))?\]"
)
_COMPACT = re.compile(
    rf"\[(\d{{4}})(\d\d)(\d\d) {_CLOCK}{_FRACTION}\]((?:\[[^\[\]]{{1,80}}\])*+)[ ]*+(?:\[-*+([^\[\]\s]+:\d+)\])?+[ ]*+(?:: )?"
)
_COMPACT_RANK = re.compile(r"\[rank-(\d{1,7})(?:/\d+)?\]")
_BARE_LEVEL = re.compile(rf"\[({LEVEL}) *\]")
_C10 = re.compile(rf"\[([IWEF])(?: ?(\d{{1,2}})(\d\d) {_CLOCK}\.(\d{{1,9}}))? ([\w./+-]{{1,200}}:\d+)\] ?")
_LETTER_STAMP = re.compile(
    rf"\[\w+ ([DIWEC]) {_DATE} {_CLOCK} ([\w.<>]{{1,120}}:\d+)(?: rank:(\d{{1,7}}))?\] ?"
)
_NAMED = re.compile(r"\[[A-Za-z][\w.-]{0,40}\] (?=\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)")
_PIPED = re.compile(
    rf"\[(?P<level>{LEVEL})\|(?P<origin>[^\[\]]{{1,200}})\] (?P<date>\d{{4}}-\d\d-\d\d) (?P<clock>\d\d:\d\d:\d\d)(?:[.,](?P<fraction>\d{{1,9}}))?+ >> ?"
)
_LEVEL_INSIDE = re.compile(
    rf"\[(?P<level>{LEVEL}) (?P<date>\d{{4}}-\d\d-\d\d) (?P<clock>\d\d:\d\d:\d\d)(?:[.,](?P<fraction>\d{{1,9}}))?+\] ?"
)
_RICH = re.compile(rf"\[(\d\d)/(\d\d)/(\d\d) {_CLOCK}\] ({LEVEL}) *(?: |$)")
_RICH_ORIGIN = re.compile(r" {2,}(\S+\.py:\d+) *$")
_DATED_TAIL = re.compile(
    rf" - (?:([\w.-]{{1,120}}) - )?({LEVEL}) - "
    rf"| ([\w.-]{{1,120}}) ({LEVEL}) {{2,}}"  # the level is padded to eight
    rf"|(?: |: )\[?({LEVEL})\]?(?: - |: | +|$)"
    rf"| \| ({LEVEL}) +\| ([\w.<>]+(?::[\w<>]+)*)(?: - | \| )"
    r"|: ([IWEF]) (\S{1,200}:\d+)\] "
)
_TORCH = re.compile(
    rf"([VDIWECF])(\d\d)(\d\d) {_CLOCK}\.(\d{{6}}) +\d+ ([^\s\[\]]{{1,300}}:\d+)\](?: \[\d+/\d+(?:/\d+)?\](?= ))?(?: |$)"
)
_GLOG = re.compile(r"([IWEF])0000 00:00:(\d{9,11})\.(\d{1,9}) +\d+ ([^\s\]]{1,300}:\d+)\] ")
_BASIC = re.compile(rf"({LEVEL}):([A-Za-z_][\w.-]{{0,120}}):")
_LEVEL_STAMP = re.compile(rf"({LEVEL}) (\d\d)-(\d\d) {_CLOCK}{_FRACTION} \[?([\w./-]{{1,200}}:\d+)\]:? ?")
_LEVEL_BRACKET = re.compile(rf"({LEVEL}) +\[{_DATE} {_CLOCK}{_FRACTION}\] (?:>> ?)?")


def stamp(text: str, found: Found) -> str | None:
    """``[2026-03-04 05:06:07,123]`` and what Python loggers put after it."""
    match = _STAMP.match(text)
    if not match:
        return None
    time = moment(date_s(match[1]), match[2], match[3])
    if time is None:
        return None
    _program_time(found, time, match[4])
    end = match.end()
    tail = _STAMP_TAIL.match(text, end) if text.startswith(" ", end) else None
    if tail:
        found.level = tail[1] or tail[4] or tail[6] or tail[7]
        found.origin = tail[2] or tail[3] or tail[8]
        found.host = tail[5] or found.host
        if tail[9]:
            found.rank = int(tail[9])
        end = tail.end()
    return text[end + text.startswith(" ", end) :]


def compact(text: str, found: Found) -> str | None:
    """``[20260304 05:06:07][rank-7/8][INFO]     [---trainer.py:12] : ``."""
    match = _COMPACT.match(text)
    if not match:
        return None
    time = moment(day_s(int(match[1]), int(match[2]), int(match[3])), match[4], match[5])
    if time is None:
        return None
    _program_time(found, time)
    rank, level = _COMPACT_RANK.search(match[6]), _BARE_LEVEL.search(match[6])
    if rank:
        found.rank = int(rank[1])
    found.level = level[1] if level else None
    found.origin = match[7]
    return text[match.end() :]


def c10(text: str, found: Found) -> str | None:
    """``[E304 05:06:07.123456789 File.cpp:629]``, and without a time before PyTorch 2.4."""
    match = _C10.match(text)
    if not match:
        return None
    if match[2]:
        _yearless(found, int(match[2]), int(match[3]), match[4], match[5])
    found.level, found.origin, found.logger = LETTERS[match[1]], match[6], True
    return text[match.end() :]


def letter_stamp(text: str, found: Found) -> str | None:
    """``[Name I 2026-03-04 05:06:07 module:393]``."""
    match = _LETTER_STAMP.match(text)
    time = moment(date_s(match[2]), match[3]) if match else None
    if not match or time is None:
        return None
    _program_time(found, time)
    found.level, found.origin = LETTERS[match[1]], match[4]
    if match[5]:
        found.rank = int(match[5])
    return text[match.end() :]


def named(text: str, found: Found) -> str | None:
    """``[name] `` in front of a time stamp."""
    match = _NAMED.match(text)
    return text[match.end() :] if match else None


def piped(text: str, found: Found) -> str | None:
    """``[INFO|file.py:12] 2026-03-04 05:06:07,123 >> `` and ``[INFO 2026-03-04 05:06:07] ``."""
    match = _PIPED.match(text) or _LEVEL_INSIDE.match(text)
    time = moment(date_s(match["date"]), match["clock"], match["fraction"]) if match else None
    if not match or time is None:
        return None
    _program_time(found, time)
    found.level, found.origin = match["level"], match.groupdict().get("origin")
    return text[match.end() :]


def rich(text: str, found: Found) -> str | None:
    """``[03/04/26 05:06:07] INFO     MSG       file.py:12``, month first."""
    match = _RICH.match(text)
    if not match:
        return None
    time = moment(day_s(2000 + int(match[3]), int(match[1]), int(match[2])), match[4])
    if time is None:
        return None
    _program_time(found, time)
    found.level = match[5]
    rest = text[match.end() :]
    origin = _RICH_ORIGIN.search(rest[-200:])
    if not origin:
        return rest
    found.origin = origin[1]
    return rest[: len(rest) - (len(origin[0]))]


def dated(text: str, found: Found) -> str | None:
    """``2026-03-04T05:06:07.123Z `` of a collector; ``2026-03-04 05:06:07,123`` of a Python logger."""
    match = DATED.match(text)
    if not match:
        return None
    time = moment(date_s(match[1]), match[3], match[4])
    if time is None:
        return None
    end = match.end()
    if match[2] == "T" and match[5]:
        return collected(text, end, found, time, offset_s(match[5]))
    tail = _DATED_TAIL.match(text, end)
    if not tail and end < len(text) and text[end] != " ":
        return None
    _program_time(found, time, match[5])
    if tail:
        found.level = tail[2] or tail[4] or tail[5] or tail[6] or LETTERS[tail[8]]
        found.origin = tail[1] or tail[3] or tail[7] or tail[9]
        return text[tail.end() :]
    return text[end + 1 :]


def torch_logger(text: str, found: Found) -> str | None:
    """``W0304 05:06:07.123000 4242 path/run.py:792] MSG`` of PyTorch's Python loggers and absl."""
    match = _TORCH.match(text)
    if not match:
        return glog(text, found)
    _yearless(found, int(match[2]), int(match[3]), match[4], match[5])
    found.level, found.origin, found.logger = LETTERS[match[1]], match[6], True
    return text[match.end() :]


def glog(text: str, found: Found) -> str | None:
    """``E0000 00:00:1772600767.123456    4242 file.cc:12] MSG``: seconds since 1970."""
    match = _GLOG.match(text)
    if not match:
        return None
    _program_time(found, int(match[2]) + fraction_s(match[3]), "Z")
    found.level, found.origin = LETTERS[match[1]], match[4]
    return text[match.end() :]


def basic(text: str, found: Found) -> str | None:
    """``INFO:name:MSG``; ``INFO 03-04 05:06:07 file.py:12] MSG``; ``INFO [2026-03-04 05:06:07] >> MSG``."""
    match = _BASIC.match(text)
    if match:
        found.level, found.origin, found.logger = match[1], match[2], True
        return text[match.end() :]
    match = _LEVEL_STAMP.match(text)
    if match:
        _yearless(found, int(match[2]), int(match[3]), match[4], match[5])
        found.level, found.origin, found.logger = match[1], match[6], True
        return text[match.end() :]
    match = _LEVEL_BRACKET.match(text)
    time = moment(date_s(match[2]), match[3], match[4]) if match else None
    if not match or time is None:
        return None
    _program_time(found, time)
    found.level = match[1]
    return text[match.end() :]


def _program_time(found: Found, time: float, offset: str | None = None) -> None:
    found.years.anchor(time)
    found.stamp(time, offset_s(offset))
    found.logger = True


def _yearless(found: Found, month: int, day: int, clock: str, fraction: str | None) -> None:
    time = moment(found.years.midnight(month, day), clock, fraction)
    if time is not None:
        found.stamp(time)
