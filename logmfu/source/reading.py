"""What one pass over an input found out about the input itself."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Reading:
    """Counts and oddities of one pass over a source, filled while it is read."""

    bytes: int = 0
    """Bytes taken from the file itself: compressed ones for a compressed file."""
    lines: int = 0
    """Physical lines: line feeds, and a last line that has none."""
    truncated: str = ""
    """Why the input ended early, else empty."""
    notes: list[str] = field(default_factory=list)
    """Oddities that were survived (NUL bytes, broken UTF-8 ...) or worked around, with counts."""
    encoding: str = "utf-8"
    """Encoding of the bytes in the file; what a source yields is always UTF-8."""
    ends_with_newline: bool = True
    """Whether the last byte of text read so far was a line feed."""

    def add(self, part: Reading) -> None:
        """Take the next part of the input into account, which was read on its own; not its lines."""
        self.bytes += part.bytes
        self.truncated = self.truncated or part.truncated
        self.ends_with_newline = part.ends_with_newline
        for note in part.notes:
            self.note(note)

    def note(self, note: str) -> None:
        """Add a note; what is counted adds up."""
        count, _, what = note.partition(" ")
        for at, known in enumerate(self.notes):
            before, _, same = known.partition(" ")
            if same == what and count.isdecimal() and before.isdecimal():
                self.notes[at] = f"{int(before) + int(count)} {what}"
                return
            if note == known:
                return
        self.notes.append(note)
