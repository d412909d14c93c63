"""Texts fit into one comment."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from ticket_desk import TICKETS, deliver, start

from logmfu.tickets import Parcel
from logmfu.tickets.parcel import fitted


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


def test_a_block_that_was_closed_stays_closed() -> None:
    """Only a block that the cut opened gets an end of its own."""
    text = "{noformat}\nline\n{noformat}\n" + "words\n" * 100
    assert fitted(text, 200).count("{noformat}") == 2
