"""Bare labels in front of lines, ``12: `` and ``worker-1: ``, which look like a program's own text.

They are believed when the log itself shows them to be labels: a host-like word on two lines that go on
with more than a value; a number on two lines while at least half of the lines carry one; or either
followed by a prefix that only a process prints.
"""

from __future__ import annotations

import re

from logmfu.envelopes.found import Found
from logmfu.envelopes.loggers import LEVEL

_NUMBER = re.compile(r"[ \t]{0,8}(\d{1,6}(?:\+\d{1,6})?):(?: |$)")
LOOKS_LIKE_HOST = re.compile(
    r"((?=[A-Za-z.-]*[0-9]|localhost)[A-Za-z0-9][A-Za-z0-9.-]{0,252}):(?: |$)"  # pdsh
    r"|([A-Za-z][\w.-]{0,80}[-_]\d{1,5}) +\| ?"  # docker compose
    r"|([A-Za-z][\w.-]{0,80}/\d{1,6}) "  # torchx: role/replica
)
_VALUE = re.compile(r"\s*+[-+]?[\w.%'\"]*+,?+\s*+$")
_BRACKET = re.compile(r" ?\[(?:(?:default|rank)\d+\]:|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
_STRONG = re.compile(
    rf"{_BRACKET.pattern}|[VDIWEC]\d{{4}} \d\d:\d\d:\d\d\.\d{{6}} |(?:{LEVEL}):[A-Za-z_][\w.]*:"
    r"|slurmstepd(?:-[\w.-]+)?: error: "
)
_NOT_A_HOST = re.compile(
    r"(?:adam|alpha|arg|attempt|attn|batch|beta|bf|block|case|chunk|col|conv|cuda|device|dim|"
    r"epoch|example|exp|expert|fc|figure|file|fold|fp|gamma|global|gpu(?=\d$)|group|head|id|int|"
    r"iter|iteration|layer|level|line|linear|local|loss|mm|n|nan|node-rank|npu|num|p|param|"
    r"part|pass|phase|point|q|rank|round|row|run|sample|section|seed|shard|split|stage|step|"
    r"t|table|task|test|tf|thread|time|top|trial|try|v|version|warmup|x|y)?[\d._/-]*$",
    re.IGNORECASE,
)
_TRACKED = 4096


class Labels:
    """Which bare labels this log uses: learned line by line, then frozen."""

    __slots__ = ("_counts", "_labelled", "_since", "agents", "found", "frozen", "hosts", "numbers")

    def __init__(self) -> None:
        self.hosts: set[str] = set()
        self.numbers = False
        self.agents = False
        """A numbered task starts several ranks: its number is not a rank."""
        self.frozen = False
        self._counts: dict[str, int] = {}
        self._labelled = 0
        self._since = 0
        self.found = 0
        """Lines so far that had something like a label."""

    def freeze(self) -> None:
        """Learn no more: from here on every line is judged alike."""
        self.frozen = True
        self._counts.clear()

    def seen(self, lines: int) -> None:
        """Count lines, not empty, that may or may not carry a label."""
        if self._labelled and lines:
            self._since += lines
            self.numbers = self.numbers and 2 * self._labelled >= self._since

    def take(self, text: str, found: Found) -> str | None:
        """The text after a label that is believed; None if there is none."""
        match = _NUMBER.match(text)
        if match:
            self.found += 1
            rest = text[match.end() :]
            if not self._number(match[1], rest):
                return None
            found.task = match[1]
            return rest
        match = LOOKS_LIKE_HOST.match(text)
        if not match:
            return None
        self.found += 1
        token, rest = text.partition(" ")[0], text[match.end() :]
        if not self._host(token, rest):
            return None
        found.host = match[1] or match[2] or found.host
        return rest

    def _number(self, label: str, rest: str) -> bool:
        if not self.frozen:
            self._since += not self._labelled
            self._labelled += 1
            often = self._count("#" + label) >= 2
            self.numbers = self.numbers or (often and 2 * self._labelled >= self._since)
        return self.numbers or _STRONG.match(rest) is not None

    def _host(self, token: str, rest: str) -> bool:
        if token in self.hosts:
            return True
        if not _host_like(token):
            return False
        if not self.frozen and not _VALUE.match(rest) and self._count(token) >= 2:
            self.hosts.add(token)
        return token in self.hosts or _BRACKET.match(rest) is not None

    def place(self, found: Found) -> None:
        """Say what the number of a task means: the rank, or only where it ran."""
        task = found.task or ""
        rank = int(task) if task.isdecimal() else None
        inside = found.local_rank is not None or (found.rank is not None and found.rank != rank)
        self.agents = self.agents or (inside and not self.frozen)
        if inside or self.agents or rank is None:
            found.host = found.host or f"task {task}"
        else:
            found.rank = rank

    def _count(self, token: str) -> int:
        if token not in self._counts and len(self._counts) >= _TRACKED:
            return 0
        self._counts[token] = self._counts.get(token, 0) + 1
        return self._counts[token]


def _host_like(token: str) -> bool:
    """Whether a word with digits is more than a counted noun (``layer1``) or a number; an address is."""
    return _NOT_A_HOST.match(token.rstrip(":")) is None or token.count(".") == 3
