"""What looks like a token, key or password, and masking it."""

from __future__ import annotations

import regex

MASK = "[masked]"
"""What stands where a secret was."""

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
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*+",
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
SECRET_NAME = regex.compile(_NAME, regex.IGNORECASE)
"""The name of a field that holds a secret."""
_BEARER = regex.compile(
    r"(?i)\b(?P<name>bearer|basic|authorization:(?:\s*+token)?)(?P<between>\s++)(?P<value>[\w.~+/=-]{12,}+)"
)
_TOKEN = regex.compile(
    r"""(?i)(?<![\w-])(?P<name>token|secret|sig(?:nature)?|x-amz-(?:signature|credential|security-token))"""
    r"""(?P<between>["']?\s*+[:=]\s*+["']?)(?P<value>(?=[^\s"',;&]*\d)(?=[^\s"',;&]*[A-Za-z])[\w.~+/=%-]{16,}+)"""
)
_USERINFO = regex.compile(
    r"(?P<name>(?<![a-z0-9+.-])[a-z][a-z0-9+.-]*+://)(?P<between>[^\s/:@]*+:?+)(?P<value>(?<=:)[^\s/@]++)(?=@)"
)
HARMLESS = regex.compile(r"(?i)(?:none|null|true|false|\.+|\*+|[-+\d.,]+|\[masked\]?.*)")
"""A value that gives nothing away."""

_HINTS = (
    "key",
    "token",
    "secret",
    "sig",
    "passw",
    "phrase",
    "credential",
    "bearer",
    "basic",
    "authoriz",
    "://",
)
"""One of these is in every line that a pattern below the shapes can match; most lines have none."""


def mask(text: str) -> str:
    """The text with everything that looks like a token, key or password masked."""
    if len(text) < 8:
        return text
    text = _SHAPE.sub(MASK, text)
    lowered = text.lower()
    if not any(hint in lowered for hint in _HINTS):
        return text
    for pattern in (_NAMED, _BEARER, _TOKEN, _USERINFO):
        text = pattern.sub(_masked, text)
    return text


def _masked(match: regex.Match[str]) -> str:
    if HARMLESS.fullmatch(match["value"]):
        return match[0]
    return f"{match['name']}{match['between']}{MASK}"
