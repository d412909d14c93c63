"""DeepSpeed's launcher: how many processes there are. How they end is read by :mod:`logmfu.failures`.

Layouts: deepspeed/launcher/launch.py, v0.3.0 to v0.19.5 (2026-08-09).
"""

from __future__ import annotations

from logmfu import values
from logmfu.parsing import Field, Rule, Sample


def host_slots(text: str) -> int:
    """Number of processes in ``{'host': [0, 1], ...}``. Raises ``ValueError``."""
    world = values.literal(text)
    if not isinstance(world, dict):
        raise ValueError(f"no mapping of hosts in {text[:60]!r}")
    return sum(len(slots) for slots in world.values() if isinstance(slots, list))


RULES: tuple[Rule, ...] = (
    Rule(
        name="launch",
        kind="event",
        event="process_start",
        needle="deepspeed.launcher.launch",
        pattern=r"^\s*cmd = (?P<command>\S.*deepspeed\.launcher\.launch\b)",
        fields={"command": Field("command", values.text)},
        quiet=True,
        samples=(
            Sample(
                "[2026-03-04 05:00:00,001] [INFO] [runner.py:571:main] cmd = /usr/bin/python3 -u -m deepspeed.launcher.launch --world_info=e30= pretrain.py",
                {"command": "/usr/bin/python3 -u -m deepspeed.launcher.launch"},
            ),
        ),
    ),
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
        fields={"size": Field("value", values.integer)},
        ignore=r"\{",
        samples=(Sample("dist_world_size=8", {"world_size": 8}),),
    ),
)
