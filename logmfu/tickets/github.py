"""GitHub: one comment, and the files committed to a branch of their own.

There is no call that attaches a file to an issue. So the files go to the branch ``logmfu-assets``, which shares
no history with the code, through the Git data API (docs.github.com, "REST API endpoints for Git database"), and
the comment links them by commit, so that a later report does not change what an earlier link shows.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from logmfu.errors import TicketError
from logmfu.tickets.address import split
from logmfu.tickets.parcel import Parcel, Sent, is_picture
from logmfu.tickets.refusal import printable
from logmfu.tickets.system import System, Target
from logmfu.tickets.wire import Answer, Exchange, Wire

if TYPE_CHECKING:
    from github import Github
    from github.GitRef import GitRef
    from github.IssueComment import IssueComment
    from github.Repository import Repository

LIMIT = 65_536
"""Characters of a comment; GitHub answers 422 "Body is too long (maximum is 65536 characters)"."""

BRANCH = "logmfu-assets"
_RACES = 3
"""Attempts to move the branch when somebody else moves it at the same time."""


def recognise(ticket: str, site: str) -> Target | None:
    """``owner/repo#12``, or the address of an issue or pull request."""
    if short := re.fullmatch(r"([\w.-]+/[\w.-]+)#([0-9]+)", ticket, re.ASCII):
        return _target(site.rstrip("/"), short[1], "issues", short[2])
    parts = split(ticket, site)
    found = (
        re.fullmatch(r"([\w.-]+/[\w.-]+)/(issues|pull)/([0-9]+)(?:/.*)?", parts[1], re.ASCII)
        if parts
        else None
    )
    return _target(parts[0], found[1], found[2], found[3]) if parts and found else None


def _target(base: str, project: str, kind: str, item: str) -> Target:
    return Target("github", base, _api(base), f"{base}/{project}/{kind}/{item}", project, kind, item)


def _api(base: str) -> str:
    """Address of the REST API (docs.github.com, "Getting started with the REST API", per product)."""
    host = urlsplit(base).netloc
    if host in ("github.com", "www.github.com"):
        return "https://api.github.com"
    return f"https://api.{host}" if host.endswith(".ghe.com") else f"{base}/api/v3"


def post(parcel: Parcel, target: Target, wire: Wire) -> Sent:
    """Commit the files and write or rewrite the comment."""
    try:
        return _posted(parcel, target, wire)
    except AssertionError as error:  # how the library objects to a link to a host it does not know
        raise TicketError(
            f"{target.site} answers with links to another host",
            facts=[printable(wire.credential.mask(str(error)))],
            hint="export LOGMFU_GITHUB_URL=https://HOST with the name the server itself uses",
        ) from None


def _posted(parcel: Parcel, target: Target, wire: Wire) -> Sent:
    repository = _client(target, wire).get_repo(target.project)
    issue = repository.get_issue(int(target.item))
    earlier = [
        comment for comment in issue.get_comments() if (comment.body or "").startswith(_mark(parcel.mark))
    ]
    links = _committed(repository, parcel, target)
    text = _text(parcel, links)
    notes: tuple[str, ...] = ()
    if earlier:
        if _edited(earlier[-1], text):
            return Sent(earlier[-1].html_url, updated=True)
        notes = (
            "the earlier report is somebody else's comment and may not be edited: a new one was added",
        )
    return Sent(issue.create_comment(text).html_url, updated=False, notes=notes)


def _client(target: Target, wire: Wire) -> Github:
    import github
    from github.Requester import HTTPRequestsConnectionClass, HTTPSRequestsConnectionClass, Requester

    def wired(connect: Any) -> Any:
        def connection(*arguments: Any, **options: Any) -> Any:
            made = connect(*arguments, **options)
            wire.mounted(made.session)
            return made

        return staticmethod(connection)  # the library keeps it as a class attribute

    # The library takes no session from outside; it reads these classes once, when a client is made.
    Requester.injectConnectionClasses(
        wired(HTTPRequestsConnectionClass), wired(HTTPSRequestsConnectionClass)
    )
    try:
        return github.Github(
            auth=github.Auth.Token(wire.credential.token),
            base_url=target.api,
            retry=None,
            per_page=100,
            # Ten requests at most; GitHub's limit on content is 80 a minute.
            seconds_between_requests=None,
            seconds_between_writes=None,
            lazy=True,
        )
    finally:
        Requester.resetConnectionClasses()


def _edited(comment: IssueComment, text: str) -> bool:
    try:
        comment.edit(text)
    except TicketError as error:
        if error.status != 403:
            raise
        return False
    return True


def _committed(repository: Repository, parcel: Parcel, target: Target) -> list[str]:
    """Markdown links to the files at the commit that holds them."""
    if not parcel.files:
        return []
    folder = f"{target.kind}/{target.item}"
    blobs = {f"{folder}/{parcel.name(file)}": _blob(repository, file) for file in parcel.files}
    commit = _commit(repository, blobs, printable(parcel.title, 100))
    return [_link(target, commit, f"{folder}/{parcel.name(file)}", file) for file in parcel.files]


def _blob(repository: Repository, file: Path) -> str:
    return repository.create_git_blob(base64.b64encode(file.read_bytes()).decode(), "base64").sha


def _commit(repository: Repository, blobs: dict[str, str], message: str) -> str:
    for _ in range(_RACES - 1):
        try:
            return _moved(repository, blobs, message)
        except TicketError as error:
            if error.status != 422:
                raise
    return _moved(repository, blobs, message)


def _moved(repository: Repository, blobs: dict[str, str], message: str) -> str:
    """Put the blobs on the branch; the same files again make no new commit."""
    from github import InputGitTreeElement

    elements = [InputGitTreeElement(path, "100644", "blob", sha=sha) for path, sha in sorted(blobs.items())]
    branch = _branch(repository)
    if branch is None:
        commit = repository.create_git_commit(message, repository.create_git_tree(elements), [])
        repository.create_git_ref(f"refs/heads/{BRANCH}", commit.sha)
        return commit.sha
    head = repository.get_git_commit(branch.object.sha)
    tree = repository.create_git_tree(elements, head.tree)
    if tree.sha == head.tree.sha:
        return head.sha
    commit = repository.create_git_commit(message, tree, [head])
    branch.edit(commit.sha, force=False)
    return commit.sha


def _branch(repository: Repository) -> GitRef | None:
    try:
        branch = repository.get_git_ref(f"heads/{BRANCH}")
        branch.complete()  # lazy until then, and its address would be the one for reading only
    except TicketError as error:
        if error.status != 404:
            raise
        return None
    return branch


def _link(target: Target, commit: str, path: str, file: Path) -> str:
    """``blob/…?raw=true`` is the form that shows pictures of a private repository to its members."""
    address = f"{target.site}/{target.project}/blob/{commit}/{path}"
    name = path.rpartition("/")[2]
    return f"![{name}]({address}?raw=true)" if is_picture(file) else f"[{name}]({address})"


def _mark(mark: str) -> str:
    return f"<!-- logmfu report {mark} -->"


def _text(parcel: Parcel, links: list[str]) -> str:
    head, tail = f"{_mark(parcel.mark)}\n\n", "\n\n".join(("", *links))
    return head + parcel.body("github", LIMIT - len(head) - len(tail)) + tail


def answer(exchange: Exchange) -> Answer:
    """What GitHub answers on an issue without a report, in a repository without the branch."""
    path = urlsplit(exchange.url).path
    if exchange.method == "GET":
        return Answer({"message": "Not Found"}, 404) if "/git/ref/" in path else Answer([])
    payload = {
        "sha": "0" * 40,
        "url": exchange.url,
        "html_url": "-",
        "body": "",
        "ref": f"refs/heads/{BRANCH}",
        "tree": {"sha": "0" * 40, "url": exchange.url} if path.endswith("/commits") else [],
    }
    return Answer(payload, 201)


SYSTEM = System(
    name="github",
    title="GitHub",
    modules=("github",),
    site="https://github.com",
    shapes=(
        "github:owner/repo#12",
        "https://github.com/owner/repo/issues/12",
        "https://HOST/owner/repo/pull/12",
    ),
    recognise=recognise,
    post=post,
    answer=answer,
    permissions="Issues (or Pull requests) and Contents: read and write",
    by_hand="drop the picture into a comment and paste the text (the web page takes no .html; a .zip of it, yes)",
    caveats=(
        f"the files are committed to the branch {BRANCH}: whoever may read the repository may read them,"
        " and they stay in its history",
    ),
)
