"""Invented logs of a few lines, the reports on them, and what of a report is compared."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from writers import Written

import logmfu
from logmfu import Report, Run

PARSERS = {
    "megatron-0.12": "megatron",
    "megatron-0.16": "megatron",
    "megatron-2.5": "megatron",
    "megatron-deepspeed": "megatron_deepspeed",
    "bigscience": "megatron_deepspeed",
    "gpt-neox": "gpt_neox",
    "deepspeed": "deepspeed",
}
"""The parser of each layout of the writers."""
FIVE = datetime(2026, 3, 4, 5, 0, 0, tzinfo=UTC)
"""Second 0 of the logs below."""


def run_of(*texts: str, parser: str | None = None, changed: float = FIVE.timestamp() + 86_400) -> Run:
    """What is read from one file a text. ``changed``: when the files were written, which tells the year."""
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / f"part{number}.log" for number in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text, encoding="utf-8")
            os.utime(path, (changed, changed))
        return logmfu.read(paths, parser=parser)


def report_of(*texts: str, parser: str | None = "megatron", **options: Any) -> Report:
    """The report on one file a text."""
    return logmfu.analyze(run_of(*texts, parser=parser), **options)


def read_written(written: Written, *texts: str) -> Run:
    """What is read from a generated log, or from other texts of the same run."""
    end = written.plan.began + written.truth.wall_clock_s + 3600
    parser = PARSERS[written.plan.framework]
    return run_of(*(texts or (written.text,)), parser=parser, changed=end)


def at(second: float) -> str:
    """A second of the clock as Megatron prints it, in whole seconds."""
    return (FIVE + timedelta(seconds=second)).strftime("%Y-%m-%d %H:%M:%S")


def step(
    number: int, second: float | None, took: float, *, total: int = 1000, batch: int = 512, tflops: float | None = None,
    loss: float | None = 2.0, skipped: int = 0, nan: int = 0,
) -> str:  # fmt: skip
    """One step line: printed at ``second``, ``took`` seconds per iteration."""
    stamp = "" if second is None else f" [{at(second)}]"
    rate = "" if tflops is None else f" throughput per GPU (TFLOP/s/GPU): {tflops:.1f} |"
    value = "" if loss is None else f" lm loss: {loss:.6E} |"
    return (
        f"{stamp} iteration {number:8d}/{total:8d} | consumed samples: {number * batch:12d} |"
        f" elapsed time per iteration (ms): {took * 1000:.1f} |{rate} learning rate: 1.000000E-04 |"
        f" global batch size: {batch:5d} |{value} loss scale: 1.0 | grad norm: 0.500 |"
        f" number of skipped iterations: {skipped:3d} | number of nan iterations: {nan:3d} |\n"
    )


def steps(first: int, last: int, *, start: float, took: float = 2.0, every: int = 1, **fields: Any) -> str:
    """Step lines ``first`` to ``last``, the first of them ``every * took`` after ``start``."""
    numbers = range(first, last + 1, every)
    return "".join(
        step(number, start + (index + 1) * every * took, took, **fields)
        for index, number in enumerate(numbers)
    )


def dump(**arguments: Any) -> str:
    """The argument block at the start of a process."""
    rows = [f"  {name} {'.' * (47 - len(name))} {value}\n" for name, value in sorted(arguments.items())]
    head, end = "-" * 24 + " arguments " + "-" * 24, "-" * 20 + " end of arguments " + "-" * 21
    return f"{head}\n{''.join(rows)}{end}\n"


def trained(second: float) -> str:
    """Training is about to start."""
    return f"[before the start of training step] datetime: {at(second)} \n"


def ledger(report: Report) -> dict[str, float]:
    """Seconds by class."""
    return {entry.kind: entry.seconds for entry in report.ledger}


def stalls(report: Report) -> list[tuple[str, int | None]]:
    """Kind and step of every stall."""
    return [(stall.kind, stall.step) for stall in report.stalls]


def exits(report: Report) -> list[str]:
    """How each attempt ended."""
    return [attempt.exit for attempt in report.attempts]


def findings(report: Report) -> dict[str, Any]:
    """Everything found, without files, lines, ranks and hosts; times from the start of the run, to the microsecond."""
    since = report.start or 0.0

    def when(time: float | None) -> float | None:
        return None if time is None else round(time - since, 5)

    def size(seconds: float | None) -> float | None:
        return None if seconds is None else round(seconds, 5)

    return {
        "wall clock": size(report.wall_clock_s),
        "clock": report.clock,
        "steps": (report.step_count, report.first_step, report.last_step),
        "ledger": {kind: size(seconds) for kind, seconds in ledger(report).items()},
        "stalls": [
            (one.kind, one.step, size(one.seconds), when(one.start), one.confidence, one.attempt)
            for one in report.stalls
        ],
        "changes": [(one.kind, one.step) for one in report.changes],
        "incidents": [
            (one.kind, one.step, one.role, one.attempt, when(one.time)) for one in report.incidents
        ],
        "attempts": [
            (
                a.first_step,
                a.last_step,
                a.steps,
                when(a.start),
                when(a.end),
                a.exit,
                a.lost_steps,
                a.durable_step,
            )
            for a in report.attempts
        ],
        "mfu": None if report.mfu.spread is None else round(report.mfu.spread.median, 9),
        "effective": None if report.mfu.effective is None else round(report.mfu.effective, 9),
        "saves": None if report.saves is None else (report.saves.count, report.saves.open),
    }
