"""Colours of the ledger's classes, told apart by people with any colour vision, and by hatch in grey.

Base: Paul Tol, Colour Schemes (SRON/EPS/TN/09-002, issue 3.2, 2021), scheme *muted*, which has ten;
classes of one family share a colour and differ by hatch.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Paint:
    """A fill and matplotlib's hatch for it; ``dark`` says that text on it must be light."""

    fill: str
    hatch: str = ""
    dark: bool = False
    night: str = ""
    """The fill on a dark page, where it has to be lighter."""


PAINTS: dict[str, Paint] = {
    "productive": Paint("#44AA99"),
    "slow_steps": Paint("#DDCC77"),
    "data_wait": Paint("#999933", "////"),
    "checkpoint": Paint("#332288", dark=True, night="#8C7BEA"),
    "evaluation": Paint("#88CCEE"),
    "gc": Paint("#AA4499", "....", dark=True, night="#CF7FC8"),
    "startup": Paint("#117733", dark=True, night="#3FA766"),
    "warmup": Paint("#117733", "\\\\\\\\", dark=True, night="#3FA766"),
    "restore": Paint("#88CCEE", "\\\\\\\\"),
    "lost_work": Paint("#CC6677"),
    "hang": Paint("#882255", dark=True, night="#D0629D"),
    "restart_gap": Paint("#CC6677", "xxxx"),
    "unknown": Paint("#DDDDDD", "//"),
}
OTHER = Paint("#BBBBBB")
"""A class this version does not know."""
LINE = "#1B3A6B"
"""The series."""
LOST = "#8A8A8A"
"""Steps that were done again."""
INK = "#222222"
FAINT = "#666666"


def paint(kind: str) -> Paint:
    """How to paint one class."""
    return PAINTS.get(kind, OTHER)
