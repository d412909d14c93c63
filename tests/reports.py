"""Synthetic reports for the tests of the renderers; every text in them is invented."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from logmfu.report import (
    LEDGER_KINDS,
    Attempt,
    Change,
    DataWaitSummary,
    Evidence,
    FactLine,
    Incident,
    InputFile,
    LedgerEntry,
    Peak,
    Profile,
    Report,
    SaveSummary,
    Spread,
    Stall,
    Suspect,
    Utilization,
)
from logmfu.tables import Coverage, NearMiss

LOG = "/scratch/llama/run.log"
DAY0 = 1_772_600_400.0
"""2026-03-04 05:00:00 of the printed clock."""
PEAK = Peak(
    989.4, "H100 SXM5", "bf16", "NVIDIA H100 data sheet", "read from the document", "fact device_name"
)


def at(line: int, text: str = "", path: str = LOG) -> Evidence:
    """A line of the invented log."""
    return Evidence(path, line, text)


def series(steps: int, *, step_s: float = 5.0, mfu: float | None = 0.455, start: int = 1, attempt: int = 1,
           elapsed: float = 60.0) -> pd.DataFrame:  # fmt: skip
    """``steps`` rows at one pace with a little noise that is the same every time."""
    noise = np.random.default_rng(7).normal(0.0, 0.01, steps)
    pace = step_s * (1 + noise)
    since = elapsed + np.cumsum(pace)
    number = np.arange(start, start + steps)
    return pd.DataFrame(
        {
            "step": number,
            "time": DAY0 + since,
            "elapsed_s": since,
            "step_time_s": pace,
            "iterations": 1,
            "mfu": np.nan if mfu is None else mfu / (1 + noise),
            "hfu": np.nan,
            "tokens_per_s": 2_097_152 / pace,
            "loss": 2.0 + 8.0 / np.sqrt(number),
            "attempt": attempt,
            "lost": False,
            "path": LOG,
            "line": 100 + 2 * np.arange(steps),
        }
    )


def spread_of(column: pd.Series) -> Spread | None:
    """Median and percentiles of a column."""
    known = column.dropna()
    if known.empty:
        return None
    low, middle, high = np.percentile(known, [5, 50, 95])
    return Spread(float(middle), float(low), float(high), len(known))


def ledger(devices: int | None, price: float | None, **seconds: float) -> tuple[LedgerEntry, ...]:
    """Ledger entries in their order, with hours and cost where they follow."""
    whole = sum(seconds.values())
    entries = []
    for kind in LEDGER_KINDS:
        if kind in seconds:
            hours = None if devices is None else seconds[kind] * devices / 3600
            cost = None if hours is None or price is None else hours * price
            entries.append(LedgerEntry(kind, seconds[kind], seconds[kind] / whole, hours, cost))
    return tuple(entries)


def report(rows: pd.DataFrame, **changes: Any) -> Report:
    """A report around a series: 64 devices, one attempt, all of it productive unless changed."""
    filled = len(rows) > 0
    wall = float(rows.elapsed_s.max()) if filled else None
    first = int(rows.step.iloc[0]) if filled else None
    last = int(rows.step.iloc[-1]) if filled else None
    end = DAY0 + wall if wall is not None else None
    base = Report(
        name="llama-7b-bf16",
        inputs=(InputFile(LOG, 1_572_864, 21_000),),
        parser="megatron",
        parser_title="Megatron-LM",
        run={
            "world_size": 64, "accelerator": "H100 SXM5", "precision": "bf16",
            "model": {"layers": 32, "hidden": 4096}, "global_batch_size": 512, "seq_len": 4096,
            "log_interval": 1, "tensor_parallel": 2, "pipeline_parallel": 1,
        },
        facts=(FactLine("num_layers", 32, LOG, 12), FactLine("hidden_size", 4096, LOG, 13), FactLine("world_size", 64, "", 0, "option")),
        clock="timestamps",
        utc_offset=3600,
        start=DAY0,
        end=end,
        wall_clock_s=wall,
        step_count=len(rows),
        first_step=first,
        last_step=last,
        step_time_s=spread_of(rows.step_time_s) if filled else None,
        mfu=Utilization(
            spread=spread_of(rows.mfu) if filled else None, effective=0.41, grade="good", basis="computed",
            attention="half", convention="megatron-0.12", peak=PEAK,
            alternatives={"attention counted full": 0.471, "6N": 0.437}, logged_over_computed=1.002,
            explanation="The logged throughput agrees with the computed one within 0.2 %.",
        ),
        hfu=Utilization(why_not="the log does not say whether activations were recomputed"),
        attempts=(Attempt(1, first, last, len(rows), DAY0, end, "finished", "", 0, 0.0, None, None, last, (at(2100, "training done"),)),)
        if filled else (),
        ledger=ledger(64, None, productive=wall - 60.0, startup=60.0) if wall else (),
        goodput=(wall - 60.0) / wall if wall else None,
        stalls=(),
        changes=(),
        incidents=(),
        saves=None,
        data_wait=None,
        suspects=(),
        profiles=(),
        coverage=Coverage(21_000, 20_100, 0, 900),
        notes=(),
        losses=(),
        series=rows,
        tokens_per_s=spread_of(rows.tokens_per_s) if filled else None,
    )  # fmt: skip
    return replace(base, **changes)


def healthy(steps: int = 600) -> Report:
    """Nothing happened: one attempt at one pace."""
    return report(series(steps))


def no_steps() -> Report:
    """The job died before the first step."""
    failure = Incident(
        "oom",
        DAY0 + 70,
        3,
        "gpu-node-07",
        None,
        "CUDA out of memory",
        "first",
        1,
        (at(88, "CUDA out of memory"),),
    )
    return report(
        series(0),
        start=DAY0, end=DAY0 + 70.0, wall_clock_s=70.0, mfu=Utilization(why_not="the log has no step"),
        ledger=ledger(64, None, startup=70.0), goodput=0.0, incidents=(failure,),
        attempts=(Attempt(1, None, None, 0, DAY0, DAY0 + 70.0, "oom", "CUDA out of memory", None, None, None, None, None, (at(88, "CUDA out of memory"),)),),
    )  # fmt: skip


def one_step() -> Report:
    """A single printed step."""
    return report(series(1))


def withheld() -> Report:
    """MFU is not known because the accelerator is not."""
    why = "the log names no accelerator; give --gpu NAME or --peak-tflops X"
    return report(series(600, mfu=None), mfu=Utilization(why_not=why))


def bare() -> Report:
    """A log without time stamps, world size or anything but step times, in two files of one name."""
    rows = series(600, mfu=None)
    rows.loc[0, "step_time_s"] = 80.0
    rows = rows.assign(tokens_per_s=np.nan, loss=np.nan, time=np.nan)
    rows.loc[300:, "path"] = "/logs/b/rank0.log"
    rows.loc[:299, "path"] = "/logs/a/rank0.log"
    change = Change(400, "trend", 5.0, 5.1, "s", "steps get slower and slower")
    sign = Incident(
        "ecc_error",
        None,
        None,
        None,
        None,
        "uncorrectable ECC error",
        "sign",
        1,
        (at(9, "uncorrectable ECC error", "/logs/a/rank0.log"),),
    )
    return report(
        rows,
        inputs=(InputFile("/logs/a/rank0.log", 900, 10), InputFile("/logs/b/rank0.log", 2_000, 20, "cut off in the last line")),
        run={"world_size": None, "accelerator": None, "moe": True, "shape": (1, 2.5)},
        clock="reconstructed", utc_offset=None, start=None, end=None, ledger=ledger(None, None, productive=2940.0, warmup=75.0),
        mfu=Utilization(why_not="nothing says how many tokens a step has"), hfu=Utilization(),
        attempts=(Attempt(1, 1, 300, 300, None, None, "unknown", "", None, None, None, None, None), Attempt(2, 301, 600, 300, None, None, "running", "", None, None, None, None, None)),
        stalls=(Stall("gc", 100, None, 1.3, None, "inferred", elapsed_s=560.0), Stall("gc", None, None, 1.2, None, "inferred")),
        changes=(change,), incidents=(sign,), tokens_per_s=None,
        series=rows.assign(attempt=np.where(rows.step > 300, 2, 1)),
        saves=SaveSummary(2, 0, None, None, 10.0, None, None, None, None, "there are no start lines of saves"),
        data_wait=DataWaitSummary(None, 4.0, None, None, None, "data timers are off; --timing-log-level 2 prints them"),
    )  # fmt: skip


def incident() -> Report:
    """Two attempts: saves and evaluations, a slower stretch, a hang, a restart, 50 steps done again."""
    first = series(1000)
    first.loc[first.step > 700, "step_time_s"] *= 1.25
    first.loc[first.step > 700, "mfu"] /= 1.25
    first["lost"] = first.step > 950
    second = series(1000, start=951, attempt=2, elapsed=8400.0)
    second["line"] += 5000
    for rows in (first, second):
        rows["elapsed_s"] += 40.0 * (rows.step // 250)
    rows = pd.concat([first, second], ignore_index=True)
    rows["time"] = DAY0 + rows.elapsed_s
    hang_start = float(first.elapsed_s.max())
    end = float(rows.elapsed_s.max())
    stalls = (
        *(_save(first, step) for step in (250, 500, 750, 1000)),
        *(_save(second, step, attempt=2) for step in (1000, 1250, 1500, 1750)),
        Stall("hang", 1000, DAY0 + hang_start + 60, 1800.0, 32.0, "marked", (at(2110, "watchdog: ran for 1800000 ms before timing out"),), "silence before the watchdog", hang_start + 60),
        Stall("restart_gap", 1000, DAY0 + hang_start + 1900, 8400.0 - hang_start - 2000, 22.0, "measured", (at(5001),), "", hang_start + 1900),
        Stall("data_wait", 1600, None, 95.0, 1.69, "inferred", (at(6420),), "slow steps at the start of an epoch", float(second.elapsed_s.iloc[649]), 2),
    )  # fmt: skip
    attempts = (
        Attempt(1, 1, 1000, 1000, DAY0, DAY0 + hang_start + 1900, "hang", "NCCL watchdog timed out", 50, 310.0, 8400.0 - hang_start - 2000, None, 950, (at(2110, "watchdog: ran for 1800000 ms before timing out"),)),
        Attempt(2, 951, 1950, 1000, DAY0 + 8300, DAY0 + end, "running", "", 0, 0.0, None, 350.0, 1750, (at(6998, "iteration 1950 | consumed samples: 998400"),)),
    )  # fmt: skip
    incidents = (
        Incident("ecc_error", DAY0 + hang_start + 58, 17, "gpu-node-07", 1000, "uncorrectable ECC error on GPU 1", "first", 1, (at(2104, "uncorrectable ECC error on GPU 1"),)),
        Incident("nccl_timeout", DAY0 + hang_start + 1860, 3, "gpu-node-02", 1000, "watchdog: ran for 1800000 ms before timing out", "cascade", 1, (at(2110, "watchdog: ran for 1800000 ms before timing out"),), 63),
    )  # fmt: skip
    seconds = {
        "productive": 0.0, "slow_steps": 310.0, "data_wait": 95.0, "checkpoint": 320.0, "startup": 160.0,
        "restore": 45.0, "lost_work": 310.0, "hang": 1800.0, "restart_gap": 8400.0 - hang_start - 2000, "unknown": 120.0,
    }  # fmt: skip
    productive = seconds["productive"] = end - sum(seconds.values())
    change = Change(
        701,
        "step_time",
        5.0,
        6.25,
        "s",
        "steps take 25 % longer",
        (at(1502, "iteration 701 | elapsed time per iteration (ms): 6250.0"),),
        float(first.elapsed_s.iloc[700]),
    )
    return report(
        rows,
        first_step=1, last_step=1950, stalls=stalls, attempts=attempts, incidents=incidents, changes=(change,),
        ledger=ledger(64, 2.5, **seconds), gpu_hour_price=2.5, goodput=productive / sum(seconds.values()),
        wall_clock_s=sum(seconds.values()),
        saves=SaveSummary(8, 1, False, Spread(40.0, 38.0, 44.0, 8), 320.0, 0.02, 0.5, 250.0, 1100.0),
        data_wait=DataWaitSummary(0.006, 95.0, 95.0, 1600, "epoch_start"),
        suspects=(
            Suspect("pipeline_bubble", 0.04, "computed", "(p - 1) / m of the step with 4 stages and 96 micro-batches"),
            Suspect("communication", None, "not_visible", "Communication time is not printed; --timing-log-level 2 prints it."),
        ),
        profiles=(Profile(11, 4.5e14, {"forward": "120 ms", "latency": 0.4}, (at(140, "FLOPS per GPU = 450 TFLOPS"),)),),
        coverage=Coverage(21_000, 20_100, 2, 898, (NearMiss(LOG, 77, "iteration", "no number after 'lm loss:'", "iteration 77 | lm loss:"),)),
        notes=("The scheduler's reason for the restart is not in this log.",),
        losses=(
            "30 min (32.0 GPU-h) of silence before the watchdog killed attempt 1; shorten the time-out or watch the age of the last step.",
            "Steps take 25 % longer from step 701 on (5.00 s to 6.25 s).",
            "50 steps were done again after the restart; save more often than every 250 steps.",
        ),
        options={"gpu_hour_price": 2.5, "gpu": "H100 SXM"},
    )  # fmt: skip


def _save(rows: pd.DataFrame, step: int, *, attempt: int = 1) -> Stall:
    row = rows[rows.step == step].iloc[0]
    text = f"saving checkpoint at iteration {step}"
    return Stall("checkpoint", step, DAY0 + row.elapsed_s - 40, 40.0, 0.71, "measured", (at(int(row.line) + 1, text),), "save timer", row.elapsed_s - 40, attempt)  # fmt: skip


def unclocked() -> Report:
    """Losses only: no time, no pace, no ledger, one line of failure with neither time nor place."""
    rows = series(20, mfu=None).assign(
        elapsed_s=np.nan, time=np.nan, step_time_s=np.nan, tokens_per_s=np.nan, loss=np.nan
    )
    return report(
        rows,
        clock="none", start=None, end=None, wall_clock_s=None, ledger=(), goodput=None, attempts=(),
        step_time_s=None, tokens_per_s=None, mfu=Utilization(why_not="the log has no times"), run={}, facts=(),
        incidents=(Incident("crash", None, None, None, None, "Traceback", "sign", 1, ()),),
        stalls=(Stall("unknown", None, None, 0.0, None, "inferred"),),
        inputs=(InputFile("rank0.log", 5, 1), InputFile("/logs/rank0.log", 5, 1)),
    )  # fmt: skip


def many_stalls(amount: int = 3000) -> Report:
    """A stall of some class every few steps."""
    rows = series(10 * amount)
    kinds = [kind for kind in LEDGER_KINDS if kind != "productive"]
    stalls = tuple(
        Stall(kinds[n % len(kinds)], 10 * n, DAY0 + 60 + 50 * n, 2.0 + n % 7, 0.1, "inferred", (at(100 + 20 * n),), "", 60.0 + 50 * n)
        for n in range(amount)
    )  # fmt: skip
    return report(rows, stalls=stalls)


def many_attempts(amount: int = 60) -> Report:
    """A job that restarts again and again, and loses the last ten steps each time."""
    parts, attempts = [], []
    for n in range(amount):
        rows = series(110, start=1 + 100 * n, attempt=n + 1, elapsed=60.0 + 700.0 * n)
        rows["lost"] = (rows.index >= 100) & (n < amount - 1)
        parts.append(rows)
        start = DAY0 + 700.0 * n
        attempts.append(
            Attempt(n + 1, 1 + 100 * n, 110 + 100 * n, 110, start, start + 620, "crash", "RuntimeError", 10, 50.0, 80.0, 50.0, 100 * n + 100, (at(100 * n + 99, "RuntimeError"),))
        )  # fmt: skip
    return report(pd.concat(parts, ignore_index=True), attempts=tuple(attempts))


def million(steps: int = 1_000_000) -> Report:
    """A long run with two single-step extremes that no reduction may lose."""
    rows = series(steps)
    rows.loc[rows.step == 123_457, "mfu"] = 0.031
    rows.loc[rows.step == 765_433, "mfu"] = 0.733
    return report(rows)


HOSTILE = (
    "</script><script>document.title='owned'</script>"
    "<img src=x onerror=document.title='owned'> \x1b[31mred\x1b[0m\x1b]0;owned\x07 \u202egnp.exe "
    "@admin #12 !merge `tick` ``` | pipe {code} {noformat} [~admin] <!channel> *b* _i_ https://evil.example/x\r\nsecond line"
)
"""What somebody's log may carry."""


def hostile() -> Report:
    """Hostile text wherever a log's text can get to, and a line of a megabyte."""
    there = at(5, HOSTILE, path="a|b<i>`.log")
    base = incident()
    return replace(
        base,
        name=HOSTILE,
        parser_title=HOSTILE,
        inputs=(InputFile("a|b<i>`.log", 10, 1, HOSTILE),),
        run={**base.run, HOSTILE: HOSTILE, "accelerator": HOSTILE},
        facts=(FactLine(HOSTILE, HOSTILE, "a|b<i>`.log", 3),),
        mfu=replace(base.mfu, explanation=HOSTILE, convention=HOSTILE, alternatives={HOSTILE: 0.4}),
        hfu=Utilization(why_not=HOSTILE),
        attempts=tuple(replace(each, exit_text=HOSTILE, evidence=(there,)) for each in base.attempts),
        stalls=tuple(replace(each, text=HOSTILE, evidence=(there,)) for each in base.stalls),
        changes=tuple(
            replace(each, text=HOSTILE, unit="</td>", evidence=(there,)) for each in base.changes
        ),
        incidents=(
            replace(base.incidents[0], text=HOSTILE, host=HOSTILE, evidence=(there,)),
            replace(base.incidents[1], text="x" * 1_048_576, evidence=(at(6, "y" * 1_048_576),)),
        ),
        suspects=(Suspect(HOSTILE, 0.1, "measured", HOSTILE, (there,)),),
        profiles=(Profile(1, 1e12, {HOSTILE: HOSTILE}, (there,)),),
        coverage=Coverage(1, 1, 1, 0, (NearMiss("a|b<i>`.log", 9, HOSTILE, HOSTILE, HOSTILE),)),
        notes=(HOSTILE,),
        losses=(HOSTILE,),
        options={HOSTILE: HOSTILE},
        tripped=(HOSTILE,),
    )


EVERY = {
    "healthy": healthy,
    "incident": incident,
    "withheld": withheld,
    "one_step": one_step,
    "no_steps": no_steps,
    "many_stalls": many_stalls,
    "many_attempts": many_attempts,
    "bare": bare,
    "unclocked": unclocked,
    "hostile": hostile,
}
"""One report of each shape, by name."""
