"""GitLab: uploads and one note, on an issue or a merge request (docs.gitlab.com, "Notes API", "Project uploads").

An upload answers with the Markdown that shows the file. Deleting an upload needs the Maintainer role,
so the files of an earlier report stay, unlinked.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from logmfu.errors import TicketError
from logmfu.tickets.address import split
from logmfu.tickets.parcel import Parcel, Sent
from logmfu.tickets.system import System, Target
from logmfu.tickets.wire import Answer, Exchange, Wire

if TYPE_CHECKING:
    from gitlab import Gitlab

LIMIT = 1_000_000
"""Characters of a note (docs.gitlab.com, "GitLab application limits")."""

_KINDS = {
    "issues": "issues",
    "issues/incident": "issues",
    "work_items": "issues",
    "merge_requests": "merge_requests",
}
_PROJECT = r"[\w.-]+(?:/[\w.-]+)+"


def recognise(ticket: str, site: str) -> Target | None:
    """``group/sub/project#12``, ``group/project!34``, or the address of an issue or merge request."""
    if short := re.fullmatch(rf"({_PROJECT})([#!])([0-9]+)", ticket, re.ASCII):
        kind = "issues" if short[2] == "#" else "merge_requests"
        return _target(site.rstrip("/"), short[1], kind, short[3])
    parts = split(ticket, site)
    shape = rf"({_PROJECT})/(?:-/)({'|'.join(_KINDS)})/([0-9]+)/?"
    found = re.fullmatch(shape, parts[1], re.ASCII) if parts else None
    return _target(parts[0], found[1], _KINDS[found[2]], found[3]) if parts and found else None


def _target(base: str, project: str, kind: str, item: str) -> Target:
    return Target(
        "gitlab", base, f"{base}/api/v4", f"{base}/{project}/-/{kind}/{item}", project, kind, item
    )


def post(parcel: Parcel, target: Target, wire: Wire) -> Sent:
    """Upload the files and write or rewrite the note."""
    client = _client(target, wire)
    project = client.projects.get(target.project, lazy=True)
    manager = project.issues if target.kind == "issues" else project.mergerequests
    notes: Any = manager.get(target.item, lazy=True).notes
    earlier = _earlier(notes, parcel.mark)
    links = [_upload(client, project.encoded_id, parcel.name(file), file) for file in parcel.files]
    text = _text(parcel, links)
    remarks: tuple[str, ...] = ()
    if earlier:
        try:
            notes.update(earlier, {"body": text})
        except TicketError as error:
            if error.status != 403:
                raise
            remarks = (
                "the earlier report is somebody else's note and may not be edited: a new one was added",
            )
        else:
            return Sent(f"{target.url}#note_{earlier}", updated=True)
    return Sent(f"{target.url}#note_{notes.create({'body': text}).id}", updated=False, notes=remarks)


def _client(target: Target, wire: Wire) -> Gitlab:
    from gitlab import Gitlab

    return Gitlab(
        target.site,
        private_token=wire.credential.token,
        session=wire.session(),
        keep_base_url=True,
        per_page=100,
    )


def _upload(client: Gitlab, project: Any, name: str, file: Path) -> str:
    """What ``project.upload()`` does, which encodes the path of a project twice (python-gitlab 8.6.0)."""
    with file.open("rb") as stream:
        answered: Any = client.http_post(f"/projects/{project}/uploads", files={"file": (name, stream)})
    return str(answered["markdown"])


def _earlier(notes: Any, mark: str) -> int | None:
    for note in notes.list(iterator=True, order_by="created_at", sort="desc"):
        if not note.system and note.body.startswith(_mark(mark)):
            return int(note.id)
    return None


def _mark(mark: str) -> str:
    return f"<!-- logmfu report {mark} -->"


def _text(parcel: Parcel, links: list[str]) -> str:
    head, tail = f"{_mark(parcel.mark)}\n\n", "\n\n".join(("", *links))
    return head + _defused(parcel.body("github", LIMIT - len(head) - len(tail))) + tail


def _defused(text: str) -> str:
    """A line of a log that begins with a slash must not become a quick action such as ``/close``."""
    return re.sub(r"(?m)^(\s*)/(?=[a-z])", r"\1\\/", text)


def answer(exchange: Exchange) -> Answer:
    """What GitLab answers on an issue without a report."""
    if exchange.method == "GET":
        return Answer([])
    if urlsplit(exchange.url).path.endswith("/uploads"):
        return Answer({"markdown": "(link to the upload, as GitLab gives it)"}, 201)
    return Answer({"id": 0, "body": ""}, 201)


SYSTEM = System(
    name="gitlab",
    title="GitLab",
    modules=("gitlab",),
    site="https://gitlab.com",
    shapes=("group/project!34", "gitlab:group/project#12", "https://HOST/group/project/-/issues/12"),
    recognise=recognise,
    post=post,
    answer=answer,
    permissions="scope api, of a member who may comment",
    by_hand="drop the files into a comment and paste the text",
    caveats=(
        "anybody who has the address of an uploaded file can read it, also in a private project, unless the"
        ' project setting "Require authentication to view media files" is on',
    ),
)
