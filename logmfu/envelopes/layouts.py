"""Which prefix can begin with which two characters.

Layouts that share a beginning do not overlap, so their order cannot matter.
"""

from __future__ import annotations

from collections.abc import Callable

from logmfu.envelopes import collectors, loggers
from logmfu.envelopes.clocks import MONTHS
from logmfu.envelopes.found import Found
from logmfu.envelopes.loggers import LETTERS, LEVEL

Layout = Callable[[str, Found], str | None]
"""Text to the text without one prefix; None if it does not begin with it."""


def _table() -> dict[str, tuple[Layout, ...]]:
    table: dict[str, tuple[Layout, ...]] = {}

    def add(layout: Layout, *leads: str) -> None:
        for lead in leads:
            table[lead] = (*table.get(lead, ()), layout)

    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    digits = "0123456789"
    levels = {level[:2] for level in LEVEL.split("|")}
    days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    for layout in (loggers.stamp, loggers.compact, loggers.rich, collectors.mpi, collectors.boot):
        add(layout, *("[" + digit for digit in digits))
    add(collectors.boot, "[ ")
    add(collectors.role, *("[" + letter for letter in "rdtwm"))
    add(collectors.pod, "[p")
    add(loggers.c10, *("[" + letter for letter in "IWEF"))
    add(loggers.piped, *{"[" + level[:1] for level in levels})
    add(loggers.letter_stamp, *("[" + letter.upper() for letter in letters))
    add(loggers.named, *("[" + letter for letter in letters), *("[" + letter.upper() for letter in letters))
    add(collectors.ctime, *{"[" + day[0] for day in days}, *{day[:2] for day in days})
    add(loggers.dated, *(a + b for a in digits for b in digits))
    add(collectors.epoch_ms, *(a + b for a in digits for b in digits))
    add(loggers.torch_logger, *(letter + digit for letter in LETTERS for digit in "01"))
    add(loggers.basic, *levels)
    add(collectors.month_first, *{month[:2] for month in MONTHS})
    return table


TABLE = _table()
"""First two characters to the layouts that may begin with them."""
