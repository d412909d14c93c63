"""How the values in incident lines are read, and the fields many rules share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from logmfu import values
from logmfu.parsing import Field

_SIGNALS = {1: "SIGHUP", 2: "SIGINT", 6: "SIGABRT", 7: "SIGBUS", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM"}


def signal(text: str) -> str:
    """``15``, ``SIGTERM`` or ``Signals.SIGTERM`` as ``SIGTERM``."""
    name = text.strip().removeprefix("Signals.")
    return _SIGNALS.get(int(name), name) if name.isdecimal() else name


def always(value: Any) -> Callable[[str], Any]:
    """A reader that gives one value, whatever the text: a block has no constants."""
    return lambda _: value


def leading_integer(text: str) -> int:
    """``5 (local_rank: 1)`` is 5."""
    return int(text.strip().partition(" ")[0])


FIELDS: dict[str, Field] = {
    "time": Field("time", values.timestamp),
    "rank": Field("rank", values.integer),
    "local_rank": Field("local_rank", values.integer),
    "host": Field("host", values.text),
    "pid": Field("pid", values.integer),
    "device": Field("device", values.text),
    "code": Field("code", values.integer),
    "exitcode": Field("exitcode", values.integer),
    "signal": Field("signal", signal),
    "job_id": Field("job_id", values.text),
    "scope": Field("scope", str.lower),
    "reason": Field("reason", values.text),
    "peer": Field("peer", values.text),
    "op": Field("op", values.text),
    "seq": Field("seq", values.integer),
    "last_enqueued": Field("last_enqueued", values.integer),
    "last_completed": Field("last_completed", values.integer),
    "ran_for_ms": Field("ran_for_s", values.number, 1e-3),
    "timeout_ms": Field("timeout_s", values.number, 1e-3),
    "timeout_s": Field("timeout_s", values.number),
    "joined": Field("joined", values.integer),
    "expected": Field("expected", values.integer),
    "tried_bytes": Field("tried_bytes", values.size_bytes),
    "total_bytes": Field("total_bytes", values.size_bytes),
    "free_bytes": Field("free_bytes", values.size_bytes),
    "count": Field("count", values.integer),
    "left": Field("restarts_left", values.integer),
    "tasks": Field("tasks", values.text),
    "class": Field("class", values.text),
    "message": Field("message", values.text),
}
"""Group name of a pattern to the detail it becomes. ``rank`` and ``host`` are those the line names."""

CAUSE = {"role": "cause"}
"""Such a line usually names what went wrong first."""
SYMPTOM = {"role": "symptom"}
"""Such a line shows that something went wrong elsewhere or before."""
TEARDOWN = {"role": "teardown"}
"""Such a line is written while the rest of the job is being ended."""
