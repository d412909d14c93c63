"""The envelopes of a whole input, learnt from its beginning."""

from __future__ import annotations

from datetime import UTC, datetime

from logmfu.envelopes import Envelopes
from logmfu.source import Source

LEARN_BYTES = 4 << 20
"""Bytes of a file from which its bare prefixes (host names, task numbers) are learnt."""
_MEMO = "envelopes"


def known(source: Source) -> Envelopes | None:
    """The envelopes of an input, if they were learnt before."""
    found = source.memo.get(_MEMO)
    return found if isinstance(found, Envelopes) else None


def learnt(source: Source) -> Envelopes:
    """The envelopes of an input; learnt when first asked for."""
    if found := known(source):
        return found
    year = datetime.fromtimestamp(source.mtime, UTC).year if source.mtime is not None else None
    envelopes = Envelopes(source.path, year=year, until=source.mtime)
    envelopes.learn(text for _, text in source.head(LEARN_BYTES))
    remember(source, envelopes)
    return envelopes


def remember(source: Source, envelopes: Envelopes) -> None:
    """Take over what was learnt from the same input elsewhere."""
    source.memo[_MEMO] = envelopes
