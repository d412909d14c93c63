"""Text of a log made harmless for the place it is shown in; nothing of it is hidden.

What a terminal, a ticket system or a spreadsheet would obey is spelled out or broken up, so that a
reader sees that it was there.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

LONGEST = 400
"""Characters of one text that are shown; the rest is counted."""

_CONTROLS = [
    "NUL",
    "SOH",
    "STX",
    "ETX",
    "EOT",
    "ENQ",
    "ACK",
    "BEL",
    "BS",
    "TAB",
    "LF",
    "VT",
    "FF",
    "CR",
    "SO",
    "SI",
    "DLE",
    "DC1",
    "DC2",
    "DC3",
    "DC4",
    "NAK",
    "SYN",
    "ETB",
    "CAN",
    "EM",
    "SUB",
    "ESC",
    "FS",
    "GS",
    "RS",
    "US",
]
_NAMED = {code: f"\u2039{name}\u203a" for code, name in [*enumerate(_CONTROLS), (0x7F, "DEL")]}
_SPELLED = {
    code: f"\u2039U+{code:04X}\u203a"
    for code in (
        *range(0x80, 0xA0),  # C1 controls: 0x9B alone starts an escape sequence
        *(0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180E, 0x3164, 0xFFA0, 0xFEFF),
        *range(0x200B, 0x2010),  # zero-width characters and direction marks
        *range(0x2028, 0x202F),  # line and paragraph separators, direction overrides
        *range(0x2060, 0x2070),  # invisible operators, isolates
        *range(0xFFF9, 0xFFFC),
        *range(0xE0000, 0xE0080),  # tag characters
    )
}
_TABLE = {**_NAMED, **_SPELLED, 0x09: " "}
_GRAVE = "\u02cb"
_BREAK = "\u200b"
"""Zero-width space: what stands on both sides of it is no longer one word to a ticket system."""

_SURROGATES = re.compile("[\ud800-\udfff]")
_MENTION = re.compile(r"([@#!$%~^&])(?=[\w\[(<\"'])")
_ISSUE_KEY = re.compile(r"\b([A-Z][A-Z0-9_]+-)(?=\d)")
_LINK = re.compile(r"(?i)\b(https?|ftp|file|mailto|javascript|data|ssh|www)([:.])")
_EMOJI = re.compile(r":(?=[a-z_+-][\w+-]*:)")
_GITHUB = re.compile(r"([\\`*_\[\]<>|~&$]|^[#+\-=:]|^/(?=[a-z_]+(?:\s|$))|!(?=\[))")
_GITHUB_ITEM = re.compile(r"^(\d{1,9})([.)])(?=\s|$)")
_JIRA = re.compile(
    r"([{}\[\]*_^~!]|(?<!\w)[-+](?=\S)|(?<=[-+])[-+]|^[-#]|\?(?=\?)|\((?=[\w/!?*+-]{1,5}\)))"
)
_JIRA_BLOCK = re.compile(r"^(h[1-6]|bq)(?=\.)")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def visible(text: str) -> str:
    """The text on one line, every control and invisible character spelled out."""
    return _SURROGATES.sub("\ufffd", text.translate(_TABLE))


def shorten(text: str, limit: int = LONGEST) -> str:
    """At most ``limit`` characters of the text, and how many there were."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]} \u2026 ({len(text):,} characters)"


def terminal(text: str, *, limit: int = LONGEST) -> str:
    """One line that a terminal only shows: no escape sequence, no direction change, no overprinting."""
    return visible(shorten(text, limit))


def csv_cell(text: str) -> str:
    """A cell that a spreadsheet shows and does not calculate; numbers are left alone.

    Source of the rule: OWASP, CSV Injection: a leading ``= + - @``, tab or line break starts a formula.
    """
    stripped = text.lstrip(" ")
    if not stripped.startswith(_FORMULA) or _is_number(stripped):
        return text
    return "'" + text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def markdown(text: str, dialect: str = "github", *, limit: int = LONGEST) -> str:
    """Words for a sentence, heading or table cell of a ticket; no markup, link or mention comes alive.

    ``dialect`` is one of :data:`DIALECTS`; a ``KeyError`` otherwise.
    """
    return DIALECTS[dialect](visible(shorten(text, limit)))


def code(text: str, dialect: str = "github", *, limit: int = LONGEST) -> str:
    """One word or phrase in a fixed-width font in a table cell."""
    shown = visible(shorten(text, limit)) or " "
    return _CODE[dialect](shown)


def code_line(text: str, dialect: str = "github", *, limit: int = LONGEST) -> str:
    """One line inside a block of fixed-width text that it cannot close."""
    shown = visible(shorten(text, limit))
    if dialect == "slack":
        return _entities(shown).replace("```", f"`{_BREAK}`{_BREAK}`")
    if dialect == "jira":
        return re.sub(r"\{(?=\s*/?\s*(?:noformat|code))", "{" + _BREAK, shown, flags=re.IGNORECASE)
    return shown


def fence(lines: Sequence[str]) -> str:
    """A fence of backticks longer than any run of them in the lines."""
    return "`" * max([3, *(_longest_run(line) + 1 for line in lines)])


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


def width(text: str) -> int:
    """Columns the text takes in a fixed-width font."""
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if character == _BREAK or unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _broken(text: str) -> str:
    text = _LINK.sub(rf"\1{_BREAK}\2", text)
    text = _EMOJI.sub(f":{_BREAK}", text)
    text = _ISSUE_KEY.sub(rf"\1{_BREAK}", text)
    return _MENTION.sub(rf"\1{_BREAK}", text)


def _entities(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _github(text: str) -> str:
    return _GITHUB_ITEM.sub(r"\1\\\2", _GITHUB.sub(r"\\\1", _broken(text)))


def _github_code(text: str) -> str:
    ticks = "`" * (_longest_run(text) + 1)
    pad = " " if text[:1] in "` " or text[-1:] in "` " else ""
    return f"{ticks}{pad}{text}{pad}{ticks}".replace("|", r"\|")


def _jira(text: str) -> str:
    """Backslashes as Jira's renderer reads them, before ``- # * _ + ? ^ ~ | % { } [ ] ( ) ! @``.

    Source: ``editor-wikimarkup-transformer`` 12.2.2, ``parser/utils/escape``, which quotes the pattern of
    the server's ``BackslashEscapeRendererComponent``. A pipe has no escape that every version honours
    inside a table, hence the broken bar.
    """
    bare = (
        _JIRA_BLOCK.sub(rf"\1{_BREAK}", _broken(text)).replace("\\", f"\\{_BREAK}").replace("|", "\u00a6")
    )
    return _JIRA.sub(r"\\\1", bare)


def _slack(text: str) -> str:
    """Emphasis broken up; a backtick has no escape in mrkdwn, so its look-alike stands for it."""
    broken = re.sub(r"((?<!\w)[*_~]|[*_~](?!\w))", rf"{_BREAK}\1{_BREAK}", _broken(text))
    return _entities(broken.replace("`", _GRAVE))


DIALECTS: dict[str, Callable[[str], str]] = {
    "github": _github,
    "jira": _jira,
    "slack": _slack,
    "plain": str,
}
"""The ways of writing a ticket, with what makes a text harmless in each. GitLab reads ``github``."""

_CODE: dict[str, Callable[[str], str]] = {
    "github": _github_code,
    "jira": lambda text: f"{{{{{_jira(text)}}}}}",
    "slack": lambda text: f"`{_entities(text.replace('`', _GRAVE))}`",
    "plain": str,
}
