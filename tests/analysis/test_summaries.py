"""Tables of saves and data waits, suspects, gates, money and the JSON of a report: numbers checked by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from logs import at, dump, ledger, report_of, step, steps, trained

from logmfu import Report
from logmfu.report import Suspect

START = dump(world_size=8, train_iters=1000) + trained(0)
OOM = "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB.\n"


def timer(name: str, seconds: float) -> str:
    """A timer block of one row."""
    row = f"    {name} {'.' * (47 - len(name))}: ({1000 * seconds:.2f}, {1000 * seconds:.2f})\n"
    return "(min, max) time across ranks (ms):\n" + row


def save(number: int, seconds: float | None = None) -> str:
    """A complete save, with its timer when its seconds are given."""
    lines = (
        f"saving checkpoint at iteration {number:7d} to /ckpt/run in torch_dist format\n"
        f"  successfully saved checkpoint from iteration {number:7d} to /ckpt/run [ t 1/1, p 1/1 ]\n"
    )
    return lines + ("" if seconds is None else timer("save-checkpoint", seconds))


def suspect(report: Report, name: str) -> Suspect:
    """The one suspect of a name."""
    (found,) = [one for one in report.suspects if one.name == name]
    return found


def short(**options: Any) -> Report:
    """20 steps of 2 s at 100 TFLOP/s."""
    return report_of(START + steps(1, 20, start=0, tflops=100.0), **options)


def four_saves() -> str:
    """50 steps of 2 s and after steps 10, 20, 30, 40 saves of 10, 20, 30, 40 s: 200 s in all."""
    text, second = START, 0.0
    for block in range(5):
        text += steps(10 * block + 1, 10 * block + 10, start=second)
        second += 20.0
        if block < 4:
            text += save(10 * block + 10, 10.0 * (block + 1))
            second += 10.0 * (block + 1)
    return text


def test_table_of_saves():
    """Saves of 10, 20, 30 and 40 s: median 25, total 100 of 200 s, 10 s more each time, every 10 steps."""
    report = report_of(four_saves())
    saves = report.saves
    assert (saves.count, saves.open, saves.asynchronous) == (4, 0, False)
    assert (saves.blocking_s.median, saves.blocking_s.count) == (25.0, 4)
    assert (saves.total_s, saves.share) == (100.0, 0.5)
    assert (saves.trend_s_per_save, saves.interval_steps) == (10.0, 10.0)
    assert ledger(report) == {"productive": 100.0, "checkpoint": 100.0}
    assert saves.optimal_interval_s is None
    assert suspect(report, "checkpoints").share == 0.5


def test_young_and_daly():
    """A save of 20 s and one failure in 160 s: sqrt(2 x 20 x 160) = 80 s between saves would cost least."""
    text = START + steps(1, 40, start=0) + save(40) + steps(41, 70, start=100) + OOM
    report = report_of(text)
    assert report.wall_clock_s == 160.0
    assert report.saves.optimal_interval_s == pytest.approx(80.0)
    assert any("every 80 s" in loss for loss in report.losses)


def test_saves_that_cannot_be_sized():
    """Without timers and time stamps nothing says how long a save took, and the table says so."""
    lines = "".join(step(number, None, 2.0) for number in range(1, 21))
    report = report_of(dump(world_size=8) + lines + save(20))
    assert (report.saves.count, report.saves.blocking_s, report.saves.share) == (1, None, None)
    assert report.saves.why_not


def test_share_of_data_waits():
    """39 waits of 0.2 s and one of 10.2 s at step 30 are 18 of 90 s: a fifth; one wait stands out."""
    text, second = START, 0.0
    for number in range(1, 41):
        wait = 10.2 if number == 30 else 0.2
        second += 1.8 + wait
        text += step(number, second, 1.8 + wait) + timer("batch-generator", wait)
    report = report_of(text)
    waits = report.data_wait
    assert (waits.share, waits.total_s) == pytest.approx((0.2, 18.0))
    assert (waits.worst_s, waits.worst_step, waits.pattern) == (10.2, 30, "single")
    assert ledger(report)["data_wait"] == pytest.approx(10.0)
    assert suspect(report, "data loader").share == pytest.approx(0.1)
    assert suspect(report, "data loader").how == "measured"


def test_no_data_timer_is_said():
    """Without a timer the share is unknown, and what to switch on is named."""
    report = short()
    assert report.data_wait.share is None
    assert "--timing-log-level 2" in report.data_wait.why_not
    assert suspect(report, "data loader").how == "not_visible"


@pytest.mark.parametrize(
    ("facts", "share"),
    [
        ({"pipeline_parallel": 4, "grad_accumulation": 12}, 3 / 15),
        ({"pipeline_parallel": 4, "grad_accumulation": 12, "virtual_pipeline": 2}, 3 / 27),
        (
            {"pipeline_parallel": 3, "global_batch_size": 64, "micro_batch_size": 2, "data_parallel": 4},
            2 / (8 + 2),
        ),
        ({"pipeline_parallel": 1}, 0.0),
    ],
    ids=["plain", "virtual stages", "micro batches from sizes", "no pipeline"],
)
def test_pipeline_bubble(facts, share):
    """(p - 1) / (v m + p - 1): 4 stages and 12 micro batches idle a fifth of the time."""
    bubble = suspect(short(facts=facts), "pipeline bubble")
    assert (bubble.how, bubble.share) == ("computed", pytest.approx(share))


def test_unknown_pipeline_is_not_visible():
    """No pipeline size, no bubble claimed."""
    assert suspect(short(), "pipeline bubble").how == "not_visible"


def test_timers_give_their_share_of_a_step():
    """An optimizer of 0.1 s in steps of 2 s takes 5 %."""
    lines = "".join(step(n, 2 * n, 2.0) + timer("optimizer", 0.1) for n in range(1, 21))
    assert suspect(report_of(START + lines), "optimizer").share == pytest.approx(0.05)


def test_price_of_recomputation():
    """HFU 1180/1800 over MFU 900/1800: 280 of 1180 parts of what the hardware does."""
    facts = {
        "layers": 10,
        "hidden": 1000,
        "heads": 10,
        "ffn": 4000,
        "glu": False,
        "vocab": 10_000,
        "recompute": "full",
    }
    lines = trained(0) + steps(1, 20, start=0, took=9.0, batch=1000)
    report = report_of(lines, facts=facts, peak_tflops=200.0, world_size=1, seq_len=1000)
    assert suspect(report, "recomputation").share == pytest.approx(280 / 1180)


def test_device_hours_and_money():
    """8 devices for 40 s at 9 a device hour: 320 device seconds, 0.8."""
    (entry,) = short(gpu_hour_price=9.0).ledger
    assert entry.gpu_hours == pytest.approx(320 / 3600)
    assert entry.cost == pytest.approx(0.8)


def test_no_devices_no_hours():
    """Without a world size there are seconds only."""
    (entry,) = report_of(trained(0) + steps(1, 20, start=0), gpu_hour_price=9.0).ledger
    assert (entry.seconds, entry.gpu_hours, entry.cost) == (40.0, None, None)


def test_a_gate_on_mfu():
    """50 % passes a gate of 50 %, and trips one of 51 %."""
    assert short(peak_tflops=200.0, min_mfu=0.5).tripped == ()
    (text,) = short(peak_tflops=200.0, min_mfu=0.51).tripped
    assert "50.0" in text
    assert "51.0" in text


def test_an_unknown_mfu_trips_the_gate():
    """What cannot be shown to be enough is not enough; the reason stands in the text."""
    (text,) = short(min_mfu=0.1).tripped
    assert "not known" in text
    assert "--gpu" in text


@pytest.mark.parametrize(
    ("kind", "count"), [("oom", 2), ("checkpoint", 0), ("hang", 0)], ids=["exit", "stall", "not there"]
)
def test_a_gate_on_kinds(kind, count):
    """A kind that is a stall, an incident or an exit trips its gate, and no other does."""
    tripped = report_of(START + steps(1, 20, start=0) + OOM, fail_on=(kind,)).tripped
    assert len(tripped) == (1 if count else 0)
    assert all(kind in text for text in tripped)


def test_largest_losses_in_words():
    """The save table's 100 s are the largest loss, with the share and what to do."""
    (first, *_) = report_of(four_saves()).losses
    assert first.startswith("checkpoint: 100")
    assert "(50.0" in first
    assert "asynchronously" in first


def test_small_losses_are_not_listed():
    """Nothing was lost: no sentence."""
    assert short().losses == ()


def strict(report: Report) -> dict[str, Any]:
    """The JSON of a report, read by a parser that knows no NaN."""

    def refuse(word: str) -> None:
        raise ValueError(word)

    return json.loads(report.to_json(), parse_constant=refuse)


def test_json_carries_the_numbers():
    """Ledger, goodput, MFU, stalls and attempts as in the report; times in ISO 8601 without a zone the log has not."""
    data = strict(report_of(four_saves(), peak_tflops=200.0))
    assert data["schema"] == "logmfu.report/1"
    assert (data["start"], data["end"]) == ("2026-03-04T05:00:00", "2026-03-04T05:03:20")
    assert (data["wall_clock_s"], data["goodput"]) == (200.0, 0.5)
    assert [(entry["kind"], entry["seconds"], entry["share"]) for entry in data["ledger"]] == [
        ("productive", 100.0, 0.5),
        ("checkpoint", 100.0, 0.5),
    ]
    assert [(s["kind"], s["step"], s["seconds"], s["confidence"]) for s in data["stalls"]] == [
        ("checkpoint", 10 * n, 10.0 * n, "measured") for n in range(1, 5)
    ]
    assert data["stalls"][0]["evidence"][0]["line"] > 0
    assert (data["attempts"][0]["exit"], data["attempts"][0]["lost_steps"]) == ("running", 0)
    assert data["steps"]["count"] == 50
    assert data["steps"]["step_time_s"]["median"] == 2.0


def test_json_has_null_and_a_reason_for_what_is_unknown():
    """A withheld MFU is null with its reason, also where a loss was no number and no time is known."""
    lines = "".join(step(n, None, 2.0, loss=None if n > 10 else 2.0) for n in range(1, 21))
    data = strict(report_of(dump(world_size=8) + lines))
    assert (data["mfu"]["median"], data["mfu"]["effective"], data["start"]) == (None, None, None)
    assert data["mfu"]["why_not"]
    assert data["clock"] == "reconstructed"


def test_json_of_a_crash_during_start_up():
    """No step: count 0, nulls, one attempt."""
    begun = f"[after megatron is initialized] datetime: {at(0)} \n"
    data = strict(report_of(dump(world_size=8) + begun + OOM))
    assert (data["steps"]["count"], data["steps"]["first"]) == (0, None)
    assert [attempt["exit"] for attempt in data["attempts"]] == ["oom"]
