"""DeepSpeed's launcher: processes, their ends, and how many there are.

Layouts: deepspeed/launcher/launch.py, v0.3.0 to v0.19.5 (2026-08-09). The command in an ``exits with``
line is that of the last process started, not of the one that failed: no rank is taken from it.
"""

from __future__ import annotations

from logmfu import values
from logmfu.parsing import Field, Rule, Sample

INT = values.integer


def host_slots(text: str) -> int:
    """Number of processes in ``{'host': [0, 1], ...}``. Raises ``ValueError``."""
    world = values.literal(text)
    if not isinstance(world, dict):
        raise ValueError(f"no mapping of hosts in {text[:60]!r}")
    return sum(len(slots) for slots in world.values() if isinstance(slots, list))


RULES: tuple[Rule, ...] = (
    Rule(
        name="world_info",
        kind="fact",
        event="world_size",
        needle="WORLD INFO DICT: ",
        pattern=r"WORLD INFO DICT: (?P<hosts>\{.*\})",
        fields={"hosts": Field("value", host_slots)},
        ignore=r"INFO DICT: \{[a-z_]*\}",
        samples=(
            Sample(
                "WORLD INFO DICT: {'worker-0': [0, 1, 2, 3], 'worker-1': [0, 1, 2, 3]}", {"world_size": 8}
            ),
        ),
    ),
    Rule(
        name="dist_world_size",
        kind="fact",
        event="world_size",
        needle="dist_world_size=",
        pattern=r"(?<!\w)dist_world_size=(?P<size>\d++)",
        fields={"size": Field("value", INT)},
        ignore=r"\{",
        samples=(Sample("dist_world_size=8", {"world_size": 8}),),
    ),
    Rule(
        name="process_exits",
        kind="event",
        event="process_exit",
        needle=" exits successfully",
        pattern=r"Process (?P<pid>\d++) exits successfully",
        fields={"pid": Field("pid", INT)},
        ignore=r"\{",
        samples=(Sample("Process 4242 exits successfully.", {"pid": 4242}, "0.9.0"),),
    ),
    Rule(
        name="return_code",
        kind="event",
        event="process_failed",
        needle=" exits with return code = ",
        pattern=r" exits with return code = (?P<exit_code>-?\d++)",
        fields={"exit_code": Field("exit_code", INT)},
        ignore=r"\{",
        samples=(
            Sample(
                "['/usr/bin/python3', '-u', 'train.py', '--local_rank=3'] exits with return code = -9",
                {"exit_code": -9},
            ),
        ),
    ),
    Rule(
        name="killing",
        kind="event",
        event="terminating",
        needle="Killing subprocess ",
        pattern=r"Killing subprocess (?P<pid>\d++)",
        fields={"pid": Field("pid", INT)},
        ignore=r"\{",
        samples=(Sample("Killing subprocess 4242", {"pid": 4242}, "0.5.6"),),
    ),
    Rule(
        name="main_signalled",
        kind="event",
        event="terminating",
        needle="Main process received ",
        pattern=r"Main process received (?P<signal>SIG[A-Z]++), exiting",
        fields={"signal": Field("signal", values.text)},
        ignore=r"\{",
        samples=(Sample("Main process received SIGTERM, exiting", {"signal": "SIGTERM"}),),
    ),
)
