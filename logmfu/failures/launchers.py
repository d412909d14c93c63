"""What other launchers say about the processes they started: per-node launchers, mpirun, Ray, shells.

Layouts: the launchers' manuals and logs.
"""

from __future__ import annotations

from logmfu.failures.reading import CAUSE, FIELDS, SYMPTOM, TEARDOWN
from logmfu.parsing import Rule, Sample

RULES: tuple[Rule, ...] = (
    Rule(
        name="launcher_kills",
        kind="event",
        event="terminating",
        needle="Killing subprocess ",
        pattern=r"Killing subprocess (?P<pid>\d++)",
        fields=FIELDS,
        constants=TEARDOWN,
        samples=(Sample("Killing subprocess 908", {"pid": 908, "role": "teardown"}),),
    ),
    Rule(
        name="launcher_told_to_stop",
        kind="event",
        event="terminating",
        needle="Main process received ",
        pattern=r"Main process received (?P<signal>SIG[A-Z]++), exiting",
        fields=FIELDS,
        constants=TEARDOWN,
        samples=(Sample("Main process received SIGTERM, exiting", {"signal": "SIGTERM"}),),
    ),
    Rule(
        name="launcher_return_code",
        kind="event",
        event="process_failed",
        needle="exits with return code = ",
        pattern=r"exits with return code = (?P<exitcode>-?\d++)",
        fields=FIELDS,
        constants=SYMPTOM,
        samples=(Sample("['python', '-u', 'train.py'] exits with return code = -9", {"exitcode": -9}),),
    ),
    Rule(
        name="launcher_success",
        kind="event",
        event="process_exit",
        needle="exits successfully",
        pattern=r"Process (?P<pid>\d++) exits successfully",
        fields=FIELDS,
        quiet=True,
        samples=(
            Sample(
                "[2023-11-14 22:13:20,123] [INFO] [launch.py:347:main] Process 908 exits successfully.",
                {"pid": 908},
            ),
        ),
    ),
    Rule(
        name="ssh_failed",
        kind="event",
        event="process_failed",
        needle="ssh exited with exit code",
        pattern=r"(?P<host>[\w.-]{1,253}+): ssh exited with exit code (?P<exitcode>\d++)",
        fields=FIELDS,
        constants=SYMPTOM,
        samples=(
            Sample("pdsh@head: gpu-9: ssh exited with exit code 255", {"host": "gpu-9", "exitcode": 255}),
        ),
    ),
    Rule(
        name="mpirun_signal",
        kind="event",
        event="killed",
        needle="run noticed that process rank ",
        pattern=r"run noticed that process rank (?P<rank>\d++) with PID (?P<pid>\d++) on node (?P<host>\S++) exited on signal (?P<signal>\d++)",
        fields=FIELDS,
        constants=SYMPTOM,
        samples=(
            Sample(
                "mpirun noticed that process rank 3 with PID 910 on node gpu-9 exited on signal 9 (Killed).",
                {"rank": 3, "pid": 910, "host": "gpu-9", "signal": "SIGKILL"},
            ),
        ),
    ),
    Rule(
        name="mpirun_nonzero",
        kind="event",
        event="process_failed",
        needle="terminated normally, but ",
        pattern=r"terminated normally, but (?P<count>\d++) process(?:es)? returned",
        fields=FIELDS,
        constants=SYMPTOM,
        samples=(Sample("Primary job  terminated normally, but 1 process returned", {"count": 1}),),
    ),
    Rule(
        name="actor_died",
        kind="event",
        event="process_failed",
        needle="died unexpectedly before finishing",
        pattern=r"died unexpectedly before finishing",
        constants=SYMPTOM,
        samples=(
            Sample(
                "ray.exceptions.RayActorError: The actor died unexpectedly before finishing this task.",
                {"role": "symptom"},
            ),
        ),
    ),
    Rule(
        name="memory_pressure_kill",
        kind="event",
        event="host_oom",
        needle="killed due to memory pressure",
        pattern=r"(?:(?P<count>\d++) )?Workers? \(tasks / actors\) killed due to memory pressure",
        fields=FIELDS,
        constants=CAUSE,
        samples=(
            Sample(
                "(raylet) [node_manager.cc:3077] 2 Workers (tasks / actors) killed due to memory pressure (OOM), 0 crashed.",
                {"count": 2, "role": "cause"},
            ),
        ),
    ),
    Rule(
        name="shell_killed",
        kind="event",
        event="killed",
        needle=": line ",
        pattern=r": line \d++: +(?P<pid>\d++) (?P<reason>Killed|Terminated)\b",
        fields=FIELDS,
        constants=SYMPTOM,
        quiet=True,
        samples=(
            Sample(
                "run.sh: line 42:   910 Killed                  python train.py",
                {"pid": 910, "reason": "Killed"},
            ),
        ),
    ),
    Rule(
        name="shell_crashed",
        kind="event",
        event="segfault",
        needle=": line ",
        pattern=r": line \d++: +(?P<pid>\d++) (?P<reason>Segmentation fault|Aborted|Bus error)\b",
        fields=FIELDS,
        constants=SYMPTOM,
        quiet=True,
        samples=(
            Sample(
                "run.sh: line 42:   910 Aborted                 (core dumped) python train.py",
                {"reason": "Aborted"},
            ),
        ),
    ),
    Rule(
        name="killed_alone",
        kind="event",
        event="killed",
        needle="Killed",
        pattern=r"^(?P<reason>Killed)\s*+$",
        fields=FIELDS,
        constants=SYMPTOM,
        quiet=True,
        samples=(Sample("Killed", {"reason": "Killed", "role": "symptom"}),),
    ),
    Rule(
        name="terminated_alone",
        kind="event",
        event="killed",
        needle="Terminated",
        pattern=r"^(?P<reason>Terminated)\s*+$",
        fields=FIELDS,
        constants=TEARDOWN,
        quiet=True,
        samples=(Sample("Terminated", {"reason": "Terminated", "role": "teardown"}),),
    ),
)
