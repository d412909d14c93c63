"""The training process itself: exceptions, crashes, data loading, storage, numbers that are none.

Layouts: CPython's traceback and faulthandler, PyTorch torch/utils/data/_utils, libc's error texts.
"""

from __future__ import annotations

from collections.abc import Iterable

import regex

from logmfu.failures.reading import CAUSE, FIELDS, SYMPTOM
from logmfu.parsing import Rule, Sample

_ELSEWHERE = r"^(?!.*(?:srun: error: |DataLoader |: line \d|Fatal Python error))"

RULES: tuple[Rule, ...] = (
    Rule(
        name="loader_worker_killed",
        kind="event",
        event="dataloader_error",
        needle="DataLoader worker (pid",
        pattern=r"DataLoader worker \(pid(?:\(s\))? (?P<pids>[\d, ]++)\) (?:is killed by signal: (?P<signal>[A-Z][\w ]*+)|exited unexpectedly)",
        fields={**FIELDS, "pids": FIELDS["tasks"], "signal": FIELDS["reason"]},
        constants=CAUSE,
        ignore=r"\{",
        samples=(
            Sample(
                "RuntimeError: DataLoader worker (pid 910) is killed by signal: Killed. ",
                {"reason": "Killed", "role": "cause"},
            ),
            Sample(
                "RuntimeError: DataLoader worker (pid(s) 910, 911) exited unexpectedly",
                {"tasks": "910, 911"},
            ),
        ),
    ),
    Rule(
        name="loader_timeout",
        kind="event",
        event="dataloader_error",
        needle="DataLoader timed out after",
        pattern=r"DataLoader timed out after (?P<timeout_s>[\d.]*\d) seconds",
        fields=FIELDS,
        constants=CAUSE,
        quiet=True,
        samples=(Sample("RuntimeError: DataLoader timed out after 120 seconds", {"timeout_s": 120.0}),),
    ),
    Rule(
        name="loader_bus_error",
        kind="event",
        event="dataloader_error",
        needle="bus error encountered in worker",
        pattern=r"bus error encountered in worker",
        constants=CAUSE,
        samples=(
            Sample(
                "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
                {"role": "cause"},
            ),
        ),
    ),
    Rule(
        name="no_space",
        kind="event",
        event="storage_error",
        needle="No space left on device",
        pattern=r"(?P<reason>No space left on device)",
        fields=FIELDS,
        constants=CAUSE,
        samples=(
            Sample(
                "OSError: [Errno 28] No space left on device: '/ckpt/x'",
                {"reason": "No space left on device"},
            ),
        ),
    ),
    Rule(
        name="quota",
        kind="event",
        event="storage_error",
        needle="Disk quota exceeded",
        pattern=r"(?P<reason>Disk quota exceeded)",
        fields=FIELDS,
        constants=CAUSE,
        samples=(Sample("OSError: [Errno 122] Disk quota exceeded", {"reason": "Disk quota exceeded"}),),
    ),
    Rule(
        name="stale_handle",
        kind="event",
        event="storage_error",
        needle="tale file handle",
        pattern=r"(?P<reason>[Ss]tale file handle)",
        fields=FIELDS,
        constants=CAUSE,
        samples=(Sample("OSError: [Errno 116] Stale file handle", {"reason": "Stale file handle"}),),
    ),
    Rule(
        name="io_error",
        kind="event",
        event="storage_error",
        needle="Input/output error",
        pattern=r"(?P<reason>Input/output error)",
        fields=FIELDS,
        constants=CAUSE,
        samples=(Sample("OSError: [Errno 5] Input/output error: '/data/x'", {"role": "cause"}),),
    ),
    Rule(
        name="fatal_python_error",
        kind="event",
        event="segfault",
        needle="Fatal Python error: ",
        pattern=r"Fatal Python error: (?P<reason>[^\n]{1,100})",
        fields=FIELDS,
        constants=SYMPTOM,
        samples=(Sample("Fatal Python error: Segmentation fault", {"reason": "Segmentation fault"}),),
    ),
    Rule(
        name="segmentation_fault",
        kind="event",
        event="segfault",
        needle="Segmentation fault",
        pattern=_ELSEWHERE + r".*?(?P<reason>Segmentation fault)",
        fields=FIELDS,
        constants=SYMPTOM,
        quiet=True,
        samples=(
            Sample(
                "==== Caught signal 11 (Segmentation fault: address not mapped to object at address 0x8) ====",
                {"reason": "Segmentation fault"},
            ),
        ),
    ),
    Rule(
        name="uncaught_cpp",
        kind="event",
        event="segfault",
        needle="terminate called after throwing",
        pattern=r"terminate called after throwing an instance of '(?P<class>[\w:]{1,100})'",
        fields=FIELDS,
        constants=SYMPTOM,
        samples=(
            Sample("terminate called after throwing an instance of 'c10::Error'", {"class": "c10::Error"}),
        ),
    ),
    Rule(
        name="loss_scale_at_minimum",
        kind="event",
        event="loss_scale_floor",
        needle="oss scale already at minimum",
        pattern=r"loss scale already at minimum",
        constants=CAUSE,
        samples=(
            Sample(
                "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.",
                {"role": "cause"},
            ),
        ),
    ),
    Rule(
        name="stopped_on_nan",
        kind="event",
        event="nan_loss",
        needle="Aborting training due to ",
        pattern=r"Aborting training due to (?P<reason>NaN|Inf) loss",
        fields=FIELDS,
        constants=CAUSE,
        samples=(Sample("Aborting training due to NaN loss.", {"reason": "NaN", "role": "cause"}),),
    ),
    Rule(
        name="gradients_not_finite",
        kind="event",
        event="nan_loss",
        needle="gradients are Nan/Inf",
        pattern=r"gradients are (?P<reason>Nan/Inf)",
        fields=FIELDS,
        constants=CAUSE,
        samples=(Sample("FloatingPointError: gradients are Nan/Inf", {"reason": "Nan/Inf"}),),
    ),
    Rule(
        name="keyboard",
        kind="event",
        event="interrupted",
        needle="KeyboardInterrupt",
        pattern=r"^\s{0,8}+KeyboardInterrupt(?::|\s*+$)",
        constants=CAUSE,
        quiet=True,
        samples=(Sample("KeyboardInterrupt", {"role": "cause"}), Sample("[rank3]: KeyboardInterrupt: ")),
    ),
    Rule(
        name="traceback",
        kind="event",
        event="traceback",
        needle="Traceback (most recent call last)",
        pattern=r"Traceback \(most recent call last\)",
        constants=SYMPTOM,
        samples=(
            Sample("[rank3]: Traceback (most recent call last):", {"role": "symptom"}),
            Sample("99%|### | 9/10 [00:12<00:01]Traceback (most recent call last):"),
        ),
    ),
)


_HARMLESS = "PythonFinalizationError"
"""Raised by destructors while an interpreter that is done shuts down (Python 3.13)."""


def exceptions(known: Iterable[Rule]) -> tuple[Rule, ...]:
    """Rules for the last line of a traceback, unless a more particular rule reads that line."""
    needles = sorted({rule.needle for rule in known if "Traceback" not in rule.needle})
    other = "|".join(regex.escape(needle, special_only=True) for needle in needles if len(needle) > 8)
    return tuple(
        _exception(name, needle, other, sample)
        for name, needle, sample in (
            (
                "exception_error",
                "Error",
                Sample("ValueError: bad shape", {"class": "ValueError", "message": "bad shape"}),
            ),
            (
                "exception_other",
                "Exception",
                Sample("[rank0]: queue.MyException: full", {"class": "queue.MyException"}),
            ),
            (
                "exception_exit",
                "SystemExit",
                Sample("SystemExit: 3", {"class": "SystemExit", "message": "3"}),
            ),
        )
    )


def _exception(name: str, needle: str, other: str, sample: Sample) -> Rule:
    ending = needle if needle == "SystemExit" else rf"\w*+(?<={needle})"
    whole = rf"(?!Error\b)(?:[A-Za-z_]\w*+\.)*+(?=[A-Z]){ending}"
    return Rule(
        name=name,
        kind="event",
        event="exception",
        needle=needle,
        pattern=rf"^\s{{0,8}}+(?={whole}(?::|\s*+$))(?!.{{0,2000}}(?:{other}|{_HARMLESS}))"
        rf"(?P<class>{whole})(?:: (?P<message>[^\n]{{0,400}})|:?\s*+$)",
        fields=FIELDS,
        constants=SYMPTOM,
        quiet=True,
        samples=(sample,),
    )
