"""Printed clocks to numbers: seconds since 1970 of the clock as printed, counted as if it were UTC."""

from __future__ import annotations

import re
from calendar import timegm
from datetime import date
from functools import lru_cache

MONTHS = {
    name: n
    for n, name in enumerate(
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"], 1
    )
}
"""English month names, as the C locale, syslog and ctime print them."""

_HALF_YEAR_S = 183 * 86400
_SLACK_S = 86400  # a file's time of change is UTC, a printed clock may be ahead of it


@lru_cache(maxsize=4096)
def day_s(year: int, month: int, day: int) -> int | None:
    """Midnight of a date, or None if there is no such date."""
    try:
        return timegm(date(year, month, day).timetuple())
    except ValueError:
        return None


@lru_cache(maxsize=4096)
def date_s(text: str) -> int | None:
    """Midnight of ``2026-03-04``."""
    return day_s(int(text[:4]), int(text[5:7]), int(text[8:10]))


@lru_cache(maxsize=8192)
def second_s(text: str) -> int | None:
    """Seconds of the day of ``05:06:07``, or None if there is no such time; 60 is a leap second."""
    hour, minute, second = int(text[:2]), int(text[3:5]), int(text[6:8])
    if hour > 23 or minute > 59 or second > 60:
        return None
    return hour * 3600 + minute * 60 + second


def fraction_s(digits: str | None) -> float:
    """Decimals of a second: ``123`` is 0.123."""
    return int(digits) / 10 ** len(digits) if digits else 0.0


def moment(midnight: int | None, clock: str, fraction: str | None = None) -> float | None:
    """A date's midnight, ``05:06:07`` and decimals as one time; None if any of them cannot be."""
    second = second_s(clock)
    if midnight is None or second is None:
        return None
    return midnight + second + fraction_s(fraction)


@lru_cache(maxsize=256)
def offset_s(text: str | None) -> int | None:
    """``Z``, ``+0100`` or ``-08:00`` in seconds east of UTC; None if nothing is printed."""
    if not text:
        return None
    if text in "Zz":
        return 0
    digits = text[1:].replace(":", "")
    seconds = int(digits[:2]) * 3600 + int(digits[2:4]) * 60
    return -seconds if text[0] == "-" else seconds


_WRITTEN = re.compile(r"(?<![\d.])((?:19|20)\d\d-[01]\d-[0-3]\d)[T _]([0-2]\d:[0-5]\d:[0-6]\d)")


def written_date(text: str) -> float | None:
    """The first full date and time anywhere in a text: it tells the year where no stamp does."""
    found = _WRITTEN.search(text) if "-" in text else None
    return moment(date_s(found[1]), found[2]) if found else None


class Years:
    """The year of stamps that print none.

    The first stamp with a full date decides: a stamp without a year is the one within half a year
    of it. Without such a stamp the file's last change decides (no stamp is later than it), and
    without that the given year does. With none of the three a stamp without a year has no time.
    """

    __slots__ = ("_anchor", "_frozen", "_until", "_year")

    def __init__(self, *, year: int | None = None, until: float | None = None) -> None:
        self._year = year
        self._until = until
        self._anchor: float | None = None
        self._frozen = False

    def freeze(self) -> None:
        """Let no later stamp decide."""
        self._frozen = True

    def anchor(self, time: float) -> None:
        """Take a stamp with a full date into account; only the first one counts."""
        if self._anchor is None and not self._frozen:
            self._anchor = time

    def midnight(self, month: int, day: int) -> int | None:
        """Midnight of a month and day in the year it most likely was."""
        if self._anchor is not None:
            return _midnight_before(month, day, self._anchor + _HALF_YEAR_S)
        if self._until is not None:
            return _midnight_before(month, day, self._until + _SLACK_S)
        return None if self._year is None else day_s(self._year, month, day)


@lru_cache(maxsize=1024)
def _midnight_before(month: int, day: int, limit: float) -> int | None:
    year = 1970 + int(limit // (365.2425 * 86400))
    for candidate in (year + 1, year, year - 1, year - 2):
        midnight = day_s(candidate, month, day) if 1 <= candidate <= 9999 else None
        if midnight is not None and midnight <= limit:
            return midnight
    return None
