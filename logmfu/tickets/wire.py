"""The one door through which every request leaves, whatever library made it.

A :class:`Wire` is a transport adapter in the sense of ``requests``: the client libraries build their requests
as they always do and the wire carries them, or, in a dry run, records them and answers itself. So what a dry
run shows is what would be sent. The wire also keeps three promises no library keeps by itself: a credential
goes to one host only, redirects included; nothing waits for ever; and no error text shows a secret.
"""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from logmfu.errors import TicketError
from logmfu.tickets.address import is_loopback, origin
from logmfu.tickets.refusal import refusal, unreachable

if TYPE_CHECKING:
    from requests import PreparedRequest, Response, Session

    from logmfu.tickets.credentials import Credential

CONNECT_S = 10.0
"""Seconds to wait for a connection; the answer has a limit of its own."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request as it would go over the line."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """What a system answers: a status and a JSON value, or text."""

    payload: Any = None
    status: int = 200


@dataclass(frozen=True, slots=True)
class Wire:
    """A transport for one ticket. With ``answer`` it sends nothing and records everything."""

    api: str
    credential: Credential
    answer: Callable[[Exchange], Answer] | None = None
    timeout_s: float = 60.0
    exchanges: list[Exchange] = field(default_factory=list)

    def session(self) -> Session:
        """A new session whose every request takes this wire."""
        import requests

        session = requests.Session()
        session.auth = _unchanged
        return self.mounted(session)

    def mounted(self, session: Session) -> Session:
        """``session`` with this wire as its only way out."""
        for prefix in list(session.adapters):
            session.mount(prefix, self)  # type: ignore[arg-type]  # requests asks for send() and close() only
        return session

    def send(self, request: PreparedRequest, **options: Any) -> Response:
        """Carry one request. Raises ``TicketError`` when it may not go, does not arrive or is refused."""
        self._check_destination(request)
        response = self._recorded(request) if self.answer else self._carried(request, options)
        self._check_redirect(request, response)
        if response.status_code >= 400:
            raise refusal(request, response, self.credential)
        self._check_data(request, response)
        return response

    def close(self) -> None:
        """Nothing stays open: every request has its own connection."""

    def _check_destination(self, request: PreparedRequest) -> None:
        url = request.url or ""
        if urlsplit(url).scheme == "http" and not is_loopback(url) and origin(url) != origin(self.api):
            raise TicketError(f"{origin(url)} is plain http", hint="the server must give https addresses")
        if origin(url) != origin(self.api) and self._is_secret(request):
            raise TicketError(
                f"a request with credentials would go to {origin(url)}, not to {origin(self.api)}; it was not sent",
                facts=["the server gave that address in a link or a redirect"],
                hint="correct the base URL in the environment, if that host is the right one",
            )

    def _is_secret(self, request: PreparedRequest) -> bool:
        shown = " ".join([str(request.url), *map(_text, request.headers.values())])
        return any(secret in shown for secret in self.credential.secrets)

    def _carried(self, request: PreparedRequest, options: Mapping[str, Any]) -> Response:
        import requests

        limits = (min(CONNECT_S, self.timeout_s), self.timeout_s)
        with closing(requests.adapters.HTTPAdapter()) as adapter, self._masked_log():
            try:
                response: Response = adapter.send(
                    request, **{**options, "timeout": limits, "stream": False}
                )
                response.content  # noqa: B018 - read here, so that a stop in the middle is our error too
            except requests.RequestException as error:
                raise unreachable(request, error, self.timeout_s, self.credential) from None
        return response

    @contextmanager
    def _masked_log(self) -> Iterator[None]:
        """Whoever switches on debug logging sees addresses; the path of a webhook is a secret in one."""

        def mask(record: logging.LogRecord) -> bool:
            record.msg, record.args = self.credential.mask(record.getMessage()), ()
            return True

        logger = logging.getLogger("urllib3.connectionpool")
        logger.addFilter(mask)
        try:
            yield
        finally:
            logger.removeFilter(mask)

    def _recorded(self, request: PreparedRequest) -> Response:
        import requests
        import urllib3

        exchange = Exchange(request.method or "", request.url or "", _headers(request), _body(request))
        self.exchanges.append(exchange)
        answer = self.answer(exchange) if self.answer else Answer()
        raw = urllib3.HTTPResponse(
            io.BytesIO(json.dumps(answer.payload).encode()),
            headers={"Content-Type": "application/json"},
            status=answer.status,
            preload_content=False,
        )
        return requests.adapters.HTTPAdapter().build_response(request, raw)

    def _check_redirect(self, request: PreparedRequest, response: Response) -> None:
        location = response.headers.get("Location", "")
        if not (300 <= response.status_code < 400 and location):
            return
        there = urljoin(request.url or "", location)
        if origin(there) == origin(request.url or "") and request.method in ("GET", "HEAD"):
            return
        shown = self.credential.mask(urlsplit(there)._replace(query="", fragment="").geturl())
        raise TicketError(
            f"{origin(request.url or '')} sends this request elsewhere; it was not followed",
            facts=[f"{request.method} → {response.status_code}, to {shown[:200]}"],
            hint="a renamed project or a login page in between? use the address it has now",
        )

    def _check_data(self, request: PreparedRequest, response: Response) -> None:
        """A page where data is due is a login page or a proxy, and libraries stumble over it in odd ways."""
        if (
            not (request.url or "").startswith(self.api + "/")
            or not response.content
            or response.is_redirect
        ):
            return
        try:
            response.json()
        except ValueError:
            raise TicketError(
                f"{origin(self.api)} answered with something that is not data",
                facts=[
                    f"{request.method} → {response.status_code}, {response.headers.get('Content-Type', 'no type')}"
                ],
                hint="is there a login page, a VPN or a proxy in between? is the base URL right?",
            ) from None


def _unchanged(request: PreparedRequest) -> PreparedRequest:
    """No authentication of its own; that also keeps requests from reading ~/.netrc."""
    return request


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value


def _headers(request: PreparedRequest) -> tuple[tuple[str, str], ...]:
    return tuple((name, _text(value)) for name, value in request.headers.items())


def _body(request: PreparedRequest) -> bytes:
    body: Any = request.body
    if body is None:
        return b""
    if hasattr(body, "read"):
        body = body.read()
    return body if isinstance(body, bytes) else str(body).encode()
