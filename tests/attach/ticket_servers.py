"""Ticket systems on the loopback interface that answer as the vendors' documented APIs do."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass
class Request:
    """What arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as a JSON value."""
        return json.loads(self.body)

    def form(self) -> dict[str, str]:
        """Fields of a form or a JSON object: Slack takes both."""
        if self.headers.get("content-type", "").startswith("application/json"):
            return self.json()
        return {name: values[0] for name, values in parse_qs(self.body.decode()).items()}

    def file(self) -> tuple[str, bytes]:
        """Name and content of the multipart field ``file``."""
        head = f"Content-Type: {self.headers['content-type']}\r\n\r\n".encode()
        for part in message_from_bytes(head + self.body, policy=policy.HTTP).iter_parts():
            if part.get_param("name", header="content-disposition") == "file":
                return part.get_filename(), part.get_payload(decode=True)
        raise AssertionError("no field called file")


@dataclass
class Reply:
    """What is answered: a JSON value, or bytes as they are."""

    payload: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: threading.Event | None = None
    """Answer only when this is set."""


@dataclass
class Server:
    """A running server: its address, what arrived, and a way to make it fail."""

    url: str
    requests: list[Request]
    system: Any
    fail: Callable[[Request], Reply | None] | None = None

    def calls(self) -> list[str]:
        """Methods and paths, in order."""
        return [f"{request.method} {request.path}" for request in self.requests]


@contextmanager
def serving(make: Callable[[str], Any]) -> Iterator[Server]:
    """Run ``make(base_url).answer(request)`` behind a real HTTP server."""
    running = _Quiet(("127.0.0.1", 0), _Handler)
    url = f"http://127.0.0.1:{running.server_port}"
    running.served = Server(url, [], make(url))
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield running.served
    finally:
        running.shutdown()
        running.server_close()
        thread.join()


class _Quiet(ThreadingHTTPServer):
    served: Server

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    server: _Quiet

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def _reply(self) -> None:
        served, parts = self.server.served, urlsplit(self.path)
        request = Request(
            self.command,
            parts.path,
            {name: values[0] for name, values in parse_qs(parts.query).items()},
            {name.lower(): value for name, value in self.headers.items()},
            self.rfile.read(int(self.headers.get("Content-Length") or 0)),
        )
        served.requests.append(request)
        reply = (served.fail(request) if served.fail else None) or served.system.answer(request)
        if reply.delay:
            reply.delay.wait(5)
        raw = isinstance(reply.payload, bytes)
        body = reply.payload if raw else json.dumps(reply.payload).encode()
        self.send_response(reply.status)
        headers = {"Content-Type": "text/html" if raw else "application/json"} | reply.headers
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"" if reply.status == 204 else body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _reply  # noqa: N815 - names of the standard library
