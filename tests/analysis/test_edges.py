"""Small logs of the kinds that go wrong, with numbers to be checked in the head.

Unless a test says otherwise steps take 2 s, a line is printed for each, and second 0 is the start of training.
"""

from __future__ import annotations

import math

import pytest
from logs import FIVE, at, dump, exits, ledger, report_of, stalls, step, steps, trained
from writers import Collect, Eval, Failure, Plan, Save, write

START = dump(world_size=8, train_iters=1000) + trained(0)
SAVE_BEGINS = "saving checkpoint at iteration {:7d} to /ckpt/run in torch_dist format\n"
SAVE_ENDS = "  successfully saved checkpoint from iteration {:7d} to /ckpt/run\n"
OOM = "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB.\n"


def paced(paces: list[float], start: int = 1, **fields: object) -> str:
    """One step line after the other, each with its own step time."""
    second, lines = 0.0, []
    for number, took in enumerate(paces, start):
        second += took
        lines.append(step(number, second, took, **fields))
    return "".join(lines)


def timers(**milliseconds: float) -> str:
    """A timer block after a step line."""
    rows = [
        f"    {name.replace('_', '-')} {'.' * (47 - len(name))}: ({value:.2f}, {value:.2f})\n"
        for name, value in milliseconds.items()
    ]
    return "(min, max) time across ranks (ms):\n" + "".join(rows)


def saved(number: int) -> str:
    """A complete save, without times."""
    return (
        f"saving checkpoint at iteration {number:7d} to /ckpt/run in torch_dist format\n"
        f"  successfully saved checkpoint from iteration {number:7d} to /ckpt/run [ t 1/1, p 1/1 ]\n"
    )


def resumed(number: int, second: float) -> str:
    """A process that starts at ``second`` and goes on from a step ten seconds later."""
    loaded = f"  successfully loaded checkpoint from /ckpt/run [ t 1/1, p 1/1 ] at iteration {number}\n"
    begun = f"[after megatron is initialized] datetime: {at(second)} \n"
    return dump(world_size=8, train_iters=1000) + begun + loaded + trained(second + 10)


# How much log there is


def test_a_crash_during_start_up_is_a_result():
    """No step was done: 40 s of start-up, goodput 0, and the exit with its line."""
    begun = f"[after megatron is initialized] datetime: {at(0)} \n"
    built = f"[after dataloaders are built] datetime: {at(40)} \n"
    report = report_of(dump(world_size=8) + begun + built + OOM)
    assert (exits(report), ledger(report), report.goodput) == (["oom"], {"startup": 40.0}, 0.0)
    assert (report.step_count, report.first_step, report.step_time_s) == (0, None, None)
    assert report.attempts[0].evidence[0].text.startswith("torch.OutOfMemoryError")
    assert [incident.kind for incident in report.incidents] == ["oom"]


def test_one_step():
    """A single step line gives a step time and a ledger of its 12 s."""
    report = report_of(START + step(1, 12, 12.0))
    assert (report.wall_clock_s, report.step_time_s.median, sum(ledger(report).values())) == (
        12.0,
        12.0,
        12.0,
    )
    assert (stalls(report), report.changes) == ([], ())


def test_two_steps():
    """12 s and 2 s: what the first one took beyond the second is warm-up."""
    report = report_of(START + step(1, 12, 12.0) + step(2, 14, 2.0))
    assert ledger(report) == {"productive": 4.0, "warmup": 10.0}
    assert stalls(report) == [("warmup", 1)]


def test_a_run_that_is_still_going():
    """A log that ends after a step line lost nothing; it has no end but "running"."""
    report = report_of(START + steps(1, 20, start=0))
    assert (exits(report), report.attempts[0].lost_steps) == (["running"], 0)
    assert ledger(report) == {"productive": 40.0}


# Clocks


def test_no_stamp_at_all():
    """40 steps of 2 s without a time make a rebuilt wall clock of 80 s; there is no start, and a note says so."""
    report = report_of(dump(world_size=8) + "".join(step(number, None, 2.0) for number in range(1, 41)))
    assert (report.clock, report.wall_clock_s, report.start) == ("reconstructed", 80.0, None)
    assert ledger(report) == {"productive": 80.0}
    assert any("no time stamps" in note for note in report.notes)


def test_a_slow_step_without_stamps():
    """A step of 12 s among steps of 2 s shows in the step clock alone."""
    lines = "".join(step(number, None, 12.0 if number == 20 else 2.0) for number in range(1, 41))
    report = report_of(dump(world_size=8) + lines)
    assert ledger(report) == {"productive": 80.0, "slow_steps": 10.0}
    assert stalls(report) == [("slow_steps", 20)]


def test_a_line_every_thousand_steps():
    """300 s without a name after step 4000 are unknown; the other 16,000 s are 8000 steps."""
    lines = "".join(
        step(number, 2 * number + (300 if number > 4000 else 0), 2.0, total=9000)
        for number in range(1000, 8001, 1000)
    )
    report = report_of(START + lines)
    assert ledger(report) == {"productive": 16_000.0, "unknown": 300.0}
    assert stalls(report) == [("unknown", 4000)]


def test_the_clock_goes_back_an_hour():
    """At the end of daylight saving time 40 steps of 600 s still last 24,000 s, and a note says what happened."""
    late = steps(21, 40, start=12_000 - 3600, took=600.0)
    report = report_of(START + steps(1, 20, start=0, took=600.0) + late)
    assert ledger(report) == {"productive": 24_000.0}
    assert any("goes back 1 time" in note for note in report.notes)


def test_the_clock_goes_back_in_a_short_log():
    """The same with steps of 2 s: the last stamp is before the first one, and the log is 80 s long."""
    report = report_of(START + steps(1, 20, start=0) + steps(21, 40, start=40 - 3600))
    assert ledger(report) == {"productive": 80.0}


def test_two_runs_mixed_in_one_file_are_noticed():
    """Steps 1 to 60 and 501 to 560 take turns under one clock that goes on: the report says what is wrong with it."""
    one, other = (steps(first, first + 59, start=0).splitlines(keepends=True) for first in (1, 501))
    report = report_of(START + "".join(line for pair in zip(one, other, strict=True) for line in pair))
    assert any("several runs or processes" in note for note in report.notes)


def test_lines_out_of_order():
    """Lines that stand in the wrong order, with stamps that say so, are no restart."""
    lines = [step(number, 2 * number, 2.0) for number in range(1, 41)]
    lines[10], lines[11] = lines[11], lines[10]
    report = report_of(START + "".join(lines))
    assert exits(report) == ["running"]
    assert ledger(report) == {"productive": 80.0}


def test_a_second_of_rounding_does_not_add_up():
    """Steps of 2.5 s under stamps in whole seconds: no gap is found, and 250 s stay 250 s."""
    report = report_of(START + paced([2.5] * 100))
    assert stalls(report) == []
    assert ledger(report)["productive"] == pytest.approx(250.0, abs=1.0)


# A part of a run


PAUSED = (
    START + steps(1, 20, start=0) + saved(20) + timers(save_checkpoint=10_000) + steps(21, 40, start=50)
)
"""A save of 10 s after step 20, which was done at second 40: step 21 is done at second 52."""


@pytest.mark.parametrize(("since", "save_s"), [(40, 10.0), (41, 10.0), (45, 7.0), (49, 3.0), (52, 0.0)])
def test_a_pause_is_cut_at_the_beginning_of_a_window(since, save_s):
    """The log says that the save took 10 s, not when: it is what is left of the window before the 2 s of step 21."""
    report = report_of(PAUSED, since=FIVE.timestamp() + since)
    spent = ledger(report)
    assert report.wall_clock_s == 90.0 - since
    assert spent.get("checkpoint", 0.0) == pytest.approx(save_s)
    assert spent["productive"] == pytest.approx(90.0 - since - save_s)
    assert stalls(report) == ([("checkpoint", 20)] if save_s else [])


def test_a_pause_without_a_name_in_a_window_is_no_start_up():
    """30 s after step 20 that no line names, cut 9 s in: 21 s unknown."""
    log = START + steps(1, 20, start=0) + steps(21, 40, start=70)
    report = report_of(log, since=FIVE.timestamp() + 49)
    assert ledger(report) == {"productive": 40.0, "unknown": 21.0}
    assert stalls(report) == [("unknown", 20)]


def test_a_window_after_the_last_step_of_an_attempt_is_no_start_up():
    """The end of an attempt, 40 s after its last step, and its successor: the first 30 s of the window are unknown."""
    kill = f"slurmstepd: error: *** JOB 7 ON node-7 CANCELLED AT {at(80).replace(' ', 'T')} DUE TO PREEMPTION ***\n"
    log = START + steps(1, 20, start=0) + kill + resumed(20, 200) + steps(21, 40, start=210)
    report = report_of(log, since=FIVE.timestamp() + 50)
    assert exits(report) == ["preempted", "running"]
    assert ledger(report) == {"productive": 40.0, "startup": 10.0, "restart_gap": 120.0, "unknown": 30.0}


def test_a_window_does_not_know_what_was_saved_before_it():
    """``since`` in the middle of an attempt that fails: its last save lies outside, and nothing is said about it."""
    log = START + steps(1, 100, start=0) + OOM
    whole, part = report_of(log), report_of(log, since=50)
    assert (whole.attempts[0].durable_step, whole.attempts[0].lost_steps) == (0, 100)
    assert (part.attempts[0].durable_step, part.attempts[0].lost_steps) == (None, None)


def test_stamps_of_a_buffer_make_no_stalls():
    """A buffer that is emptied every 30 steps gives 30 lines one stamp: 240 s of steps, placed by their printed 2 s."""
    lines = [step(number, 60.0 * -(-number // 30), 2.0) for number in range(1, 121)]
    report = report_of(START + "".join(lines))
    assert stalls(report) == []
    assert ledger(report) == {"productive": 240.0}
    assert any("those of a buffer" in note for note in report.notes)


# What is missing is not claimed


def test_missing_lines_leave_the_lost_steps_open():
    """An excerpt without steps 21 to 100 and two hours may have lost the line of a save: lost steps are unknown."""
    report = report_of(START + steps(1, 20, start=0) + steps(101, 120, start=9000) + OOM)
    assert (exits(report), report.attempts[0].lost_steps) == (["oom"], None)
    assert ledger(report)["productive"] == 80.0


def test_missing_lines_of_the_right_length_leave_the_lost_steps_open_too():
    """The same where the time between is just that of the missing steps: a save may have been among them."""
    report = report_of(START + steps(1, 20, start=0) + steps(101, 120, start=200) + OOM)
    assert report.attempts[0].lost_steps is None


def test_a_torn_step_line_leaves_the_lost_steps_known():
    """Of 120 step lines one is missing, and its time is there: 20 steps since the save at 100 are lost."""
    begun = START + steps(1, 100, start=0) + saved(100)
    report = report_of(begun + steps(101, 109, start=200) + steps(111, 120, start=220) + OOM)
    assert report.attempts[0].lost_steps == 20


def test_a_save_that_was_cut_off_is_open():
    """Only its first line is there: the save is not durable, and all 50 steps are lost."""
    begun = "saving checkpoint at iteration      50 to /ckpt/run in torch_dist format\n"
    report = report_of(START + steps(1, 50, start=0) + begun + OOM)
    assert (report.saves.count, report.saves.open) == (0, 1)
    assert (report.attempts[0].durable_step, report.attempts[0].lost_steps) == (0, 50)


def test_where_an_attempt_began_is_no_checkpoint_unless_a_line_tells_of_it():
    """An excerpt: after an exit at 50 it goes on at 201, without a start. What was saved before nobody knows."""
    ended = f"[exiting program after 1.8 minutes] datetime: {at(110)} \n"
    report = report_of(START + steps(1, 50, start=0) + saved(50) + ended + steps(201, 210, start=500) + OOM)
    assert [attempt.durable_step for attempt in report.attempts] == [50, None]
    assert report.attempts[1].lost_steps is None


# Loss, batch size and FLOPs


def test_a_vanished_loss_is_no_number():
    """From step 21 on the loss field is missing: a change of kind nan, not a stall."""
    bad = steps(21, 40, start=40, loss=None, nan=1)
    report = report_of(START + steps(1, 20, start=0) + bad)
    assert [(change.kind, change.step) for change in report.changes] == [("nan", 21)]
    assert math.isnan(report.changes[0].after)
    assert stalls(report) == []


def test_a_crash_on_a_vanished_loss_is_nan():
    """A process that dies of an error while its loss is not a number ended with nan."""
    bad = steps(21, 22, start=40, loss=None, nan=1)
    trace = "[rank3]: Traceback (most recent call last):\n[rank3]: RuntimeError: Unexpected result nan\n"
    assert exits(report_of(START + steps(1, 20, start=0) + bad + trace)) == ["nan"]


def test_skipped_iterations_have_no_loss_and_are_no_nan():
    """Where every iteration of a line was skipped there is no loss to print."""
    skipped = steps(21, 24, start=40, loss=None, skipped=1)
    report = report_of(START + steps(1, 20, start=0) + skipped + steps(25, 40, start=48))
    assert report.changes == ()


def test_a_batch_ramp_is_no_slowdown():
    """Batches of 128, 256 and 512 take 0.5, 1 and 2 s: one change of kind batch_size, and every second is productive."""
    second, lines = 0.0, ""
    for number in range(1, 121):
        batch = 128 if number <= 40 else 256 if number <= 80 else 512
        second += batch / 256
        lines += step(number, second, batch / 256, batch=batch)
    report = report_of(START + lines)
    assert [(change.kind, change.step) for change in report.changes] == [("batch_size", 41)]
    assert (report.changes[0].before, report.changes[0].after) == (128, 512)
    assert stalls(report) == []
    assert ledger(report)["productive"] == pytest.approx(140.0, abs=1.0)


def test_more_flops_at_the_same_step_time_are_an_accounting_change():
    """300 and then 400 TFLOP/s at 2 s a step: the program counts 4/3 as much, and nothing got faster."""
    lines = steps(1, 40, start=0, tflops=300.0) + steps(41, 80, start=80, tflops=400.0)
    report = report_of(START + lines)
    assert [(change.kind, change.step) for change in report.changes] == [("accounting", 41)]
    assert report.changes[0].after / report.changes[0].before == pytest.approx(4 / 3)


def test_fewer_flops_per_second_in_longer_steps_are_no_accounting_change():
    """300 TFLOP/s at 2 s and 240 at 2.5 s are the same FLOPs per step: a slowdown and nothing else."""
    lines = [
        step(
            n,
            2 * n if n <= 40 else 80 + 2.5 * (n - 40),
            2.0 if n <= 40 else 2.5,
            tflops=300 if n <= 40 else 240,
        )
        for n in range(1, 81)
    ]
    report = report_of(START + "".join(lines))
    assert [(change.kind, change.step) for change in report.changes] == [("step_time", 41)]


def test_a_loss_spike():
    """8 where the loss was 2: one change at that step."""
    lines = "".join(
        step(n, 2 * n, 2.0, loss=8.0 if n == 60 else 2.0 + 0.01 * (n % 3)) for n in range(1, 101)
    )
    (change,) = report_of(START + lines).changes
    assert (change.kind, change.step, change.after) == ("loss_spike", 60, 8.0)
    assert change.before == pytest.approx(2.01, abs=0.01)


# Pace


def test_steps_that_get_slower_and_slower():
    """From 2 s to 2.4 s over 400 steps is a trend, and no stall."""
    report = report_of(START + paced([2.0 + 0.4 * number / 400 for number in range(400)]))
    (change,) = report.changes
    assert change.kind == "trend"
    assert (change.before, change.after) == pytest.approx((2.0, 2.4), abs=0.02)
    assert stalls(report) == []


def test_a_permanent_slowdown_names_the_timer_that_moved():
    """From step 121 on 2.5 s instead of 2 s, and only forward-backward took longer."""
    lines, second = "", 0.0
    for number in range(1, 201):
        extra = 0.0 if number <= 120 else 0.5
        second += 2.0 + extra
        lines += step(number, second, 2.0 + extra)
        lines += timers(forward_backward=1900 + 1000 * extra, optimizer=50)
    report = report_of(START + lines)
    (change,) = report.changes
    assert (change.kind, change.step) == ("step_time", 121)
    assert (change.before, change.after) == pytest.approx((2.0, 2.5))
    assert "`forward-backward` +0.5 s" in change.text
    assert "optimizer" not in change.text
    assert stalls(report) == []


def slower_data(border: int) -> str:
    """200 steps; after ``border`` each waits 0.5 s longer for its batch."""
    lines, second = "", 0.0
    for number in range(1, 201):
        extra = 0.0 if number <= border else 0.5
        second += 2.0 + extra
        lines += step(number, second, 2.0 + extra)
        lines += timers(forward_backward=1900, batch_generator=5 + 1000 * extra)
    return lines


def test_data_that_comes_later_for_good_is_a_slowdown():
    """From step 61 on every batch comes 0.5 s later: one change, and `batch-generator` is what moved."""
    report = report_of(START + slower_data(60))
    (change,) = report.changes
    assert (change.kind, change.step) == ("step_time", 61)
    assert "`batch-generator` +0.5 s" in change.text


def test_data_that_comes_later_for_good_is_a_slowdown_in_the_second_half_too():
    """The same from step 141 on."""
    report = report_of(START + slower_data(140))
    assert [(change.kind, change.step) for change in report.changes] == [("step_time", 141)]
    assert len(report.stalls) <= 1


def test_data_that_comes_earlier_for_good_is_a_speed_up():
    """From step 61 on no batch comes 0.5 s late any more: one change, and no wait before it."""
    second, lines = 0.0, ""
    for number in range(1, 201):
        extra = 0.5 if number <= 60 else 0.0
        second += 2.0 + extra
        lines += step(number, second, 2.0 + extra)
        lines += timers(forward_backward=1900, batch_generator=5 + 1000 * extra)
    report = report_of(START + lines)
    assert [(change.kind, change.step) for change in report.changes] == [("step_time", 61)]
    assert stalls(report) == []


def test_data_that_comes_later_for_a_while_is_a_wait():
    """In steps 101 to 140 each batch comes 0.5 or 0.8 s later: 26 s of waiting, and no change for good."""
    second, lines = 0.0, ""
    for number in range(1, 201):
        extra = 0.5 if 101 <= number <= 120 else 0.8 if 121 <= number <= 140 else 0.0
        second += 2.0 + extra
        lines += step(number, second, 2.0 + extra)
        lines += timers(forward_backward=1900, batch_generator=5 + 1000 * extra)
    report = report_of(START + lines)
    assert report.changes == ()
    assert ledger(report) == pytest.approx({"productive": 400.0, "data_wait": 26.0}, abs=0.1)


def test_a_slow_stretch_is_one_stall():
    """Steps 101 to 140 took 2.5 s, the others 2 s: 20 s of slow steps in one finding, and no change for good."""
    report = report_of(START + paced([2.5 if 101 <= number <= 140 else 2.0 for number in range(1, 201)]))
    assert stalls(report) == [("slow_steps", 101)]
    assert ledger(report) == {"productive": 400.0, "slow_steps": 20.0}
    assert report.changes == ()
    assert "iterations 101 to 140 took 2.5 s each against 2 s" in report.stalls[0].text


def test_a_save_does_not_cut_a_slow_stretch():
    """Steps 81 to 120 take 2.5 s, and between 100 and 101 ten seconds go to a save: two stalls, of 20 and 10 s."""
    second, lines = 0.0, []
    for number in range(1, 201):
        took = 2.5 if 81 <= number <= 120 else 2.0
        second += took
        lines.append(step(number, second, took) + (saved(number) if number == 100 else ""))
        second += 10 * (number == 100)
    report = report_of(START + "".join(lines))
    assert stalls(report) == [("slow_steps", 81), ("checkpoint", 100)]
    assert [stall.seconds for stall in report.stalls] == pytest.approx([20.0, 10.0], abs=1.0)


def test_a_short_dip_at_one_period_is_garbage_collection():
    """Every twentieth step takes 3 s and nothing else is due then: ten collections of 1 s, inferred."""
    head = dump(world_size=8, train_iters=1000, eval_interval=1000) + trained(0)
    report = report_of(head + paced([3.0 if number % 20 == 0 else 2.0 for number in range(1, 201)]))
    assert stalls(report) == [("gc", number) for number in range(20, 201, 20)]
    assert {stall.confidence for stall in report.stalls} == {"inferred"}
    assert ledger(report) == {"productive": 400.0, "gc": 10.0}


NO_EVALUATION = dump(world_size=8, train_iters=1000, eval_interval=1000) + trained(0)
"""A start that says when evaluations are due: what is long in between is none."""


def long_each(period: int, *, last: int = 200, start: int = 1, usual: float = 2.0) -> list[float]:
    """Step times: 1 s more at each multiple of the period."""
    return [usual + (number % period == 0) for number in range(start, last + 1)]


def test_collections_in_a_slow_stretch_are_told_from_it():
    """Steps 86 to 115 take 2.5 s, each twentieth 1 s more: ten collections of 1 s and one slow stretch of 15 s."""
    paces = [took + 0.5 * (86 <= number <= 115) for number, took in enumerate(long_each(20), 1)]
    report = report_of(NO_EVALUATION + paced(paces))
    assert [each for each in stalls(report) if each[0] != "gc"] == [("slow_steps", 86)]
    assert [each for each in stalls(report) if each[0] == "gc"] == [("gc", n) for n in range(20, 201, 20)]
    assert ledger(report) == pytest.approx({"productive": 400.0, "gc": 10.0, "slow_steps": 15.0}, abs=0.1)


def test_a_long_wait_at_the_time_of_a_collection_is_no_collection():
    """Step 60 takes 30 s: what else happened there is not known, the nine others are collections."""
    paces = long_each(20)
    paces[59] = 30.0
    report = report_of(NO_EVALUATION + paced(paces))
    assert stalls(report) == [
        ("slow_steps" if number == 60 else "gc", number) for number in range(20, 201, 20)
    ]


def collections_around_a_restart(phase: int) -> list[int | None]:
    """Steps called ``gc`` when every twentieth takes 3 s, up to 95, and from 91 on those that are ``phase`` more."""
    first = paced(long_each(20, last=95))
    last_before = 80 + phase
    second = "".join(
        step(
            number,
            290 + 2 * (number - 90) + (number - last_before) // 20,
            3.0 if number % 20 == phase else 2.0,
        )
        for number in range(91, 201)
    )
    report = report_of(NO_EVALUATION + first + OOM, resumed(90, 280) + second)
    return [step for kind, step in stalls(report) if kind == "gc"]


def test_collections_go_on_after_a_restart():
    """The period is counted in steps of the run: after a restart from 90 the next one is at 100."""
    assert collections_around_a_restart(phase=0) == list(range(20, 201, 20))


def test_collections_may_start_anew_with_each_process():
    """The period is counted from the start of a process: after a restart from 90 the next one is at 110."""
    assert collections_around_a_restart(phase=10) == [20, 40, 60, 80, 110, 130, 150, 170, 190]


def test_long_steps_before_each_save_belong_to_the_save():
    """Each twentieth step takes 1 s more and a save follows it: no collection, and too little for a finding."""
    second, lines = 0.0, []
    for number, took in enumerate(long_each(20), 1):
        second += took
        lines.append(step(number, second, took) + (saved(number) if number % 20 == 0 else ""))
    assert stalls(report_of(NO_EVALUATION + "".join(lines))) == []


def test_deepspeed_tells_a_collection_from_an_evaluation():
    """No line names either. The time printed for the step itself holds a collection, but no evaluation.

    Half a step more, once in twenty, is no finding without a name.
    """
    quiet = {"framework": "deepspeed", "steps": 200, "step_time": 2.0, "noise": 0.001, "log_interval": 1}
    collected = report_of(write(Plan(**quiet, events=(Collect(every=20, seconds=1),))).text, parser=None)
    assert stalls(collected) == [("gc", number) for number in range(20, 201, 20)]
    evaluated = report_of(write(Plan(**quiet, events=(Eval(every=20, seconds=1),))).text, parser=None)
    assert stalls(evaluated) == []


# Ends


WATCHDOG = (
    "[rank3]:[E304 05:12:00.000000000 ProcessGroupNCCL.cpp:629] [Rank 3] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) "
    "ran for 600000 milliseconds before timing out.\n"
)
"""Printed at second 720."""


def test_a_hang_starts_before_the_watchdogs_line():
    """The line at second 720 says 600 s: the hang starts at second 120, 20 s after step 50."""
    report = report_of(START + steps(1, 50, start=0) + WATCHDOG)
    (stall,) = report.stalls
    assert (stall.kind, stall.step, stall.seconds, stall.elapsed_s) == ("hang", 50, 600.0, 120.0)
    assert stall.gpu_hours == pytest.approx(600 * 8 / 3600)
    assert (exits(report), ledger(report)["hang"]) == (["hang"], 600.0)
    assert report.wall_clock_s == 720.0
    # A time-out is where a hang shows, not why: no first cause is claimed.
    assert [(incident.kind, incident.role) for incident in report.incidents] == [("nccl_timeout", "sign")]


def test_silence_before_the_time_limit_is_a_hang():
    """The last step was at 05:01:40, the scheduler ended the job at 10:00: 18,000 s of wall clock, most of it silence."""
    kill = "slurmstepd: error: *** JOB 7 ON node-7 CANCELLED AT 2026-03-04T10:00:00 DUE TO TIME LIMIT ***\n"
    report = report_of(START + steps(1, 50, start=0) + kill)
    assert exits(report) == ["time_limit"]
    assert report.wall_clock_s == 18_000.0
    assert ledger(report)["hang"] > 17_000.0


@pytest.mark.parametrize(
    ("reason", "kind"),
    [("PREEMPTION", "preempted"), ("TIME LIMIT", "time_limit"), ("NODE FAILURE", "node_failure")],
)
def test_the_scheduler_says_why_a_job_ended(reason, kind):
    """Saved at 40, ended at 50: the reason is the exit, its line the evidence, and ten steps are lost."""
    kill = f"slurmstepd: error: *** JOB 7 ON node-7 CANCELLED AT {at(101).replace(' ', 'T')} DUE TO {reason} ***\n"
    report = report_of(START + steps(1, 40, start=0) + saved(40) + steps(41, 50, start=80) + kill)
    (attempt,) = report.attempts
    assert (attempt.exit, attempt.lost_steps, attempt.durable_step) == (kind, 10, 40)
    assert attempt.evidence[0].text == kill.strip()
    assert ledger(report)["productive"] == 80.0


def test_an_exit_after_its_duration_loses_nothing():
    """The program saves and ends after its own time limit."""
    end = f"[exiting program after 1.7 minutes] datetime: {at(102)} \n"
    report = report_of(START + steps(1, 50, start=0) + saved(50) + end)
    assert (exits(report), report.attempts[0].lost_steps) == (["time_limit"], 0)
    assert ledger(report)["productive"] == 100.0


def test_a_run_that_did_its_last_step_is_finished():
    """1000 of 1000 steps, and the log ends: finished, nothing lost."""
    report = report_of(START + steps(1, 1000, start=0))
    assert (exits(report), report.goodput) == (["finished"], 1.0)


# Several files


def test_a_restart_in_a_second_file():
    """50 steps, an end, and a file that goes on from 40: ten steps lost, 100 s between, ten of start-up."""
    report = report_of(START + steps(1, 50, start=0) + OOM, resumed(40, 200) + steps(41, 80, start=210))
    assert exits(report) == ["oom", "running"]
    first, second = report.attempts
    assert (first.lost_steps, first.lost_s, first.restart_gap_s, second.first_step) == (10, 20.0, 100.0, 41)
    # Step 50 is passed again 20 s into the steps of an attempt that began 10 s before them.
    assert second.catch_up_s == 30.0
    assert ledger(report) == {"productive": 160.0, "startup": 10.0, "lost_work": 20.0, "restart_gap": 100.0}


def test_the_files_come_in_any_order():
    """The same when the second file is named first."""
    report = report_of(resumed(40, 200) + steps(41, 80, start=210), START + steps(1, 50, start=0) + OOM)
    assert exits(report) == ["oom", "running"]
    assert ledger(report)["restart_gap"] == 100.0


@pytest.mark.parametrize("stamped", [True, False], ids=["stamped", "unstamped"])
def test_a_rotated_log_is_one_attempt(stamped):
    """Steps 1 to 20 in one file, 21 to 40 in the next, named in any order: 40 steps of 2 s and no restart."""
    lines = [step(number, 2 * number if stamped else None, 2.0) for number in range(1, 41)]
    early, late = START + "".join(lines[:20]), "".join(lines[20:])
    for report in (report_of(early, late), report_of(late, early)):
        assert exits(report) == ["running"]
        assert (report.step_count, ledger(report)) == (40, {"productive": 80.0})


def test_a_log_rotated_while_it_saves_has_one_save():
    """The start of the save after step 20 is the last line of one file, its end 10 s later the first of the next."""
    begun, done = saved(20).splitlines(keepends=True)
    report = report_of(START + steps(1, 20, start=0) + begun, done + steps(21, 40, start=50))
    assert (exits(report), report.saves.count) == (["running"], 1)
    assert ledger(report) == {"productive": 80.0, "checkpoint": 10.0}


def test_a_save_across_two_files_is_a_save():
    """Ten minutes between two step lines, and a file cut between the lines of a save: it is that save, no restart."""
    first = START + steps(1, 40, start=0) + SAVE_BEGINS.format(40)
    second = SAVE_ENDS.format(40) + steps(41, 80, start=680)
    report = report_of(first, second)
    assert exits(report) == ["running"]
    assert ledger(report) == {"productive": 160.0, "checkpoint": 600.0}


def test_a_file_that_goes_on_an_hour_later_is_a_restart():
    """The last rank prints no start: steps that go on after 3600 s in a file of their own are another attempt's."""
    report = report_of(START + steps(1, 20, start=0), steps(21, 40, start=3640))
    assert len(report.attempts) == 2
    assert ledger(report)["restart_gap"] >= 3600.0


def test_a_file_that_goes_on_after_a_failure_is_a_restart():
    """The process ran out of memory: what goes on from its last step a minute later is another one, without a start too."""
    report = report_of(START + steps(1, 20, start=0) + OOM, steps(21, 40, start=100))
    assert exits(report) == ["oom", "running"]


def test_the_lines_of_a_failure_may_stand_in_the_next_file():
    """The last line of the first attempt is the first of a file, and the second attempt follows it there."""
    rest = OOM + resumed(20, 200) + steps(21, 40, start=210)
    assert exits(report_of(START + steps(1, 20, start=0), rest)) == ["oom", "running"]


def test_the_last_lines_belong_to_the_attempt_before_them():
    """A file for each attempt, the second one short, and the end of the second in a third file."""
    first, second = START + steps(1, 50, start=0) + OOM, resumed(20, 200) + steps(21, 30, start=210)
    report = report_of(first, second, OOM)
    assert [(attempt.last_step, attempt.exit) for attempt in report.attempts] == [(50, "oom"), (30, "oom")]


def test_a_failure_before_the_first_step_is_an_attempt_without_stamps_too():
    """A start that came as far as training and printed no step, and another start: an attempt of 0 steps."""
    begun = "  successfully loaded checkpoint from /ckpt/run [ t 1/1, p 1/1 ] at iteration 0\n"
    lines = "".join(step(number, None, 2.0) for number in range(1, 41))
    report = report_of(dump(world_size=8) + begun + dump(world_size=8) + begun + lines)
    assert [(attempt.steps, attempt.exit) for attempt in report.attempts] == [
        (0, "unknown"),
        (40, "running"),
    ]
    assert ledger(report) == {"productive": 80.0}


def test_a_start_that_failed_in_a_file_of_its_own_is_an_attempt():
    """Two processes ran out of memory, the second before its first step: as in one file, so in two."""
    second = dump(world_size=8) + f"[after megatron is initialized] datetime: {at(100)} \n" + OOM
    assert exits(report_of(START + steps(1, 5, start=0) + OOM + second)) == ["oom", "oom"]
    assert exits(report_of(START + steps(1, 5, start=0) + OOM, second)) == ["oom", "oom"]


def test_the_first_and_the_last_rank_are_one_run():
    """Rank 0 prints the saves, the last rank the steps: ten seconds after step 20 are the save's."""
    steps_only = steps(1, 20, start=0) + steps(21, 40, start=50)
    report = report_of(START + saved(20), steps_only)
    assert (report.step_count, len(report.attempts)) == (40, 1)
    assert ledger(report) == {"productive": 80.0, "checkpoint": 10.0}
    assert [(stall.kind, stall.step, stall.confidence) for stall in report.stalls] == [
        ("checkpoint", 20, "marked")
    ]


# Conflicts of names


def test_two_pauses_in_one_interval_without_sizes_have_no_name():
    """A save and an evaluation after step 20, neither timed: which of them took the 30 s is unknown."""
    told = (
        saved(20)
        + " validation loss at iteration 20 | lm loss value: 2.000000E+00 | lm loss PPL: 7.389056E+00 | \n"
    )
    report = report_of(START + steps(1, 20, start=0) + told + steps(21, 40, start=70))
    assert ledger(report) == {"productive": 80.0, "unknown": 30.0}
    assert "checkpoint and evaluation" in report.stalls[0].text


ENDED = f"[{at(60)},000] [INFO] [launch.py:460:main] Process 7 exits successfully.\n[{at(68)},000] [INFO] [launch.py:460:main] Process 8 exits successfully.\n"
"""Two processes end at seconds 60 and 68."""
PERPLEXITY = "***** Evaluating perplexity, Epoch 1/1 *****\nppl: 4.5\n"


def engine_steps(last: int) -> str:
    """Steps of 2 s each by DeepSpeed's engine, a line for each."""
    return "".join(
        f"[{at(2 * number)},000] [INFO] [logging.py:96:log_dist] [Rank 0] step={number}, skipped=0, lr=[1e-05], mom=[(0.9, 0.95)]\n"
        for number in range(1, last + 1)
    )


def test_the_last_evaluation_ends_before_the_processes_do():
    """From step 20, at second 40, to the first process that ends 20 s later; the 8 s to the last one have no name."""
    report = report_of(engine_steps(20) + PERPLEXITY + ENDED, parser="deepspeed")
    assert exits(report) == ["finished"]
    assert [(stall.kind, stall.step, stall.seconds) for stall in report.stalls] == [
        ("evaluation", 20, 20.0)
    ]
    assert (ledger(report)["evaluation"], ledger(report)["unknown"]) == (20.0, 8.0)


def test_the_last_evaluation_and_save_cannot_be_told_apart():
    """The same with a model that is saved in those 20 s: which took how long is unknown, and both are named."""
    log = engine_steps(20) + PERPLEXITY + "saving the final model ...\n" + ENDED
    report = report_of(log, parser="deepspeed")
    assert [(stall.kind, stall.step, stall.seconds) for stall in report.stalls] == [("unknown", 20, 20.0)]
    assert report.stalls[0].text == "checkpoint and evaluation after the last step, neither timed"
    assert ledger(report)["unknown"] == 28.0


def test_an_unnamed_pause_below_the_resolution_is_not_reported():
    """Two seconds under stamps in whole seconds may be rounding."""
    report = report_of(START + steps(1, 20, start=0) + steps(21, 40, start=42))
    assert stalls(report) == []
    assert ledger(report) == {"productive": 80.0, "unknown": 2.0}


def test_evidence_names_the_lines_of_a_finding():
    """Each planted pause cites a line of the log that is about it."""
    events = (Save(every=50, seconds=20.0), Eval(every=70, seconds=30.0), Failure(at_step=120, kind="oom"))
    plan = Plan(steps=200, step_time=2.0, noise=0.001, log_interval=1, events=events)
    text = write(plan).text
    lines = text.splitlines()
    words = {"checkpoint": "checkpoint", "evaluation": "evaluat|validation"}
    for stall in report_of(text).stalls:
        cited = " ".join(lines[item.line - 1] for item in stall.evidence)
        assert any(word in cited for word in words.get(stall.kind, "iteration").split("|")), stall


def test_pauses_after_one_step_follow_one_another():
    """An evaluation of 10 s and a save of 4 s after step 20, at 40 s: the save starts where the evaluation ends."""
    log = START + steps(1, 20, start=0) + timers(evaluate=10000) + saved(20) + timers(save_checkpoint=4000)
    log += step(21, 56, 2) + steps(22, 40, start=56)
    found = [(each.kind, each.elapsed_s, each.seconds) for each in report_of(log).stalls]
    assert found == [("evaluation", 40, 10), ("checkpoint", 50, 4)]
