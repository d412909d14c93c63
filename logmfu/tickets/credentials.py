"""Credentials: from the environment or the keyring, and tied to one host.

A token in the environment belongs to the host of the configured base URL. The URL of a ticket comes from
anywhere, so it never decides alone where a token goes. A keyring entry is stored under its host.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from urllib.parse import quote, quote_plus, urlsplit

from logmfu.errors import TicketError
from logmfu.tickets.address import origin
from logmfu.tickets.system import System, Target

HIDDEN = "***"
"""What is shown in place of a secret."""

PLACEHOLDER = "no-secret-is-read-in-a-dry-run"


@dataclass(frozen=True, slots=True)
class Credential:
    """A token, for whom, and where it was found. Its repr shows no secret."""

    token: str = field(repr=False)
    user: str = ""
    source: str = ""
    hidden_url: str = field(default="", repr=False)
    """A URL from the environment whose path is a secret itself (a webhook's)."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every text that gives the credential away, longest first."""
        pair = base64.b64encode(f"{self.user}:{self.token}".encode()).decode()
        path = urlsplit(self.hidden_url)._replace(scheme="", netloc="").geturl()
        found = {self.token, quote(self.token, safe=""), quote_plus(self.token), path.strip("/")}
        if self.token:
            found |= {pair, base64.b64encode(self.token.encode()).decode()}
        return tuple(sorted(found - {""}, key=len, reverse=True))

    def mask(self, text: str) -> str:
        """``text`` with every secret hidden."""
        for secret in self.secrets:
            text = text.replace(secret, HIDDEN)
        return text


def site_of(system: System, environ: Mapping[str, str]) -> str:
    """Base URL that is configured for a system, else its usual one, else nothing."""
    return (environ.get(system.variable("URL")) or system.site).rstrip("/")


def lookup(system: System, target: Target, environ: Mapping[str, str]) -> Credential:
    """The credential for the host of a ticket. Raises ``TicketError`` when there is none."""
    user = environ.get(system.variable("EMAIL"), "")
    hidden = environ.get(system.variable("URL"), "") if system.name == "webhook" else ""
    ours = origin(site_of(system, environ) or "none://none") == origin(target.site)
    token = environ.get(system.variable("TOKEN"), "").strip()
    if token and ours:
        return _usable(Credential(token, user, system.variable("TOKEN"), hidden))
    stored, why = from_keyring(f"logmfu-{system.name}", urlsplit(target.site).netloc)
    if stored:
        cloud = (urlsplit(target.site).hostname or "").endswith(".atlassian.net")
        return _usable(Credential(stored.strip(), user if ours or cloud else "", "the keyring", hidden))
    if not system.token_needed:
        return Credential("", hidden_url=hidden)
    raise _nothing(system, target, [_elsewhere(system, environ)] if token else [], why)


def _usable(credential: Credential) -> Credential:
    text = credential.user + credential.token
    if text.isascii() and text.isprintable() and " " not in text:
        return credential
    raise TicketError(
        "the token or its user has characters that no token has",
        facts=[f"it came from: {credential.source}"],
        hint="copy it again; is there a line end, a blank or a typographic dash in it?",
    )


def from_keyring(service: str, name: str) -> tuple[str, str]:
    """A secret of the keyring and, when there is none, why not."""
    try:
        keyring = import_module("keyring")
    except ImportError:
        return "", "the keyring library is not installed: pip install 'logmfu[keyring]'"
    try:
        return keyring.get_password(service, name) or "", f"the keyring has no {name} in {service}"
    except Exception as error:  # backends talk to desktops, buses and vaults, and raise what those raise
        return "", f"the keyring cannot be read ({type(error).__name__})"


def _elsewhere(system: System, environ: Mapping[str, str]) -> str:
    site = site_of(system, environ)
    where = f"belongs to {site}" if site else f"belongs to no host: {system.variable('URL')} is not set"
    return f"{system.variable('TOKEN')} is set and {where}; a token is sent nowhere else"


def _nothing(system: System, target: Target, facts: list[str], why: str) -> TicketError:
    host = urlsplit(target.site).netloc
    names = [f"{system.variable('TOKEN')}=..."]
    if not facts:
        facts = [f"{system.variable('TOKEN')} is not set"]
    if origin(target.site) != system.site:
        names.insert(0, f"{system.variable('URL')}={target.site}")
    return TicketError(
        f"no {system.title} credentials for {host}",
        facts=[*facts, why, f"the token needs: {system.permissions}"],
        hint=f"export {' '.join(names)}   or   keyring set logmfu-{system.name} {host}",
    )
