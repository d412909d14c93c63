"""Plans drawn by seed: noise only, or with things planted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from random import Random

from writers.layout import Layout
from writers.plan import (
    Collect,
    DataWait,
    Drift,
    Eval,
    Event,
    Failure,
    NanLoss,
    Plan,
    Ramp,
    Save,
    Skip,
    Slow,
)


def clean_plan(seed: int, layouts: dict[str, Layout]) -> Plan:
    """A run in which nothing happens but noise (up to 3 %) and outliers (up to 1 step in 500)."""
    random = Random(f"clean {seed}")  # noqa: S311
    shape = _shape(random, seed, layouts)
    running = random.random() < 0.2
    end = (Failure(at_step=shape["steps"] - 1, kind="silent"),) if running else ()
    return Plan(**shape, events=end)


def random_plan(seed: int, layouts: dict[str, Layout]) -> Plan:
    """A run with pauses, slow stretches, failures and restarts of known size."""
    random = Random(f"planted {seed}")  # noqa: S311
    shape = _shape(random, seed, layouts)
    layout = layouts[shape["framework"]]
    events: list[Event] = []
    for plant in (_save, _eval, _waits, _collect, _pace, _skips, _failures):
        events.extend(plant(random, Plan(**shape, events=tuple(events)), layout))
    return Plan(**shape, launcher=random.random() < 0.6, events=tuple(events))


def _shape(random: Random, seed: int, layouts: dict[str, Layout]) -> dict:
    """Everything but the events. The number of step lines is bounded, not the number of steps."""
    framework = list(layouts)[seed % len(layouts)]
    interval = random.choice([1, 1, 5, 10, 10, 20, 50, 100])
    lines = random.randint(300, 1000) if interval == 1 else random.randint(80, 400)
    return {
        "framework": framework,
        "log_interval": interval,
        "steps": interval * lines,
        "step_time": round(math.exp(random.uniform(math.log(0.8), math.log(20))), 3),
        "noise": random.choice([0.002, 0.005, 0.01, 0.02, 0.03]),
        "outliers": random.choice([0.0, 0.001, 0.002]),
        "batch": random.choice([256, 512, 2048]),
        "world_size": random.choice([8, 64, 256, 1024]),
        "seed": seed,
        "start": f"202{random.choice([4, 5, 6])}-0{random.randint(1, 9)}-{random.randint(10, 28)}T0{random.randint(0, 9)}:17:33",
        "warmup": random.uniform(5, 60),
        "restore": random.uniform(10, 120),
        "timers": random.random() < 0.45,
        "envelope": _envelope(random, framework),
    }


def _envelope(random: Random, framework: str) -> str | None:
    if framework in ("deepspeed", "gpt-neox") or random.random() < 0.7:
        return None
    return random.choice(["srun", "torchrun", "cri"])


def _lines(plan: Plan) -> int:
    return plan.steps // plan.log_interval


def _interval_s(plan: Plan) -> float:
    return plan.log_interval * plan.step_time


def _clear_of_noise(plan: Plan, layout: Layout) -> float:
    """A pause this long cannot be mistaken for noise, wherever it sits."""
    noise = 12 * plan.noise * plan.step_time * math.sqrt(plan.log_interval)
    outlier = 2 * plan.outlier_size * plan.step_time if plan.outliers else 0.0
    return max(4 * layout.resolution, 1.0, 0.1 * _interval_s(plan) + noise + outlier)


def _pause(random: Random, plan: Plan, layout: Layout) -> float:
    least = max(3.5 * layout.resolution, 0.5, 0.06 * _interval_s(plan))
    if layout.includes_pauses or not layout.names >= {"evaluation"}:
        least = _clear_of_noise(plan, layout)
    return round(random.uniform(least, max(60.0, 2 * least)), 3)


def _every(random: Random, plan: Plan) -> int:
    least = 25 if plan.log_interval == 1 else 3
    return plan.log_interval * max(least, _lines(plan) // random.randint(3, 12))


def _save(random: Random, plan: Plan, layout: Layout) -> Iterator[Event]:
    if random.random() < 0.2:
        return
    every = _every(random, plan)
    if plan.log_interval > 1 and random.random() < 0.25:
        # Off the log interval: an attempt that goes on from here begins with a partial interval.
        every += random.randint(1, plan.log_interval - 1)
    can = plan.framework in ("megatron-0.12", "megatron-0.16")
    background = can and random.random() < 0.35
    writes_for = random.uniform(0.1, 0.6) * every * plan.step_time if background else 0.0
    yield Save(
        every=every,
        seconds=_pause(random, plan, layout),
        asynchronous=background,
        writes_for=round(writes_for, 2),
    )


def _eval(random: Random, plan: Plan, layout: Layout) -> Iterator[Event]:
    if random.random() < 0.5:
        yield Eval(every=_every(random, plan), seconds=_pause(random, plan, layout))


def _waits(random: Random, plan: Plan, layout: Layout) -> Iterator[Event]:
    least = _clear_of_noise(plan, layout)
    places = random.sample(range(5, _lines(plan) - 2, 3), random.randint(0, 4))
    for place in sorted(places):
        step = place * plan.log_interval + random.randint(1, plan.log_interval)
        yield DataWait(step=step, seconds=round(random.uniform(least, max(2 * least, 120.0)), 3))


def _collect(random: Random, plan: Plan, layout: Layout) -> Iterator[Event]:
    if random.random() < 0.75:
        return
    least = 20 if plan.log_interval == 1 else 6
    every = plan.log_interval * random.randint(least, max(least + 1, _lines(plan) // 8))
    seconds = random.uniform(1, 1.5) * _clear_of_noise(plan, layout)
    yield Collect(every=every, seconds=round(min(seconds, 45.0), 3))  # no heap takes longer


def _pace(random: Random, plan: Plan, layout: Layout) -> Iterator[Event]:
    """At most one thing that bends the pace: two of them have no single right description."""
    kinds: list[tuple[float, Callable]] = [(0.2, _span), (0.15, _lasting), (0.06, _drift), (0.08, _ramp)]
    chance = random.random()
    for share, kind in kinds:
        if chance < share:
            yield kind(random, plan)
            return
        chance -= share


def _span(random: Random, plan: Plan) -> Event:
    lines = _lines(plan)
    length = random.randint(20, 60) if plan.log_interval == 1 else random.randint(3, max(4, lines // 12))
    first = random.randint(15, lines - length - 15) * plan.log_interval
    return Slow(first=first + 1, last=first + length * plan.log_interval, factor=random.uniform(1.2, 1.6))


def _lasting(random: Random, plan: Plan) -> Event:
    place = random.randint(int(0.3 * _lines(plan)), int(0.7 * _lines(plan)))
    return Slow(first=place * plan.log_interval + 1, factor=random.uniform(1.06 + 2 * plan.noise, 1.35))


def _drift(random: Random, plan: Plan) -> Event:
    return Drift(first=10 * plan.log_interval, factor=random.uniform(1.15, 1.4))


def _ramp(random: Random, plan: Plan) -> Event:
    stages = 3
    per_stage = max(1, int(random.uniform(0.1, 0.25) * _lines(plan)) // stages)
    return Ramp(until=per_stage * stages * plan.log_interval, stages=stages)


def _skips(random: Random, plan: Plan, layout: Layout) -> Iterator[Event]:
    if random.random() < 0.1:
        yield from (Skip(step=step) for step in sorted(random.sample(range(2, plan.steps), 3)))


def _failures(random: Random, plan: Plan, layout: Layout) -> Iterator[Event]:
    save = plan.one(Save)
    count = random.choices([0, 1, 2, 3], [0.4, 0.3, 0.2, 0.1])[0]
    at = 0
    for number in range(count):
        # Not before the last save: an attempt goes on from there at the latest.
        saved = at // save.every * save.every if save else 0
        at = random.randint(
            saved + 3 * plan.log_interval, max(saved + 3 * plan.log_interval, plan.steps - 2)
        )
        if at >= plan.steps - 1:
            return
        yield from _failure(random, plan, layout, at, final=number == count - 1)


def _failure(random: Random, plan: Plan, layout: Layout, at: int, *, final: bool) -> Iterator[Event]:
    kind = random.choice(sorted(layout.failures))
    if kind == "nan":
        if plan.all(NanLoss):
            return
        yield NanLoss(step=max(1, at - plan.log_interval))
    restart = None if final and random.random() < 0.35 else round(random.uniform(60, 1800), 1)
    save = plan.one(Save)
    in_save = (
        save is not None and kind not in ("hang", "nan") and random.random() < 0.15 and at > save.every
    )
    yield Failure(
        at_step=at // save.every * save.every if in_save else at,
        kind=kind,
        fraction=random.uniform(0.1, 0.9),
        restart_after=None if kind == "nan" else restart,
        ran_for=random.choice([600.081, 1800.113]),
        in_save=in_save,
    )
