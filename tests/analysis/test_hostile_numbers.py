"""Logs whose numbers cannot be: whatever the lines carry, there is a report, and its ledger adds up."""

from __future__ import annotations

import json
from random import Random

import pytest
from logs import at, dump, report_of, step, steps, trained

from logmfu import Report

NUMBERS = ("nan", "inf", "-inf", "0", "0.0", "-5", "1e400", "9" * 20, "abc", "", "2000.0", "2000.0", "1.0")
OOM = "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB.\n"


def hostile(seed: int) -> str:
    """A log in Megatron's layout with anything in its fields, step numbers and clocks that jump, and lines out of place."""
    random = Random(f"hostile {seed}")  # noqa: S311
    pick = random.choice
    head = dump(
        world_size=pick([8, 0, -1, "None", 10**30]),
        train_iters=pick([1000, 0, -3]),
        log_interval=pick([0, 1, 10]),
        save_interval=pick([0, 5, -1]),
        eval_interval=pick([0, 5]),
        global_batch_size=pick([0, 512, -1]),
        seq_length=pick([0, 4096]),
        num_layers=pick([0, 2]),
        hidden_size=pick([0, 64]),
        num_attention_heads=pick([0, 1, 3]),
        padded_vocab_size=pick([0, 100]),
    )
    lines, number, second = [head, trained(0)], 0, 0
    for _ in range(random.randint(1, 40)):
        number += pick([1, 1, 1, 1, 1, 0, -3, 10, 10**9])
        second += pick([2, 2, 2, 2, 0, -10, 3600, 10**5])
        fields = (
            f"elapsed time per iteration (ms): {pick(NUMBERS)}",
            f"throughput per GPU (TFLOP/s/GPU): {pick(NUMBERS)}",
            f"global batch size: {pick(NUMBERS)}",
            f"lm loss: {pick(NUMBERS)}",
            f"grad norm: {pick(NUMBERS)}",
            f"number of skipped iterations: {pick(NUMBERS)}",
        )
        lines.append(f" [{at(second)}] iteration {number:8d}/    1000 | {' | '.join(fields)} |\n")
        if random.random() < 0.1:
            name = pick(["save-checkpoint", "evaluate", "batch-generator", "optimizer"])
            lines.append(
                f"(min, max) time across ranks (ms):\n    {name} .....: ({pick(NUMBERS)}, {pick(NUMBERS)})\n"
            )
        if random.random() < 0.1:
            lines.append(f"saving checkpoint at iteration {number:7d} to /ckpt/run in torch_dist format\n")
        if random.random() < 0.05:
            lines.append(f"  successfully saved checkpoint from iteration {number:7d} to /ckpt/run\n")
        if random.random() < 0.03:
            lines.append(OOM + dump(world_size=8))
    return "".join(lines)


def strict(report: Report) -> dict:
    """The JSON of a report, read by a parser that knows no NaN and no infinity."""
    return json.loads(report.to_json(), parse_constant=lambda word: pytest.fail(word))


@pytest.mark.parametrize("seed", range(60))
def test_whatever_the_lines_carry(seed):
    """No exception, no warning; classes are not negative and add up; the JSON is JSON."""
    report = report_of(hostile(seed), gpu="H100 SXM", precision="bf16", gpu_hour_price=2.0)
    wall = report.wall_clock_s or 0.0
    assert all(entry.seconds >= 0 for entry in report.ledger)
    assert abs(sum(entry.seconds for entry in report.ledger) - wall) < 1e-6 * max(1.0, wall / 1e4)
    assert strict(report)["schema"] == "logmfu.report/1"


@pytest.mark.parametrize("took", ["inf", "nan", "1e400"])
def test_a_step_time_that_is_no_number_is_not_printed(took):
    """The time stamps still say what the step took: 20 steps of 2 s."""
    lines = steps(1, 20, start=0).replace("2000.0", took, 1)
    report = report_of(trained(0) + lines)
    assert report.wall_clock_s == 40.0
    assert report.step_time_s.median == 2.0


def test_a_second_start_before_the_end_of_the_first():
    """A clock that is behind in the second attempt is bridged: 20 s and 20 s, and a note says so."""
    second = dump(world_size=8) + trained(5) + step(11, 7, 2.0) + steps(12, 20, start=7)
    report = report_of(dump(world_size=8) + trained(0) + steps(1, 10, start=0) + OOM + second)
    assert [(a.first_step, a.last_step) for a in report.attempts] == [(1, 10), (11, 20)]
    assert report.wall_clock_s == 40.0
    assert any("goes back 1 time" in note for note in report.notes)
