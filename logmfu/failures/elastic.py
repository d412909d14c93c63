"""What torchrun's agent says about its workers, and its table of failures.

Layouts: PyTorch torch/distributed/elastic of 1.9 to 2.9; errors/__init__.py prints the table.
"""

from __future__ import annotations

from logmfu import values
from logmfu.failures.reading import CAUSE, FIELDS, SYMPTOM, TEARDOWN, always, leading_integer
from logmfu.parsing import Block, Field, Rule, Sample

_ROW = r"^\s*+(?P<name>time|host|rank|exitcode|error_file|traceback) *+: (?P<value>.*+)$"
_ENTRY: dict[str, Field] = {
    "time": FIELDS["time"],
    "host": FIELDS["host"],
    "rank": Field("rank", leading_integer),
    "exitcode": Field("exitcode", leading_integer),
    "traceback": Field("reason", values.text),
    "error_file": Field("error_file", values.text),
}
_TABLE_END = r"^\s*+={20,}\s*+$"

BLOCKS: tuple[Block, ...] = (
    Block(
        name="process_failed",
        kind="event",
        needle="Root Cause (first observed failure)",
        header=r"(?P<root>Root) (?P<role>Cause) \(first observed failure\):",
        row=_ROW,
        end=_TABLE_END,
        gather=True,
        foreign=20,
        fields={**_ENTRY, "root": Field("root", always(True)), "role": Field("role", always("symptom"))},
        samples=(
            Sample(
                "Root Cause (first observed failure):\n[0]:\n  time      : 2023-11-14_22:13:20\n  host      : gpu-9\n"
                "  rank      : 7 (local_rank: 3)\n  exitcode  : -6 (pid: 910)\n  error_file: <N/A>\n"
                "  traceback : Signal 6 (SIGABRT) received by PID 910\n" + "=" * 60,
                {
                    "root": True,
                    "time": 1.7e9,
                    "host": "gpu-9",
                    "rank": 7,
                    "exitcode": -6,
                    "reason": "Signal 6 (SIGABRT) received by PID 910",
                },
            ),
        ),
    ),
    Block(
        name="process_failed",
        kind="event",
        needle="time      : ",
        header=r"^\s*+(?P<role>time)      : (?P<time>\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d)\s*+$",
        row=_ROW.replace("time|", ""),
        end=r"^\s*+-{20,}\s*+$",
        gather=True,
        foreign=20,
        fields={**_ENTRY, "role": Field("role", always("teardown"))},
        samples=(
            Sample(
                "  time      : 2023-11-14_22:13:21\n  host      : gpu-9\n  rank      : 5 (local_rank: 1)\n"
                "  exitcode  : -15 (pid: 908)\n  error_file: <N/A>\n  traceback : Signal 15 (SIGTERM) received by PID 908",
                {"time": 1.7e9 + 1, "rank": 5, "exitcode": -15, "role": "teardown"},
            ),
        ),
    ),
)
"""torchrun's table of failures: one event for each process in it; ``root`` marks the first one."""

RULES: tuple[Rule, ...] = (
    Rule(
        name="agent_closes",
        kind="event",
        event="terminating",
        needle=" closing signal ",
        pattern=r"Sending process (?P<pid>\d++) closing signal (?P<signal>\w++)",
        fields=FIELDS,
        constants=TEARDOWN,
        quiet=True,
        samples=(
            Sample(
                "W1114 22:13:20.001000 900 torch/distributed/elastic/multiprocessing/api.py:900] Sending process 908 closing signal SIGTERM",
                {"pid": 908, "signal": "SIGTERM", "role": "teardown"},
            ),
        ),
    ),
    Rule(
        name="agent_kills",
        kind="event",
        event="terminating",
        needle="Unable to shutdown process ",
        pattern=r"Unable to shutdown process (?P<pid>\d++) via (?P<signal>[\w.]++)",
        fields=FIELDS,
        constants=TEARDOWN,
        samples=(
            Sample(
                "Unable to shutdown process 908 via Signals.SIGTERM, forcefully exiting via Signals.SIGKILL",
                {"pid": 908, "signal": "SIGTERM"},
            ),
        ),
    ),
    Rule(
        name="worker_failed",
        kind="event",
        event="process_failed",
        needle="failed (exitcode: ",
        pattern=r"failed \(exitcode: (?P<exitcode>-?\d++)\) local_rank: (?P<local_rank>\d++) \(pid: (?P<pid>\d++)\)",
        fields=FIELDS,
        constants=SYMPTOM,
        samples=(
            Sample(
                "E1114 22:13:21.001000 900 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: -6) local_rank: 3 (pid: 910) of binary: /usr/bin/python3",
                {"exitcode": -6, "local_rank": 3, "pid": 910, "role": "symptom"},
            ),
        ),
    ),
    Rule(
        name="worker_group_failed",
        kind="event",
        event="worker_restart",
        needle="Worker group ",
        pattern=r"Worker group (?:FAILED|UNHEALTHY)\. (?P<left>\d++)/\d++ attempts left; will restart",
        fields=FIELDS,
        constants=SYMPTOM,
        quiet=True,
        samples=(
            Sample(
                "[default] Worker group FAILED. 2/3 attempts left; will restart worker group",
                {"restarts_left": 2},
            ),
        ),
    ),
    Rule(
        name="agent_told_to_stop",
        kind="event",
        event="terminating",
        needle=" death signal",
        pattern=r"Received (?P<signal>[\w.]++) death signal",
        fields=FIELDS,
        constants=SYMPTOM,
        samples=(
            Sample(
                "Received Signals.SIGTERM death signal, shutting down workers",
                {"signal": "SIGTERM", "role": "symptom"},
            ),
            Sample("Received 15 death signal, shutting down workers", {"signal": "SIGTERM"}),
        ),
    ),
    Rule(
        name="agent_got_signal",
        kind="event",
        event="killed",
        needle=" got signal: ",
        pattern=r"Process (?P<pid>\d++) got signal: (?P<signal>(?!2\b|\S*SIGINT)[\w.]++)",
        fields=FIELDS,
        constants=SYMPTOM,
        quiet=True,
        samples=(
            Sample(
                "torch.distributed.elastic.multiprocessing.api.SignalException: Process 900 got signal: 15",
                {"pid": 900, "signal": "SIGTERM"},
            ),
        ),
    ),
    Rule(
        name="agent_interrupted",
        kind="event",
        event="interrupted",
        needle=" got signal: ",
        pattern=r"Process (?P<pid>\d++) got signal: (?P<signal>2\b|\S*SIGINT)",
        fields=FIELDS,
        constants=CAUSE,
        quiet=True,
        samples=(
            Sample(
                "torch.distributed.elastic.multiprocessing.api.SignalException: Process 900 got signal: 2",
                {"signal": "SIGINT", "role": "cause"},
            ),
        ),
    ),
)
