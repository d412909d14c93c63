"""Text of a log to a value: one small function per way of writing a number.

Every function raises ``ValueError`` on text it does not understand.
"""

from __future__ import annotations

import ast
from calendar import timegm
from collections.abc import Callable
from datetime import datetime
from typing import Any

import regex

Parse = Callable[[str], Any]

_NUMBER = r"[-+]?(?:\d[\d,]*+(?:\.\d*+)?+|\.\d++)(?:[eE][-+]?\d++)?+|[-+]?(?:nan|inf)(?:inity)?+"
_FIRST = regex.compile(rf"\s*+(?P<number>{_NUMBER})", regex.IGNORECASE)
_SIZED = regex.compile(rf"\s*+(?P<number>{_NUMBER})\s*+(?P<unit>[A-Za-zµ/%]*+)", regex.IGNORECASE)
_SI = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY = {"": 1, "k": 2**10, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}
_DURATION = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "m": 60.0, "min": 60.0, "h": 3600.0}


def number(text: str) -> float:
    """A whole decimal number, thousands commas allowed; ``nan`` and ``inf`` too."""
    try:
        return float(text)
    except ValueError:
        return float(text.replace(",", ""))


def integer(text: str) -> int:
    """A whole integer, thousands commas allowed."""
    return int(text.replace(",", ""))


def first_number(text: str) -> float:
    """The first number of ``450.1/445.2`` or ``450.1 (avg 445.2)``."""
    match = _FIRST.match(text)
    if not match:
        raise ValueError(f"no number in {text[:60]!r}")
    return number(match["number"])


def shifted(text: str, *, by: int) -> float:
    """A number times ten to the power ``by``, read in one go: ``9123.3`` ms is 9.1233 s and not its neighbour."""
    try:
        return float(f"{text.strip()}e{by}")
    except ValueError:
        return first_number(text) * 10.0**by


def milliseconds(text: str) -> float:
    """``9123.5``, or the first number of ``8123.4/8100.1``, in seconds."""
    return shifted(text.partition("/")[0], by=-3)


def percent(text: str) -> float:
    """``45.6%`` or ``45.6`` as the fraction 0.456."""
    return first_number(text) / 100.0


def si_number(text: str) -> float:
    """``120.5TFLOPS`` or ``5.62 TMACs`` or ``1.31 B`` with its decimal prefix multiplied in."""
    match = _SIZED.match(text)
    if not match:
        raise ValueError(f"no number in {text[:60]!r}")
    unit = match["unit"]
    if unit == "B":
        return number(match["number"]) * 1e9
    return number(match["number"]) * _SI.get(unit[:1], 1.0)


def size_bytes(text: str) -> float:
    """``17.42GB``, ``180.1 GiB``: bytes; frameworks mean 2**30 by either spelling."""
    match = _SIZED.match(text)
    if not match:
        raise ValueError(f"no size in {text[:60]!r}")
    return number(match["number"]) * _BINARY.get(match["unit"][:1], 1)


def duration(text: str) -> float:
    """``210.43 ms`` or ``1.2 s`` in seconds."""
    match = _SIZED.match(text)
    if not match or match["unit"] not in _DURATION:
        raise ValueError(f"no duration in {text[:60]!r}")
    return number(match["number"]) * _DURATION[match["unit"]]


def timestamp(text: str) -> float:
    """``2026-03-04 05:06:07[.,frac]`` (blank, ``T`` or ``_`` between): seconds of the printed clock."""
    cleaned = text.strip().replace("_", " ").replace(",", ".")
    moment = datetime.fromisoformat(cleaned)
    return timegm(moment.timetuple()) + moment.microsecond / 1e6


def literal(text: str) -> Any:
    """A Python literal as ``str(value)`` prints it, else the text itself."""
    text = text.strip()
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return text


def text(raw: str) -> str:
    """The text itself, without blanks around it and at most 400 characters long."""
    return raw.strip()[:400]


def auto(raw: str) -> int | float | str:
    """An integer, else a number, else the text: for fields nobody declared."""
    raw = raw.strip()
    for parse in (integer, number):
        try:
            return parse(raw)
        except ValueError:
            continue
    return text(raw)
