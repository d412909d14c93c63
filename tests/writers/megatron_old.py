"""The era without stamps on step lines: Megatron-LM 2.x, Megatron-DeepSpeed, BigScience, GPT-NeoX.

Their step time contains evaluation and saves. GPT-NeoX prints no time at all and divides by the log interval
whatever the interval covered; its saves are not announced (DeepSpeed's own lines are left out here).
"""

from __future__ import annotations

import math
from dataclasses import replace

from writers.failures import failure, torchrun
from writers.layout import Layout, Moment, Text, seconds_stamp
from writers.megatron import arguments, dump, layers, no_checkpoint, silent, step_timers, validation
from writers.plan import Eval, Plan, Save


def _datetime(what: str, moment: Moment) -> Text:
    return Text(f"[{what}] datetime: {seconds_stamp(moment.time)} ", stamped=True)


def _process(plan: Plan, moment: Moment) -> list[Text]:
    sizes = (
        f"using world size: {plan.world_size}, data-parallel-size: {plan.world_size // 8}, "
        "tensor-model-parallel size: 4, pipeline-model-parallel size: 2 "
    )
    padded = " > padded vocab (size: 50257) with 431 dummy tokens (new size: 50688)"
    return [Text(sizes), *dump(arguments(plan)), Text(padded)]


def _process_mds(plan: Plan, moment: Moment) -> list[Text]:
    head, *rest = _process(plan, moment)
    extra = {"deepspeed": True, "num_experts": [1], "num_key_value_heads": 32, "topk": 1, "zero_stage": 1}
    return [head, *dump(arguments(plan, extra)), rest[-1]]


def _initialized(plan: Plan, moment: Moment) -> list[Text]:
    spent = Text(f"time to initialize megatron (seconds): {plan.initialise:.3f}")
    return [spent, _datetime("after megatron is initialized", moment)]


def _one_line(timers: dict[str, float], plan: Plan) -> Text:
    parts = " | ".join(f"{name}: {value:.2f}" for name, value in timers.items())
    return Text(f"time (ms) | {parts}", rank=plan.world_size - 1)


def _load_start(plan: Plan, moment: Moment) -> list[Text]:
    return [Text(f" loading checkpoint from /ckpt/run at iteration {moment.step}")]


def _load_end(plan: Plan, moment: Moment) -> list[Text]:
    return [
        Text(" checkpoint version 3.0"),
        Text(f"  successfully loaded checkpoint from /ckpt/run at iteration {moment.step}"),
        _one_line({"load-checkpoint": moment.seconds * 1000}, plan),
    ]


def _built(plan: Plan, moment: Moment) -> list[Text]:
    return [_datetime("after model, optimizer, and learning rate scheduler are built", moment)]


def _training(plan: Plan, moment: Moment) -> list[Text]:
    return [
        _datetime("after dataloaders are built", moment),
        Text("done with setup ..."),
        Text("training ..."),
        _datetime("before the start of training step", moment),
    ]


def _step_old(plan: Plan, moment: Moment) -> list[Text]:
    row = moment.row
    loss = "" if row.loss is None else f" lm loss: {row.loss:.6E} |"
    line = (
        f" iteration {row.step:8d}/{plan.steps:8d} | consumed samples: {row.consumed:12d} |"
        f" elapsed time per iteration (ms): {row.mean * 1000:.1f} | learning rate: 1.200E-04 |"
        f" global batch size: {row.batch:5d} |{loss} loss scale: 1.0 | grad norm: 0.876 |"
        f" number of skipped iterations: {row.skipped:3d} | number of nan iterations: {row.nan:3d} |"
    )
    return [Text(line, rank=plan.world_size - 1), *_timers(plan, moment)]


def _timers(plan: Plan, moment: Moment) -> list[Text]:
    if not plan.timers:
        return []
    timers = step_timers(plan, moment.row)
    names = ("forward-compute", "backward-compute", "optimizer", "batch-generator")
    return [_one_line({name: timers[name] for name in names}, plan)]


def _step_mds(plan: Plan, moment: Moment) -> list[Text]:
    row = moment.row
    loss = "" if row.loss is None else f" lm loss: {row.loss:.6E} |"
    samples = row.batch / row.mean
    tflops = plan.tflops * plan.step_time * row.batch / plan.batch / row.mean
    line = (
        f" iteration {row.step:8d}/{plan.steps:8d} | consumed samples: {row.consumed:12d} |"
        f" consumed tokens: {row.consumed * plan.seq_len:12d} |"
        f" elapsed time per iteration (ms): {row.mean * 1000:.1f} | learning rate: 3.000E-04 |"
        f" global batch size: {row.batch:5d} |{loss} loss scale: 1.0 | grad norm: 1.234 |"
        f" actual seqlen: {plan.seq_len:5d} |"
        f" number of skipped iterations: {row.skipped:3d} | number of nan iterations: {row.nan:3d} |"
        f" samples per second: {samples:.3f} |"
        f" tokens per gpu per second (tgs): {samples * plan.seq_len / plan.world_size:.3f} | TFLOPs: {tflops:.2f} |"
    )
    return [Text(line, rank=plan.world_size - 1), *_timers(plan, moment)]


def _step_bigscience(plan: Plan, moment: Moment) -> list[Text]:
    row = moment.row
    loss = "" if row.loss is None else f" lm loss: {row.loss:.6E} |"
    tflops = plan.tflops * plan.step_time * row.batch / plan.batch / row.mean
    line = (
        f" iteration {row.step:8d}/{plan.steps:8d} | consumed samples: {row.consumed:12d} |"
        f" consumed tokens: {row.consumed * plan.seq_len:12d} |"
        f" elapsed time per iteration (s): {row.mean:.2f} | learning rate: 6.000E-05 |"
        f" global batch size: {row.batch:5d} |{loss} grad norm: 0.234 | num zeros: 0.0 |"
        f" number of skipped iterations: {row.skipped:3d} | number of nan iterations: {row.nan:3d} |"
        f" samples per second: {row.batch / row.mean:.3f} | TFLOPs: {tflops:.2f} |"
    )
    return [Text(line, rank=plan.world_size - 1), *_timers(plan, moment)]


def _eval_end(plan: Plan, moment: Moment) -> list[Text]:
    return validation(plan, moment.step)


def _eval_bigscience(plan: Plan, moment: Moment) -> list[Text]:
    lines = validation(plan, moment.step)
    return [text._replace(text=text.text.replace(" validation loss", "valid loss")) for text in lines]


def _save_start(plan: Plan, moment: Moment) -> list[Text]:
    return [Text(f"saving checkpoint at iteration {moment.step:7d} to /ckpt/run")]


def _save_end(plan: Plan, moment: Moment) -> list[Text]:
    return [
        Text(f"  successfully saved checkpoint at iteration {moment.step:7d} to /ckpt/run"),
        _one_line({"save-checkpoint": moment.seconds * 1000}, plan),
    ]


def _save_mds(plan: Plan, moment: Moment) -> list[Text]:
    size = 14 * layers(plan) * 0.22
    cost = f"Checkpoint Save GB: {size:.1f}, GB/Sec: {size / moment.seconds:.2f}, Latency(second): {moment.seconds:.3f}"
    return [Text(f"  successfully saved checkpoint at iteration {moment.step:7d} to /ckpt/run"), Text(cost)]


def _finished(plan: Plan, moment: Moment) -> list[Text]:
    return [_datetime("after training is done", moment)]


def _process_neox(plan: Plan, moment: Moment) -> list[Text]:
    save, evaluation = plan.one(Save), plan.one(Eval)
    rows = {
        "eval_interval": evaluation.every if evaluation else 1000,
        "hidden_size": 4096,
        "log_interval": plan.log_interval,
        "num_attention_heads": 32,
        "num_layers": layers(plan),
        "save_interval": save.every if save else None,
        "seq_length": plan.seq_len,
        "train_batch_size": plan.batch,
        "train_iters": plan.steps,
        "world_size": plan.world_size,
    }
    lines = [f"{dotted_neox(name, value)}updated" for name, value in rows.items()]
    head, end = "-" * 20 + " arguments " + "-" * 20, "-" * 15 + " end of arguments " + "-" * 16
    return [Text(line) for line in [head, *lines, end]]


def dotted_neox(name: str, value: object) -> str:
    """One row of GPT-NeoX's argument dump, up to the word at its end."""
    return f"  {name} {'.' * (32 - len(name))} {value}".ljust(64, ".")


def _load_neox(plan: Plan, moment: Moment) -> list[Text]:
    return [Text(f"Loading checkpoint and starting from iteration {moment.step}")]


def _training_neox(plan: Plan, moment: Moment) -> list[Text]:
    return [Text("done with setups ..."), Text("training ...")]


def _step_neox(plan: Plan, moment: Moment) -> list[Text]:
    row = moment.row
    loss = "" if row.loss is None else f" lm_loss: {row.loss:.6E} |"
    tflops = plan.tflops * plan.step_time * row.batch / plan.batch / row.mean
    line = (
        f" samples/sec: {row.batch / row.mean:.3f} | iteration {row.step:8d}/{plan.steps:8d} |"
        f" elapsed time per iteration (ms): {row.mean * 1000:.1f} | learning rate: 2.500E-04 |"
        f" approx flops per GPU: {tflops:.1f}TFLOPS |{loss} loss scale: 4096.0 |"
        f" number of skipped iterations: {row.skipped:3d} | number of nan iterations: {row.nan:3d} |"
    )
    return [Text(line)]


def _eval_neox(plan: Plan, moment: Moment) -> list[Text]:
    loss = 2.1 + 8.0 * math.exp(-moment.step / 400)
    what = f" validation results at iteration {moment.step}"
    line = f"{what} | lm_loss value: {loss:.6E} | lm_loss_ppl value: {math.exp(min(20, loss)):.6E} | "
    return [Text(text) for text in ("-" * len(line), line, "-" * len(line))]


MEGATRON_2 = Layout(
    clock="anchored",
    resolution=1.0,
    includes_pauses=True,
    measures=frozenset({"checkpoint"}),
    names=frozenset({"checkpoint", "evaluation"}),
    failures=frozenset({"crash", "oom", "preempted", "time_limit", "node_failure", "killed", "silent"}),
    lines={
        "process": _process,
        "initialized": _initialized,
        "load_start": _load_start,
        "load_end": _load_end,
        "load_none": no_checkpoint,
        "built": _built,
        "training": _training,
        "step": _step_old,
        "eval_start": silent,
        "eval_end": _eval_end,
        "save_start": _save_start,
        "save_end": _save_end,
        "finished": _finished,
        "failure": failure,
        "launcher": torchrun,
    },
)
MEGATRON_DEEPSPEED = replace(
    MEGATRON_2,
    failures=MEGATRON_2.failures | {"hang"},
    lines={**MEGATRON_2.lines, "process": _process_mds, "step": _step_mds, "save_end": _save_mds},
)
BIGSCIENCE = replace(
    MEGATRON_2, lines={**MEGATRON_2.lines, "step": _step_bigscience, "eval_end": _eval_bigscience}
)
GPT_NEOX = Layout(
    clock="none",
    resolution=1e-4,
    includes_pauses=True,
    per_interval=True,
    has_timers=False,
    save_lines=False,
    finish_line=False,
    measures=frozenset(),
    names=frozenset({"evaluation"}),
    periods=frozenset({"checkpoint"}),
    failures=frozenset({"crash", "oom", "killed", "silent"}),
    lines={
        "process": _process_neox,
        "initialized": silent,
        "load_start": silent,
        "load_end": _load_neox,
        "load_none": silent,
        "built": silent,
        "training": _training_neox,
        "step": _step_neox,
        "eval_start": silent,
        "eval_end": _eval_neox,
        "save_start": silent,
        "save_end": silent,
        "finished": silent,
        "failure": failure,
        "launcher": silent,
    },
)
