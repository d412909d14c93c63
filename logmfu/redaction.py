"""Texts without what must not leave the house: secrets always, names and places on request.

Secrets (tokens, keys, passwords) are masked in every output. ``--redact`` also replaces host names,
user names, paths and addresses, each by the same alias wherever it stands.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import pandas as pd
import regex

from logmfu.report import Report

MASK = "[masked]"

_SHAPES = (
    r"\bhf_[A-Za-z0-9]{20,}+",  # Hugging Face
    r"\bgh[oprsu]_[A-Za-z0-9]{20,}+|\bgithub_pat_\w{20,}+",
    r"\bgl[a-z]{2,5}-[\w-]{16,}+",  # GitLab
    r"\bsk-[\w-]{16,}+|\bwandb_v1_\w{16,}+|\bnvapi-[\w-]{16,}+",
    r"\bxox[a-z]-[\w-]{10,}+|https://hooks\.slack\.com/services/\S++",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"\bAIza[\w-]{30,}+|\bya29\.[\w-]{20,}+",
    r"\beyJ[\w-]{8,}+\.[\w-]{8,}+(?:\.[\w-]*+)?",  # JSON web token
    r"\bAccountKey=[^;\s]++|\bSharedAccessSignature=\S++",
    r"-----BEGIN [A-Z ]*+PRIVATE KEY-----.*+",
)
_SHAPE = regex.compile("|".join(_SHAPES))
_NAME = (
    r"(?:[\w.-]*?(?:api_?-?key|access_?-?key(?:_id)?|private_?-?key|secret(?:_?-?key)?|passw(?:or)?d|passphrase"
    r"|credentials?|(?:auth|access|api|bearer|refresh|session|hf|hub|wandb|comet|neptune|security)_?-?token))"
)
_NAMED = regex.compile(
    rf"""(?P<name>(?<![\w.-]){_NAME})(?P<between>["']?(?:\s*+(?:[:=]|\.{{3,}}+)\s*+|\s++(?=\S{{8,}}))["']?)(?P<value>[^\s"',;&}}\]]{{6,}}+)""",
    regex.IGNORECASE,
)
_SECRET_NAME = regex.compile(rf"{_NAME}", regex.IGNORECASE)
_BEARER = regex.compile(
    r"(?i)\b(?P<name>bearer|basic|authorization:(?:\s*+token)?)(?P<between>\s++)(?P<value>[\w.~+/=-]{12,}+)"
)
_TOKEN = regex.compile(
    r"""(?i)(?<![\w-])(?P<name>token|secret|sig(?:nature)?|x-amz-(?:signature|credential|security-token))"""
    r"""(?P<between>["']?\s*+[:=]\s*+["']?)(?P<value>(?=[^\s"',;&]*\d)(?=[^\s"',;&]*[A-Za-z])[\w.~+/=%-]{16,}+)"""
)
_USERINFO = regex.compile(
    r"(?P<name>\b[a-z][a-z0-9+.-]*+://)(?P<between>[^\s/:@]*+:?+)(?P<value>(?<=:)[^\s/@]++)(?=@)"
)
_HARMLESS = regex.compile(r"(?i)(?:none|null|true|false|\.+|\*+|[-+\d.,]+|\[masked\]?.*)")


@dataclass(frozen=True, slots=True)
class Replacement:
    """One thing that was replaced: its kind, what stood there, and what stands there now."""

    kind: str
    original: str
    alias: str


def mask(text: str) -> str:
    """The text with everything that looks like a token, key or password masked."""
    if len(text) < 8:
        return text
    text = _SHAPE.sub(MASK, text)
    for pattern in (_NAMED, _BEARER, _TOKEN, _USERINFO):
        text = pattern.sub(_masked, text)
    return text


def _masked(match: regex.Match[str]) -> str:
    if _HARMLESS.fullmatch(match["value"]):
        return match[0]
    return f"{match['name']}{match['between']}{MASK}"


def mask_secrets(report: Report) -> Report:
    """The report without secrets; every output is made from one that went through here."""
    masked: Report = _mapped(report, _mask_named)
    return masked


def _mask_named(text: str, name: str) -> str:
    """A value under a secret's own name is masked whatever it looks like."""
    if name and _SECRET_NAME.fullmatch(name) and text and not _HARMLESS.fullmatch(text):
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
    """The table with its few distinct texts changed; numbers are not looked at."""
    changed = {}
    for column in table.columns:
        if pd.api.types.is_numeric_dtype(table[column]) or pd.api.types.is_bool_dtype(table[column]):
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
        mask_secrets(report), lambda text, name: text if name in _OWN_WORDS else swap(text)
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


_ADDRESS = regex.compile(
    r"(?P<email>\b[\w.+-]++@[\w-]++(?:\.[\w-]++)++)"
    r"|(?P<mac>\b[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}+\b)"
    r"|(?P<ip6>(?<![\w:.])(?:(?:[0-9A-Fa-f]{1,4}:){4,7}+[0-9A-Fa-f]{1,4}|(?=[0-9A-Fa-f:]*[A-Fa-f])[0-9A-Fa-f:]{0,30}::[0-9A-Fa-f:]{0,30}|::1)(?![\w:]))"
    r"|(?P<ip4>(?<![\w.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\w.]*\w))"
    r"|(?P<uuid>\b(?:GPU-|MIG-)[0-9a-f]{8}-[0-9a-f-]{27}\b)"
)
_PATH = regex.compile(
    r"(?P<url>\b(?:https?|ftp|s3|gs|az|abfss?|hdfs|file|ssh|tcp|git|weka|lustre|nfs)://[^\s\"'<>|,;)\]}]++)"
    r"|(?P<drive>\b[A-Za-z]:\\[^\s\"'<>|:]++|\\\\[\w.-]++\\[^\s\"'<>|:]++)"
    r"|(?P<unix>(?<![\w.)\]/}%>-])(?:~[\w-]*+|\.{1,2})?/(?=[\w.@+~-]*[A-Za-z])[\w.@+~%=-]++(?:/[\w.@+~%=-]*+)*+)"
)
_USER = regex.compile(
    r"(?:(?:/home|/users|/u|/Users|\\Users)[/\\](?P<home>[\w.-]++))"
    r"|(?i:\b(?:user(?:name)?|login|owner|logname|submitted by)['\"]?\s*+[=:]\s*+['\"]?(?P<named>[A-Za-z_][\w.-]*+))"
    r"|\buid=\d++\((?P<uid>[\w.-]++)\)|(?<=\s)~(?P<tilde>[a-z_][\w-]++)(?=/)"
)
_HOST = regex.compile(
    r"(?P<nccl>(?<![\w.-])[A-Za-z][\w.-]*+)(?=:\d++:\d++ \[\d++\])"
    r"|(?i:\b(?:host(?:name)?|node(?:name|list)?|nodes|server|master_addr|rdzv_endpoint|machine|pod|address)['\"]?\s*+[=:]?\s*+['\"]?)"
    r"(?P<named>(?=[\w.-]*[\d.-])[A-Za-z][\w.-]*+[\w])"
    r"|(?P<cluster>(?<![\w./-])(?i:ip|node|nodes|gpu-?node|gpunode|dgx|hgx|cn|nid|compute|worker|host|login|slurm|rack|ecs|vm|gke|aks|eks)"
    r"(?:[-_]?[a-z0-9]++)*?[-_]?\d{1,}+(?:[-_.][a-z0-9]++)*+(?![\w]))"
    r"|(?P<fqdn>(?<![\w./@-])(?:[A-Za-z0-9][\w-]*+\.){2,}+(?:com|net|org|edu|gov|io|ai|local|internal|lan|cluster|cloud|corp|[a-z]{2})\b(?![\w(/-]))"
    r"|(?P<aws>\bi-[0-9a-f]{8,17}\b)"
    r"|(?P<list>(?<![\w.-])[A-Za-z][\w-]*+\[\d++(?:[-,]\d++)++\])"
)
_OWN_WORDS = frozenset(
    [
        "parser",
        "parser_title",
        "kind",
        "exit",
        "confidence",
        "role",
        "clock",
        "basis",
        "attention",
        "convention",
        "grade",
        "unit",
        "rule",
        "how",
        "precision",
    ]
)
"""Fields that hold words of ours, never of the log."""
_EVERYDAY = frozenset(
    [
        "root",
        "user",
        "users",
        "admin",
        "ubuntu",
        "train",
        "trainer",
        "training",
        "data",
        "model",
        "models",
        "test",
        "none",
        "null",
        "true",
        "false",
        "rank",
        "step",
        "steps",
        "loss",
        "checkpoint",
        "host",
        "node",
        "local",
        "localhost",
        "shared",
        "scratch",
        "work",
        "home",
        "run",
        "runs",
        "unknown",
        "pending",
    ]
)
"""Names that are also words: replaced inside paths, left alone elsewhere."""
_PLACE_FACT = regex.compile(r"(?i)(?:.*_)?(?:path|paths|dir|prefix|file|save|load|root|folder)")
_HOST_FACT = regex.compile(r"(?i)(?:.*_)?(?:host|hostname|node|nodes|nodelist|addr|master_addr|pod)")
_USER_FACT = regex.compile(r"(?i)(?:.*_)?(?:user|username|owner|entity)")


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
    if not bare or _HARMLESS.fullmatch(bare) or len(bare) > 300:
        return
    if _HOST_FACT.fullmatch(name):
        _add_host(bare, aliases)
    elif _USER_FACT.fullmatch(name):
        aliases.add("user", bare)
    elif _PLACE_FACT.fullmatch(name) and not bare.startswith("["):
        _add_path(bare, aliases)


def _collect_text(text: str, aliases: _Aliases) -> None:
    for match in _USER.finditer(text):
        aliases.add("user", next(group for group in match.groups() if group))
    for match in _PATH.finditer(text):
        _add_path(match[0].rstrip(".:"), aliases)
    for match in _ADDRESS.finditer(text):
        aliases.add("device" if match["uuid"] else "address", match[0])
    for match in _HOST.finditer(text):
        _add_host(next(group for group in match.groups() if group), aliases)


def _add_host(name: str, aliases: _Aliases) -> None:
    if name.lower() in _EVERYDAY or _ADDRESS.fullmatch(name):
        return
    aliases.add("host", name)
    short = name.split(".")[0]
    if short != name and regex.search(r"\d", short):
        aliases.same(name, short)


def _add_path(path: str, aliases: _Aliases) -> None:
    if path in ("", "-", "/", ".", "..") or path.lower() in _EVERYDAY:
        return
    ending = os.path.splitext(path)[1]
    aliases.add("path", path, ending if regex.fullmatch(r"\.[A-Za-z][A-Za-z0-9]{0,6}", ending) else "")
    own = os.path.basename(path)
    if ending and own != path and len(own) > len(ending) + 2:
        aliases.same(path, own)


def _swapper(aliases: _Aliases) -> Callable[[str], str]:
    """Replaces all originals at once, the longest first, and only whole words."""
    originals = sorted((o for o in aliases.given if o.lower() not in _EVERYDAY), key=lambda o: (-len(o), o))
    if not originals:
        return lambda text: text
    pattern = regex.compile(r"(?<![\w])(?:\L<originals>)(?![\w])", originals=originals)
    return lambda text: pattern.sub(lambda match: aliases.given[match[0]][1], text)
