"""Runs in which nothing happens but noise: nothing is found."""

from __future__ import annotations

from random import Random

import pytest
from logs import read_written
from scoring import false_alarms
from writers import LAYOUTS, Failure, Plan, write

import logmfu

INTERVALS = (1, 2, 5, 10, 20, 50)
RUNS = 30
"""Runs of each framework: 210 in all, and one more each with the longest interval."""


def quiet_plan(framework: str, seed: int) -> Plan:
    """A short run of a pace, noise (up to 3 %) and outliers (up to 1 step in 500) that go by the seed."""
    random = Random(f"quiet {framework} {seed}")  # noqa: S311
    interval = INTERVALS[seed % len(INTERVALS)]
    steps = interval * random.randint(6, 60 if interval > 1 else 250)
    return Plan(
        framework=framework,
        steps=steps,
        log_interval=interval,
        step_time=random.uniform(0.4, 25.0),
        noise=random.choice([0.002, 0.01, 0.02, 0.03]),
        outliers=random.choice([0.0, 0.001, 0.002]),
        warmup=random.uniform(0.0, 60.0),
        timers=random.random() < 0.3,
        envelope=random.choice([None, None, "srun", "cri"]),
        seed=seed,
        events=random.choice([(), (Failure(at_step=steps - 1, kind="silent"),)]),
    )


@pytest.mark.parametrize("framework", list(LAYOUTS))
def test_noise_is_no_finding(framework):
    """No stall, no change and no incident in a run that only has noise and outliers, whatever its length."""
    alarms = {}
    for seed in range(RUNS):
        report = logmfu.analyze(read_written(write(quiet_plan(framework, seed))))
        assert len(report.attempts) == 1
        alarms[seed] = false_alarms(report)
    assert {seed: found for seed, found in alarms.items() if found} == {}


@pytest.mark.parametrize("framework", list(LAYOUTS))
def test_noise_is_no_finding_at_the_longest_interval(framework):
    """The same where a line is printed every 1000 steps only."""
    plan = Plan(
        framework=framework, steps=12_000, log_interval=1000, step_time=1.5, noise=0.03, outliers=0.002
    )
    report = logmfu.analyze(read_written(write(plan)))
    assert false_alarms(report) == []
    assert report.ledger[0].kind == "productive"
    assert (
        sum(entry.seconds for entry in report.ledger if entry.kind == "unknown")
        < 0.01 * report.wall_clock_s
    )
