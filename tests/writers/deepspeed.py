"""Plain DeepSpeed 0.14 with its launcher: ``step=`` and throughput lines, stamped to the millisecond.

The throughput line counts the steps of its own process, and leaves out everything between two steps: waiting
for data, evaluation (which no line names) and saves.
"""

from __future__ import annotations

from writers.failures import failure
from writers.layout import Layout, Moment, Text, millis_stamp
from writers.plan import Plan, Skip

ACCUMULATION = 4


def _log(moment: Moment, text: str, where: str = "logging.py:96:log_dist", level: str = "INFO") -> Text:
    """A line of DeepSpeed's logger."""
    return Text(f"[{millis_stamp(moment.time)}] [{level}] [{where}] {text}", stamped=True)


def _launch(moment: Moment, where: str, text: str, level: str = "INFO") -> Text:
    return _log(moment, text, where, level)._replace(rank=None)


def _process(plan: Plan, moment: Moment) -> list[Text]:
    command = (
        "cmd = /usr/bin/python3 -u -m deepspeed.launcher.launch --world_info=e30= train.py --deepspeed"
    )
    return [
        _launch(moment, "runner.py:568:main", command),
        _launch(moment, "launch.py:139:main", f"dist_world_size={plan.world_size}"),
        _launch(
            moment,
            "launch.py:256:main",
            "process 7001 spawned with command: ['/usr/bin/python3', '-u', 'train.py']",
        ),
    ]


def _initialized(plan: Plan, moment: Moment) -> list[Text]:
    rows = {
        "gradient_accumulation_steps": ACCUMULATION,
        "steps_per_print": plan.log_interval,
        "train_batch_size": plan.batch,
        "train_micro_batch_size_per_gpu": max(1, plan.batch // plan.world_size // ACCUMULATION),
        "world_size": plan.world_size,
        "zero_enabled": True,
    }
    config = [
        _log(moment, f"  {name} {'.' * (29 - len(name))} {value}", "config.py:1000:print")
        for name, value in rows.items()
    ]
    return [
        _log(moment, "[Rank -1] DeepSpeed info: version=0.14.4, git-hash=unknown, git-branch=unknown"),
        _log(moment, "[Rank 0] step=0, skipped=0, lr=[0.0], mom=[(0.9, 0.95)]"),
        _log(moment, "DeepSpeedEngine configuration:", "config.py:996:print"),
        *config,
    ]


def _load_start(plan: Plan, moment: Moment) -> list[Text]:
    path = f"ckpt/global_step{moment.step}/mp_rank_00_model_states.pt"
    where = "torch_checkpoint_engine.py:27:load"
    return [_log(moment, f"[Torch] Loading checkpoint from {path}...", where)]


def _load_end(plan: Plan, moment: Moment) -> list[Text]:
    path = f"ckpt/global_step{moment.step}/mp_rank_00_model_states.pt"
    where = "torch_checkpoint_engine.py:29:load"
    return [_log(moment, f"[Torch] Loaded checkpoint from {path}.", where)]


def _step(plan: Plan, moment: Moment) -> list[Text]:
    row = moment.row
    skipped = sum(event.step <= row.step for event in plan.all(Skip))
    lines = [_log(moment, f"[Rank 0] step={row.step}, skipped={skipped}, lr=[0.0003], mom=[(0.9, 0.95)]")]
    if row.own_step > 2:
        text = (
            f"epoch=0/micro_step={row.own_step * ACCUMULATION}/global_step={row.own_step}, "
            f"RunningAvgSamplesPerSec={row.batch / row.own_mean!r}, CurrSamplesPerSec={row.batch / row.last!r}, "
            "MemAllocated=11.31GB, MaxMemAllocated=47.02GB"
        )
        lines.append(_log(moment, text, "timer.py:258:stop"))
    return lines


def _save_start(plan: Plan, moment: Moment) -> list[Text]:
    tag = f"global_step{moment.step}"
    path = f"ckpt/{tag}/mp_rank_00_model_states.pt"
    return [
        _log(moment, f"[Rank 0] [Torch] Checkpoint {tag} is about to be saved!"),
        _log(moment, f"[Rank 0] Saving model checkpoint: {path}"),
        _log(moment, f"[Torch] Saving {path}...", "torch_checkpoint_engine.py:21:save"),
    ]


def _save_end(plan: Plan, moment: Moment) -> list[Text]:
    tag = f"global_step{moment.step}"
    where = "torch_checkpoint_engine.py"
    return [
        _log(moment, f"[Torch] Saved ckpt/{tag}/mp_rank_00_model_states.pt.", f"{where}:23:save"),
        _log(moment, f"[Torch] Checkpoint {tag} is ready now!", f"{where}:33:commit"),
    ]


def _finished(plan: Plan, moment: Moment) -> list[Text]:
    return [_launch(moment, "launch.py:351:main", "Process 7001 exits successfully.")]


def _failed(plan: Plan, moment: Moment) -> list[Text]:
    """What the launcher says when a worker is dead; a scheduler's kill leaves it no time."""
    codes = {"crash": 1, "nan": 1, "oom": 1, "hang": -6, "killed": -9}
    if moment.kind not in codes:
        return []
    where = "launch.py:325:sigkill_handler"
    command = "['/usr/bin/python3', '-u', 'train.py', '--local_rank=7']"
    return [
        _launch(moment, where.replace("325", "319"), "Killing subprocess 7001"),
        _launch(moment, where, f"{command} exits with return code = {codes[moment.kind]}", "ERROR"),
    ]


def _silent(plan: Plan, moment: Moment) -> list[Text]:
    return []


DEEPSPEED = Layout(
    clock="stamps",
    resolution=1e-3,
    wait_in_step=False,
    has_timers=False,
    start_line=False,
    measures=frozenset({"checkpoint"}),
    names=frozenset({"checkpoint"}),
    failures=frozenset(
        {"crash", "oom", "hang", "preempted", "time_limit", "node_failure", "killed", "silent"}
    ),
    lines={
        "process": _process,
        "initialized": _initialized,
        "load_start": _load_start,
        "load_end": _load_end,
        "load_none": _silent,
        "built": _silent,
        "training": _silent,
        "step": _step,
        "eval_start": _silent,
        "eval_end": _silent,
        "save_start": _save_start,
        "save_end": _save_end,
        "finished": _finished,
        "failure": failure,
        "launcher": _failed,
    },
)
