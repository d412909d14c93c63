"""The text of a dry run: every recorded request, in words, without secrets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from email import message_from_bytes, policy
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from logmfu.tickets.address import origin
from logmfu.tickets.credentials import HIDDEN
from logmfu.tickets.delivery import Rehearsal
from logmfu.tickets.wire import Exchange

_SECRET_HEADERS = frozenset(
    {"authorization", "private-token", "job-token", "cookie", "proxy-authorization"}
)
_BLOB = re.compile(r"[A-Za-z0-9+/]{200,}={0,2}")


def render(rehearsal: Rehearsal, environ: Mapping[str, str]) -> str:
    """What would be sent, to where, in order."""
    lines = [*_head(rehearsal, environ)]
    for number, exchange in enumerate(rehearsal.exchanges, start=1):
        lines += ["", *_request(number, exchange)]
    return rehearsal.credential.mask("\n".join(_visible(line).rstrip() for line in lines))


def _head(rehearsal: Rehearsal, environ: Mapping[str, str]) -> Iterator[str]:
    system, target = rehearsal.system, rehearsal.target
    yield "dry run: nothing is sent"
    yield f"ticket: {system.title}, {target.url}"
    yield "  on a ticket that has no report of this run yet; an earlier one would be rewritten, not doubled"
    token, url = system.variable("TOKEN"), system.variable("URL")
    yield f"credentials: {token} is {'set' if environ.get(token) else 'not set'}, {url} is " + (
        "set" if environ.get(url) else f"not set (then {system.site})" if system.site else "not set"
    )
    yield f"  the token needs: {system.permissions}"
    for caveat in system.caveats:
        yield f"note: {caveat}"


def _request(number: int, exchange: Exchange) -> Iterator[str]:
    yield f"{number}. {exchange.method} {_address(exchange.url)}"
    for name, value in exchange.headers:
        yield f"   {name}: {HIDDEN if name.lower() in _SECRET_HEADERS else value}"
    yield from (f"   {line}" for line in _body(exchange))


def _address(url: str) -> str:
    """Without the port a library spells out although it is the usual one."""
    return origin(url) + urlsplit(url)._replace(scheme="", netloc="").geturl()


def _body(exchange: Exchange) -> Iterator[str]:
    kind = {name.lower(): value for name, value in exchange.headers}.get("content-type", "")
    if not exchange.body:
        return
    if kind.startswith("multipart/"):
        yield from _parts(kind, exchange.body)
    elif kind.startswith("application/x-www-form-urlencoded"):
        yield from _fields(dict(parse_qsl(exchange.body.decode("utf-8", "replace"))))
    elif (value := _json(exchange.body)) is not None:
        yield from _fields(value if isinstance(value, dict) else {"": value})
    else:
        yield f"> {len(exchange.body):,} bytes of a file"


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


def _parts(kind: str, body: bytes) -> Iterator[str]:
    message = message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + body, policy=policy.HTTP)
    for part in message.iter_parts():
        content: Any = part.get_payload(decode=True)
        if part.get_filename():
            yield f"> file {part.get_filename()}, {len(content):,} bytes, {part.get_content_type()}"
        else:
            field = part.get_param("name", header="content-disposition")
            yield f"> {field}: {content.decode('utf-8', 'replace') or '(empty)'}"


def _fields(values: Mapping[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        lines = (
            value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        ).splitlines() or [""]
        if len(lines) == 1:
            yield f"> {name}: {_BLOB.sub(_sized, lines[0])}"
            continue
        yield f"> {name}:"
        yield from (f"  | {line}" for line in lines)


def _sized(found: re.Match[str]) -> str:
    """Base64 is not for reading: say how much it is."""
    text = found[0]
    return f"({len(text) * 3 // 4 - text[-2:].count('='):,} bytes in base64)"


def _visible(line: str) -> str:
    """Text of a log may hold control characters that would act on the terminal."""
    return "".join(character if character.isprintable() else "?" for character in line)
