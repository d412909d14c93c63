"""Records to the tables of a run: ``steps``, ``events``, ``timers`` and what the log states."""

from logmfu.tables.builder import TableBuilder
from logmfu.tables.clock import resolution
from logmfu.tables.facts import Facts, Stated
from logmfu.tables.finish import finish
from logmfu.tables.run import Coverage, NearMiss, ProfileRecord, ReadFile, Run

__all__ = [
    "Coverage",
    "Facts",
    "NearMiss",
    "ProfileRecord",
    "ReadFile",
    "Run",
    "Stated",
    "TableBuilder",
    "finish",
    "resolution",
]
