"""Numbers in the words people use: 2 h 13 min, 45.5 %, 1,240 GPU-h."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from logmfu.report import iso

UNKNOWN = "unknown"
_BYTES = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


def significant(value: float, digits: int = 3) -> str:
    """``digits`` significant digits, thousands separated, never an exponent for everyday sizes."""
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else str(value)
    if value == 0:
        return "0"
    if abs(value) < 1e-4 or abs(value) >= 1e15:
        return f"{value:.{digits - 1}e}"
    rounded = round(value, digits - 1 - math.floor(math.log10(abs(value))))
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    return f"{rounded:,.{decimals}f}"


def duration(seconds: float | None) -> str:
    """``0.412 s``, ``41.2 s``, ``12 min 5 s``, ``2 h 13 min``, ``3 d 4 h``."""
    if seconds is None or not math.isfinite(seconds):
        return UNKNOWN
    if seconds < 0:
        return f"-{duration(-seconds)}"
    if 0 < seconds < 0.001:
        return "<0.001 s"
    if seconds < 59.95:
        return f"{significant(seconds)} s"
    if round(seconds) < 3600:
        return _two_units(round(seconds), "min", "s", 60)
    if round(seconds / 60) < 1440:
        return _two_units(round(seconds / 60), "h", "min", 60)
    return _two_units(round(seconds / 3600), "d", "h", 24)


def _two_units(parts: int, unit: str, part: str, per_unit: int) -> str:
    whole, rest = divmod(parts, per_unit)
    return f"{whole:,} {unit} {rest} {part}" if rest else f"{whole:,} {unit}"


def percent(share: float | None) -> str:
    """A share of 1 with three significant digits: ``45.5 %``; ``100 %`` is the whole, not nearly so."""
    if share is None or math.isnan(share):
        return UNKNOWN
    share = round(share, 9)
    if 0 < share < 0.001:
        return f"{share:.2%}".replace("%", " %") if share >= 0.00005 else "<0.01 %"
    if 0.9995 <= share < 1:
        return f"{min(share * 100, 99.99):.2f} %"
    return f"{significant(share * 100)} %"


def count(number: float | None) -> str:
    """A whole number with thousands separated."""
    return UNKNOWN if number is None else f"{number:,.0f}"


def plural(number: int, one: str, many: str = "") -> str:
    """``1 step``, ``2 steps``."""
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


def hours(amount: float | None) -> str:
    """GPU-hours for a column that names them: ``2.71``, ``1,240``."""
    if amount is None:
        return UNKNOWN
    if 0 < amount < 0.001:
        return "<0.001"
    return f"{amount:,.0f}" if abs(amount) >= 1000 else significant(amount)


def gpu_hours(amount: float | None) -> str:
    """``2.71 GPU-h``, ``1,240 GPU-h``."""
    return UNKNOWN if amount is None else f"{hours(amount)} GPU-h"


def money(amount: float | None) -> str:
    """An amount in the unit the price was given in."""
    if amount is None:
        return UNKNOWN
    return f"{amount:,.0f}" if abs(amount) >= 1000 else f"{amount:,.2f}"


def size(number: float) -> str:
    """Bytes in binary units: ``1.50 GiB``."""
    power = 0
    while number >= 1024 and power < len(_BYTES) - 1:
        number, power = number / 1024, power + 1
    return f"{count(number)} bytes" if power == 0 else f"{significant(number)} {_BYTES[power]}"


def moment(seconds: float | None) -> str:
    """Date and time of the log's own clock: ``2026-01-01 05:06:07``."""
    text = iso(round(seconds) if seconds is not None else None)
    return UNKNOWN if text is None else text.replace("T", " ")


def moment_utc(seconds: float | None, utc_offset: int | None) -> str:
    """The same moment in UTC, when the log says how far its clock is from it."""
    if seconds is None or utc_offset is None:
        return UNKNOWN
    return moment(seconds - utc_offset)


def offset(utc_offset: int) -> str:
    """``UTC+02:00``."""
    hours, minutes = divmod(abs(utc_offset) // 60, 60)
    return f"UTC{'-' if utc_offset < 0 else '+'}{hours:02}:{minutes:02}"


def value(thing: Any) -> str:
    """Any fact's value in one line."""
    if thing is None:
        return UNKNOWN
    if isinstance(thing, bool):
        return "yes" if thing else "no"
    if isinstance(thing, int):
        return count(thing)
    if isinstance(thing, float):
        return f"{thing:,.6g}" if abs(thing) < 1e6 or not thing.is_integer() else count(thing)
    if isinstance(thing, Mapping):
        return ", ".join(f"{key} {value(part)}" for key, part in thing.items() if part is not None)
    if isinstance(thing, list | tuple):
        return ", ".join(value(part) for part in thing)
    return str(thing)


def words(name: str) -> str:
    """A class or field name as words: ``lost_work`` is ``lost work``."""
    return name.replace("_", " ")
