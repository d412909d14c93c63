"""Invented logs with a known truth: plans, one writer per framework, a simulated clock.

Nothing here may import ``logmfu``: what writes a log must not share a mistake with what reads it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from writers.deepspeed import DEEPSPEED
from writers.draw import clean_plan as _clean_plan
from writers.draw import random_plan as _random_plan
from writers.envelope import wrap
from writers.judge import truth_of
from writers.layout import Layout, Moment, Text
from writers.megatron import MICROS, SECONDS
from writers.megatron_old import BIGSCIENCE, GPT_NEOX, MEGATRON_2, MEGATRON_DEEPSPEED
from writers.plan import (
    Collect,
    DataWait,
    Drift,
    Eval,
    Failure,
    NanLoss,
    Plan,
    Ramp,
    Save,
    Skip,
    Slow,
)
from writers.simulation import Simulation
from writers.truth import PlantedStall, Span, TrueAttempt, TrueChange, Truth

LAYOUTS: Mapping[str, Layout] = {
    "megatron-0.12": SECONDS,
    "megatron-0.16": MICROS,
    "megatron-2.5": MEGATRON_2,
    "megatron-deepspeed": MEGATRON_DEEPSPEED,
    "bigscience": BIGSCIENCE,
    "gpt-neox": GPT_NEOX,
    "deepspeed": DEEPSPEED,
}
"""Frameworks and eras that can be written."""


def random_plan(seed: int) -> Plan:
    """A run with pauses, slow stretches, failures and restarts of known size; the framework goes by the seed."""
    return _random_plan(seed, LAYOUTS)


def clean_plan(seed: int) -> Plan:
    """A run in which nothing happens but noise."""
    return _clean_plan(seed, LAYOUTS)


@dataclass(frozen=True, slots=True)
class Written:
    """A log and the truth about it."""

    plan: Plan
    text: str
    truth: Truth


def write(plan: Plan) -> Written:
    """Run a plan, print it in its framework's layout, and judge what the log can show."""
    layout = LAYOUTS[plan.framework]
    simulation = Simulation(plan, layout).run()
    lines = [
        (moment, text) for moment in simulation.moments for text in layout.lines[moment.name](plan, moment)
    ]
    text = "".join(wrap(plan, text, moment.time) + "\n" for moment, text in lines)
    clock = "stamps" if plan.envelope == "cri" else layout.clock
    stamps = _stamps(simulation, lines, clock, everything=plan.envelope == "cri")
    return Written(plan, text, truth_of(simulation, stamps, clock))


def _stamps(
    simulation: Simulation, lines: list[tuple[Moment, Text]], clock: str, *, everything: bool
) -> dict[int, list[float]]:
    """Times the log shows, by attempt: stamped lines, and step lines where the step clock carries on from a stamp.

    Without any stamp an attempt lasts from the start of its first interval to its last step line.
    """
    stamps: defaultdict[int, list[float]] = defaultdict(list)
    for moment, text in lines:
        if everything or text.stamped or (clock == "anchored" and moment.name == "step"):
            stamps[moment.attempt].append(moment.time)
    if clock == "none":
        return {a.number: _printed_window(simulation, a.number) for a in simulation.attempts if a.printed}
    return dict(stamps)


def _printed_window(simulation: Simulation, number: int) -> list[float]:
    times = [m.time for m in simulation.moments if m.name == "step" and m.attempt == number]
    return [simulation.attempts[number - 1].training, times[-1]]


__all__ = [
    "LAYOUTS",
    "Collect",
    "DataWait",
    "Drift",
    "Eval",
    "Failure",
    "NanLoss",
    "Plan",
    "PlantedStall",
    "Ramp",
    "Save",
    "Skip",
    "Slow",
    "Span",
    "TrueAttempt",
    "TrueChange",
    "Truth",
    "Written",
    "clean_plan",
    "random_plan",
    "write",
]
