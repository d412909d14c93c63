"""Texts without what must not leave the house: secrets always, names and places on request.

Secrets (tokens, keys, passwords) are masked in every output. ``--redact`` also replaces host names,
user names, paths and addresses, each by the same alias wherever it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import PurePath
from typing import Any

import pandas as pd
import regex

from logmfu.identities import (
    ADDRESS,
    EVERYDAY,
    HOST,
    HOST_FACT,
    OWN_WORDS,
    PATH,
    PLACE_FACT,
    USER,
    USER_FACT,
)  # fmt: skip
from logmfu.masking import HARMLESS, MASK, SECRET_NAME, mask
from logmfu.report import Report


@dataclass(frozen=True, slots=True)
class Replacement:
    """One thing that was replaced: its kind, what stood there, and what stands there now."""

    kind: str
    original: str
    alias: str


def mask_secrets(report: Report) -> Report:
    """The report without secrets; every output is made from one that went through here."""
    masked: Report = _mapped(report, _mask_named)
    return masked


def _mask_named(text: str, name: str) -> str:
    """A value under a secret's own name is masked whatever it looks like."""
    if name and SECRET_NAME.fullmatch(name) and text and not HARMLESS.fullmatch(text):
        return MASK
    return mask(text)


def _mapped(value: Any, change: Callable[[str, str], str], name: str = "") -> Any:
    """The value with ``change(text, field name)`` done to every string in it."""
    if isinstance(value, str):
        return change(value, name)
    if isinstance(value, pd.DataFrame):
        return _mapped_table(value, change)
    if is_dataclass(value) and not isinstance(value, type):
        return _mapped_dataclass(value, change)
    if isinstance(value, Mapping):
        return {_mapped(key, change): _mapped(part, change, str(key)) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_mapped(part, change, name) for part in value)
    return value


def _mapped_dataclass(value: Any, change: Callable[[str, str], str]) -> Any:
    named = getattr(value, "name", "")
    changed = {}
    for each in fields(value):
        old = getattr(value, each.name)
        new = _mapped(old, change, named if each.name == "value" else each.name)
        if new is not old:
            changed[each.name] = new
    return replace(value, **changed) if changed else value


def _mapped_table(table: pd.DataFrame, change: Callable[[str, str], str]) -> pd.DataFrame:
    """The table with its few distinct texts changed; numbers and times are not looked at."""
    changed = {}
    for column in table.columns:
        if not (pd.api.types.is_object_dtype(table[column]) or pd.api.types.is_string_dtype(table[column])):
            continue
        names = {
            text: change(text, str(column))
            for text in table[column].dropna().unique()
            if isinstance(text, str)
        }
        if any(old != new for old, new in names.items()):
            changed[column] = table[column].map(lambda text, names=names: names.get(text, text))
    return table.assign(**changed) if changed else table


def redact(report: Report) -> tuple[Report, list[Replacement]]:
    """The report without host names, user names, paths and addresses, and what was replaced."""
    redacted, _, replacements = redact_with(report, {})
    return redacted, replacements


def redact_with(
    report: Report, excerpts: Mapping[tuple[str, int], Sequence[str]]
) -> tuple[Report, dict[tuple[str, int], tuple[str, ...]], list[Replacement]]:
    """The same for a report and the excerpts of its lines, with the same aliases in both."""
    aliases = _Aliases()
    _collect(report, excerpts, aliases)
    swap = _swapper(aliases)
    changed: Report = _mapped(
        mask_secrets(report), lambda text, name: text if name in OWN_WORDS else swap(text)
    )
    lines = {
        (swap(path), line): tuple(swap(mask(text)) for text in texts)
        for (path, line), texts in excerpts.items()
    }
    return changed, lines, aliases.replacements()


@dataclass(slots=True)
class _Aliases:
    """Aliases given so far, numbered per kind in the order things were met."""

    given: dict[str, tuple[str, str]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, kind: str, original: str, suffix: str = "") -> str:
        if original not in self.given:
            self.counts[kind] = self.counts.get(kind, 0) + 1
            self.given[original] = (kind, f"{kind}-{self.counts[kind]}{suffix}")
        return self.given[original][1]

    def same(self, original: str, other: str) -> None:
        """``other`` is another name of ``original``."""
        if other not in self.given and len(other) > 2:
            self.given[other] = self.given[original]

    def replacements(self) -> list[Replacement]:
        return [Replacement(kind, original, alias) for original, (kind, alias) in self.given.items()]


def _collect(report: Report, excerpts: Mapping[tuple[str, int], Sequence[str]], aliases: _Aliases) -> None:
    """Meet everything once, input files first, so that they get the lowest numbers."""
    for each in report.inputs:
        _add_path(each.path, aliases)
    for text, name in _texts(report):
        _collect_named(text, name, aliases)
        _collect_text(mask(text), aliases)
    for texts in excerpts.values():
        for text in texts:
            _collect_text(mask(text), aliases)


def _texts(report: Report) -> Iterator[tuple[str, str]]:
    met: list[tuple[str, str]] = []

    def meet(text: str, name: str) -> str:
        met.append((text, name))
        return text

    _mapped(report, meet)
    return iter(dict.fromkeys(met))


def _collect_named(text: str, name: str, aliases: _Aliases) -> None:
    """Texts whose field says what they are."""
    bare = text.strip()
    if not bare or HARMLESS.fullmatch(bare) or len(bare) > 300:
        return
    if HOST_FACT.fullmatch(name):
        _add_host(bare, aliases)
    elif USER_FACT.fullmatch(name):
        aliases.add("user", bare)
    elif PLACE_FACT.fullmatch(name) and not bare.startswith("["):
        _add_path(bare, aliases)


def _collect_text(text: str, aliases: _Aliases) -> None:
    for match in USER.finditer(text):
        aliases.add("user", next(group for group in match.groups() if group))
    for match in PATH.finditer(text):
        _add_path(match[0].rstrip(".:"), aliases)
    for match in ADDRESS.finditer(text):
        aliases.add("device" if match["uuid"] else "address", match[0])
    for match in HOST.finditer(text):
        _add_host(next(group for group in match.groups() if group), aliases)


def _add_host(name: str, aliases: _Aliases) -> None:
    if name.lower() in EVERYDAY or ADDRESS.fullmatch(name):
        return
    aliases.add("host", name)
    short = name.split(".")[0]
    if short != name and regex.search(r"\d", short):
        aliases.same(name, short)


def _add_path(path: str, aliases: _Aliases) -> None:
    if path in ("", "-", "/", ".", "..") or path.lower() in EVERYDAY:
        return
    ending = PurePath(path).suffix
    aliases.add("path", path, ending if regex.fullmatch(r"\.[A-Za-z][A-Za-z0-9]{0,6}", ending) else "")
    own = PurePath(path).name
    if ending and own != path and len(own) > len(ending) + 2:
        aliases.same(path, own)


def _swapper(aliases: _Aliases) -> Callable[[str], str]:
    """Replaces all originals at once, the longest first, and only whole words."""
    originals = sorted((o for o in aliases.given if o.lower() not in EVERYDAY), key=lambda o: (-len(o), o))
    if not originals:
        return lambda text: text
    pattern = regex.compile(r"(?<![\w])(?:\L<originals>)(?![\w])", originals=originals)
    return lambda text: pattern.sub(lambda match: aliases.given[match[0]][1], text)
