"""What looks like a token, key or password, and masking it."""

from __future__ import annotations

import regex

MASK = "[masked]"
"""What stands where a secret was."""

_KEY_BEGINS = r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_SHAPES = (
    r"\bhf_[A-Za-z0-9]{20,}+",  # Hugging Face
    r"\bgh[oprsu]_[A-Za-z0-9]{20,}+|\bgithub_pat_\w{20,}+",
    r"\bgl[a-z]{2,5}-[\w-]{16,}+",  # GitLab
    r"\bsk-[\w-]{16,}+|\bwandb_v1_\w{16,}+|\bnvapi-[\w-]{16,}+",
    r"\bxox[a-z]-[\w-]{10,}+|https://hooks\.slack\.com/services/\S++",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"\bpypi-[\w-]{16,}+|\bdckr_pat_[\w-]{16,}+|\bhvs\.[\w-]{16,}+|\bgsk_\w{20,}+|\br8_\w{20,}+",
    r"\bAIza[\w-]{30,}+|\bya29\.[\w-]{20,}+",
    r"\beyJ[\w-]{8,}+\.[\w-]{8,}+(?:\.[\w-]*+)?",  # JSON web token
    r"\bAccountKey=[^;\s]++|\bSharedAccessSignature=\S++",
    rf"{_KEY_BEGINS}.*+",
)
_SHAPE = regex.compile("|".join(_SHAPES))
_KEY_BEGINNING = regex.compile(_KEY_BEGINS)
_NAME = (
    r"(?:[\w.-]*?(?:api_?-?key|access_?-?key(?:_id)?|private_?-?key|secret(?:_?-?key)?|passw(?:or)?d|passphrase"
    r"|(?:db|database|mysql|pg|redis|smtp|ftp|http|proxy|root|admin|user)_?pass|credentials?|(?:auth|access|api|bearer|refresh|session|hf|hub|wandb|comet|neptune|security)_?-?token))"
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
    r"""(?i)(?<![\w-])(?P<name>(?:[\w-]{1,40}?_)?(?:token|secret)|sig(?:nature)?|x-amz-(?:signature|credential|security-token))"""
    r"""(?P<between>["']?\s*+[:=]\s*+["']?)(?P<value>(?=[^\s"',;&]*\d)(?=[^\s"',;&]*[A-Za-z])[\w.~+/=%-]{16,}+)"""
)
_COMMAND = regex.compile(
    r"(?i)(?P<name>\b(?:set-)?cookie:|\bwandb login(?:\s++--\S++)*+|\bcurl\b[^|;]*?\s(?:-u|--user))"
    r"(?P<between>[\s=]++)(?P<value>(?:(?<=ookie:\s).*+|\S{6,}+))"
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
    "_pass",
    "cookie",
    "wandb login",
    "curl",
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
    for pattern in (_NAMED, _BEARER, _TOKEN, _COMMAND, _USERINFO):
        text = pattern.sub(_masked, text)
    return text


class PrivateKeys:
    """Which lines, in the order of the file, are the body of a private key that began on an earlier one."""

    LONGEST = 200
    """Lines after which a key without an end is taken to be over."""

    def __init__(self) -> None:
        self._left = 0

    def inside(self, text: str) -> bool:
        """Whether this line belongs to a key; its first line is masked by :func:`mask`."""
        if "PRIVATE KEY" in text and (begins := _KEY_BEGINNING.search(text)):
            self._left = 0 if "-----END" in text[begins.end() :] else self.LONGEST
            return False
        if not self._left:
            return False
        self._left = 0 if "-----END" in text else self._left - 1
        return True


def _masked(match: regex.Match[str]) -> str:
    if HARMLESS.fullmatch(match["value"]):
        return match[0]
    return f"{match['name']}{match['between']}{MASK}"
