"""Ticket systems that answer as the vendors' documented APIs do."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from ticket_servers import Reply, Request

NOT_FOUND = Reply({"message": "nothing here"}, 404)


@dataclass
class Jira:
    """One issue, OPS-7. ``basic`` or ``bearer`` is what Authorization has to be."""

    base: str
    authorization: str = (
        "Basic b25jYWxsQGFjbWUuZXhhbXBsZTpzM2NyZXQtamlyYQ=="  # oncall@acme.example:s3cret-jira
    )
    comments: list[dict[str, Any]] = field(default_factory=list)
    attachments: list[dict[str, Any]] = field(default_factory=list)
    count: int = 10_000

    def answer(self, request: Request) -> Reply:
        """Answer one request."""
        if request.headers.get("authorization") != self.authorization:
            return Reply({"errorMessages": ["who are you?"], "errors": {}}, 401)
        issue = "/rest/api/2/issue/OPS-7"
        if request.path == issue:
            return Reply({"id": "1", "key": "OPS-7", "fields": {"attachment": self.attachments}})
        if request.path == f"{issue}/attachments":
            assert request.headers["x-atlassian-token"] == "no-check"
            name, content = request.file()
            self.attachments.append(self._made("attachment", {"filename": name, "size": len(content)}))
            return Reply(self.attachments[-1:])
        if request.path.startswith("/rest/api/2/attachment/") and request.method == "DELETE":
            number = request.path.rpartition("/")[2]
            self.attachments = [one for one in self.attachments if one["id"] != number]
            return Reply(None, 204)
        if request.path == f"{issue}/comment" and request.method == "GET":
            return Reply({"comments": self.comments, "total": len(self.comments)})
        if request.path == f"{issue}/comment":
            self.comments.append(self._made("issue/OPS-7/comment", request.json()))
            return Reply(self.comments[-1], 201)
        for comment in self.comments:
            if comment["self"].endswith(request.path):
                comment.update(request.json() if request.method == "PUT" else {})
                return Reply(comment)
        return Reply({"errorMessages": ["no such issue"], "errors": {}}, 404)

    def _made(self, kind: str, fields: dict[str, Any]) -> dict[str, Any]:
        self.count += 1
        return {"id": str(self.count), "self": f"{self.base}/rest/api/2/{kind}/{self.count}", **fields}


@dataclass
class GitLab:
    """The project infra/train with issue 3 and merge request 4."""

    base: str
    notes: dict[str, list[dict[str, Any]]] = field(
        default_factory=lambda: {"issues/3": [], "merge_requests/4": []}
    )
    uploads: list[tuple[str, bytes]] = field(default_factory=list)

    def answer(self, request: Request) -> Reply:
        """Answer one request."""
        if request.headers.get("private-token") != "s3cret-gitlab":
            return Reply({"message": "401 Unauthorized"}, 401)
        if not request.path.startswith("/api/v4/projects/infra%2Ftrain/"):
            return Reply({"message": "404 Project Not Found"}, 404)
        rest = request.path.removeprefix("/api/v4/projects/infra%2Ftrain/")
        if rest == "uploads":
            self.uploads.append(request.file())
            name = self.uploads[-1][0]
            link = f"[{name}](/uploads/{len(self.uploads):032x}/{name})"
            return Reply({"markdown": f"!{link}" if name.endswith(".png") else link, "url": "-"}, 201)
        place, _, number = rest.partition("/notes")
        if place not in self.notes:
            return Reply({"message": "404 Not found"}, 404)
        notes = self.notes[place]
        if request.method == "GET":
            return Reply(list(reversed(notes)))
        if request.method == "PUT":
            note = next(note for note in notes if note["id"] == int(number.strip("/")))
            note.update(request.json())
            return Reply(note)
        notes.append({"id": 500 + len(notes), "system": False, **request.json()})
        return Reply(notes[-1], 201)


@dataclass
class GitHub:
    """The repository acme/train of an enterprise server, with issue 12."""

    base: str
    comments: list[dict[str, Any]] = field(default_factory=list)
    blobs: dict[str, str] = field(default_factory=dict)
    trees: dict[str, dict[str, str]] = field(default_factory=dict)
    commits: dict[str, dict[str, Any]] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)

    @property
    def api(self) -> str:
        """Address of the repository in the API."""
        return f"{self.base}/api/v3/repos/acme/train"

    def answer(self, request: Request) -> Reply:
        """Answer one request."""
        if request.headers.get("authorization") != "token s3cret-github":
            return Reply({"message": "Bad credentials"}, 401)
        rest = request.path.removeprefix("/api/v3/repos/acme/train/")
        if rest == "issues/12/comments" and request.method == "GET":
            return Reply(self.comments)
        if rest == "issues/12/comments":
            number = 900 + len(self.comments)
            links = {"id": number, "url": f"{self.api}/issues/comments/{number}"}
            page = f"{self.base}/acme/train/issues/12#issuecomment-{number}"
            self.comments.append({**links, "html_url": page, **request.json()})
            return Reply(self.comments[-1], 201)
        for comment in self.comments:
            if rest == f"issues/comments/{comment['id']}":
                comment.update(request.json())
                return Reply(comment)
        return self._git(request, rest)

    def _git(self, request: Request, rest: str) -> Reply:
        sent = request.json() if request.body else {}
        if rest == "git/blobs":
            return Reply({"sha": self._keep(self.blobs, sent["content"]), "url": "-"}, 201)
        if rest == "git/trees":
            files = dict(self.trees.get(sent.get("base_tree", ""), {}))
            files |= {entry["path"]: entry["sha"] for entry in sent["tree"]}
            return Reply({"sha": self._keep(self.trees, files), "url": "-", "tree": []}, 201)
        if rest == "git/commits":
            return Reply(self._commit(self._keep(self.commits, sent)), 201)
        if rest.startswith("git/commits/"):
            return Reply(self._commit(rest.rpartition("/")[2]))
        if rest == "git/refs":
            if sent["ref"] in self.refs:
                return Reply({"message": "Reference already exists"}, 422)
            self.refs[sent["ref"]] = sent["sha"]
            return self._ref(sent["ref"], 201)
        if request.method == "PATCH" and rest.startswith("git/refs/"):
            name = rest.removeprefix("git/")
            if self.refs[name] not in self.commits[sent["sha"]]["parents"]:
                return Reply({"message": "Update is not a fast forward"}, 422)
            self.refs[name] = sent["sha"]
            return self._ref(name, 200)
        name = rest.replace("git/ref/", "refs/")
        return self._ref(name, 200) if request.method == "GET" and name in self.refs else NOT_FOUND

    def _ref(self, name: str, status: int) -> Reply:
        target = {"type": "commit", "sha": self.refs[name], "url": "-"}
        return Reply({"ref": name, "url": f"{self.api}/git/{name}", "object": target}, status)

    def _commit(self, sha: str) -> dict[str, Any]:
        kept = self.commits[sha]
        parents = [{"sha": parent, "url": "-"} for parent in kept["parents"]]
        return {
            "sha": sha,
            "url": "-",
            "message": kept["message"],
            "tree": {"sha": kept["tree"], "url": "-"},
            "parents": parents,
        }

    def _keep(self, store: dict[str, Any], value: Any) -> str:
        sha = hashlib.sha1(json.dumps(value, sort_keys=True).encode(), usedforsecurity=False).hexdigest()
        store[sha] = value
        return sha


@dataclass
class Slack:
    """The channel C0OPS0001."""

    base: str
    messages: list[dict[str, Any]] = field(default_factory=list)
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    error: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By method: what is answered instead."""
    upload_base: str = ""

    def answer(self, request: Request) -> Reply:
        """Answer one request."""
        if request.path.startswith("/upload/"):
            assert "authorization" not in request.headers
            self.files[request.path.rpartition("/")[2]]["content"] = request.body
            return Reply(b"OK - received")
        method = request.path.removeprefix("/api/")
        if request.headers.get("authorization") != "Bearer s3cret-slack":
            return Reply({"ok": False, "error": "invalid_auth"})
        if method in self.error:
            return Reply({"ok": False, **self.error[method]})
        return Reply({"ok": True} | getattr(self, "_" + method.replace(".", "_"))(request.form()))

    def _conversations_history(self, sent: dict[str, Any]) -> dict[str, Any]:
        return {"messages": [one for one in reversed(self.messages) if "thread_ts" not in one]}

    def _conversations_replies(self, sent: dict[str, Any]) -> dict[str, Any]:
        return {"messages": [one for one in self.messages if one.get("thread_ts") == sent["ts"]]}

    def _chat_postMessage(self, sent: dict[str, Any]) -> dict[str, Any]:  # noqa: N802 - Slack's name
        ts = f"17000000{len(self.messages):02}.000100"
        self.messages.append({**sent, "ts": ts})
        return {"ts": ts, "channel": sent["channel"]}

    def _chat_update(self, sent: dict[str, Any]) -> dict[str, Any]:
        message = next(one for one in self.messages if one["ts"] == sent["ts"])
        message.update(sent)
        return {"ts": sent["ts"]}

    def _files_getUploadURLExternal(self, sent: dict[str, Any]) -> dict[str, Any]:  # noqa: N802 - Slack's name
        number = f"F{len(self.files)}"
        self.files[number] = {"name": sent["filename"], "length": int(sent["length"])}
        return {"file_id": number, "upload_url": f"{self.upload_base or self.base}/upload/v1/{number}"}

    def _files_completeUploadExternal(self, sent: dict[str, Any]) -> dict[str, Any]:  # noqa: N802 - Slack's name
        files = json.loads(sent["files"])
        for file in files:
            self.files[file["id"]] |= {"channel": sent["channel_id"], "thread": sent["thread_ts"]}
        return {"files": [{"id": file["id"], "title": file["title"]} for file in files]}

    def _files_delete(self, sent: dict[str, Any]) -> dict[str, Any]:
        del self.files[sent["file"]]
        return {}


@dataclass
class Webhook:
    """Takes anything."""

    base: str

    def answer(self, request: Request) -> Reply:
        """Answer one request."""
        return Reply(b"thanks", headers={"Content-Type": "text/plain"})
