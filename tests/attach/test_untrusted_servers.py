"""No server, whatever it answers, gets a token it should not have, or its text or shape into our output."""

from __future__ import annotations

import logging
from contextlib import ExitStack, suppress
from typing import Any

import pytest
from ticket_desk import NAMES, PNG, TICKETS, deliver, refused, start
from ticket_servers import Reply, Request, serving
from ticket_systems import Webhook

from logmfu.errors import TicketError
from logmfu.tickets import Parcel
from logmfu.tickets.credentials import Credential
from logmfu.tickets.wire import Wire


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


def test_control_characters_of_a_server_do_not_reach_the_terminal(
    parcel: Parcel, servers: ExitStack
) -> None:
    """An escape sequence in an error is shown as a question mark."""
    server, environ = start(servers, "github")
    server.fail = lambda _: Reply({"message": "\x1b[2Jgone\nto\u202eo"}, 400)
    assert "it says: ?[2Jgone to?o" in refused(parcel, TICKETS["github"], environ)


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


def test_a_redirect_on_the_same_host_is_followed_when_reading(parcel: Parcel, servers: ExitStack) -> None:
    """A project that was renamed is found when its server says where, and is not written to by the old name."""
    server, environ = start(servers, "gitlab")

    def renamed(request: Request) -> Reply | None:
        if "/infra%2Fold/" not in request.path:
            return None
        return Reply({}, 301, {"Location": server.url + request.path.replace("old", "train")})

    server.fail = renamed
    text = refused(parcel, "infra/old!4", environ)
    assert "POST → 301" in text
    assert [request.method for request in server.requests] == ["GET", "GET", "POST"]


def test_an_upload_in_clear_text_is_refused(parcel: Parcel, servers: ExitStack) -> None:
    """Slack's upload address has to be https, as everything outside this machine."""
    server, environ = start(servers, "slack")
    server.system.upload_base = "http://files.example"
    assert "http://files.example is plain http" in refused(parcel, TICKETS["slack"], environ)
