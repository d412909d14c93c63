"""What the scheduler says: Slurm's step daemon and ``srun``.

Layouts: slurmstepd req.c and srun's messages of versions 17 to 25; the order of the words changed over time.
"""

from __future__ import annotations

from logmfu.failures.reading import CAUSE, FIELDS, SYMPTOM, TEARDOWN
from logmfu.parsing import Rule, Sample

_TIME = r"(?P<time>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)"
_JOB = r"(?P<scope>JOB|STEP) (?:StepId=)?(?P<job_id>\d[\d+_]*+)(?:\.\w++)?+(?: ON (?P<host>\S++))?+"
_CANCELLED = _JOB + " CANCELLED AT " + _TIME
_SRUN = r"srun: error: (?P<host>[\w.-]++): tasks? (?P<tasks>[\d,\[\]-]++): "


def _cancelled(
    name: str, event: str, *, needle: str, why: str, role: dict[str, str], text: str, **more: str
) -> Rule:
    """Rule for one reason of a cancellation; the reason decides the event."""
    expected = {"job_id": "4711", "time": 1.7e9 + 0, **more, **role}
    return Rule(
        name=name,
        kind="event",
        event=event,
        needle=needle,
        pattern=_CANCELLED + why,
        fields=FIELDS,
        constants=role,
        quiet=True,
        samples=(Sample(text, expected),),
    )


RULES: tuple[Rule, ...] = (
    _cancelled(
        "slurm_time_limit",
        "time_limit",
        needle="DUE TO TIME LIMIT",
        why=" DUE TO TIME LIMIT(?: on (?P<host>[^\\s*]++))?+",
        role=CAUSE,
        text="slurmstepd: error: *** JOB 4711 ON gpu-9 CANCELLED AT 2023-11-14T22:13:20 DUE TO TIME LIMIT ***",
        host="gpu-9",
        scope="job",
    ),
    _cancelled(
        "slurm_preempted",
        "preempted",
        needle="DUE TO PREEMPTION",
        why=" DUE TO (?P<reason>PREEMPTION)",
        role=CAUSE,
        text="slurmstepd: error: *** STEP 4711.0 ON gpu-9 CANCELLED AT 2023-11-14T22:13:20 DUE TO PREEMPTION ***",
        host="gpu-9",
        scope="step",
    ),
    _cancelled(
        "slurm_requeued",
        "preempted",
        needle="DUE TO JOB REQUEUE",
        why=" DUE TO (?P<reason>JOB REQUEUE)",
        role=CAUSE,
        text="slurmstepd-gpu-9: error: *** JOB 4711 ON gpu-9 CANCELLED AT 2023-11-14T22:13:20 DUE TO JOB REQUEUE ***",
        reason="JOB REQUEUE",
    ),
    _cancelled(
        "slurm_node_failure",
        "node_failure",
        needle="DUE TO NODE ",
        why=" DUE TO NODE (?:(?P<host>(?!FAILURE)[\\w.-]++) )?+FAILURE",
        role=CAUSE,
        text="slurmstepd: error: *** JOB 4711 CANCELLED AT 2023-11-14T22:13:20 DUE TO NODE gpu-8 FAILURE ***",
        host="gpu-8",
    ),
    _cancelled(
        "slurm_cancelled",
        "cancelled",
        needle=" CANCELLED AT ",
        why="(?: DUE TO (?!TIME LIMIT|PREEMPTION|JOB REQUEUE|NODE )(?P<reason>[^*\\n]{1,80}?))?+ \\*\\*\\*",
        role=CAUSE,
        text="6.29s/it]slurmstepd: error: *** JOB 4711 ON gpu-9 CANCELLED AT 2023-11-14T22:13:20 ***",
        host="gpu-9",
    ),
    Rule(
        name="slurm_step_failed",
        kind="event",
        event="process_failed",
        needle=" FAILED (non-zero exit code",
        pattern=_JOB + r" FAILED \(non-zero exit code",
        fields=FIELDS,
        constants=SYMPTOM,
        samples=(
            Sample(
                "slurmstepd: error: *** STEP 4711.0 ON gpu-9 FAILED (non-zero exit code or other failure mode) ***",
                {"host": "gpu-9", "job_id": "4711"},
            ),
        ),
    ),
    Rule(
        name="slurm_memory_error",
        kind="event",
        event="ecc_error",
        needle="UNCORRECTABLE MEMORY ERROR",
        pattern=_JOB + r" UNCORRECTABLE MEMORY ERROR AT " + _TIME,
        fields=FIELDS,
        constants=CAUSE,
        samples=(
            Sample(
                "slurmstepd: error: *** STEP 4711.0 ON gpu-9 UNCORRECTABLE MEMORY ERROR AT 2023-11-14T22:13:20 ***",
                {"host": "gpu-9", "time": 1.7e9, "role": "cause"},
            ),
        ),
    ),
    Rule(
        name="slurm_oom_kill",
        kind="event",
        event="host_oom",
        needle="kill event",
        pattern=r"Detected (?P<count>\d++) oom[-_]kill event(?:s|\(s\))? in (?:StepId=|step )(?P<job_id>\d++)",
        fields=FIELDS,
        constants=CAUSE,
        quiet=True,
        samples=(
            Sample(
                "slurmstepd: error: Detected 2 oom_kill events in StepId=4711.0. Some of the step tasks have been OOM Killed.",
                {"count": 2, "job_id": "4711"},
            ),
            Sample(
                "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=4711.batch. Some of your processes may have been killed.",
                {"count": 1, "role": "cause"},
            ),
        ),
    ),
    Rule(
        name="srun_killed",
        kind="event",
        event="killed",
        needle="srun: error: ",
        pattern=_SRUN + r"(?P<reason>Killed|Terminated)",
        fields=FIELDS,
        constants=SYMPTOM,
        quiet=True,
        samples=(
            Sample(
                "srun: error: gpu-9: task 3: Killed", {"host": "gpu-9", "tasks": "3", "reason": "Killed"}
            ),
            Sample(
                "srun: error: gpu-9: tasks 0-3,5: Terminated", {"tasks": "0-3,5", "reason": "Terminated"}
            ),
        ),
    ),
    Rule(
        name="srun_out_of_memory",
        kind="event",
        event="host_oom",
        needle=": Out Of Memory",
        pattern=_SRUN + r"Out Of Memory",
        fields=FIELDS,
        constants=CAUSE,
        quiet=True,
        samples=(Sample("srun: error: gpu-9: task 3: Out Of Memory", {"host": "gpu-9", "tasks": "3"}),),
    ),
    Rule(
        name="srun_exit_code",
        kind="event",
        event="process_failed",
        needle="Exited with exit code",
        pattern=_SRUN + r"Exited with exit code (?P<exitcode>\d++)",
        fields=FIELDS,
        constants=SYMPTOM,
        quiet=True,
        samples=(
            Sample(
                "srun: error: gpu-9: tasks 0-7: Exited with exit code 1",
                {"host": "gpu-9", "tasks": "0-7", "exitcode": 1},
            ),
        ),
    ),
    Rule(
        name="srun_aborted",
        kind="event",
        event="segfault",
        needle="srun: error: ",
        pattern=_SRUN + r"(?P<reason>Aborted|Segmentation fault|Bus error|Illegal instruction)",
        fields=FIELDS,
        constants=SYMPTOM,
        quiet=True,
        samples=(Sample("srun: error: gpu-9: task 3: Aborted (core dumped)", {"reason": "Aborted"}),),
    ),
    Rule(
        name="srun_node_failure",
        kind="event",
        event="node_failure",
        needle="Node failure on ",
        pattern=r"Node failure on (?P<host>[\w.,\[\]-]++)",
        fields=FIELDS,
        constants=CAUSE,
        samples=(Sample("srun: error: Node failure on gpu-9", {"host": "gpu-9", "role": "cause"}),),
    ),
    Rule(
        name="srun_step_aborted",
        kind="event",
        event="terminating",
        needle="Job step aborted: ",
        pattern=r"Job step aborted: Waiting up to (?P<timeout_s>\d++) seconds",
        fields=FIELDS,
        constants=TEARDOWN,
        samples=(
            Sample(
                "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
                {"timeout_s": 32.0, "role": "teardown"},
            ),
        ),
    ),
    Rule(
        name="srun_terminating",
        kind="event",
        event="terminating",
        needle="erminat",
        pattern=r"(?:srun: |_step_signal: )(?:Force )?+[Tt]erminat(?:ed|ing) (?:StepId=|job step )(?P<job_id>\d++)",
        fields=FIELDS,
        constants=TEARDOWN,
        quiet=True,
        samples=(
            Sample("srun: Terminating StepId=4711.0", {"job_id": "4711", "role": "teardown"}),
            Sample("srun: Force Terminated StepId=4711.0", {"job_id": "4711"}),
            Sample("srun: Terminating job step 4711.0", {"job_id": "4711"}),
        ),
    ),
    Rule(
        name="srun_wait_over",
        kind="event",
        event="terminating",
        needle="Timed out waiting for job step to complete",
        pattern=r"Timed out waiting for job step to complete",
        constants=TEARDOWN,
        samples=(Sample("srun: error: Timed out waiting for job step to complete", {"role": "teardown"}),),
    ),
    Rule(
        name="srun_queued",
        kind="event",
        event="queued",
        needle="queued and waiting for resources",
        pattern=r"job (?P<job_id>\d++) queued and waiting for resources",
        fields=FIELDS,
        samples=(Sample("srun: job 4711 queued and waiting for resources", {"job_id": "4711"}),),
    ),
    Rule(
        name="srun_started",
        kind="event",
        event="started",
        needle="has been allocated resources",
        pattern=r"job (?P<job_id>\d++) has been allocated resources",
        fields=FIELDS,
        samples=(Sample("srun: job 4711 has been allocated resources", {"job_id": "4711"}),),
    ),
)
