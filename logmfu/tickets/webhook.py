"""Any other system: one JSON document, posted to an address.

The document has the fields ``schema`` (``logmfu.ticket/1``), ``mark``, ``title``, ``markdown``, ``text`` and
``files``, a list of ``name``, ``media_type``, ``bytes`` and, for pictures, ``base64``. ``mark`` stays the same
when a report is posted again: the receiver replaces by it.
"""

from __future__ import annotations

import base64
import mimetypes
from pathlib import Path
from typing import Any

from logmfu.tickets.parcel import Parcel, Sent, is_picture
from logmfu.tickets.system import System, Target
from logmfu.tickets.wire import Answer, Exchange, Wire

SCHEMA = "logmfu.ticket/1"
LIMIT = 1_000_000
"""Characters of the text; receivers differ, this only keeps the document of a sane size."""


def recognise(ticket: str, site: str) -> Target | None:
    """An address after ``webhook:``, or the word ``webhook`` for the configured one."""
    url = site if ticket == "webhook" else ticket
    return Target("webhook", url, url, url) if url.startswith(("https://", "http://")) else None


def post(parcel: Parcel, target: Target, wire: Wire) -> Sent:
    """Post the document."""
    token = wire.credential.token
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with wire.session() as session:
        session.post(target.api, json=document(parcel), headers=headers)
    return Sent(wire.credential.mask(target.url), updated=False)


def document(parcel: Parcel) -> dict[str, Any]:
    """The document that is posted."""
    return {
        "schema": SCHEMA,
        "mark": parcel.mark,
        "title": parcel.title,
        "markdown": parcel.body("github", LIMIT),
        "text": parcel.body("plain", LIMIT),
        "files": [_file(parcel, file) for file in parcel.files],
    }


def _file(parcel: Parcel, file: Path) -> dict[str, Any]:
    content = file.read_bytes()
    media_type = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    described = {"name": parcel.name(file), "media_type": media_type, "bytes": len(content)}
    return described | ({"base64": base64.b64encode(content).decode()} if is_picture(file) else {})


def answer(exchange: Exchange) -> Answer:
    """A webhook says nothing of interest."""
    return Answer(None)


SYSTEM = System(
    name="webhook",
    title="webhook",
    modules=("requests",),
    site="",
    shapes=("webhook", "webhook:https://HOST/..."),
    recognise=recognise,
    post=post,
    answer=answer,
    permissions="whatever the receiver asks for",
    by_hand="curl can post the same document; --dry-run shows it",
    caveats=("pictures travel inside the document; other files are named, not sent",),
    token_needed=False,
)
