"""Reports go onto tickets through the real client libraries, over real HTTP, and failures explain themselves."""

from __future__ import annotations

import json
import logging
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import keyring
import keyring.backend
import pytest
import requests
import typer
from hypothesis import given
from hypothesis import strategies as st
from ticket_servers import GitHub, GitLab, Jira, Reply, Request, Server, Slack, Webhook, serving
from typer.testing import CliRunner

from logmfu import tickets
from logmfu.cli import attach as command
from logmfu.errors import TicketError
from logmfu.tickets import SYSTEMS, Parcel, System, transcript
from logmfu.tickets.credentials import Credential, lookup
from logmfu.tickets.parcel import fitted
from logmfu.tickets.refusal import unreachable
from logmfu.tickets.wire import Wire

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


@pytest.fixture(autouse=True)
def ring() -> Iterator[Emptyring]:
    """No test reads the keyring of the machine it runs on."""
    before, mine = keyring.get_keyring(), Emptyring()
    keyring.set_keyring(mine)
    yield mine
    keyring.set_keyring(before)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def parcel(tmp_path: Path) -> Parcel:
    """A picture, a page, and a text that names its dialect."""
    picture, page = tmp_path / "train.report.png", tmp_path / "train.report.html"
    picture.write_bytes(PNG)
    page.write_bytes(b"<p>MFU</p>\r\n")
    return Parcel("Training run train", "MFU fell to 31 % ({})".format, (picture, page), key="train 1")


@pytest.fixture
def servers() -> Iterator[ExitStack]:
    """Servers that stop with the test."""
    with ExitStack() as stack:
        yield stack


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


# --- success, and once more -------------------------------------------------------------------------------


def test_jira_shows_the_picture_in_one_comment(parcel: Parcel, servers: ExitStack) -> None:
    """Both files are attached, and the comment shows the picture and links the page."""
    server, environ = start(servers, "jira")
    sent = deliver(parcel, "OPS-7", environ)
    (comment,) = server.system.comments
    assert comment["body"] == (
        f"MFU fell to 31 % (jira)\n\n!train.report.{parcel.mark}.png|thumbnail!\n\n"
        f"[^train.report.{parcel.mark}.html]\n\nlogmfu report {parcel.mark}"
    )
    assert [one["size"] for one in server.system.attachments] == [len(PNG), 12]
    assert sent == tickets.Sent(
        f"{server.url}/browse/OPS-7?focusedCommentId={comment['id']}", updated=False
    )


def test_jira_again_rewrites_the_comment_and_drops_the_old_files(
    parcel: Parcel, servers: ExitStack
) -> None:
    """Posted twice there is still one comment and one file of each name, and they are the new ones."""
    server, environ = start(servers, "jira")
    deliver(parcel, "OPS-7", environ)
    old = [one["id"] for one in server.system.attachments]
    sent = deliver(replace(parcel, body_by_dialect="later {}".format), "OPS-7", environ)
    assert sent.updated
    assert [comment["body"].split("\n")[0] for comment in server.system.comments] == ["later jira"]
    assert len(server.system.attachments) == 2
    assert not {one["id"] for one in server.system.attachments} & set(old)


def test_another_run_has_its_own_comment_and_files(parcel: Parcel, servers: ExitStack) -> None:
    """Two runs whose files have the same names do not overwrite each other on one ticket."""
    server, environ = start(servers, "jira")
    deliver(parcel, "OPS-7", environ)
    assert not deliver(replace(parcel, key="train 2"), "OPS-7", environ).updated
    assert (len(server.system.comments), len(server.system.attachments)) == (2, 4)


def test_a_quotation_of_the_report_is_not_the_report(parcel: Parcel, servers: ExitStack) -> None:
    """Somebody who quotes a report and answers keeps the comment."""
    server, environ = start(servers, "jira")
    deliver(parcel, "OPS-7", environ)
    quoted = {
        "id": "9",
        "self": "-",
        "body": f"{{quote}}\n{server.system.comments[0]['body']}\n{{quote}}\nwhy?",
    }
    server.system.comments.append(quoted)
    assert deliver(parcel, "OPS-7", environ).updated
    assert quoted["body"].endswith("why?")


def test_jira_server_takes_a_bearer_token(parcel: Parcel, servers: ExitStack) -> None:
    """Without an e-mail address the token is a personal access token of Server or Data Center."""
    server, environ = start(servers, "jira")
    server.system.authorization = "Bearer s3cret-jira"
    del environ["LOGMFU_JIRA_EMAIL"]
    assert deliver(parcel, f"{server.url}/browse/OPS-7", environ).url.startswith(server.url)


@pytest.mark.parametrize(
    ("ticket", "place"), [("gitlab:infra/train#3", "issues/3"), ("infra/train!4", "merge_requests/4")]
)
def test_gitlab_uploads_and_notes(parcel: Parcel, servers: ExitStack, ticket: str, place: str) -> None:
    """The note carries the Markdown GitLab gave for each upload; again rewrites the note."""
    server, environ = start(servers, "gitlab")
    sent = deliver(parcel, ticket, environ)
    (note,) = server.system.notes[place]
    assert note["body"].startswith(
        f"<!-- logmfu report {parcel.mark} -->\n\nMFU fell to 31 % (github)\n\n![train.report."
    )
    assert [content for _, content in server.system.uploads] == [PNG, b"<p>MFU</p>\r\n"]
    assert sent.url == f"{server.url}/infra/train/-/{place}#note_500"
    assert deliver(parcel, ticket, environ).updated
    assert len(server.system.notes[place]) == 1
    assert "00003/train" in note["body"]


def test_a_log_line_is_no_gitlab_command(parcel: Parcel, servers: ExitStack) -> None:
    """A line that begins with a slash cannot close the issue."""
    server, environ = start(servers, "gitlab")
    deliver(replace(parcel, body_by_dialect="a\n/close {}".format, files=()), TICKETS["gitlab"], environ)
    assert "\n\\/close" in server.system.notes["issues/3"][0]["body"]


def test_github_links_files_by_commit(parcel: Parcel, servers: ExitStack) -> None:
    """The files are on a branch without parents, and the comment links the very commit."""
    server, environ = start(servers, "github")
    sent = deliver(parcel, f"{server.url}/acme/train/issues/12", environ)
    commit = server.system.refs["refs/heads/logmfu-assets"]
    assert server.system.commits[commit]["parents"] == []
    (comment,) = server.system.comments
    picture = f"{server.url}/acme/train/blob/{commit}/issues/12/train.report.{parcel.mark}.png?raw=true"
    assert f"![train.report.{parcel.mark}.png]({picture})" in comment["body"]
    assert sent.url == comment["html_url"]


def test_github_again_adds_a_commit_only_for_new_files(parcel: Parcel, servers: ExitStack) -> None:
    """The same files make no commit; another picture makes one on top, and one comment stays."""
    server, environ = start(servers, "github")
    deliver(parcel, TICKETS["github"], environ)
    first = server.system.refs["refs/heads/logmfu-assets"]
    assert deliver(parcel, TICKETS["github"], environ).updated
    assert len(server.system.commits) == 1
    parcel.files[0].write_bytes(PNG + b"!")
    assert deliver(parcel, TICKETS["github"], environ).updated
    second = server.system.refs["refs/heads/logmfu-assets"]
    assert server.system.commits[second]["parents"] == [first]
    assert second in server.system.comments[0]["body"]
    assert len(server.system.comments) == 1


def test_github_tries_again_when_the_branch_moved(parcel: Parcel, servers: ExitStack) -> None:
    """Somebody else's commit between reading and moving the branch is kept, and ours goes on top."""
    server, environ = start(servers, "github")
    deliver(replace(parcel, key="other"), TICKETS["github"], environ)
    other = server.system.refs["refs/heads/logmfu-assets"]
    races = []

    def race(request: Request) -> Reply | None:
        if request.method != "PATCH" or "/git/refs/" not in request.path or races:
            return None
        races.append(request.path)
        return Reply({"message": "Update is not a fast forward"}, 422)

    server.fail = race
    deliver(parcel, TICKETS["github"], environ)
    assert len(races) == 1
    assert server.system.commits[server.system.refs["refs/heads/logmfu-assets"]]["parents"] == [other]


def test_slack_puts_the_files_into_the_thread(parcel: Parcel, servers: ExitStack) -> None:
    """One message, its files in its thread, and metadata by which it is found again."""
    server, environ = start(servers, "slack")
    sent = deliver(parcel, TICKETS["slack"], environ)
    (message,) = server.system.messages
    assert message["text"] == "MFU fell to 31 % (slack)"
    assert message["metadata"]["event_payload"] == {"mark": parcel.mark, "files": ["F0", "F1"]}
    assert [file["content"] for file in server.system.files.values()] == [PNG, b"<p>MFU</p>\r\n"]
    assert {file["thread"] for file in server.system.files.values()} == {message["ts"]}
    assert sent.url == f"{server.url}/archives/C0OPS0001/p1700000000000100"


def test_slack_again_updates_the_message_and_deletes_the_old_files(
    parcel: Parcel, servers: ExitStack
) -> None:
    """Posted twice there is one message with the new text and the new files."""
    server, environ = start(servers, "slack")
    deliver(parcel, TICKETS["slack"], environ)
    assert deliver(replace(parcel, body_by_dialect="later {}".format), TICKETS["slack"], environ).updated
    assert [message["text"] for message in server.system.messages] == ["later slack"]
    assert set(server.system.files) == {"F2", "F3"}


def test_slack_answers_in_the_thread_of_a_link(parcel: Parcel, servers: ExitStack) -> None:
    """The link of a message means its thread, for the text and for the files."""
    server, environ = start(servers, "slack")
    link = f"{server.url}/archives/C0OPS0001/p1699999999000200"
    deliver(parcel, link, environ)
    assert server.system.messages[0]["thread_ts"] == "1699999999.000200"
    assert deliver(parcel, link, environ).updated


def test_slack_without_the_right_to_read_says_so(parcel: Parcel, servers: ExitStack) -> None:
    """An app that may not read the channel still posts, and says that it could not look."""
    server, environ = start(servers, "slack")
    server.system.error["conversations.history"] = {"error": "missing_scope", "needed": "channels:history"}
    sent = deliver(parcel, TICKETS["slack"], environ)
    assert "channels:history" in sent.notes[0]


def test_webhook_is_one_document(parcel: Parcel, servers: ExitStack) -> None:
    """The document has both texts, the picture, and the page by name only."""
    server, environ = start(servers, "webhook")
    deliver(parcel, "webhook", environ)
    (request,) = server.requests
    document = request.json()
    assert request.headers["authorization"] == "Bearer s3cret-webhook"
    assert (document["schema"], document["mark"]) == ("logmfu.ticket/1", parcel.mark)
    assert (document["markdown"], document["text"]) == (
        "MFU fell to 31 % (github)",
        "MFU fell to 31 % (plain)",
    )
    assert [sorted(file) for file in document["files"]] == [
        ["base64", "bytes", "media_type", "name"],
        ["bytes", "media_type", "name"],
    ]


@pytest.mark.parametrize(("name", "method"), [("jira", "PUT"), ("gitlab", "PUT"), ("github", "PATCH")])
def test_a_comment_of_somebody_else_is_not_fought_over(
    parcel: Parcel, servers: ExitStack, name: str, method: str
) -> None:
    """When the earlier report may not be edited, a new comment is added and a note says why."""
    server, environ = start(servers, name)
    deliver(replace(parcel, files=()), TICKETS[name], environ)
    server.fail = lambda request: Reply({"message": "not yours"}, 403) if request.method == method else None
    sent = deliver(replace(parcel, files=()), TICKETS[name], environ)
    assert not sent.updated
    assert "may not be edited" in sent.notes[0]


# --- failures ---------------------------------------------------------------------------------------------

STATUSES = {
    401: "does not accept the credentials",
    403: "does not allow this",
    404: "has no such ticket, or hides it",
    413: "is too large",
    429: "limits the rate of requests",
    500: "failed",
}


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("name", NAMES)
def test_every_refusal_explains_itself(parcel: Parcel, servers: ExitStack, name: str, status: int) -> None:
    """What happened, in the server's words too, where the files are, and how to attach them by hand."""
    server, environ = start(servers, name)
    server.fail = lambda _: Reply(
        {"message": "the server's own words"}, status, {"Retry-After": "30"} if status == 429 else {}
    )
    text = refused(parcel, TICKETS[name], environ)
    assert STATUSES[status] in text
    assert f"→ {status}" in text
    assert "it says: the server's own words" in text
    assert f"on disk: {parcel.files[0]}" in text
    assert "by hand: " in text
    assert "try: " in text
    assert ("wait 30 s" in text) == (status == 429)
    assert len(server.requests) == 1
    assert parcel.files[0].read_bytes() == PNG


@pytest.mark.parametrize("name", NAMES)
def test_no_secret_is_in_an_error_or_a_log(
    parcel: Parcel, servers: ExitStack, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that echoes every header in its error does not get the token printed or logged."""
    server, environ = start(servers, name)

    def echo(request: Request) -> Reply:
        sent = {name: value for name, value in request.headers.items() if "auth" in name or "token" in name}
        return Reply({"message": f"I got {sent} at {request.path}"}, 400)

    server.fail = echo
    with caplog.at_level(logging.DEBUG):
        text = refused(parcel, TICKETS[name], environ)
    echoed = [*server.requests[0].headers.values()]
    assert any("s3cret" in value or "b25jYWxs" in value for value in echoed)
    for secret in (f"s3cret-{name}", "b25jYWxsQGFjbWUuZXhhbXBsZTpzM2NyZXQtamlyYQ==", "h1dden-path"):
        assert secret not in text + caplog.text
    assert "***" in text


@pytest.mark.parametrize("name", NAMES)
def test_a_silent_server_is_left(parcel: Parcel, servers: ExitStack, name: str) -> None:
    """No answer within the limit is an error that says the request may have arrived."""
    server, environ = start(servers, name)
    release = threading.Event()
    server.fail = lambda _: Reply({}, delay=release)
    text = refused(parcel, TICKETS[name], environ, timeout_s=0.2)
    release.set()
    assert "did not answer within 0.2 s" in text
    assert "may have arrived" in text


@pytest.mark.parametrize("name", NAMES)
def test_a_closed_port_is_named(parcel: Parcel, name: str) -> None:
    """A refused connection says so, with the host."""
    with serving(MAKERS[name]) as server:
        environ = environment(server, name)
    text = refused(parcel, TICKETS[name], environ)
    assert f"no connection to {server.url}" in text
    assert "Connection refused" in text


@pytest.mark.parametrize("name", NAMES)
def test_a_redirect_does_not_carry_the_credentials_away(
    parcel: Parcel, servers: ExitStack, name: str
) -> None:
    """Another host, although the server points there, gets no request at all."""
    server, environ = start(servers, name)
    other = servers.enter_context(serving(Webhook))
    server.fail = lambda _: Reply({}, 302, {"Location": f"{other.url}/login?next=x"})
    text = refused(parcel, TICKETS[name], environ)
    assert "it was not followed" in text
    assert f"{other.url}/login" in text
    assert other.requests == []


def test_a_link_of_the_server_does_not_carry_the_credentials_away(
    parcel: Parcel, servers: ExitStack
) -> None:
    """The libraries follow the links a server gives; a link to another host is not followed with a token."""
    other = servers.enter_context(serving(Webhook))
    server, environ = start(servers, "jira")
    deliver(parcel, "OPS-7", environ)
    server.system.comments[0]["self"] = server.system.comments[0]["self"].replace(server.url, other.url)
    deliver(parcel, "OPS-7", environ)
    server, environ = start(servers, "github")
    deliver(parcel, TICKETS["github"], environ)
    server.system.comments[0]["url"] = "http://other.example/repos/acme/train/issues/comments/900"
    assert "answers with links to another host" in refused(parcel, TICKETS["github"], environ)
    assert other.requests == []


def test_the_wire_carries_a_credential_to_one_host_only(servers: ExitStack) -> None:
    """Whatever a library does, a request with the token in a header or the address stays on the right host."""
    home, other = servers.enter_context(serving(Webhook)), servers.enter_context(serving(Webhook))
    session = Wire(f"{home.url}/api", Credential("t0ken-abcdef")).session()
    for url, headers in [(other.url, {"X-Any": "t0ken-abcdef"}), (f"{other.url}/?key=t0ken-abcdef", {})]:
        with pytest.raises(TicketError, match="would go to"):
            session.get(url, headers=headers)
    assert session.get(other.url).status_code == 200
    assert len(other.requests) == 1


def test_slack_uploads_go_out_without_the_token(parcel: Parcel, servers: ExitStack) -> None:
    """The upload address may be on another host, and gets the file and nothing else."""
    server, environ = start(servers, "slack")
    other = servers.enter_context(serving(Webhook))
    server.system.upload_base = other.url
    deliver(parcel, TICKETS["slack"], environ)
    assert [request.body for request in other.requests] == [PNG, b"<p>MFU</p>\r\n"]
    assert "s3cret" not in str(other.requests)


@pytest.mark.parametrize("name", ["jira", "gitlab", "github", "slack"])
def test_a_login_page_is_recognised(parcel: Parcel, servers: ExitStack, name: str) -> None:
    """A web page with status 200 where data is due is an error, not a success or a crash."""
    server, environ = start(servers, name)
    server.fail = lambda _: Reply(b"<html>please log in</html>")
    assert "answered with something that is not data" in refused(parcel, TICKETS[name], environ)


def test_github_calls_its_rate_limit_403(parcel: Parcel, servers: ExitStack) -> None:
    """403 with nothing remaining is a rate limit, with the time it ends."""
    server, environ = start(servers, "github")
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1767225600"}
    server.fail = lambda _: Reply({"message": "slow down"}, 403, headers)
    text = refused(parcel, TICKETS["github"], environ)
    assert "limits the rate of requests" in text
    assert "2026-01-01 00:00:00 UTC" in text


def test_the_file_that_is_too_large_is_on_disk_and_the_way_out_is_named(
    parcel: Parcel, servers: ExitStack
) -> None:
    """413 on the upload names the option that posts the text alone, which then works."""
    server, environ = start(servers, "jira")
    server.fail = lambda request: Reply({}, 413) if request.path.endswith("/attachments") else None
    assert "--no-files posts the text alone" in refused(parcel, "OPS-7", environ)
    assert not deliver(replace(parcel, files=()), "OPS-7", environ).updated


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ({"error": "not_in_channel"}, "/invite"),
        ({"error": "missing_scope", "needed": "chat:write"}, "it needs: chat:write"),
        ({"error": "token_revoked"}, "does not accept the credentials"),
        ({"error": "something_new"}, "it says: something_new"),
    ],
)
def test_slack_errors_come_with_status_200(
    parcel: Parcel, servers: ExitStack, error: dict[str, Any], expected: str
) -> None:
    """What Slack says inside a successful answer is an error all the same."""
    server, environ = start(servers, "slack")
    server.system.error["chat.postMessage"] = error
    assert expected in refused(parcel, TICKETS["slack"], environ)


def test_control_characters_of_a_server_do_not_reach_the_terminal(
    parcel: Parcel, servers: ExitStack
) -> None:
    """An escape sequence in an error is shown as a question mark."""
    server, environ = start(servers, "github")
    server.fail = lambda _: Reply({"message": "\x1b[2Jgone\nto\u202eo"}, 400)
    assert "it says: ?[2Jgone to?o" in refused(parcel, TICKETS["github"], environ)


def test_an_upload_that_vanished_is_a_note(parcel: Parcel, servers: ExitStack) -> None:
    """An old file that cannot be deleted does not make a posted report a failure."""
    server, environ = start(servers, "jira")
    deliver(parcel, "OPS-7", environ)
    server.fail = lambda request: Reply({}, 403) if request.method == "DELETE" else None
    sent = deliver(parcel, "OPS-7", environ)
    assert sent.updated
    assert [note.endswith("may not delete it") for note in sent.notes] == [True, True]


def test_slack_uploads_that_are_not_confirmed_are_an_error(parcel: Parcel, servers: ExitStack) -> None:
    """Another status than 200 on the upload is not taken for success."""
    server, environ = start(servers, "slack")
    server.fail = lambda request: Reply(b"later", 202) if request.path.startswith("/upload/") else None
    assert "Slack did not take a file" in refused(parcel, TICKETS["slack"], environ)


def test_a_slack_message_of_another_app_is_left_alone(parcel: Parcel, servers: ExitStack) -> None:
    """A message that may not be edited stays, with its files; a new one is written and a note says so."""
    server, environ = start(servers, "slack")
    deliver(parcel, TICKETS["slack"], environ)
    server.fail = lambda request: (
        Reply({"ok": False, "error": "cant_update_message"})
        if request.path.endswith("chat.update") and len(server.system.messages) == 1
        else None
    )
    sent = deliver(parcel, TICKETS["slack"], environ)
    assert not sent.updated
    assert "not ours to edit" in sent.notes[0]
    assert len(server.system.files) == 4


def test_a_slack_file_that_cannot_be_deleted_is_a_note(parcel: Parcel, servers: ExitStack) -> None:
    """The report is there all the same."""
    server, environ = start(servers, "slack")
    deliver(parcel, TICKETS["slack"], environ)
    server.system.error["files.delete"] = {"error": "file_not_found"}
    assert "F0, stays in the thread: file_not_found" in deliver(parcel, TICKETS["slack"], environ).notes[0]


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, "wait until Wed, 21 Oct 2026 07:28:00 GMT"),
        ({"RateLimit-Reset": "1767225600"}, "wait until 2026-01-01 00:00:00 UTC"),
        ({}, "try: run the same command again"),
        ({"RateLimit-Reset": "9" * 30}, "try: run the same command again"),
    ],
)
def test_waits_come_in_several_forms(
    parcel: Parcel, servers: ExitStack, headers: dict[str, str], expected: str
) -> None:
    """Seconds, a date, a time since 1970, or nothing."""
    server, environ = start(servers, "gitlab")
    server.fail = lambda _: Reply({}, 429, headers)
    assert expected in refused(parcel, TICKETS["gitlab"], environ)


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (["a", "b"], "it says: ['a', 'b']"),
        ({"errors": {"body": ["too", "long"]}, "message": None}, "it says: body: too, long"),
        ({"message": "x" * 1000}, "xxx…"),
        (b"<html>proxy</html>", "→ 502"),
    ],
)
def test_words_of_a_server_come_in_several_forms(
    parcel: Parcel, servers: ExitStack, payload: Any, expected: str
) -> None:
    """Lists, nested fields, too much, and a page nobody wants to read in a terminal."""
    server, environ = start(servers, "gitlab")
    server.fail = lambda _: Reply(payload, 502)
    text = refused(parcel, TICKETS["gitlab"], environ)
    assert expected in text
    assert "<html>" not in text


@pytest.mark.parametrize("name", ["jira", "gitlab", "github", "slack"])
@pytest.mark.parametrize("payload", [{}, [], None, [None], {"comments": 1}, "text", 7])
def test_data_of_another_shape_is_an_error(
    parcel: Parcel, servers: ExitStack, name: str, payload: Any
) -> None:
    """Whatever a server answers with status 200, the outcome is a report or an error, never a crash."""
    server, environ = start(servers, name)
    server.fail = lambda _: Reply(payload)
    with suppress(TicketError):
        assert deliver(parcel, TICKETS[name], environ).url


def test_a_file_that_vanished_is_an_error(parcel: Parcel, servers: ExitStack) -> None:
    """Somebody may clean up at the wrong moment."""
    _, environ = start(servers, "gitlab")
    parcel.files[0].unlink()
    assert "a file of the report cannot be read" in refused(parcel, TICKETS["gitlab"], environ)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (requests.exceptions.SSLError("certificate verify failed: self-signed"), "REQUESTS_CA_BUNDLE"),
        (
            requests.ConnectionError("(Caused by NameResolutionError: Failed to resolve 'x')"),
            "Failed to resolve",
        ),
        (requests.ConnectionError("odd"), "2,000,000 bytes were on their way"),
    ],
)
def test_a_broken_connection_says_what_broke(error: requests.RequestException, expected: str) -> None:
    """Certificates, names, and connections that a proxy cut in the middle of a large file."""
    request = requests.Request(
        "POST", "https://acme.example/x", headers={"Content-Length": "2000000"}
    ).prepare()
    assert expected in str(unreachable(request, error, 60.0, Credential("")))


def test_a_server_that_hangs_up_is_named(parcel: Parcel) -> None:
    """A connection closed without an answer is not a success."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        closer = threading.Thread(target=lambda: listening.accept()[0].close())
        closer.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        environ = {"LOGMFU_GITLAB_URL": url, "LOGMFU_GITLAB_TOKEN": "t0ken-abcdef"}
        text = refused(parcel, TICKETS["gitlab"], environ)
        closer.join()
    assert f"no connection to {url}" in text


# --- credentials ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["jira", "gitlab", "github", "slack"])
def test_missing_credentials_name_the_variable(parcel: Parcel, servers: ExitStack, name: str) -> None:
    """Without credentials nothing is sent, and the error says what to set."""
    server, environ = start(servers, name)
    del environ[f"LOGMFU_{name.upper()}_TOKEN"]
    text = refused(parcel, TICKETS[name], environ)
    assert f"LOGMFU_{name.upper()}_TOKEN is not set" in text
    assert f"keyring set logmfu-{name} {server.url.removeprefix('http://')}" in text
    assert server.requests == []


def test_the_keyring_is_asked_for_the_host(parcel: Parcel, servers: ExitStack, ring: Emptyring) -> None:
    """A token stored under the host of the ticket is used, without any variable."""
    server, _ = start(servers, "gitlab")
    ring.set_password("logmfu-gitlab", server.url.removeprefix("http://"), "s3cret-gitlab")
    assert deliver(parcel, f"{server.url}/infra/train/-/issues/3", {}).url.startswith(server.url)


def test_a_cloud_token_of_the_keyring_goes_with_the_address(ring: Emptyring) -> None:
    """On Cloud a token needs the e-mail address; a token of Server from the keyring goes without it."""
    for host, user in [("acme.atlassian.net", "me@acme.example"), ("jira.acme.example", "")]:
        ring.set_password("logmfu-jira", host, "t0ken-abcdef")
        target = tickets.find(f"https://{host}/browse/OPS-7", {})
        assert lookup(SYSTEMS["jira"], target, {"LOGMFU_JIRA_EMAIL": "me@acme.example"}).user == user


def test_a_keyring_that_cannot_be_read_is_a_fact(
    parcel: Parcel, servers: ExitStack, ring: Emptyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A locked or missing keyring does not hide what to do instead."""
    server, _ = start(servers, "gitlab")

    def locked(*_: str) -> str:
        raise OSError("no desktop here")

    monkeypatch.setattr(ring, "get_password", locked)
    assert "the keyring cannot be read (OSError)" in refused(
        parcel, f"{server.url}/infra/train/-/issues/3", {}
    )


def test_a_machine_without_keyring_works(
    parcel: Parcel, servers: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keyring library is optional: its absence is only mentioned when nothing else is there."""
    _, environ = start(servers, "gitlab")
    monkeypatch.setitem(sys.modules, "keyring", None)
    assert deliver(parcel, TICKETS["gitlab"], environ).url
    del environ["LOGMFU_GITLAB_TOKEN"]
    assert "keyring library is not installed" in refused(parcel, TICKETS["gitlab"], environ)


@pytest.mark.parametrize(
    ("name", "page"),
    [("jira", "browse/OPS-7"), ("gitlab", "infra/train/-/issues/3"), ("github", "acme/train/issues/12")],
)
def test_a_ticket_address_does_not_decide_where_a_token_goes(
    parcel: Parcel, servers: ExitStack, name: str, page: str
) -> None:
    """The address of a ticket on another host than the configured one gets no token."""
    server, environ = start(servers, name)
    other = servers.enter_context(serving(MAKERS[name]))
    text = refused(parcel, f"{other.url}/{page}", environ)
    assert f"LOGMFU_{name.upper()}_TOKEN is set and belongs to {server.url}" in text
    assert other.requests == []


def test_netrc_is_not_read(
    parcel: Parcel, servers: ExitStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A password in ~/.netrc for the same host does not replace the token."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password wr0ng\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    for name in NAMES:
        server, environ = start(servers, name)
        deliver(parcel, TICKETS[name], environ)
        assert not any("bWU6d3IwbmcK"[:11] in str(request.headers) for request in server.requests)


@given(st.text(min_size=1), st.text(alphabet=st.characters(exclude_characters="*"), min_size=4), st.text())
def test_masking_leaves_no_secret(before: str, secret: str, after: str) -> None:
    """Whatever stands around it, a token is not in the masked text; nor is it in the repr."""
    credential = Credential(secret)
    assert secret not in credential.mask(before + secret + after)
    assert repr(Credential("t0ken-abcdef")) == "Credential(user='', source='')"


# --- which ticket -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ticket", "system", "url"),
    [
        ("ABC-123", "jira", "https://acme.example/jira/browse/ABC-123"),
        ("jira:ABC-123", "jira", "https://acme.example/jira/browse/ABC-123"),
        (
            "https://acme.example/jira/browse/ABC-123?x=1",
            "jira",
            "https://acme.example/jira/browse/ABC-123",
        ),
        ("https://a.example/boards/1?selectedIssue=AB-1", "jira", "https://a.example/browse/AB-1"),
        ("a/b!4", "gitlab", "https://gitlab.com/a/b/-/merge_requests/4"),
        ("a/b/c#4", "gitlab", "https://gitlab.com/a/b/c/-/issues/4"),
        ("https://git.example/a/b/-/work_items/4", "gitlab", "https://git.example/a/b/-/issues/4"),
        ("github:a/b#4", "github", "https://github.com/a/b/issues/4"),
        ("https://github.com/a/b/pull/4/files#r1", "github", "https://github.com/a/b/pull/4"),
        ("C0123ABCD", "slack", "https://slack.com/archives/C0123ABCD"),
        ("https://acme.slack.com/archives/C0123ABCD", "slack", "https://acme.slack.com/archives/C0123ABCD"),
        ("webhook:https://hooks.example/x", "webhook", "https://hooks.example/x"),
    ],
)
def test_tickets_are_recognised(ticket: str, system: str, url: str) -> None:
    """Keys, short forms and addresses name one ticket of one system."""
    target = tickets.find(ticket, {"LOGMFU_JIRA_URL": "https://acme.example/jira"})
    assert (target.system, target.url) == (system, url)


@pytest.mark.parametrize(
    ("site", "api"),
    [
        ("https://github.com", "https://api.github.com"),
        ("https://acme.ghe.com", "https://api.acme.ghe.com"),
        ("https://git.acme.example", "https://git.acme.example/api/v3"),
    ],
)
def test_github_products_have_their_own_api(site: str, api: str) -> None:
    """github.com, GitHub with data residency, and Enterprise Server."""
    assert tickets.find(f"{site}/a/b/issues/4", {}).api == api


@pytest.mark.parametrize(
    ("ticket", "expected"),
    [
        ("nonsense", "is not a ticket"),
        ("https://acme.example/some/page", "is not a ticket"),
        ("a/b#4", "can be a ticket of GitLab or GitHub"),
        ("ABC-123", "LOGMFU_JIRA_URL is not set"),
        ("webhook", "LOGMFU_WEBHOOK_URL"),
        ("http://git.example/a/b/-/issues/4", "LOGMFU_ALLOW_HTTP=1"),
        ("webhook:https://me:pw@hooks.example/x", "has a user name or password in it"),
        ("webhook:https://hooks.example:99999/x", "not a web address"),
        ("jira:C0123ABCD", "https://HOST/browse/ABC-123"),
    ],
)
def test_a_wrong_ticket_is_explained(ticket: str, expected: str) -> None:
    """Nothing is guessed: the error shows the forms, or both meanings."""
    with pytest.raises(TicketError) as caught:
        tickets.find(ticket, {})
    assert expected in str(caught.value)
    assert "pw@" not in str(caught.value)


def test_plain_http_can_be_allowed() -> None:
    """A company network without TLS is a decision somebody has to write down."""
    assert (
        tickets.find("http://git.example/a/b/-/issues/4", {"LOGMFU_ALLOW_HTTP": "1"}).site
        == "http://git.example"
    )


@given(st.text())
def test_any_ticket_text_is_a_ticket_or_an_error(ticket: str) -> None:
    """No text crashes the recognition."""
    with suppress(TicketError):
        assert tickets.find(ticket, {}).system in SYSTEMS


# --- dry run ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_dry_run_shows_what_is_sent(parcel: Parcel, servers: ExitStack, name: str) -> None:
    """On a fresh ticket the real requests are those of the dry run: same methods, same paths, same number."""
    server, environ = start(servers, name)
    target = tickets.find(TICKETS[name], environ)
    shown = tickets.rehearse(parcel, target, environ=environ).exchanges
    assert server.requests == []
    deliver(parcel, TICKETS[name], environ)
    sent = server.requests
    assert [exchange.method for exchange in shown] == [request.method for request in sent]
    for exchange, request in zip(shown, sent, strict=True):
        if "/upload/v1/" not in request.path:
            assert exchange.url.partition("?")[0] == server.url + request.path
        assert {key.lower() for key, _ in exchange.headers} - {"content-length"} <= set(request.headers)


@pytest.mark.parametrize("name", NAMES)
def test_the_dry_run_is_text_without_secrets(parcel: Parcel, name: str) -> None:
    """Offline: where to, headers, text, names and sizes; no token and no hidden address."""
    environ = environment(Server("https://acme.example", [], None), name)
    target = tickets.find(TICKETS[name], environ)
    text = transcript.render(tickets.rehearse(parcel, target, environ=environ), environ)
    assert "dry run: nothing is sent" in text
    assert "MFU fell to 31 %" in text
    assert "1,032" in text or "1032" in text  # bytes of the picture
    assert "acme.example" in text
    assert "s3cret" not in text
    assert "h1dden" not in text
    assert f"LOGMFU_{name.upper()}_TOKEN is set" in text


@pytest.mark.parametrize("name", NAMES)
def test_the_dry_run_needs_no_credentials(parcel: Parcel, name: str) -> None:
    """A newcomer sees the whole thing before there is any token."""
    environ = {"LOGMFU_JIRA_URL": "https://acme.example", "LOGMFU_WEBHOOK_URL": "https://acme.example/x"}
    rehearsal = tickets.rehearse(parcel, tickets.find(TICKETS[name], environ), environ=environ)
    assert f"LOGMFU_{name.upper()}_TOKEN is not set" in transcript.render(rehearsal, environ)


def test_the_dry_run_says_who_can_read_the_files(parcel: Parcel) -> None:
    """GitLab's uploads are readable by address; that is said before they are made."""
    rehearsal = tickets.rehearse(parcel, tickets.find(TICKETS["gitlab"], {}), environ={})
    assert "anybody who has the address of an uploaded file can read it" in transcript.render(rehearsal, {})


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_library_names_its_extra(
    parcel: Parcel, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the client library the error is one pip command."""
    monkeypatch.setitem(sys.modules, SYSTEMS[name].modules[0], None)
    environ = environment(Server("https://acme.example", [], None), name)
    assert f"pip install 'logmfu[{name}]'" in refused(parcel, TICKETS[name], environ)


# --- the text ---------------------------------------------------------------------------------------------


@given(st.text(alphabet="ab `{}noformat\n", max_size=400), st.integers(min_value=120, max_value=200))
def test_a_cut_text_fits(text: str, limit: int) -> None:
    """Whatever the text, what is posted is not longer than the system takes."""
    assert len(fitted(text, limit)) <= limit


def test_a_cut_text_closes_its_block_and_says_that_it_is_cut() -> None:
    """A block of fixed-width text that is cut open would swallow the links below it."""
    text = "head\n````\n" + "line\n" * 100 + "````"
    cut = fitted(text, 200)
    assert "line\n````\n\n(cut: " in cut


def test_slack_counts_bytes(parcel: Parcel, servers: ExitStack) -> None:
    """Slack takes 4,000 bytes in an update; 2,000 three-byte signs are more than that."""
    server, environ = start(servers, "slack")
    body = "\n".join(["–" * 40] * 50)
    deliver(replace(parcel, body_by_dialect=lambda _: body), TICKETS["slack"], environ)
    text = server.system.messages[0]["text"]
    assert 3_700 < len(text.encode()) <= 3_900
    assert "(cut: " in text


# --- the command ------------------------------------------------------------------------------------------


@pytest.fixture
def app(parcel: Parcel, monkeypatch: pytest.MonkeyPatch) -> typer.Typer:
    """The command with a parcel in place of a log that is read."""
    monkeypatch.setattr(command, "packed", lambda *_, **__: parcel)
    made = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    made.command()(command.attach)
    return made


def run(app: typer.Typer, environ: dict[str, str], *arguments: str) -> Any:
    """Run the command in an environment."""
    return CliRunner().invoke(app, list(arguments), env=environ)


def test_the_command_attaches_and_updates(app: typer.Typer, servers: ExitStack) -> None:
    """The first time it says attached, the second time updated, each with the address."""
    server, environ = start(servers, "jira")
    first, second = (run(app, environ, "OPS-7", "train.log") for _ in range(2))
    assert first.stdout.startswith(f"attached: {server.url}/browse/OPS-7")
    assert second.stdout.startswith(f"updated: {server.url}/browse/OPS-7")
    assert (first.exit_code, second.exit_code) == (0, 0)


def test_the_command_without_files_posts_the_text(app: typer.Typer, servers: ExitStack) -> None:
    """--no-files leaves the attachments alone."""
    server, environ = start(servers, "jira")
    assert run(app, environ, "OPS-7", "train.log", "--no-files").exit_code == 0
    assert server.system.attachments == []


def test_the_command_in_a_dry_run_sends_nothing(app: typer.Typer, servers: ExitStack) -> None:
    """The dry run prints the requests, and the server saw none."""
    server, environ = start(servers, "github")
    result = run(app, environ, TICKETS["github"], "train.log", "--dry-run")
    assert result.exit_code == 0
    assert "POST " in result.stdout
    assert server.requests == []


def test_missing_credentials_are_told_before_the_log_is_read(
    app: typer.Typer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log of ten gigabytes is not read in vain."""
    monkeypatch.setattr(command, "packed", lambda *_, **__: pytest.fail("the log was read"))
    result = run(app, {"LOGMFU_GITHUB_TOKEN": ""}, TICKETS["github"], "train.log")
    assert isinstance(result.exception, TicketError)


def test_help_names_every_variable_and_every_system(app: typer.Typer) -> None:
    """What can be configured is in --help."""
    text = run(app, {"COLUMNS": "200"}, "--help").stdout
    for system in SYSTEMS.values():
        assert system.variable("URL") in text
        assert system.variable("TOKEN") in text
        assert f"logmfu[{system.name}]" in text
    assert "LOGMFU_JIRA_EMAIL" in text
    assert "LOGMFU_ALLOW_HTTP" in text


def test_the_page_documents_every_variable_and_every_system() -> None:
    """So does docs/attach.md, with the permissions a token needs."""
    text = (Path(__file__).parent.parent / "docs" / "attach.md").read_text()

    def facts(system: System) -> list[str]:
        return [system.variable("URL"), system.variable("TOKEN"), f"logmfu[{system.name}]", *system.shapes]

    assert [fact for system in SYSTEMS.values() for fact in facts(system) if fact not in text] == []


def test_a_run_becomes_a_parcel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report is read and written by the same calls as everywhere, and its key is the run and its start."""
    import logmfu

    report = SimpleNamespace(name="train.log", start=0.0, to_markdown=lambda dialect: f"in {dialect}")
    monkeypatch.setattr(logmfu, "read", lambda paths, parser: (paths, parser), raising=False)
    monkeypatch.setattr(logmfu, "analyze", lambda run, **options: report, raising=False)
    wrote = SimpleNamespace(write=lambda report, place, stem, force: [place / f"{stem}.report.png"])
    monkeypatch.setattr(logmfu, "postmortem", wrote, raising=False)
    parcel = command.packed(["train.log"], tmp_path, force=False, parser=None, options={"gpu": "H100"})
    assert parcel.files == (tmp_path / "train.report.png",)
    assert (parcel.key, parcel.body_by_dialect("jira")) == ("train.log 0.0", "in jira")
    assert json.dumps(parcel.title) == '"Training run train.log"'
