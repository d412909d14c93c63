"""From what really happened to what the log can show: the truth an analysis is held to."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from writers.layout import Layout
from writers.plan import Drift, Plan, Ramp, Slow
from writers.raw import RawAttempt, RawStall
from writers.simulation import Simulation
from writers.truth import PlantedStall, Span, TrueAttempt, TrueChange, Truth

Window = tuple[float, float]


def truth_of(simulation: Simulation, stamps: dict[int, list[float]], clock: str) -> Truth:
    """The truth of one log. ``stamps``: times the log shows, by attempt; ``clock``: stamps, anchored or none."""
    layout = simulation.layout
    windows = {number: (min(times), max(times)) for number, times in stamps.items() if times}
    stalls = _stalls(simulation, windows)
    survivors = {a.number: _survivor(a, simulation.attempts[-1].number) for a in simulation.attempts}
    spans = [_judged(span, simulation, stalls, survivors) for span in simulation.spans]
    visible = list(_clipped(spans, windows, gaps=clock != "none"))
    ordered = [windows[number] for number in sorted(windows)]
    wall = sum(end - start for start, end in ordered) if clock == "none" else ordered[-1][1] - ordered[0][0]
    return Truth(
        clock=clock,
        start=None if clock == "none" else ordered[0][0],
        end=None if clock == "none" else ordered[-1][1],
        wall_clock_s=wall,
        spans=tuple(visible),
        stalls=tuple(stalls),
        attempts=tuple(_attempt(a, simulation.attempts, layout) for a in simulation.attempts),
        saves=tuple(tuple(save) for save in simulation.saves),
        evals=tuple(simulation.evals),
        changes=tuple(_changes(simulation)),
        printed=tuple((a.number, step) for a in simulation.attempts for step in a.printed),
    )


def _survivor(attempt: RawAttempt, last: int) -> float:
    """The last step of an attempt that counts: all of them, unless it failed and one can see that."""
    failure = attempt.failure
    if failure is None or (attempt.number == last and failure.kind == "silent"):
        return math.inf
    return attempt.durable


def _judged(span: Span, sim: Simulation, stalls: list[PlantedStall], survivors: dict[int, float]) -> Span:
    """Work that did not survive is lost; what was never printed may also be called unknown."""
    if span.stall is not None:
        accept = stalls[span.stall].accept
        if span.kind == "slow_steps" and span.step is not None and span.step > survivors[span.attempt]:
            accept |= {"lost_work"}
        return replace(span, accept=accept | _shadow(span, sim, survivors))
    if span.kind == "warmup":
        return replace(span, accept=span.accept | _shadow(span, sim, survivors))
    if span.kind not in ("productive", "lost_work"):
        return span
    kind, accept = span.kind, span.accept
    final = span.attempt == sim.attempts[-1].number
    if final and not sim.layout.save_lines and sim.attempts[-1].failure is not None:
        accept |= {"unknown"}
    if span.step > survivors[span.attempt]:
        kind, accept = "lost_work", frozenset({"lost_work"}) | (span.accept - {"productive"})
        if not sim.layout.save_lines and final:
            accept |= {"productive", "unknown"}
    return replace(span, kind=kind, accept=accept | _shadow(span, sim, survivors))


def _shadow(span: Span, sim: Simulation, survivors: dict[int, float]) -> frozenset[str]:
    """Other right names for what happened after the last step line of an attempt."""
    printed = sim.attempts[span.attempt - 1].printed
    if span.step is None or (printed and span.step <= printed[-1]):
        return frozenset()
    return frozenset({"unknown", "lost_work"} if span.step > survivors[span.attempt] else {"unknown"})


def _clipped(spans: list[Span], windows: dict[int, Window], *, gaps: bool) -> Iterator[Span]:
    """Spans cut at the stamps; what lies between two attempts is the gap between them."""
    edges = [windows[number] for number in sorted(windows)]
    for span in spans:
        for start, end in edges:
            yield from _piece(span, start, end)
        if gaps:
            for (_, end), (start, _) in pairwise(edges):
                for piece in _piece(span, end, start):
                    also = (
                        {piece.kind}
                        if piece.kind in ("checkpoint", "evaluation", "startup", "restore")
                        else set()
                    )
                    accept = frozenset({"restart_gap"} | also)
                    yield replace(piece, kind="restart_gap", accept=accept, stall=None)


def _piece(span: Span, start: float, end: float) -> Iterator[Span]:
    begin, stop = max(span.start, start), min(span.end, end)
    if stop > begin:
        yield replace(span, start=begin, end=stop)


def _stalls(sim: Simulation, windows: dict[int, Window]) -> list[PlantedStall]:
    stalls = [_stall(raw, sim, windows) for raw in sim.stalls]
    stalls = [_beside_warmup(stall, sim.attempts[stall.attempt - 1]) for stall in stalls]
    return [*_shared(_rare(stalls)), *_bent_pace(sim)]


def _rare(stalls: list[PlantedStall]) -> list[PlantedStall]:
    """Fewer than six collections make no period."""
    if sum(stall.kind == "gc" and stall.eligible for stall in stalls) >= 6:
        return stalls
    return [
        replace(s, accept=s.accept | {"slow_steps", "unknown"}) if s.kind == "gc" else s for s in stalls
    ]


def _bent_pace(sim: Simulation) -> Iterator[PlantedStall]:
    """Where the pace changes for good, slow steps may be reported as well; they need not be."""
    plan = sim.plan
    begins = [slow.first for slow in plan.all(Slow) if slow.last is None] + [
        d.first for d in plan.all(Drift)
    ]
    for begin in begins:
        for attempt in sim.attempts:
            if attempt.last_done >= begin:
                first, last = max(begin - plan.log_interval, attempt.first_step - 1), attempt.last_done
                accept = frozenset({"slow_steps"})
                yield PlantedStall(
                    "slow_steps", begin, 0.0, 0.0, attempt.number, accept, first, last, False, False
                )


def _stall(raw: RawStall, sim: Simulation, windows: dict[int, Window]) -> PlantedStall:
    attempt = sim.attempts[raw.attempt - 1]
    first, last, closed = _around(raw, attempt, sim.plan)
    window = windows.get(raw.attempt)
    end = raw.start + (0.0 if raw.kind == "slow_steps" else raw.seconds)
    inside = window is not None and window[0] <= raw.start and end <= window[1] + 1e-6
    return PlantedStall(
        kind=raw.kind,
        step=raw.step,
        start=raw.start,
        seconds=raw.seconds,
        attempt=raw.attempt,
        accept=raw.accept,
        first=first,
        last=last,
        measured=raw.measured,
        eligible=inside
        and (closed or (raw.measured and not raw.in_step))
        and _large(raw, sim.plan, sim.layout),
    )


def _around(raw: RawStall, attempt: RawAttempt, plan: Plan) -> tuple[int, int, bool]:
    """Printed steps around a pause, and whether a step line followed it at all."""
    printed = attempt.printed
    before = raw.begin - 1 if raw.in_step else raw.step
    at = bisect_right(printed, before)
    first = printed[at - 1] if at else attempt.first_step - 1
    after = bisect_left(printed, raw.step) if raw.in_step else at
    closed = after < len(printed)
    return first, printed[after] if closed else raw.step + plan.log_interval, closed


def _large(raw: RawStall, plan: Plan, layout: Layout) -> bool:
    """At least 3 clock resolutions and 5 % of an interval, and clear of the noise where only timing shows it."""
    interval = plan.step_time * plan.log_interval
    if raw.seconds < max(3 * layout.resolution, 0.05 * interval):
        return False
    if raw.measured:
        return True
    outlier = plan.outlier_size * plan.step_time if plan.outliers else 0.0
    if raw.kind == "slow_steps":
        # The planner keeps its factor clear of the noise, but a failure may cut it short.
        return raw.step - raw.begin + 1 >= (20 if plan.log_interval == 1 else 3 * plan.log_interval)
    return raw.seconds >= 8 * plan.noise * plan.step_time * math.sqrt(plan.log_interval) + 1.5 * outlier


def _beside_warmup(stall: PlantedStall, attempt: RawAttempt) -> PlantedStall:
    """Nothing unmeasured can be told from the warm-up in the first interval of a process (or the two first lines)."""
    settled = attempt.printed[1] if len(attempt.printed) > 1 else math.inf
    if stall.measured or stall.first >= settled:
        return stall
    return replace(stall, accept=stall.accept | {"warmup", "unknown", "slow_steps"}, eligible=False)


def _shared(stalls: list[PlantedStall]) -> list[PlantedStall]:
    """Two unmeasured pauses inside the same printed interval cannot be told apart.

    Any of their names is right for the sum; only the largest has to be found, with the size of all.
    """
    groups: dict[tuple[int, int], list[int]] = {}
    for index, stall in enumerate(stalls):
        if not stall.measured:
            groups.setdefault((stall.attempt, stall.last), []).append(index)
    merged = list(stalls)
    for members in groups.values():
        if len(members) > 1:
            _merge(merged, members)
    return merged


def _merge(stalls: list[PlantedStall], members: list[int]) -> None:
    names = frozenset().union(*(stalls[index].accept for index in members))
    total = sum(stalls[index].seconds for index in members)
    eligible = any(stalls[index].eligible for index in members)
    largest = max(members, key=lambda index: stalls[index].seconds)
    for index in members:
        stalls[index] = replace(stalls[index], accept=names, eligible=False)
    stalls[largest] = replace(stalls[largest], seconds=total, eligible=eligible)


def _attempt(attempt: RawAttempt, attempts: list[RawAttempt], layout: Layout) -> TrueAttempt:
    last_printed = attempt.printed[-1] if attempt.printed else None
    final = attempt is attempts[-1]
    lost: set[int | None] = {max(0, (last_printed or 0) - attempt.durable)}
    durable: set[int | None] = {attempt.durable} if attempt.durable else {0, None}
    if final and (attempt.failure is None or attempt.failure.kind == "silent"):
        lost = {0, None}
    if last_printed is None:
        lost |= {None}
    if final and not layout.save_lines:
        # Saves are not announced and no later attempt tells: only what it was resumed from is known.
        lost, durable = lost | {None}, durable | {None, attempt.first_step - 1}
    first = (attempt.first_step, attempt.printed[0] if attempt.printed else attempt.first_step)
    exits = _exits(attempt, layout, final=final)
    return TrueAttempt(attempt.number, first, last_printed, exits, frozenset(lost), frozenset(durable))


def _exits(attempt: RawAttempt, layout: Layout, *, final: bool) -> frozenset[str]:
    """Right names for the end of an attempt."""
    if attempt.failure is None:
        return frozenset({"finished"} if layout.finish_line else {"finished", "running", "unknown"})
    if attempt.failure.kind == "silent":
        return frozenset({"running", "unknown"} if final else {"killed", "unknown"})
    return frozenset({attempt.failure.kind})


def _changes(sim: Simulation) -> Iterator[TrueChange]:
    plan = sim.plan
    printed = {step for attempt in sim.attempts for step in attempt.printed}
    for slow in plan.all(Slow):
        seen = sum(step >= slow.first for step in printed) >= 20
        last = slow.first if slow.last is None else slow.last
        yield TrueChange("step_time", slow.first, last, required=seen and slow.last is None)
    if plan.all(Drift):
        yield TrueChange("trend", 1, plan.steps, required=max(printed) >= 0.7 * plan.steps)
    for ramp in plan.all(Ramp):
        yield TrueChange("batch_size", 1, ramp.until, required=False)
