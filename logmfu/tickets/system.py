"""One ticket system as data: how its tickets are written, what it takes, and how to post to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from logmfu.tickets.parcel import Parcel, Sent
from logmfu.tickets.wire import Answer, Exchange, Wire


@dataclass(frozen=True, slots=True)
class Target:
    """The ticket that is meant."""

    system: str
    site: str
    """Base URL as people know it; credentials belong to it."""
    api: str
    """Base URL of the requests. Credentials are sent to its host and to no other."""
    url: str
    """The page a person opens."""
    project: str = ""
    kind: str = ""
    item: str = ""


@dataclass(frozen=True, slots=True)
class System:
    """One ticket system."""

    name: str
    title: str
    modules: tuple[str, ...]
    """What the extra of the same name installs."""
    site: str
    """Base URL when none is configured; empty: there is no usual one."""
    shapes: tuple[str, ...]
    """Ways to write a ticket, for help and errors."""
    recognise: Callable[[str, str], Target | None]
    """(ticket, base URL) → the ticket, or ``None`` when it is not one of this system."""
    post: Callable[[Parcel, Target, Wire], Sent]
    answer: Callable[[Exchange], Answer]
    """What the system answers on a ticket that has no report yet: the other side of a dry run."""
    permissions: str
    by_hand: str
    caveats: tuple[str, ...] = ()
    """What a person should know before sending."""
    token_needed: bool = True

    def variable(self, what: str) -> str:
        """Name of an environment variable of this system: ``URL``, ``TOKEN`` or ``EMAIL``."""
        return f"LOGMFU_{self.name.upper()}_{what}"
