"""Which DeepSpeed version wrote a log, and what its pipeline engine got wrong.

Sources: line numbers of ``log_dist`` (utils/logging.py) and ``stop`` (utils/timer.py) at the tags v0.3.0
to v0.19.5 (2026-08-09); runtime/pipe/engine.py at the tags named in ``FAULTS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from logmfu.parsing import compiled

Version = tuple[int, ...]
Span = tuple[Version, Version]
"""The first version with something, and the first version without it."""
OPEN: Version = (999,)
"""As an end: still so in the newest version."""

FINGERPRINTS: Mapping[tuple[str, int], tuple[Span, ...]] = {
    ("log_dist", 60): (((0, 3, 0), (0, 4, 2)),),
    ("log_dist", 68): (((0, 4, 2), (0, 5, 7)), ((0, 7, 0), (0, 8, 1))),
    ("log_dist", 69): (((0, 5, 7), (0, 7, 0)),),
    ("log_dist", 75): (((0, 8, 1), (0, 8, 2)),),
    ("log_dist", 77): (((0, 8, 2), (0, 8, 3)),),
    ("log_dist", 93): (((0, 8, 3), (0, 9, 0)),),
    ("log_dist", 96): (((0, 9, 0), (0, 15, 3)),),
    ("log_dist", 129): (((0, 15, 3), (0, 15, 4)),),
    ("log_dist", 128): (((0, 15, 4), (0, 16, 5)),),
    ("log_dist", 107): (((0, 16, 5), (0, 18, 0)),),
    ("log_dist", 123): (((0, 18, 0), OPEN),),
    ("stop", 154): (((0, 3, 0), (0, 3, 2)),),
    ("stop", 163): (((0, 3, 2), (0, 4, 0)),),
    ("stop", 157): (((0, 4, 0), (0, 5, 7)),),
    ("stop", 181): (((0, 5, 7), (0, 6, 2)),),
    ("stop", 193): (((0, 6, 2), (0, 6, 6)),),
    ("stop", 195): (((0, 6, 6), (0, 7, 0)),),
    ("stop", 198): (((0, 7, 0), (0, 7, 6)), ((0, 8, 1), (0, 9, 0))),
    ("stop", 197): (((0, 7, 6), (0, 8, 0)),),
    ("stop", 196): (((0, 8, 0), (0, 8, 1)),),
    ("stop", 199): (((0, 9, 0), (0, 9, 3)),),
    ("stop", 215): (((0, 9, 3), (0, 10, 1)),),
    ("stop", 260): (((0, 10, 1), (0, 14, 3)),),
    ("stop", 258): (((0, 14, 3), (0, 14, 5)),),
    ("stop", 259): (((0, 14, 5), (0, 15, 2)),),
    ("stop", 264): (((0, 15, 2), (0, 18, 0)), ((0, 18, 3), OPEN)),
    ("stop", 265): (((0, 18, 0), (0, 18, 3)),),
}
"""Caller's function and line in the log prefix, to the versions that have it there."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A known error of the pipeline engine's line, and the factors that undo it.

    The factors are functions of the print interval in steps.
    """

    first: Version
    fixed: Version
    time: Callable[[int], float]
    rate: Callable[[int], float]
    note: str

    def undo(self, figures: Mapping[str, Any], every: int) -> dict[str, Any]:
        """The line's values with this error taken out."""
        return {
            **figures,
            "step_time_s": figures["step_time_s"] * self.time(every),
            "samples_per_s": figures["samples_per_s"] * self.rate(every),
        }


WHOLE_INTERVAL = Fault(
    (0, 3, 0),
    (0, 3, 1),
    lambda every: 1.0,
    lambda every: float(every),
    "DeepSpeed 0.3.0 prints samples/sec divided by the print interval",
)
LAST_STEP = Fault(
    (0, 4, 0),
    (0, 5, 7),
    lambda every: float(every),
    lambda every: 1.0 / every,
    "DeepSpeed 0.4.0 to 0.5.6 prints the last step's time divided by the print interval",
)
MILLISECONDS = Fault(
    (0, 6, 2),
    (0, 6, 4),
    lambda every: 1e-3,
    lambda every: 1e3,
    "DeepSpeed 0.6.2 and 0.6.3 print `iter time (s)` in milliseconds",
)
FAULTS = (WHOLE_INTERVAL, LAST_STEP, MILLISECONDS)


def parse_version(text: str) -> Version | None:
    """``0.7.6+39dc1eb4`` as (0, 7, 6); None for text that is no version."""
    match = compiled(r"\d{1,4}(?:\.\d{1,4}){1,2}").match(text)
    return tuple(int(part) for part in match[0].split(".")) if match else None


def spans_of(origin: str | None) -> tuple[Span, ...]:
    """Versions that a logger prefix ``timer.py:260:stop`` can come from; empty if it tells nothing."""
    match = compiled(r":(\d{1,5}):(log_dist|stop)$").search(origin or "")
    return FINGERPRINTS.get((match[2], int(match[1])), ()) if match else ()


def span_text(spans: tuple[Span, ...]) -> str:
    """Spans for people: ``0.7.0 to before 0.7.6, or 0.8.1 to before 0.9.0``."""
    return ", or ".join(_one(span) for span in spans)


def _one(span: Span) -> str:
    first, past = (".".join(map(str, version)) for version in span)
    return f"{first} or newer" if span[1] == OPEN else f"{first} to before {past}"


def possible_faults(version: Version | None, spans: tuple[Span, ...]) -> tuple[Fault, ...]:
    """Errors the version has; with an unknown version those it may have."""
    if version is not None:
        return tuple(fault for fault in FAULTS if fault.first <= version < fault.fixed)
    if not spans:
        return FAULTS
    return tuple(
        fault
        for fault in FAULTS
        if any(first < fault.fixed and fault.first < past for first, past in spans)
    )
