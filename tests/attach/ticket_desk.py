"""What the tests of tickets share: the systems by name, their tickets, and delivery."""

from __future__ import annotations

from contextlib import ExitStack

import keyring
import keyring.backend
import pytest
from ticket_servers import Server, serving
from ticket_systems import GitHub, GitLab, Jira, Slack, Webhook

from logmfu import tickets
from logmfu.errors import TicketError
from logmfu.tickets import Parcel

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4
MAKERS = {"jira": Jira, "gitlab": GitLab, "github": GitHub, "slack": Slack, "webhook": Webhook}
TICKETS = {
    "jira": "OPS-7",
    "gitlab": "gitlab:infra/train#3",
    "github": "github:acme/train#12",
    "slack": "slack:C0OPS0001",
    "webhook": "webhook",
}
NAMES = list(MAKERS)


class Emptyring(keyring.backend.KeyringBackend):
    """A keyring in memory."""

    priority = 1  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        """What was stored."""
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        """Store it."""
        self.kept[service, username] = password


def environment(server: Server, name: str) -> dict[str, str]:
    """The variables a user of this system sets."""
    variables = {f"LOGMFU_{name.upper()}_URL": server.url, f"LOGMFU_{name.upper()}_TOKEN": f"s3cret-{name}"}
    if name == "jira":
        variables["LOGMFU_JIRA_EMAIL"] = "oncall@acme.example"
    if name == "webhook":
        variables["LOGMFU_WEBHOOK_URL"] += "/hooks/h1dden-path"
    return variables


def start(stack: ExitStack, name: str) -> tuple[Server, dict[str, str]]:
    """A server of one system and the variables to reach it."""
    server = stack.enter_context(serving(MAKERS[name]))
    return server, environment(server, name)


def deliver(parcel: Parcel, ticket: str, environ: dict[str, str], timeout_s: float = 5.0) -> tickets.Sent:
    """Put the parcel onto the ticket."""
    return tickets.deliver(parcel, tickets.find(ticket, environ), environ=environ, timeout_s=timeout_s)


def refused(parcel: Parcel, ticket: str, environ: dict[str, str], timeout_s: float = 5.0) -> str:
    """The text of the error that delivery ends in."""
    with pytest.raises(TicketError) as caught:
        deliver(parcel, ticket, environ, timeout_s)
    return str(caught.value)
