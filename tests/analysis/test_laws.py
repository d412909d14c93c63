"""Laws of the analysis, over generated runs of every framework: what must not matter does not."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from logs import findings, ledger, read_written
from writers import LAYOUTS, Collect, DataWait, Eval, Failure, Plan, Save, Slow, write
from writers.simulation import Simulation

import logmfu
from logmfu.report import LEDGER_KINDS

# Without shrinking: it would analyse hundreds of runs, and these plans are short as they come.
LAW = settings(max_examples=25, deadline=None, derandomize=True, database=None, phases=[Phase.generate])
FEW = settings(LAW, max_examples=15)


@st.composite
def plans(draw: Any, *, failures: int = 2) -> Plan:
    """Short runs of every framework with pauses, failures and restarts anywhere, however small."""
    framework = draw(st.sampled_from(list(LAYOUTS)))
    interval, lines = draw(st.sampled_from([1, 2, 10])), draw(st.integers(4, 40))
    steps = interval * lines
    some, seconds = st.integers(1, steps), st.floats(0.1, 90.0)
    one = st.one_of(
        st.builds(Eval, every=some, seconds=seconds),
        st.builds(DataWait, step=some, seconds=seconds),
        st.builds(Collect, every=some, seconds=seconds),
        st.builds(Slow, first=some, last=st.just(steps), factor=st.floats(1.1, 2.0)),
    )
    save = st.builds(
        Save,
        every=some,
        seconds=seconds,
        asynchronous=st.booleans() if "save_scheduled" in LAYOUTS[framework].lines else st.just(False),
        writes_for=st.floats(0.0, 200.0),
    )
    kinds = st.sampled_from(sorted(LAYOUTS[framework].failures - {"nan"}))
    failure = st.builds(
        Failure, at_step=st.integers(0, steps - 1), kind=kinds, restart_after=st.floats(1.0, 900.0)
    )
    events = draw(st.lists(one, max_size=2)) + draw(st.lists(save, max_size=1))
    return Plan(
        framework=framework,
        steps=steps,
        log_interval=interval,
        step_time=draw(st.floats(0.5, 20.0)),
        noise=draw(st.sampled_from([0.002, 0.01])),
        timers=draw(st.booleans()),
        launcher=draw(st.booleans()),
        seed=draw(st.integers(0, 99)),
        events=(*events, *draw(st.lists(failure, max_size=failures))),
    )


@given(plans())
@LAW
def test_ledger_adds_up_to_the_wall_clock(plan):
    """Each second is in one class: the classes are not negative and sum to the wall clock to the microsecond."""
    report = logmfu.analyze(read_written(write(plan)))
    assert {entry.kind for entry in report.ledger} <= set(LEDGER_KINDS)
    assert all(entry.seconds > 0 for entry in report.ledger)
    assert abs(sum(entry.seconds for entry in report.ledger) - report.wall_clock_s) < 1e-6
    if report.ledger:
        assert sum(entry.share for entry in report.ledger) == pytest.approx(1.0)
    assert all(stall.seconds > 0 for stall in report.stalls)


@given(plans(), st.sampled_from([timedelta(hours=1), timedelta(hours=13), timedelta(days=365 * 3)]))
@FEW
def test_time_of_day_and_year_do_not_matter(plan, shift):
    """The same run hours or years later has the same report but for its start and end."""
    later = replace(plan, start=(datetime.fromisoformat(plan.start) + shift).isoformat())
    now, then = (logmfu.analyze(read_written(write(one))) for one in (plan, later))
    assert findings(now) == findings(then)
    if now.start is not None:
        assert (then.start - now.start, then.end - now.end) == pytest.approx((shift.total_seconds(),) * 2)


@given(plans(), st.integers(1, 10))
@FEW
def test_lines_of_other_programs_do_not_matter(plan, every):
    """Text nobody knows, between any two lines, changes nothing that is found."""
    written = write(plan)
    lines = written.text.splitlines(keepends=True)
    other = ["wandb: 12 of 40 files uploaded\n", "\n", "hello from the data team, 17 shards left\n"]
    mixed = "".join(
        line + (other[index % 3] if index % every == 0 else "") for index, line in enumerate(lines)
    )
    assert findings(logmfu.analyze(read_written(written, mixed))) == findings(
        logmfu.analyze(read_written(written))
    )


@given(plans(), st.sampled_from(["0: ", "[default0]:"]))
@FEW
def test_a_label_before_every_line_does_not_matter(plan, label):
    """The label of srun or torchrun gives a rank and changes nothing else."""
    written = write(plan)
    labelled = "".join(label + line for line in written.text.splitlines(keepends=True))
    assert findings(logmfu.analyze(read_written(written, labelled))) == findings(
        logmfu.analyze(read_written(written))
    )


@given(plans())
@FEW
def test_a_container_log_has_the_same_attempts(plan):
    """The time that a container runtime puts before every line shows more of the clock, and nothing else that happened."""
    plain, stamped = (
        logmfu.analyze(read_written(write(replace(plan, envelope=envelope)))) for envelope in (None, "cri")
    )
    assert [(a.first_step, a.last_step, a.exit, a.lost_steps) for a in stamped.attempts] == [
        (a.first_step, a.last_step, a.exit, a.lost_steps) for a in plain.attempts
    ]
    assert stamped.clock == "timestamps"
    assert stamped.wall_clock_s >= plain.wall_clock_s - 1.0


@given(plans())
@FEW
def test_equal_lines_of_several_ranks_count_once(plan):
    """Two ranks that print every line each make no second step, save, stall or incident."""
    written = write(plan)
    doubled = "".join(
        f"{rank}: {line}" for line in written.text.splitlines(keepends=True) for rank in (0, 1)
    )
    assert findings(logmfu.analyze(read_written(written, doubled))) == findings(
        logmfu.analyze(read_written(written))
    )


def starts(plan: Plan) -> list[int]:
    """Lines of the log before the first of each process start but the first."""
    layout = LAYOUTS[plan.framework]
    moments = Simulation(plan, layout).run().moments
    lengths = [len(layout.lines[moment.name](plan, moment)) for moment in moments]
    before = [sum(lengths[:index]) for index, moment in enumerate(moments) if moment.name == "process"]
    return before[1:]


@given(plans(failures=3))
@LAW
def test_a_file_for_each_attempt_is_one_run(plan):
    """A restart that writes a file of its own is read as the restart it is."""
    written = write(plan)
    assume(all(attempt.last_step is not None for attempt in written.truth.attempts))
    lines = written.text.splitlines(keepends=True)
    borders = [0, *starts(plan), len(lines)]
    files = ["".join(lines[begin:end]) for begin, end in pairwise(borders)]
    assert findings(logmfu.analyze(read_written(written, *files))) == findings(
        logmfu.analyze(read_written(written))
    )


@given(plans(), st.data())
@LAW
def test_one_log_in_several_files_is_one_run(plan, data):
    """A log cut between any two lines, as log rotation does it, is read as the log it was."""
    written = write(plan)
    lines = written.text.splitlines(keepends=True)
    cuts = data.draw(st.sets(st.integers(1, len(lines) - 1), min_size=1, max_size=2))
    borders = [0, *sorted(cuts), len(lines)]
    files = ["".join(lines[begin:end]) for begin, end in pairwise(borders)]
    assert findings(logmfu.analyze(read_written(written, *files))) == findings(
        logmfu.analyze(read_written(written))
    )


def stamped_steps(run: logmfu.Run) -> list[float]:
    """Times of the step lines, seconds since 1970."""
    return [] if run.start is None else (run.start + run.steps["elapsed_s"].dropna()).tolist()


@given(plans(), st.data())
@FEW
def test_two_parts_of_a_run_have_its_wall_clock(plan, data):
    """``--until`` and ``--since`` at the time of a step line cut the wall clock in two, and each ledger adds up."""
    run = read_written(write(plan))
    whole = logmfu.analyze(run)
    assume(whole.clock == "timestamps" and stamped_steps(run))
    cut = data.draw(st.sampled_from(stamped_steps(run)))
    early, late = logmfu.analyze(run, until=cut), logmfu.analyze(run, since=cut)
    assert early.wall_clock_s + late.wall_clock_s == pytest.approx(whole.wall_clock_s, abs=1e-5)
    for part in (early, late):
        assert abs(sum(entry.seconds for entry in part.ledger) - part.wall_clock_s) < 1e-6


@pytest.mark.parametrize("framework", [name for name in LAYOUTS if LAYOUTS[name].clock == "stamps"])
@pytest.mark.parametrize("line", [17, 20, 31])
def test_two_parts_of_a_run_have_its_ledger(framework, line):
    """The classes of two parts add up to the whole's, but for one interval: there the cut may hide a pause's line."""
    events = (Save(every=50, seconds=30.0), Eval(every=70, seconds=45.0))
    plan = Plan(framework=framework, steps=480, step_time=4.0, noise=0.0, log_interval=10, events=events)
    run = read_written(write(plan))
    cut = stamped_steps(run)[line]
    early, late = (ledger(logmfu.analyze(run, **part)) for part in ({"until": cut}, {"since": cut}))
    for kind, seconds in ledger(logmfu.analyze(run)).items():
        assert early.get(kind, 0.0) + late.get(kind, 0.0) == pytest.approx(seconds, abs=115.0), kind
