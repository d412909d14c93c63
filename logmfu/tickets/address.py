"""URLs: where one points, whether it may be used, and how it is shown."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from logmfu.errors import TicketError

ALLOW_HTTP = "LOGMFU_ALLOW_HTTP"
"""Set to 1, plain http is accepted for hosts other than this machine."""


def origin(url: str) -> str:
    """Scheme, host and port of a URL, with the usual ports left out."""
    parts = urlsplit(url)
    usual = {"https": 443, "http": 80}.get(parts.scheme)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}" + ("" if parts.port in (None, usual) else f":{parts.port}")


def is_loopback(url: str) -> bool:
    """Whether a URL points at this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def checked(url: str, environ: Mapping[str, str]) -> str:
    """``url`` itself. Raises ``TicketError`` if it is malformed, carries a password, or would send in clear text."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("https", "http") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        valid = False
    if not valid:
        raise TicketError("this is not a web address", hint="https://HOST/...")
    if parts.username or parts.password:
        raise TicketError(
            f"the address of {parts.hostname} has a user name or password in it",
            hint="leave them out; credentials come from the environment or the keyring",
        )
    if parts.scheme == "http" and not is_loopback(url) and environ.get(ALLOW_HTTP) != "1":
        raise TicketError(
            f"{origin(url)} would be sent to in clear text, credentials included",
            hint=f"https://, or {ALLOW_HTTP}=1 if that network is yours",
        )
    return url


def split(ticket: str, site: str) -> tuple[str, str] | None:
    """A URL as its base and the rest of its path; the configured base may have a path of its own."""
    if not ticket.startswith(("https://", "http://")):
        return None
    base = site.rstrip("/")
    path = urlsplit(ticket)._replace(query="", fragment="").geturl()
    if base and path.startswith(base + "/"):
        return base, path.removeprefix(base + "/")
    return origin(ticket), urlsplit(ticket).path.lstrip("/")
