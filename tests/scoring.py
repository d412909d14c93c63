"""How well a report matches the truth about an invented log: hits, misses, sizes, seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from writers import PlantedStall, TrueAttempt, Truth

STALL_KINDS = frozenset({"data_wait", "checkpoint", "evaluation", "gc", "slow_steps", "hang", "unknown"})
"""Kinds of stalls that are scored; start-up, loading and restarts are scored by the ledger."""


@dataclass(frozen=True, slots=True)
class Match:
    """A planted stall and the findings that point at it, or findings nothing was planted for."""

    planted: PlantedStall | None
    found: tuple[Any, ...]

    @property
    def size_error(self) -> float | None:
        """Error of the size as a share of the planted one."""
        if self.planted is None or not self.found:
            return None
        return abs(sum(stall.seconds for stall in self.found) - self.planted.seconds) / self.planted.seconds


@dataclass(frozen=True, slots=True)
class Score:
    """One report against its truth. Errors of the ledger and the wall clock are shares of the wall clock."""

    hits: tuple[Match, ...]
    """Planted stalls that had to be found and were, under a right name."""
    misses: tuple[PlantedStall, ...]
    misnamed: tuple[tuple[PlantedStall, Any], ...]
    """Findings at the place of a planted stall, under a wrong name."""
    wrong: tuple[Any, ...]
    """Findings nothing was planted for."""
    right: tuple[Any, ...]
    """Findings that match something planted, whether it had to be found or not."""
    ledger: dict[str, float]
    ledger_sum: float
    wall_clock: float
    attempts: bool
    steps: bool
    """First and last step of every attempt."""
    exits: bool
    lost_steps: bool
    durable_steps: bool
    changes_found: int
    changes_missed: int
    changes_right: int
    changes_wrong: tuple[Any, ...]


def score(report: Any, truth: Truth, log_interval: int = 1) -> Score:
    """Hold a report against the truth."""
    findings = [stall for stall in report.stalls if stall.kind in STALL_KINDS]
    matches, misnamed, wrong = _match(findings, truth.stalls)
    hits = tuple(match for match in matches if match.planted.eligible)
    hit = {id(match.planted) for match in hits}
    right = tuple(stall for match in matches for stall in match.found)
    found, missed, good, bad = _changes(report, truth, log_interval)
    pairs = list(zip(report.attempts, truth.attempts, strict=False))
    return Score(
        hits=hits,
        misses=tuple(stall for stall in truth.stalls if stall.eligible and id(stall) not in hit),
        misnamed=tuple(misnamed),
        wrong=tuple(wrong),
        right=right,
        ledger=ledger_errors(report, truth),
        ledger_sum=abs(sum(e.seconds for e in report.ledger) - (report.wall_clock_s or 0.0))
        / truth.wall_clock_s,
        wall_clock=abs((report.wall_clock_s or 0.0) - truth.wall_clock_s) / truth.wall_clock_s,
        attempts=len(report.attempts) == len(truth.attempts),
        steps=_same(pairs, _same_steps),
        exits=_same(pairs, lambda got, true: got.exit in true.exits),
        lost_steps=_same(pairs, lambda got, true: got.lost_steps in true.lost_steps),
        durable_steps=_same(pairs, lambda got, true: got.durable_step in true.durable_step),
        changes_found=found,
        changes_missed=missed,
        changes_right=good,
        changes_wrong=bad,
    )


def false_alarms(report: Any) -> list[str]:
    """What a report claims about a run in which nothing happened."""
    stalls = [f"stall {stall.kind}" for stall in report.stalls if stall.kind in STALL_KINDS]
    changes = [f"change {change.kind}" for change in report.changes]
    return stalls + changes + [f"incident {incident.kind}" for incident in report.incidents]


def ledger_errors(report: Any, truth: Truth) -> dict[str, float]:
    """Per class: how far its seconds are from what is right, as a share of the wall clock."""
    seconds = {entry.kind: entry.seconds for entry in report.ledger}
    kinds = seconds.keys() | {kind for span in truth.spans for kind in span.accept}
    errors = {}
    for kind in kinds:
        least, most = truth.bounds(kind)
        got = seconds.get(kind, 0.0)
        errors[kind] = max(least - got, got - most, 0.0) / truth.wall_clock_s
    return errors


def _same(pairs: Sequence[tuple[Any, TrueAttempt]], agree: Any) -> bool:
    return all(agree(got, true) for got, true in pairs)


def _same_steps(got: Any, true: TrueAttempt) -> bool:
    """The first step it did or the first it printed; the last it printed."""
    first = got.first_step is None or true.first_step[0] <= got.first_step <= true.first_step[1]
    return first and got.last_step == true.last_step


def _near(found: Any, planted: PlantedStall) -> bool:
    """The finding points between the printed steps around the planted stall, in the same attempt."""
    if found.attempt != planted.attempt:
        return False
    if found.step is None:
        return (
            found.start is not None
            and planted.start - 1 <= found.start <= planted.start + planted.seconds + 1
        )
    return planted.first <= found.step <= planted.last


def _cost(found: Any, planted: PlantedStall) -> tuple[bool, int, float]:
    """Pairs that had to be found first, then the closest step, then the closest size."""
    distance = 0 if found.step is None else abs(found.step - planted.step)
    return not planted.eligible, distance, abs(found.seconds - planted.seconds)


def _match(findings: list[Any], planted: Sequence[PlantedStall]) -> tuple[list[Match], list, list]:
    """Every finding goes to one planted stall: first one to one, then what is left to any that fits."""
    near = [(i, j) for i, f in enumerate(findings) for j, p in enumerate(planted) if _near(f, p)]
    fit = [(i, j) for i, j in near if findings[i].kind in planted[j].accept]
    fit.sort(key=lambda pair: _cost(findings[pair[0]], planted[pair[1]]))
    goes: dict[int, int] = {}
    taken: set[int] = set()
    for i, j in fit:
        if i not in goes and j not in taken:
            goes[i] = j
            taken.add(j)
    for i, j in fit:
        goes.setdefault(i, j)
    matches = [Match(planted[j], tuple(findings[i] for i in goes if goes[i] == j)) for j in sorted(taken)]
    misnamed, seen = [], set()
    for i, j in near:
        if i not in goes and i not in seen and j not in taken:
            seen.add(i)
            misnamed.append((planted[j], findings[i]))
    wrong = [found for i, found in enumerate(findings) if i not in goes and i not in seen]
    return matches, misnamed, wrong


def _changes(report: Any, truth: Truth, log_interval: int) -> tuple[int, int, int, tuple[Any, ...]]:
    """Changes of pace: found and missed of those that had to be found; right and wrong of those reported."""
    last = max((step for _, step in truth.printed), default=0)
    slack = max(5 * log_interval, 0.03 * last)
    reported = [change for change in report.changes if change.kind in ("step_time", "trend", "batch_size")]

    def fits(change: Any, true: Any) -> bool:
        return true.first - slack <= change.step <= true.last + slack

    required = [true for true in truth.changes if true.required]
    found = sum(any(fits(change, true) for change in reported) for true in required)
    good = [change for change in reported if any(fits(change, true) for true in truth.changes)]
    bad = tuple(change for change in reported if change not in good)
    return found, len(required) - found, len(good), bad
