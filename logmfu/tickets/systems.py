"""The table of ticket systems."""

from __future__ import annotations

from logmfu.tickets import github, gitlab, jira, slack, webhook
from logmfu.tickets.system import System

SYSTEMS: dict[str, System] = {
    module.SYSTEM.name: module.SYSTEM for module in (jira, gitlab, github, slack, webhook)
}
"""By name, which is also the prefix of a ticket, the name of the extra and part of the variables."""
