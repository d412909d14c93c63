"""Putting a report onto a ticket: one module per system, and a table of them."""

from __future__ import annotations

from logmfu.tickets.delivery import Rehearsal, check, deliver, find, rehearse
from logmfu.tickets.parcel import Parcel, Sent
from logmfu.tickets.system import System, Target
from logmfu.tickets.systems import SYSTEMS

__all__ = [
    "SYSTEMS",
    "Parcel",
    "Rehearsal",
    "Sent",
    "System",
    "Target",
    "check",
    "deliver",
    "find",
    "rehearse",
]
