"""What a server or the network said, as an error a person can act on."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from logmfu.errors import TicketError
from logmfu.tickets.address import origin

if TYPE_CHECKING:
    from requests import PreparedRequest, RequestException, Response

    from logmfu.tickets.credentials import Credential

_AGAIN = "run the same command again; what was posted already is replaced, not doubled"

_MEANING: dict[int, tuple[str, str]] = {
    400: (
        "does not understand the request",
        "is the ticket one that takes comments? see the server's words above",
    ),
    401: ("does not accept the credentials", "a new token; is it expired, or for another site?"),
    403: (
        "does not allow this",
        "a token with the permissions in `logmfu attach --help`, or a member of the project",
    ),
    404: (
        "has no such ticket, or hides it from these credentials",
        "check the ticket, and who the token belongs to",
    ),
    409: ("is in a state that does not take this", _AGAIN),
    410: ("says that this is gone", "check that the ticket still exists"),
    413: ("says that this is too large", "--no-files posts the text alone"),
    422: ("cannot work with the request", "is the ticket locked or archived? see the server's words above"),
    429: ("limits the rate of requests", _AGAIN),
}


def refusal(request: PreparedRequest, response: Response, credential: Credential) -> TicketError:
    """The error for an answer of 400 and above; its ``status`` is the answer's, 429 for any rate limit."""
    limited = _is_rate_limit(response)
    status = 429 if limited else response.status_code
    what, hint = _MEANING.get(status, ("failed" if status >= 500 else "refuses this", _AGAIN))
    wait = _wait(response) if limited or status >= 500 else ""
    facts = [
        f"{_line(request, credential)} → {response.status_code} {printable(response.reason or '')}".rstrip()
    ]
    facts += [f"it says: {said}"] if (said := printable(credential.mask(_said(response)))) else []
    facts += [wait] if wait else []
    if status == 401 and credential.source:
        facts.append(f"the credentials came from: {credential.source}")
    error = TicketError(f"{origin(request.url or '')} {what}", facts=facts, hint=hint)
    error.status = status
    return error


def unreachable(
    request: PreparedRequest, error: RequestException, timeout_s: float, credential: Credential
) -> TicketError:
    """The error for a request that got no answer."""
    host, text = origin(request.url or ""), str(error)
    facts = [_line(request, credential)]
    if "timed out" in text:
        facts.append("the request may have arrived all the same")
        return TicketError(f"{host} did not answer within {timeout_s:g} s", facts=facts, hint=_AGAIN)
    if "CERTIFICATE" in text.upper() or "SSL" in type(error).__name__:
        facts.append(printable(credential.mask(_reason(text))))
        hint = "REQUESTS_CA_BUNDLE=FILE names the certificates of your company"
        return TicketError(f"the certificate of {host} cannot be verified", facts=facts, hint=hint)
    facts.append(printable(credential.mask(_reason(text) or type(error).__name__)))
    size = int(request.headers.get("Content-Length") or 0)
    if size > 2**20:
        facts.append(f"{size:,} bytes were on their way; some proxies cut what is too large for them")
    hint = "check the host name, the network, VPN and HTTPS_PROXY; then run the same command again"
    return TicketError(f"no connection to {host}", facts=facts, hint=hint)


def printable(text: str, limit: int = 300) -> str:
    """Foreign text for a terminal: one line, no control characters, not too long."""
    flat = re.sub(r"\s+", " ", text).strip()
    shown = "".join(character if character.isprintable() else "?" for character in flat)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def _is_rate_limit(response: Response) -> bool:
    """GitHub answers 403 for its rate limits (docs, "Rate limits for the REST API")."""
    spent = response.headers.get("X-RateLimit-Remaining") == "0"
    return response.status_code == 429 or (
        response.status_code == 403 and (spent or "Retry-After" in response.headers)
    )


def _wait(response: Response) -> str:
    after = response.headers.get("Retry-After", "")
    if after.isdigit():
        return f"it asks to wait {after} s"
    reset = response.headers.get("X-RateLimit-Reset", response.headers.get("RateLimit-Reset", ""))
    if after or not reset.isdigit() or len(reset) > 11:
        return f"it asks to wait until {printable(after, 40)}" if after else ""
    return f"it asks to wait until {datetime.fromtimestamp(int(reset), UTC):%Y-%m-%d %H:%M:%S} UTC"


def _line(request: PreparedRequest, credential: Credential) -> str:
    url = urlsplit(request.url or "")._replace(query="", fragment="").geturl()
    return f"{request.method} {printable(credential.mask(url))}"


def _reason(text: str) -> str:
    """The innermost words of an exception that urllib3 wrapped several times."""
    errno = re.search(r"\[Errno -?\d+\] ([^'\")\]]+)", text)
    if errno:
        return errno[1]
    resolution = re.search(
        r"Failed to resolve|certificate verify failed[^'\")]*|Remote end closed[^'\")]*|reset by peer", text
    )
    return resolution[0] if resolution else ""


def _said(response: Response) -> str:
    try:
        payload = response.json()
    except ValueError:
        return "" if "html" in response.headers.get("Content-Type", "") else response.text
    if not isinstance(payload, dict):
        return str(payload)
    names = ("errorMessages", "errorMessage", "message", "error", "error_description", "errors")
    return "; ".join(filter(None, (_flat(payload.get(name)) for name in names)))


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_flat(inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return ", ".join(map(_flat, value))
    return "" if value is None else str(value)
