"""Slack: one message, and the files in its thread.

Files go the way of ``files_upload_v2`` (files.getUploadURLExternal, the upload, files.completeUploadExternal;
docs.slack.dev, "Working with files"). The message carries its mark and the ids of its files as metadata, by
which a later report finds it, rewrites it with ``chat.update`` and deletes the earlier files.
"""

from __future__ import annotations

import itertools
import logging
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from logmfu.errors import TicketError
from logmfu.tickets.address import split
from logmfu.tickets.parcel import Parcel, Sent
from logmfu.tickets.refusal import printable
from logmfu.tickets.system import System, Target
from logmfu.tickets.wire import Answer, Exchange, Wire

if TYPE_CHECKING:
    from slack_sdk import WebClient

LIMIT = 3_900
"""Bytes of a message: ``chat.update`` takes 4,000 (docs.slack.dev, chat.update, error ``msg_too_long``; that it
counts bytes, after escaping, is reported in gitlab-org/gitlab!258898)."""

EVENT = "logmfu_report"
_PAGES = 5
"""Pages of 200 messages that are searched for the earlier report."""

_CHANNEL = r"[CGD][A-Z0-9]{7,}"
_BLIND = ("missing_scope", "no_permission", "ratelimited", "not_allowed_token_type")
_HINTS = {
    "not_in_channel": "invite the app to the channel: /invite @APP",
    "channel_not_found": "the channel's id, not its name; a private channel must have invited the app",
    "missing_scope": "add the scope to the app and install it again",
    "is_archived": "another channel; this one is archived",
    "msg_too_long": "a shorter text",
    "ratelimited": "run the same command again in a minute",
}
_LOGINS = ("invalid_auth", "not_authed", "token_expired", "token_revoked", "account_inactive")


def recognise(ticket: str, site: str) -> Target | None:
    """A channel id, or the link of a message, whose thread is meant."""
    api = f"{site.rstrip('/')}/api"
    if re.fullmatch(_CHANNEL, ticket):
        return Target("slack", site, api, f"{site}/archives/{ticket}", ticket)
    parts = split(ticket, site)
    shape = rf"archives/({_CHANNEL})(?:/p([0-9]{{10}})([0-9]{{6}}))?/?"
    found = re.fullmatch(shape, parts[1]) if parts else None
    if parts is None or found is None or not _is_slack(parts[0], site):
        return None
    parent = parse_qs(urlsplit(ticket).query).get("thread_ts", [""])[0]
    thread = (
        parent if re.fullmatch(r"[0-9]+\.[0-9]+", parent) else f"{found[2]}.{found[3]}" if found[2] else ""
    )
    return Target("slack", site, api, ticket, found[1], item=thread)


def _is_slack(base: str, site: str) -> bool:
    return base == site or (urlsplit(base).hostname or "").endswith(f".{urlsplit(site).hostname}")


def post(parcel: Parcel, target: Target, wire: Wire) -> Sent:
    """Write or rewrite the message, put the files into its thread, and drop those of an earlier report."""
    from slack_sdk.errors import SlackApiError, SlackRequestError

    try:
        return _posted(_client(target, wire), parcel, target)
    except SlackApiError as error:
        raise _refused(error.response.data, wire) from None
    except SlackRequestError as error:
        raise TicketError(
            "Slack did not take a file", facts=[printable(wire.credential.mask(str(error)))]
        ) from None


def _posted(client: WebClient, parcel: Parcel, target: Target) -> Sent:
    text = parcel.body("slack", LIMIT, size=_bytes)
    message, notes = _earlier(client, parcel.mark, target)
    updated = bool(message) and _rewritten(client, target, message, text)
    if not updated:
        notes += ["the earlier message is not ours to edit: a new one was written"] if message else []
        message = _written(client, parcel, target, text)
    old = message.get("metadata", {}).get("event_payload", {}).get("files", []) if updated else []
    files = _uploaded(client, parcel, target.project, target.item or message["ts"])
    if files or old:
        _update(client, target.project, message["ts"], text, _metadata(parcel.mark, files))
    notes += [note for file in old if (note := _deleted(client, file))]
    link = f"{target.site}/archives/{target.project}/p{message['ts'].replace('.', '')}"
    return Sent(link, updated=updated, notes=tuple(notes))


def _client(target: Target, wire: Wire) -> WebClient:
    from slack_sdk import WebClient
    from slack_sdk.web.file_upload_v2_result import FileUploadV2Result

    logger = logging.getLogger(__name__)
    logger.setLevel(logging.CRITICAL)  # the library logs what it raises; it is said once, by us
    client = WebClient(wire.credential.token, f"{target.api}/", logger=logger, retry_handlers=[])
    session = wire.session()

    def carry(url: str, req: Any) -> dict[str, Any]:
        answered = session.post(url, data=req.data, headers=dict(req.header_items()))
        return {"status": answered.status_code, "headers": answered.headers, "body": answered.text}

    def upload(*, url: str, data: bytes, **_: Any) -> FileUploadV2Result:
        answered = session.post(url, data=data, headers={"Content-Type": "application/octet-stream"})
        return FileUploadV2Result(status=answered.status_code, body=answered.text)

    # The library opens URLs by urllib, which follows a redirect with the token to any host, and takes no
    # transport from outside. These two methods are all of it that opens one.
    client._perform_urllib_http_request_internal = carry  # type: ignore[method-assign]
    client._upload_file = upload  # type: ignore[method-assign]
    return client


def _earlier(client: WebClient, mark: str, target: Target) -> tuple[dict[str, Any], list[str]]:
    """The latest message with this mark, if the app may look for one."""
    from slack_sdk.errors import SlackApiError

    where = {"channel": target.project, "limit": 200, "include_all_metadata": True}
    try:
        pages = (
            client.conversations_replies(ts=target.item, **where)  # type: ignore[arg-type]
            if target.item
            else client.conversations_history(**where)  # type: ignore[arg-type]
        )
        found = [
            message for page in itertools.islice(pages, _PAGES) for message in page.get("messages", [])
        ]
    except SlackApiError as error:
        if error.response.get("error") not in _BLIND:
            raise
        return {}, [
            "the app may not read this channel, so an earlier report was not looked for (channels:history)"
        ]
    ours = [message for message in found if _mark_of(message) == mark]
    return max(ours, key=lambda message: float(message["ts"]), default={}), []


def _mark_of(message: dict[str, Any]) -> str:
    metadata = message.get("metadata") or {}
    return metadata.get("event_payload", {}).get("mark", "") if metadata.get("event_type") == EVENT else ""


def _metadata(mark: str, files: list[str]) -> dict[str, Any]:
    return {"event_type": EVENT, "event_payload": {"mark": mark, "files": files}}


def _rewritten(client: WebClient, target: Target, message: dict[str, Any], text: str) -> bool:
    from slack_sdk.errors import SlackApiError

    try:
        _update(client, target.project, message["ts"], text, message["metadata"])
    except SlackApiError as error:
        if error.response.get("error") not in (
            "cant_update_message",
            "edit_window_closed",
            "message_not_found",
        ):
            raise
        return False
    return True


def _update(client: WebClient, channel: str, ts: str, text: str, metadata: dict[str, Any]) -> None:
    client.chat_update(channel=channel, ts=ts, text=text, metadata=metadata)


def _written(client: WebClient, parcel: Parcel, target: Target, text: str) -> dict[str, Any]:
    answered = client.chat_postMessage(
        channel=target.project,
        text=text,
        thread_ts=target.item or None,
        metadata=_metadata(parcel.mark, []),
        unfurl_links=False,
    )
    return {"ts": str(answered["ts"])}


def _uploaded(client: WebClient, parcel: Parcel, channel: str, thread: str) -> list[str]:
    if not parcel.files:
        return []
    items = [
        {"file": str(file), "filename": parcel.name(file), "title": file.name} for file in parcel.files
    ]
    answered: Any = client.files_upload_v2(channel=channel, thread_ts=thread, file_uploads=items)
    return [str(file["id"]) for file in answered.get("files", [])]


def _deleted(client: WebClient, file: str) -> str:
    from slack_sdk.errors import SlackApiError

    try:
        client.files_delete(file=file)
    except SlackApiError as error:
        return f"an earlier file, {printable(file, 20)}, stays in the thread: {printable(str(error.response.get('error')), 60)}"
    return ""


def _bytes(text: str) -> int:
    return len(text.encode())


def _refused(answered: Any, wire: Wire) -> TicketError:
    said = answered if isinstance(answered, dict) else {}
    code = printable(wire.credential.mask(str(said.get("error", "no reason given"))))
    facts = [f"it says: {code}"]
    facts += [f"it needs: {printable(str(said['needed']))}"] if said.get("needed") else []
    if code in _LOGINS:
        facts.append(f"the credentials came from: {wire.credential.source}")
        return TicketError(
            "Slack does not accept the credentials", facts=facts, hint="a new token (xoxb-...)"
        )
    hint = _HINTS.get(code, "docs.slack.dev explains the code under the method's name")
    return TicketError("Slack refuses this", facts=facts, hint=hint)


def answer(exchange: Exchange) -> Answer:
    """What Slack answers in a channel without a report."""
    method = urlsplit(exchange.url).path.rpartition("/")[2]
    upload = {
        "upload_url": "https://files.slack.com/upload/v1/ADDRESS-GIVEN-BY-SLACK",
        "file_id": "FILE-ID",
    }
    payload = {"ok": True, "ts": "TIME-OF-THE-MESSAGE", "messages": [], "files": [{"id": "FILE-ID"}]}
    return Answer(payload | (upload if method == "files.getUploadURLExternal" else {}))


SYSTEM = System(
    name="slack",
    title="Slack",
    modules=("slack_sdk", "requests"),
    site="https://slack.com",
    shapes=("slack:C0123ABCD", "https://TEAM.slack.com/archives/C0123ABCD/p1700000000000000"),
    recognise=recognise,
    post=post,
    answer=answer,
    permissions="chat:write, files:write, and channels:history (groups:history) to find an earlier report",
    by_hand="drop the files into the channel and paste the text",
    caveats=("everybody in the channel can read the message and its files",),
)
