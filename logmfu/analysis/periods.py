"""Pauses that come back: a save or evaluation whose lines are elsewhere, and garbage collection."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from logmfu.analysis.account import Account, Pause
from logmfu.analysis.collecting import name_collections
from logmfu.analysis.folding import HIT_SHARE
from logmfu.analysis.marks import Mark

LEAST_HITS = 2


@dataclass(frozen=True, slots=True)
class Interval:
    """Something that is due every ``every`` steps."""

    kind: str
    every: int


def name_by_period(
    book: Account, facts: Mapping[str, object], marks: Sequence[Mark], inside: Collection[str]
) -> None:
    """Give unnamed pauses the name of what is due at their steps, when only one thing is.

    A class with marks has lines of its own in this log: a pause without a line is then not its.
    ``inside``: classes that the step time contains.
    """
    named = {mark.kind for mark in marks}
    stated = [
        Interval(kind, every)
        for kind, fact in (("checkpoint", "save_interval"), ("evaluation", "eval_interval"))
        if isinstance(every := facts.get(fact), int) and every > 0
    ]
    due = [interval for interval in stated if interval.kind not in named]
    unnamed = [pause for pause in book.pauses if pause.confidence == "inferred"]
    hits = {interval: [p for p in unnamed if _contains(book, p, interval.every)] for interval in due}
    regular = [interval for interval, pauses in hits.items() if _often(book, interval.every, pauses)]
    renamed = {}
    for interval in regular:
        text = f"comes every {interval.every} steps, the {interval.kind} interval"
        for pause in hits[interval]:
            if not any(_contains(book, pause, other.every) for other in due if other != interval):
                step = int(book.line.begun[pause.row])
                renamed[id(pause)] = replace(pause, kind=interval.kind, text=text, step=step)
    book.pauses = [renamed.get(id(pause), pause) for pause in book.pauses]
    explained = (
        "evaluation" in named or "evaluation" not in inside or isinstance(facts.get("eval_interval"), int)
    )
    periods = {interval.every for interval in stated} | set(_seen_periods(marks))
    name_collections(book, marks, periods, explained=explained)


def _seen_periods(marks: Sequence[Mark]) -> Iterator[int]:
    """Steps from one save to the next, and from one evaluation to the next, where most are as far apart."""
    for kind in ("checkpoint", "evaluation"):
        steps = sorted({mark.step for mark in marks if mark.kind == kind and mark.step is not None})
        between = np.diff(steps)
        usual = int(np.median(between)) if len(between) else 0
        if usual > 0 and np.mean(between == usual) >= HIT_SHARE:
            yield usual


def _contains(book: Account, pause: Pause, every: int) -> bool:
    """Whether a multiple of ``every`` lies in the steps the pause may follow, and that is telling."""
    line = book.line
    begun, step = int(line.begun[pause.row]), int(line.step[pause.row])
    return every > 2 * (step - begun) and -(-begun // every) * every < step and begun > 0


def _often(book: Account, every: int, pauses: Sequence[Pause]) -> bool:
    steps = book.line.step
    expected = int(np.sum(np.diff(np.floor((steps - 1) / every)) > 0))
    return len(pauses) >= LEAST_HITS and len(pauses) >= HIT_SHARE * expected
