"""A report as sections of paragraphs, lists, tables and cited lines: what every written output lays out.

Texts are plain: each output escapes all of them, so nothing here may carry markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from logmfu.report import Evidence


@dataclass(frozen=True, slots=True)
class Cell:
    """One table cell. ``sort`` orders it among its column; ``kind`` names a ledger class to colour it by."""

    text: str
    sort: float | str | None = None
    evidence: tuple[Evidence, ...] = ()
    code: bool = False
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A table's column; numbers stand right. A ``minor`` one may go where there is little room."""

    title: str
    number: bool = False
    minor: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells. ``more`` says in words what was left out; ``caption`` what the table shows."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    more: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list of sentences."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Blank:
    """Something a person has to fill in."""

    prompt: str


@dataclass(frozen=True, slots=True)
class Citations:
    """Lines of the log that show the findings."""

    evidence: tuple[Evidence, ...]
    more: str = ""


Block = Table | Text | Bullets | Blank | Citations


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands under it. ``key`` is its anchor."""

    key: str
    title: str
    blocks: tuple[Block, ...]


def table(
    caption: str, columns: Sequence[Column | str], rows: Sequence[Sequence[Cell | str]], *, more: str = ""
) -> Table:
    """A table without its columns in which every cell is empty."""
    whole = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
    heads = [column if isinstance(column, Column) else Column(column) for column in columns]
    kept = [n for n in range(len(heads)) if any(row[n].text or row[n].evidence for row in whole)]
    return Table(
        caption,
        tuple(heads[n] for n in kept),
        tuple(tuple(row[n] for n in kept) for row in whole),
        more,
    )


def without_minor(whole: Table) -> Table:
    """The table without its minor columns."""
    kept = [n for n, column in enumerate(whole.columns) if not column.minor]
    rows = tuple(tuple(row[n] for n in kept) for row in whole.rows)
    return Table(whole.caption, tuple(whole.columns[n] for n in kept), rows, whole.more)


def number(text: str, sort: float | None) -> Cell:
    """A cell with a quantity, ordered by its value; an unknown one is empty."""
    return Cell("" if sort is None else text, sort=sort)


def cite(evidence: Sequence[Evidence]) -> Cell:
    """A cell that points at lines of the log."""
    return Cell("", evidence=tuple(evidence))
