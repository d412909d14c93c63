"""Jira: attachments and one comment, on Cloud and on Server / Data Center.

The comment is wiki markup through version 2 of the REST API, which both editions take: version 3 wants a
document tree in which a picture needs a media id that the attachment call does not give
(developer.atlassian.com, Jira Cloud platform REST API, "Issue attachments" and "Issue comments").
The mark is a plain last line, because Cloud stores documents and drops macros such as ``{anchor}``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from logmfu.errors import TicketError
from logmfu.tickets.address import split
from logmfu.tickets.parcel import Parcel, Sent, is_picture
from logmfu.tickets.system import System, Target
from logmfu.tickets.wire import Answer, Exchange, Wire

if TYPE_CHECKING:
    from jira import JIRA

LIMIT = 32_767
"""Characters of a comment: the default of ``jira.text.field.character.limit``."""

_KEY = re.compile(r"[A-Z][A-Z0-9_]+-[0-9]+")


def recognise(ticket: str, site: str) -> Target | None:
    """``ABC-123``, an address with ``/browse/ABC-123``, or one with ``selectedIssue=ABC-123``."""
    if _KEY.fullmatch(ticket):
        return _target(site.rstrip("/"), ticket)
    parts = split(ticket, site)
    if parts is None:
        return None
    base, path = parts
    if found := re.fullmatch(rf"(?:(.*)/)?browse/({_KEY.pattern})", path.rstrip("/")):
        return _target("/".join(filter(None, (base, found[1]))), found[2])
    selected = parse_qs(urlsplit(ticket).query).get("selectedIssue", [""])[0]
    return _target(base, selected) if _KEY.fullmatch(selected) else None


def _target(base: str, key: str) -> Target:
    return Target("jira", base, base, f"{base}/browse/{key}", item=key)


def post(parcel: Parcel, target: Target, wire: Wire) -> Sent:
    """Upload the files, drop those of an earlier report, and write or rewrite the comment."""
    jira = _client(target, wire)
    notes = _files(jira, parcel, target.item)
    text = _text(parcel)
    earlier = [comment for comment in jira.comments(target.item) if _is_ours(comment.body, parcel.mark)]
    if earlier:
        try:
            earlier[-1].update(body=text)
        except TicketError as error:
            if error.status != 403:
                raise
            notes.append(
                "the earlier report is somebody else's comment and may not be edited: a new one was added"
            )
        else:
            return Sent(_link(target, earlier[-1].id), updated=True, notes=tuple(notes))
    comment = jira.add_comment(target.item, text)
    return Sent(_link(target, comment.id), updated=False, notes=tuple(notes))


def _client(target: Target, wire: Wire) -> JIRA:
    from jira import JIRA

    login = wire.credential
    jira = JIRA(
        target.api,
        basic_auth=(login.user, login.token) if login.user else None,
        token_auth=None if login.user else login.token,
        get_server_info=False,
        max_retries=0,
        logging=False,
    )
    wire.mounted(jira._session)  # the library takes no session from outside
    return jira


def _files(jira: JIRA, parcel: Parcel, key: str) -> list[str]:
    """Attach the files. Jira keeps files of the same name side by side, so the earlier ones are deleted."""
    if not parcel.files:
        return []
    before = jira.issue(key, fields="attachment").fields.attachment
    for file in parcel.files:
        with file.open("rb") as stream:
            jira.add_attachment(key, stream, filename=parcel.name(file))
    names = {parcel.name(file) for file in parcel.files}
    return [
        note for old in before if old.filename in names and (note := _deleted(jira, old.id, old.filename))
    ]


def _deleted(jira: JIRA, attachment: str, name: str) -> str:
    try:
        jira.delete_attachment(attachment)
    except TicketError as error:
        if error.status not in (403, 404):
            raise
        return f"an earlier {name} stays beside the new one: these credentials may not delete it"
    return ""


def _text(parcel: Parcel) -> str:
    pictures = [f"!{parcel.name(file)}|thumbnail!" for file in parcel.files if is_picture(file)]
    others = [f"[^{parcel.name(file)}]" for file in parcel.files if not is_picture(file)]
    tail = "\n\n".join(filter(None, (*pictures, " ".join(others), _mark(parcel.mark))))
    return f"{parcel.body('jira', LIMIT - len(tail) - 2)}\n\n{tail}"


def _mark(mark: str) -> str:
    return f"logmfu report {mark}"


def _is_ours(body: str, mark: str) -> bool:
    """A quotation of a report ends otherwise: in the closing quote, or in what its author had to say."""
    return (body or "").strip().splitlines()[-1:] == [_mark(mark)]


def _link(target: Target, comment: str) -> str:
    return f"{target.url}?focusedCommentId={comment}"


def answer(exchange: Exchange) -> Answer:
    """What Jira answers on an issue without a report."""
    path = urlsplit(exchange.url).path
    if exchange.method == "GET" and path.endswith("/comment"):
        return Answer({"comments": [], "total": 0})
    if exchange.method == "GET":
        return Answer({"id": "1", "key": "-", "self": exchange.url, "fields": {"attachment": []}})
    if path.endswith("/attachments"):
        return Answer([{"id": "1", "filename": "-", "size": 1, "self": exchange.url}])
    return Answer({"id": "NEW", "body": "", "self": exchange.url}, 201)


SYSTEM = System(
    name="jira",
    title="Jira",
    modules=("jira",),
    site="",
    shapes=("ABC-123", "https://HOST/browse/ABC-123"),
    recognise=recognise,
    post=post,
    answer=answer,
    permissions="browse the project, add comments, create attachments (a scoped token: read:jira-work, write:jira-work)",
    by_hand="drop the files into a comment and paste the text",
)
