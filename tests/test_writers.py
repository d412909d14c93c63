"""The invented logs themselves: what they print is what happened, and the truth adds up."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scoring import false_alarms, score
from writers import (
    LAYOUTS,
    Collect,
    DataWait,
    Eval,
    Failure,
    NanLoss,
    Plan,
    Ramp,
    Save,
    Slow,
    clean_plan,
    random_plan,
    write,
)

SEEDS = st.integers(0, 2000)
QUIET = {"noise": 0.0, "warmup": 0.0, "step_time": 2.0, "steps": 40, "log_interval": 10}
FEW = settings(max_examples=15, deadline=None)

_STEP = re.compile(r"iteration +(\d+)/|step=(\d+), skipped")
_STAMP = re.compile(
    r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)([.,]\d+)?\]|datetime: (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(\.\d+)?"
)
_ELAPSED = re.compile(r"elapsed time per iteration \((ms|s)\): ([\d.]+)")


def elapsed(text: str) -> list[float]:
    """Printed step times, in seconds."""
    return [float(value) * (0.001 if unit == "ms" else 1.0) for unit, value in _ELAPSED.findall(text)]


def stamps(text: str) -> list[float]:
    """Time stamps in the order of the file."""
    found = [match.group(1) or match.group(3) for match in _STAMP.finditer(text)]
    return [datetime.fromisoformat(stamp).replace(tzinfo=UTC).timestamp() for stamp in found]


def printed_steps(text: str) -> list[int]:
    """Step numbers in the order of the file, without DeepSpeed's step 0."""
    return [int(one or two) for one, two in _STEP.findall(text) if (one or two) != "0"]


def test_writers_share_no_code_with_the_analyzer():
    """What writes a log imports nothing from what reads it."""
    for path in Path(__file__).with_name("writers").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.startswith("logmfu")], path


@given(SEEDS)
@FEW
def test_truth_adds_up_to_the_wall_clock(seed):
    """Every second between the first and the last stamp is in exactly one class."""
    truth = write(random_plan(seed)).truth
    assert sum(truth.ledger.values()) == pytest.approx(truth.wall_clock_s, abs=1e-3)
    assert all(seconds >= 0 for seconds in truth.ledger.values())
    assert all(span.kind in span.accept for span in truth.spans)
    ordered = sorted(truth.spans, key=lambda span: span.start)
    assert all(a.end <= b.start + 1e-6 for a, b in pairwise(ordered))


@given(SEEDS)
@FEW
def test_best_answer_lies_within_the_bounds(seed):
    """The ledger of the truth itself has no error."""
    truth = write(random_plan(seed)).truth
    for kind, seconds in truth.ledger.items():
        least, most = truth.bounds(kind)
        assert least - 1e-6 <= seconds <= most + 1e-6


@given(SEEDS)
@FEW
def test_stamps_never_go_back(seed):
    """The printed clock only moves forward, and spans the truth's wall clock."""
    written = write(random_plan(seed))
    times = stamps(written.text)
    assert times == sorted(times)
    if written.truth.clock == "stamps" and times and written.plan.envelope is None:
        # Failure lines have stamps in other layouts, so the last one may be missing here.
        assert times[0] == int(written.truth.start)
        assert times[-1] <= written.truth.end


@given(SEEDS)
@FEW
def test_steps_rise_within_an_attempt(seed):
    """Step lines in the text are those of the truth, and rise by the log interval inside an attempt."""
    written = write(random_plan(seed))
    assert printed_steps(written.text) == [step for _, step in written.truth.printed]
    attempts = defaultdict(list)
    for attempt, step in written.truth.printed:
        attempts[attempt].append(step)
    for steps in attempts.values():
        assert all(0 < b - a <= written.plan.log_interval for a, b in pairwise(steps))


@given(SEEDS, st.sampled_from([random_plan, clean_plan]))
@FEW
def test_a_seed_always_writes_the_same_log(seed, draw):
    """Nothing but the seed decides."""
    assert write(draw(seed)) == write(draw(seed))


@given(SEEDS)
@FEW
def test_nothing_happens_in_a_clean_run(seed):
    """A clean run has one attempt, no planted stall, no change; all its steps are productive."""
    truth = write(clean_plan(seed)).truth
    assert (truth.stalls, truth.changes, truth.saves, truth.evals) == ((), (), (), ())
    assert len(truth.attempts) == 1
    assert truth.ledger.keys() <= {"startup", "warmup", "productive", "unknown"}


def test_every_framework_and_every_end_is_drawn():
    """The first 300 plans hold each layout, each kind of failure and each kind of event."""
    plans = [random_plan(seed) for seed in range(300)]
    failures = {event.kind for plan in plans for event in plan.all(Failure)}
    assert {plan.framework for plan in plans} == set(LAYOUTS)
    assert failures == frozenset().union(*(layout.failures for layout in LAYOUTS.values()))
    for kind in (Save, Eval, DataWait, Collect, Slow, Ramp, NanLoss):
        assert any(plan.all(kind) for plan in plans)


def test_new_megatron_leaves_pauses_out_of_the_step_time():
    """40 steps of 2 s with two saves of 10 s: every line prints 2 s, and the stamps hold the 20 s."""
    written = write(Plan(**QUIET, events=(Save(every=20, seconds=10),)))
    assert elapsed(written.text) == [2.0, 2.0, 2.0, 2.0]
    # From "megatron is initialized" on: 34 s + 12 s of start-up, 80 s of steps, 20 s of saves.
    assert written.truth.wall_clock_s == pytest.approx(146)
    assert written.truth.ledger == pytest.approx({"startup": 46, "productive": 80, "checkpoint": 20})


def test_old_megatron_prints_a_pause_in_the_next_interval():
    """A save of 10 s after step 20 makes the ten steps to 30 look like 3 s each."""
    events = (Save(every=20, seconds=10),)
    for framework in ("megatron-2.5", "megatron-deepspeed", "bigscience", "gpt-neox"):
        assert elapsed(write(Plan(framework=framework, **QUIET, events=events)).text) == [
            2.0,
            2.0,
            3.0,
            2.0,
        ]


def test_gpt_neox_divides_a_partial_interval_by_the_log_interval():
    """After a resume at 25 the line of step 30 covers five steps of 2 s and prints 1 s."""
    events = (Save(every=25, seconds=10), Failure(at_step=28, kind="killed", restart_after=60))
    written = write(Plan(framework="gpt-neox", **QUIET, events=events))
    assert printed_steps(written.text) == [10, 20, 30, 40]
    assert elapsed(written.text) == [2.0, 2.0, 1.0, 2.0]
    assert written.truth.wall_clock_s == pytest.approx(40 + 30)


def test_core_016_prints_the_first_step_alone_and_counts_it_again():
    """A first step of 12 s prints 12 s, then (12 + 9 x 2) / 10 = 3 s; with interval 1, (12 + 2) / 2 = 7 s."""
    plan = {**QUIET, "framework": "megatron-0.16", "warmup": 10.0}
    assert elapsed(write(Plan(**plan)).text) == [12.0, 3.0, 2.0, 2.0, 2.0]
    assert elapsed(write(Plan(**{**plan, "log_interval": 1, "steps": 4})).text) == [12.0, 7.0, 2.0, 2.0]


def test_lost_steps_go_back_to_the_durable_save():
    """Killed after step 33, saved at 20: steps 21 to 30 are printed twice, ten are lost."""
    events = (
        Save(every=20, seconds=10),
        Failure(at_step=33, kind="preempted", fraction=0.5, restart_after=100),
    )
    truth = write(Plan(**QUIET, events=events)).truth
    first, second = truth.attempts
    assert (first.last_step, first.lost_steps, first.durable_step) == (30, {10}, {20})
    assert (first.exits, second.exits) == ({"preempted"}, {"finished"})
    # 13 steps of 2 s and half a step; the gap goes on to the next "megatron is initialized", 21 s later.
    assert truth.ledger["lost_work"] == pytest.approx(27)
    assert truth.ledger["restart_gap"] == pytest.approx(100 + 1.5 + 21)
    assert truth.ledger["productive"] == pytest.approx(80)


def test_an_unfinished_asynchronous_save_is_not_durable():
    """The save of step 20 takes 100 s to be written; a crash 27 s later goes back to nothing."""
    events = (
        Save(every=20, seconds=1, asynchronous=True, writes_for=100),
        Failure(at_step=33, kind="oom", restart_after=100),
    )
    truth = write(Plan(**QUIET, events=events)).truth
    assert truth.attempts[0].lost_steps == {30}
    assert truth.saves[0] == (1, 20, False)
    assert truth.attempts[1].first_step == (1, 10)


def test_two_crashes_before_the_next_save_lose_work_twice():
    """Saved at 20, crashes at 33 and 27: ten and no printed steps are lost, then the run goes through."""
    events = (
        Save(every=20, seconds=10),
        Failure(at_step=33, kind="crash", restart_after=60),
        Failure(at_step=27, kind="crash", restart_after=60),
    )
    truth = write(Plan(**{**QUIET, "log_interval": 1}, events=events)).truth
    assert [attempt.lost_steps for attempt in truth.attempts] == [{13}, {7}, {0, None}]


def test_a_hang_lasts_as_long_as_the_watchdog_says():
    """The hang begins 600 s before the watchdog's line, half a step after step 33."""
    events = (Failure(at_step=33, kind="hang", fraction=0.5, ran_for=600.0),)
    written = write(Plan(**QUIET, events=events))
    (stall,) = written.truth.stalls
    assert "ran for 600000 milliseconds" in written.text
    assert (stall.kind, stall.seconds, stall.first) == ("hang", 600.0, 30)
    assert stall.start == pytest.approx(written.plan.began + 67 + 33.5 * 2)
    assert written.truth.ledger["hang"] == pytest.approx(600)
    assert written.truth.ledger["lost_work"] == pytest.approx(67)


def test_a_wait_without_a_timer_has_no_name():
    """The same wait is data_wait beside a batch-generator timer, and nameless without."""
    events = (DataWait(step=25, seconds=30),)
    shown = write(Plan(**QUIET, timers=True, events=events))
    hidden = write(Plan(**QUIET, events=events))
    assert shown.truth.stalls[0].accept == {"data_wait"}
    # 30 s over ten steps, and 0.04 % of a step for every other batch.
    assert "batch-generator ................................: (2994.80, 3000.80)" in shown.text
    assert hidden.truth.stalls[0].accept == {"slow_steps", "unknown"}
    assert (hidden.truth.stalls[0].first, hidden.truth.stalls[0].last) == (20, 30)


def test_a_log_that_just_ends_has_lost_nothing():
    """The last attempt of a log without a failure line may still be going."""
    truth = write(Plan(**QUIET, events=(Failure(at_step=35, kind="silent"),))).truth
    assert truth.attempts[0].exits == {"running", "unknown"}
    assert truth.ledger == pytest.approx({"startup": 46, "productive": 60})


def test_nan_makes_the_loss_field_vanish():
    """From step 25 on Megatron's lines have no loss."""
    text = write(Plan(**QUIET, events=(NanLoss(step=25),))).text
    assert ["lm loss:" in line for line in text.splitlines() if "iteration  " in line] == [
        True,
        True,
        False,
        False,
    ]


def perfect(truth):
    """A report that knows the truth."""
    stalls = [
        SimpleNamespace(
            kind=min(s.accept), step=s.step, start=s.start, seconds=s.seconds, attempt=s.attempt
        )
        for s in truth.stalls
        if s.eligible
    ]
    attempts = [
        SimpleNamespace(
            first_step=a.first_step[1],
            last_step=a.last_step,
            exit=min(a.exits),
            lost_steps=next(iter(a.lost_steps)),
            durable_step=next(iter(a.durable_step)),
        )
        for a in truth.attempts
    ]
    return SimpleNamespace(
        stalls=stalls,
        attempts=attempts,
        ledger=[SimpleNamespace(kind=kind, seconds=seconds) for kind, seconds in truth.ledger.items()],
        wall_clock_s=truth.wall_clock_s,
        changes=[SimpleNamespace(kind=c.kind, step=c.first) for c in truth.changes if c.required],
        incidents=[],
    )


@given(SEEDS)
@FEW
def test_a_report_that_knows_the_truth_has_a_perfect_score(seed):
    """Scoring finds nothing wrong with the truth itself."""
    plan = random_plan(seed)
    truth = write(plan).truth
    got = score(perfect(truth), truth, plan.log_interval)
    assert (got.misses, got.misnamed, got.wrong, got.changes_wrong, got.changes_missed) == (
        (),
        (),
        (),
        (),
        0,
    )
    assert all((got.attempts, got.steps, got.exits, got.lost_steps, got.durable_steps))
    assert max(got.ledger.values()) == pytest.approx(0, abs=1e-9)
    assert all(match.size_error == pytest.approx(0) for match in got.hits)


def test_scoring_tells_missed_misnamed_and_false_findings_apart():
    """One save left out, one called gc, one stall where nothing was planted, 10 s in the wrong class of 146 s."""
    truth = write(Plan(**QUIET, events=(Save(every=20, seconds=10),))).truth
    report = perfect(truth)
    report.stalls[0].kind = "gc"
    report.stalls[1] = SimpleNamespace(kind="slow_steps", step=10, start=None, seconds=5.0, attempt=1)
    report.ledger[-1].seconds -= 10
    got = score(report, truth, 10)
    assert [stall.step for stall in got.misses] == [20, 40]
    assert [(planted.step, found.kind) for planted, found in got.misnamed] == [(20, "gc")]
    assert [found.step for found in got.wrong] == [10]
    assert got.ledger["checkpoint"] == pytest.approx(10 / 146)
    assert false_alarms(report) == ["stall gc", "stall slow_steps"]
