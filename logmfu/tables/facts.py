"""What a log states about the run, with the line that says it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


class Stated(NamedTuple):
    """One statement: the value and where it stands. ``path`` is empty for an option."""

    value: Any
    path: str
    line: int


class Facts(Mapping[str, Any]):
    """Latest value of each fact, with its history.

    A log may state a fact several times (restarts dump their arguments again): the last one holds.
    """

    def __init__(self) -> None:
        self._stated: dict[str, list[Stated]] = {}

    def add(self, name: str, value: Any, path: str = "", line: int = 0) -> None:
        """Take a statement; the same value twice in a row is one statement."""
        history = self._stated.setdefault(name, [])
        if not history or history[-1].value != value or type(history[-1].value) is not type(value):
            history.append(Stated(value, path, line))

    def history(self, name: str) -> list[Stated]:
        """All statements of a fact, in the order of the log."""
        return list(self._stated.get(name, ()))

    def where(self, name: str) -> Stated:
        """The statement that holds. Raises ``KeyError``."""
        return self._stated[name][-1]

    def __getitem__(self, name: str) -> Any:
        return self._stated[name][-1].value

    def __iter__(self) -> Iterator[str]:
        return iter(self._stated)

    def __len__(self) -> int:
        return len(self._stated)

    def __repr__(self) -> str:
        return f"Facts({dict(self)!r})"
