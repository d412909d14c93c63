"""Every failure explains itself, leaves the files on disk, and shows no secret."""

from __future__ import annotations

import socket
import threading
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
import requests
from ticket_desk import MAKERS, NAMES, PNG, TICKETS, deliver, environment, refused, start
from ticket_servers import Reply, serving

from logmfu import tickets
from logmfu.tickets import SYSTEMS, Parcel
from logmfu.tickets.credentials import Credential
from logmfu.tickets.refusal import unreachable

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
        ({}, "it says: no reason given"),
    ],
)
def test_slack_errors_come_with_status_200(
    parcel: Parcel, servers: ExitStack, error: dict[str, Any], expected: str
) -> None:
    """What Slack says inside a successful answer is an error all the same."""
    server, environ = start(servers, "slack")
    server.system.error["chat.postMessage"] = error
    assert expected in refused(parcel, TICKETS["slack"], environ)
    del server.system.error["chat.postMessage"]
    deliver(parcel, TICKETS["slack"], environ)
    server.system.error["chat.update"] = error
    assert expected in refused(parcel, TICKETS["slack"], environ)


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


@pytest.mark.parametrize(
    ("name", "method", "path"),
    [
        ("jira", "PUT", "/comment/"),
        ("jira", "DELETE", "/attachment/"),
        ("gitlab", "PUT", "/notes/"),
        ("github", "PATCH", "/issues/comments/"),
        ("github", "GET", "/git/ref/"),
        ("github", "POST", "/git/trees"),
        ("slack", "POST", "/chat.update"),
    ],
)
def test_a_failure_in_the_middle_is_a_failure(
    parcel: Parcel, servers: ExitStack, name: str, method: str, path: str
) -> None:
    """A server error on a later request is not taken for a refusal that has a way around it."""
    server, environ = start(servers, name)
    deliver(parcel, TICKETS[name], environ)
    server.fail = lambda request: (
        Reply({"message": "broken"}, 500) if request.method == method and path in request.path else None
    )
    parcel.files[0].write_bytes(PNG + b"!")
    assert "it says: broken" in refused(parcel, TICKETS[name], environ)
    server.fail = None
    assert deliver(parcel, TICKETS[name], environ).updated


def test_the_branch_is_not_fought_over_for_ever(parcel: Parcel, servers: ExitStack) -> None:
    """A branch that cannot be moved, because it is protected for example, is given up after three attempts."""
    server, environ = start(servers, "github")
    server.fail = lambda request: (
        Reply({"message": "no"}, 422) if request.path.endswith("/git/refs") else None
    )
    assert "it says: no" in refused(parcel, TICKETS["github"], environ)
    assert [call.endswith("/git/refs") for call in server.calls()].count(True) == 3


def test_a_bug_is_not_dressed_up(parcel: Parcel, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no answer of a server, no file and no network stays what it is."""

    def broken(*_: Any) -> tickets.Sent:
        raise ZeroDivisionError

    monkeypatch.setitem(SYSTEMS, "webhook", replace(SYSTEMS["webhook"], post=broken))
    with pytest.raises(ZeroDivisionError):
        deliver(parcel, "webhook:https://acme.example/x", {})
