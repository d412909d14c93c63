"""A ticket as people write it is one ticket of one system, or an error."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logmfu import tickets
from logmfu.errors import TicketError
from logmfu.tickets import SYSTEMS


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


def test_a_configured_address_settles_what_an_address_can_be() -> None:
    """A page that two systems could have belongs to the one whose base URL it is under."""
    page = "https://git.example/a/b/-/issues/4?selectedIssue=AB-1"
    with pytest.raises(TicketError, match="can be a ticket of Jira or GitLab"):
        tickets.find(page, {})
    assert tickets.find(page, {"LOGMFU_GITLAB_URL": "https://git.example"}).system == "gitlab"
