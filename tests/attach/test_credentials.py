"""Credentials come from the environment or the keyring, and go to one host."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ticket_desk import MAKERS, NAMES, TICKETS, Emptyring, deliver, refused, start
from ticket_servers import serving

from logmfu import tickets
from logmfu.tickets import SYSTEMS, Parcel
from logmfu.tickets.credentials import Credential, lookup


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


TOKENS = st.text(
    alphabet=st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="*"), min_size=4
)


@given(st.text(), TOKENS, st.text())
def test_masking_leaves_no_secret(before: str, secret: str, after: str) -> None:
    """Whatever stands around it, a token is not in the masked text; nor is it in the repr."""
    credential = Credential(secret)
    assert secret not in credential.mask(before + secret + after)
    assert repr(Credential("t0ken-abcdef")) == "Credential(user='', source='')"


@pytest.mark.parametrize("token", ["two words", "d\u2013ash", "l\ud800one"])
def test_a_token_that_was_copied_badly_is_told_before_it_is_used(parcel: Parcel, token: str) -> None:
    """A blank, a typographic dash or half a character is no part of a token; the error does not show it."""
    text = refused(parcel, "a/b!1", {"LOGMFU_GITLAB_TOKEN": token})
    assert "has characters that no token has" in text
    assert token not in text


def test_a_webhook_needs_no_token(parcel: Parcel, servers: ExitStack) -> None:
    """Without one there is no Authorization header, and the configured address is still a secret."""
    server, environ = start(servers, "webhook")
    del environ["LOGMFU_WEBHOOK_TOKEN"]
    assert deliver(parcel, "webhook", environ).url == f"{server.url}/***"
    assert "authorization" not in server.requests[0].headers
