"""Every exception logmfu raises on purpose. Bugs are not wrapped."""

from __future__ import annotations

from collections.abc import Sequence


class LogmfuError(Exception):
    """Something could not be done: what, the facts, and a way out.

    ``what`` is one sentence, ``facts`` are short lines that support it, ``hint`` says what to try.
    """

    def __init__(self, what: str, *, facts: Sequence[str] = (), hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.facts = tuple(facts)
        self.hint = hint

    def __str__(self) -> str:
        lines = [f"error: {self.what}", *(f"  {fact}" for fact in self.facts)]
        if self.hint:
            lines.append(f"  try: {self.hint}")
        return "\n".join(lines)


class SourceError(LogmfuError):
    """An input cannot be opened or decompressed, or it is not text."""


class OutputError(LogmfuError):
    """A file cannot be written."""


class FormatError(LogmfuError):
    """No parser fits, or two do, or one fits and there is nothing in the log it can use."""


class MissingFactError(LogmfuError):
    """A number was asked for that needs a fact the log does not print."""


class PluginError(LogmfuError):
    """A parser that was asked for by name is broken."""


class OptionError(LogmfuError):
    """An option's value cannot be understood."""


class TicketError(LogmfuError):
    """A report could not be put onto a ticket; the files stay where they are."""

    status: int | None = None
    """HTTP status of the refusal, when there was one."""
