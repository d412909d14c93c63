"""Reports go onto tickets through the real client libraries, over real HTTP; again replaces them."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import pytest
from ticket_desk import NAMES, PNG, TICKETS, deliver, start
from ticket_servers import Reply, Request

from logmfu import tickets
from logmfu.tickets import Parcel


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


@pytest.mark.parametrize("name", NAMES)
def test_a_text_without_files_is_posted_and_rewritten(
    parcel: Parcel, servers: ExitStack, name: str
) -> None:
    """Nothing is uploaded, and again is still again; a webhook's receiver has to see to that itself."""
    server, environ = start(servers, name)
    words = replace(parcel, files=())
    sent = [deliver(words, TICKETS[name], environ).updated for _ in range(2)]
    assert sent == [False, name != "webhook"]
    assert not any(
        part in call for call in server.calls() for part in ("attachment", "upload", "git/", "files.")
    )


def test_system_notes_of_gitlab_are_not_touched(parcel: Parcel, servers: ExitStack) -> None:
    """What GitLab writes about a change of the title may begin as a report does."""
    server, environ = start(servers, "gitlab")
    deliver(parcel, TICKETS["gitlab"], environ)
    server.system.notes["issues/3"][0]["system"] = True
    assert not deliver(parcel, TICKETS["gitlab"], environ).updated
