"""The report as text for a ticket: GitHub and GitLab Markdown, Jira wiki markup, Slack mrkdwn, plain text.

One document, four ways of writing it. Tables become aligned text where a dialect has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from logmfu.errors import OptionError
from logmfu.redaction import mask_secrets
from logmfu.render import escape
from logmfu.render.document import (
    Blank,
    Block,
    Bullets,
    Cell,
    Citations,
    Section,
    Table,
    Text,
    without_minor,
)
from logmfu.render.file_names import short_names
from logmfu.render.postmortem import sections, title
from logmfu.report import Evidence, Report

_ROWS = (30, 15, 8, 4, 2, 1)
"""Rows per table to try until the text fits the ticket."""
_SLACK_WIDTH, _PLAIN_WIDTH = 84, 120
"""Columns of text that stay on one line in a Slack window and in a mail."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one ticket system wants a text. ``limit`` is the characters one comment may have."""

    limit: int
    heading: Callable[[str, int], str]
    bullet: str
    blank: Callable[[str], str]
    block: Callable[[Sequence[str]], str]
    table: Callable[[Table, Mapping[str, str]], str]
    rows: int = _ROWS[0]
    left_out: tuple[str, ...] = ()
    """Keys of sections this dialect has no room for."""


def render(report: Report, *, dialect: str = "github") -> str:
    """The report in one of :data:`DIALECTS`, short enough for one comment; ``OptionError`` for another."""
    if dialect not in DIALECTS:
        raise OptionError(f"no Markdown dialect {dialect!r}", hint=f"one of {', '.join(DIALECTS)}")
    masked = mask_secrets(report)
    limit, most = DIALECTS[dialect].limit, DIALECTS[dialect].rows
    texts = (_text(masked, dialect, rows) for rows in _ROWS if rows <= most)
    shortest = ""
    for text in texts:
        if len(text) <= limit:
            return text
        shortest = text
    return _cut(shortest, limit, dialect)


def _cut(text: str, limit: int, dialect: str) -> str:
    """Whole blocks up to the limit; a block that is cut could swallow what follows it."""
    note = "\n\n" + escape.markdown(
        "The rest did not fit into one comment; see the attached report.", dialect
    )
    end = text.rfind("\n\n", 0, limit - len(note))
    return text[: max(end, 0)] + note + "\n"


def _text(report: Report, dialect: str, rows: int) -> str:
    style = DIALECTS[dialect]
    names = short_names(report)
    parts = [style.heading(escape.markdown(title(report), dialect, limit=120), 1)]
    for section in sections(report, rows=rows):
        if section.key not in style.left_out:
            parts += _section(section, dialect, names)
    return "\n\n".join(parts) + "\n"


def _section(section: Section, dialect: str, names: Mapping[str, str]) -> Iterator[str]:
    yield DIALECTS[dialect].heading(escape.markdown(section.title, dialect), 2)
    blanks = [block for block in section.blocks if isinstance(block, Blank)]
    if blanks:
        yield "\n".join(DIALECTS[dialect].blank(escape.markdown(blank.prompt, dialect)) for blank in blanks)
    for block in section.blocks:
        yield from _block(block, dialect, names)


def _block(block: Block, dialect: str, names: Mapping[str, str]) -> Iterator[str]:
    style = DIALECTS[dialect]
    match block:
        case Text(text):
            yield escape.markdown(text, dialect)
        case Bullets(items):
            yield "\n".join(f"{style.bullet} {escape.markdown(item, dialect)}" for item in items)
        case Citations(evidence, more):
            lines = [
                _citation(line, names) for line in evidence if line.text
            ]  # the others stand in the tables
            if lines:
                yield style.block([escape.code_line(line, dialect) for line in lines])
            yield from _more(more, dialect)
        case Table():
            yield style.table(block, names)
            yield from _more(block.more, dialect)


def _more(more: str, dialect: str) -> Iterator[str]:
    if more:
        yield escape.markdown(more, dialect)


def _citation(line: Evidence, names: Mapping[str, str]) -> str:
    return f"{names.get(line.path, line.path)}:{line.line}: {line.text}"


def _words(cell: Cell, names: Mapping[str, str]) -> str:
    """What a cell says; evidence as ``file:line``, at most two of them."""
    more = [f"+{len(cell.evidence) - 2}"] if len(cell.evidence) > 2 else []
    return " ".join([*([cell.text] if cell.text else []), *_places(cell.evidence[:2], names), *more])


def _places(evidence: Sequence[Evidence], names: Mapping[str, str]) -> Iterator[str]:
    """``run.log:12 :15``: a file is named where it differs from the one before."""
    before = None
    for line in evidence:
        yield f":{line.line}" if line.path == before else f"{names.get(line.path, line.path)}:{line.line}"
        before = line.path


def _is_code(cell: Cell) -> bool:
    return bool(cell.code or cell.evidence)


def _cells(table: Table, names: Mapping[str, str], dialect: str) -> Iterator[list[str]]:
    for row in table.rows:
        texts = [(_words(cell, names), _is_code(cell)) for cell in row]
        yield [
            (escape.code(text, dialect, limit=200) if code else escape.markdown(text, dialect, limit=200))
            if text
            else ""
            for text, code in texts
        ]


def _github_table(table: Table, names: Mapping[str, str]) -> str:
    heads = [escape.markdown(column.title, "github") for column in table.columns]
    rule = ["--:" if column.number else "---" for column in table.columns]
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, rule, *_cells(table, names, "github")))


def _jira_table(table: Table, names: Mapping[str, str]) -> str:
    heads = " || ".join(escape.markdown(column.title, "jira") for column in table.columns)
    rows = (" | ".join(cell or " " for cell in row) for row in _cells(table, names, "jira"))
    return "\n".join([f"|| {heads} ||", *(f"| {row} |" for row in rows)])


def _aligned_table(table: Table, names: Mapping[str, str], *, widest: int = 60) -> list[str]:
    """Columns lined up with blanks; long cells are cut."""
    plain = [[escape.terminal(_words(cell, names), limit=widest) for cell in row] for row in table.rows]
    heads = [column.title for column in table.columns]
    widths = [max(map(escape.width, column)) for column in zip(heads, *plain, strict=True)]
    rule = ["-" * width for width in widths]
    numeric = [column.number for column in table.columns]
    return [_aligned(row, widths, numeric) for row in (heads, rule, *plain)]


def _aligned(row: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    cells = []
    for text, width, right in zip(row, widths, numeric, strict=True):
        pad = " " * (width - escape.width(text))
        cells.append(pad + text if right else text + pad)
    return "  ".join(cells).rstrip()


def _itemised(table: Table, names: Mapping[str, str], dialect: str) -> str:
    """One list item per row, for tables that are wider than the window."""
    bullet = DIALECTS[dialect].bullet
    heads = [column.title for column in table.columns]
    rows = []
    for row in table.rows:
        texts = [escape.shorten(_words(cell, names), 200) for cell in row]
        pairs = (f"{head}: {text}" for head, text in zip(heads[1:], texts[1:], strict=True) if text)
        rows.append(f"{bullet} {escape.markdown('; '.join((texts[0] or '-', *pairs)), dialect, limit=800)}")
    return "\n".join(rows)


def _narrowed(table: Table, names: Mapping[str, str], width: int) -> list[str]:
    """Aligned text no wider than ``width``, at the cost of minor columns; nothing if it cannot be."""
    for candidate in (table, without_minor(table)):
        lines = _aligned_table(candidate, names)
        if all(escape.width(line) <= width for line in lines):
            return lines
    return []


def _slack_table(table: Table, names: Mapping[str, str]) -> str:
    """Slack has no tables: aligned text where it fits, else a list."""
    lines = [escape.code_line(line, "slack") for line in _narrowed(table, names, _SLACK_WIDTH)]
    return _slack_block(lines) if lines else _itemised(table, names, "slack")


def _plain_table(table: Table, names: Mapping[str, str]) -> str:
    lines = _narrowed(table, names, _PLAIN_WIDTH)
    return "\n".join(lines) if lines else _itemised(table, names, "plain")


def _github_block(lines: Sequence[str]) -> str:
    fence = escape.fence(lines)
    return "\n".join([f"{fence}text", *lines, fence])


def _slack_block(lines: Sequence[str]) -> str:
    return "\n".join(["```", *lines, "```"])


def _jira_block(lines: Sequence[str]) -> str:
    return "\n".join(["{noformat}", *lines, "{noformat}"])


def _underlined(text: str, level: int) -> str:
    return f"{text}\n{('=' if level == 1 else '-') * escape.width(text)}"


DIALECTS: dict[str, Dialect] = {
    "github": Dialect(
        60_000,  # GitHub's comment holds 65,536 characters
        heading=lambda text, level: f"{'#' * (level + 1)} {text}",
        bullet="-",
        blank=lambda prompt: f"- [ ] **{prompt}:** \\_\\_\\_",
        block=_github_block,
        table=_github_table,
    ),
    "jira": Dialect(
        30_000,  # Jira's default comment holds 32,767 characters
        heading=lambda text, level: f"h{level + 1}. {text}",
        bullet="*",
        blank=lambda prompt: f"* *{prompt}:* \\_\\_\\_",
        block=_jira_block,
        table=_jira_table,
    ),
    "slack": Dialect(
        12_000,  # Slack cuts a message at 40,000 characters; people stop reading long before
        heading=lambda text, level: f"*{text}*",
        bullet="•",
        blank=lambda prompt: f"• *{prompt}:* ___",
        block=_slack_block,
        table=_slack_table,
        rows=8,
        left_out=("profiles", "utilization", "provenance"),
    ),
    "plain": Dialect(
        1_000_000,
        heading=_underlined,
        bullet="-",
        blank=lambda prompt: f"- {prompt}: ___",
        block=lambda lines: "\n".join(f"    {line}" for line in lines),
        table=_plain_table,
    ),
}
"""Ways of writing the report, by name. GitLab reads ``github``."""
