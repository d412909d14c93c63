"""A dry run shows the requests that would be sent, offline and without credentials."""

from __future__ import annotations

import sys
from contextlib import ExitStack

import pytest
from ticket_desk import NAMES, TICKETS, deliver, environment, refused, start
from ticket_servers import Server

from logmfu import tickets
from logmfu.tickets import SYSTEMS, Parcel, transcript


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
