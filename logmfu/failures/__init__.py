"""Lines that say something went wrong, whoever wrote them: run behind every parser.

Each event has a ``role`` in its details: what such a line usually is. A *cause* names what happened first,
a *symptom* shows that something happened elsewhere or before, *teardown* is the noise of the rest being
ended. Patterns match anywhere in a line, because dying processes write into each other's lines.
"""

from __future__ import annotations

from logmfu.failures import collectives, devices, elastic, launchers, programs, schedulers
from logmfu.parsing import Block, Rule

__all__ = ["RULES"]

_PARTICULAR: tuple[Rule, ...] = (
    *devices.RULES,
    *schedulers.RULES,
    *collectives.RULES,
    *elastic.RULES,
    *launchers.RULES,
    *programs.RULES,
)
RULES: tuple[Rule | Block, ...] = (*elastic.BLOCKS, *_PARTICULAR, *programs.exceptions(_PARTICULAR))
"""Every rule, the particular ones before the general."""
