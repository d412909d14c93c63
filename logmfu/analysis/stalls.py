"""Pauses and stretches to stalls: one finding for one thing that happened."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from logmfu.analysis.account import Account, Pause
from logmfu.analysis.intervals import Array
from logmfu.analysis.ledger import Stretch
from logmfu.report import LEDGER_KINDS, Confidence, Evidence, Stall

OUTSIDE = ("restore", "hang", "checkpoint", "evaluation", "warmup", "data_wait")
"""Stretches outside the intervals that are findings; the others only where lines are about them."""


def stalls(
    book: Account, stretches: Iterable[Stretch], *, origin: float | None, devices: int | None
) -> tuple[Stall, ...]:
    """All stalls in the order of time."""
    found = [_stall(book, spell) for spell in _spells(book)]
    found.extend(_uncounted(_stall(book, [pause])) for pause in book.unseen if pause.shown)
    usual = _pace(book)
    found.extend(stall for stretch in stretches if (stall := _outside(book, stretch, usual)))
    timed = book.line.clock == "timestamps" and origin is not None
    return tuple(_placed(stall, origin if timed else None, devices) for stall in _one_by_one(found))


def _uncounted(stall: Stall) -> Stall:
    """A stall that no step time contains, in a log whose clock is rebuilt from step times."""
    return replace(stall, text=f"{stall.text}; outside the printed step times, so not in the ledger")


def _one_by_one(stalls: list[Stall]) -> list[Stall]:
    """In the order of time; what shares a start because no stamp lies between is put in the order of its lines."""
    ordered: list[Stall] = []
    shared, end = None, 0.0
    for stall in sorted(stalls, key=lambda stall: (stall.elapsed_s or 0.0, _cited(stall))):
        at, place = stall.elapsed_s, (stall.elapsed_s, stall.attempt)
        if at is not None and place == shared:
            stall = replace(stall, elapsed_s=end)
        shared, end = place, (stall.elapsed_s or 0.0) + stall.seconds
        ordered.append(stall)
    return sorted(ordered, key=lambda stall: stall.elapsed_s or 0.0)


def _cited(stall: Stall) -> tuple[str, int]:
    return (stall.evidence[0].path, stall.evidence[0].line) if stall.evidence else ("", 0)


def _spells(book: Account) -> list[list[Pause]]:
    """Neighbouring slow intervals are one spell, whatever else is in them; every other pause stands alone."""
    spells: list[list[Pause]] = []
    slow: list[Pause] = []
    for pause in sorted((p for p in book.pauses if p.shown), key=lambda p: p.row):
        if pause.kind != "slow_steps":
            spells.append([pause])
        elif slow and pause.confidence == slow[-1].confidence and pause.row - slow[-1].row == 1:
            slow.append(pause)
        else:
            slow = [pause]
            spells.append(slow)
    return spells


def _stall(book: Account, spell: Sequence[Pause]) -> Stall:
    line, first, last = book.line, spell[0], spell[-1]
    start = float(line.start_s[first.row]) if first.start_s is None else first.start_s
    step = first.step if len(spell) == 1 else int(line.step[first.row])
    return Stall(
        kind=first.kind,
        step=step,
        start=None,
        seconds=float(sum(pause.seconds for pause in spell)),
        gpu_hours=None,
        confidence=first.confidence,
        evidence=_ends(first.evidence, last.evidence),
        text=_text(book, spell),
        elapsed_s=start,
        attempt=int(line.attempt[first.row]),
    )


def _ends(first: tuple[Evidence, ...], last: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    return first if first == last else (*first[:2], *last[-1:])


def _text(book: Account, spell: Sequence[Pause]) -> str:
    line, first, last = book.line, spell[0], spell[-1]
    if first.kind == "slow_steps":
        mean = _mean(line.step_time_s[first.row : last.row + 1])
        usual = float(book.pace.baseline[first.row])
        begun, end = int(line.begun[first.row]) + 1, int(line.step[last.row])
        steps = f"iteration {end}" if begun == end else f"iterations {begun} to {end}"
        cause = f"; {first.text} printed there" if first.confidence == "marked" and first.text else ""
        each = "" if begun == end else " each"
        return f"{steps} took {mean:.4g} s{each} against {usual:.4g} s{cause}"
    return first.text or LEDGER_KINDS[first.kind]


def _mean(values: Array) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")


def _outside(book: Account, stretch: Stretch, usual: float) -> Stall | None:
    """A stretch outside the intervals as a finding, when it is one and large enough to be seen."""
    least = max(3 * book.line.resolution_s if stretch.mark is None else 0.0, 0.05 * usual)
    mark = stretch.mark
    rows = book.line.rows(stretch.attempt)
    stepped = rows.stop > rows.start
    stuck = stretch.kind == "hang" or (mark is None and _without_steps(book, stretch))
    if (stretch.kind not in OUTSIDE and mark is None and not stuck) or stretch.seconds < least:
        return None
    if stuck:
        step = int(book.line.step[rows.stop - 1]) if stepped else None
        if mark is not None:
            return _of_stretch(stretch, step, "measured", mark.evidence, mark.text)
        evidence = (book.line.evidence(rows.stop - 1),) if stepped else ()
        return _of_stretch(
            stretch, step, "inferred", evidence, "no step line follows this one in this attempt"
        )
    if stretch.kind == "warmup":
        evidence = (book.line.evidence(rows.start),) if stepped else ()
        first = int(book.line.step[rows.start]) if stepped else None
        return _of_stretch(
            stretch, first, "measured", evidence, "what the first step took beyond the usual"
        )
    if mark is None:
        return None
    measured: Confidence = "marked" if mark.seconds is None else "measured"
    found = _of_stretch(stretch, mark.step, measured, mark.evidence, mark.text)
    return found if stretch.counted else _uncounted(found)


def _without_steps(book: Account, stretch: Stretch) -> bool:
    """Whether a stretch of unknown cause follows the last step of an attempt, and is long enough for several more."""
    rows = book.line.rows(stretch.attempt)
    if stretch.kind != "unknown" or rows.stop == rows.start:
        return False
    last = rows.stop - 1
    interval = float(book.line.iterations[last] * book.pace.baseline[last])
    return stretch.start_s >= float(book.line.end_s[last]) and stretch.seconds > max(2 * interval, 60.0)


def _pace(book: Account) -> float:
    known = book.pace.baseline[np.isfinite(book.pace.baseline)]
    return float(np.median(known)) if len(known) else 0.0


def _of_stretch(
    stretch: Stretch, step: int | None, confidence: Confidence, evidence: tuple[Evidence, ...], text: str
) -> Stall:
    return Stall(
        stretch.kind,
        step,
        None,
        stretch.seconds,
        None,
        confidence,
        evidence,
        text,
        stretch.start_s,
        stretch.attempt,
    )


def _placed(stall: Stall, origin: float | None, devices: int | None) -> Stall:
    """The stall with its absolute time and its GPU-hours."""
    return Stall(
        kind=stall.kind,
        step=stall.step,
        start=None if origin is None or stall.elapsed_s is None else origin + stall.elapsed_s,
        seconds=stall.seconds,
        gpu_hours=None if devices is None else stall.seconds * devices / 3600,
        confidence=stall.confidence,
        evidence=stall.evidence,
        text=stall.text,
        elapsed_s=stall.elapsed_s,
        attempt=stall.attempt,
    )
