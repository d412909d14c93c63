"""Lines of launchers, schedulers and watchdogs when an attempt ends."""

from __future__ import annotations

from writers.layout import Moment, Text, seconds_stamp, when
from writers.plan import Plan

JOB = 48123


def failure(plan: Plan, moment: Moment) -> list[Text]:
    """What is printed the moment an attempt fails."""
    if moment.kind in _SLURM:
        return _slurm(moment)
    return _PRINTS[moment.kind](plan, moment)


def torchrun(plan: Plan, moment: Moment) -> list[Text]:
    """What torchrun's agent adds a moment later; a scheduler that ends the job leaves it no time."""
    if moment.kind in _SLURM or moment.kind == "killed":
        return []
    code = -6 if moment.kind == "hang" else 1
    origin = "4200 torch/distributed/elastic/multiprocessing/api.py:874]"
    stamp = when(moment.time).strftime("%m%d %H:%M:%S.%f")
    return [
        Text(f"W{stamp} {origin} Sending process 4246 closing signal SIGTERM", stamped=True, rank=None),
        Text(
            f"E{stamp} {origin} failed (exitcode: {code}) local_rank: 3 (pid: 4245) of binary: /usr/bin/python3",
            stamped=True,
            rank=None,
        ),
    ]


def _trace(*message: str) -> list[Text]:
    return [
        Text("[rank3]: Traceback (most recent call last):", rank=3),
        Text('[rank3]:   File "/opt/train/pretrain.py", line 208, in <module>', rank=3),
        Text("[rank3]:     main()", rank=3),
        *(Text(f"[rank3]: {line}", rank=3) for line in message),
    ]


def _crash(plan: Plan, moment: Moment) -> list[Text]:
    return _trace("ValueError: shard 17 has an index of the wrong length")


def _nan(plan: Plan, moment: Moment) -> list[Text]:
    return _trace(
        f"RuntimeError: Rank 3, node node-7, device 3, iteration {moment.step}: Unexpected result nan "
        "(message='found NaN in local forward loss calculation')"
    )


def _oom(plan: Plan, moment: Moment) -> list[Text]:
    return _trace(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 3 has a total capacity of "
        "79.10 GiB of which 812.00 MiB is free. Including non-PyTorch memory, this process has 78.30 GiB memory in use."
    )


def _hang(plan: Plan, moment: Moment) -> list[Text]:
    """A watchdog line, see ``ran for``: the collective began that long before the line."""
    ran = round(moment.seconds * 1000)
    limit = ran // 10000 * 10000
    stamp = when(moment.time).strftime("%-m%d %H:%M:%S.%f") + "000"
    return [
        Text(
            f"[rank3]:[E{stamp} ProcessGroupNCCL.cpp:629] [Rank 3] Watchdog caught collective operation timeout: "
            f"WorkNCCL(SeqNum=90211, OpType=ALLREDUCE, NumelIn=1048576, NumelOut=1048576, Timeout(ms)={limit}) "
            f"ran for {ran} milliseconds before timing out.",
            stamped=True,
            rank=3,
        ),
        Text(
            f"[rank3]:[E{stamp} ProcessGroupNCCL.cpp:695] [Rank 3] To avoid data inconsistency, "
            "we are taking the entire process down.",
            stamped=True,
            rank=3,
        ),
    ]


def _killed(plan: Plan, moment: Moment) -> list[Text]:
    return [Text("srun: error: node-7: task 3: Killed", rank=None)]


_SLURM = {
    "preempted": "DUE TO PREEMPTION ",
    "time_limit": "DUE TO TIME LIMIT ",
    "node_failure": "DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ",
}
_PRINTS = {"crash": _crash, "nan": _nan, "oom": _oom, "hang": _hang, "killed": _killed}


def _slurm(moment: Moment) -> list[Text]:
    stamp = seconds_stamp(moment.time).replace(" ", "T")
    reason = _SLURM[moment.kind]
    error = f"slurmstepd: error: *** JOB {JOB} ON node-7 CANCELLED AT {stamp} {reason}***"
    lines = [Text(error, stamped=True, rank=None)]
    if moment.kind == "node_failure":
        lines.append(Text("srun: error: Node failure on node-7", rank=None))
    return lines
