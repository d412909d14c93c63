"""Patterns that tell no digit from another: what they do on a line follows from where its digits are.

Two lines of one *shape* differ only in the values of their digits. A uniform pattern matches both at
the same places, so one of them need be matched to know where the values of the other stand.
"""

from __future__ import annotations

import re
from functools import cache

SHAPE = bytes.maketrans(b"123456789", b"000000000")
"""Maps a line to its shape."""
_HARMLESS = re.compile(
    r"\\[^\WxuUNpPLgk\d_]"  # \d, \s, \b and the like
    r"|\\[^\w]"  # an escaped sign
    r"|\{\d*,?\d*\}"  # how often
    r"|\(\?P<\w+>"  # the name of a group
    r"|(?<=\[)0-9|(?<=\[\^)0-9|(?<=-[zZfF])0-9"  # all digits, in a set
)
_POSITIVE = re.compile(r"\(\?P<(\w+)>\[1-9\]")
"""A value that begins with any digit but zero."""
_TELLING = re.compile(r"\d|\\|\(\?P=|\(\?P>|\(\?&|\(\?R|\(\?\(")


def shape(text: bytes) -> bytes:
    """The line with every digit a zero."""
    return text.translate(SHAPE)


@cache
def uniform(pattern: str) -> bool:
    """Whether a pattern surely treats all digits alike; False where that cannot be told from its text."""
    return _TELLING.search(_HARMLESS.sub("", pattern)) is None


@cache
def positive(pattern: str) -> tuple[str, ...]:
    """Groups of a pattern that must not begin with a zero."""
    return tuple(_POSITIVE.findall(pattern))


@cache
def relaxed(pattern: str) -> str:
    """The pattern without that condition."""
    return _POSITIVE.sub(r"(?P<\1>[0-9]", pattern)
