"""Megatron-LM, core 0.6 to 0.15 (stamps in whole seconds) and core 0.16 and later (microseconds)."""

from __future__ import annotations

import math
from functools import partial

from writers.failures import failure, torchrun
from writers.layout import Layout, Moment, Row, Text, dotted, micros_stamp, seconds_stamp
from writers.plan import Eval, Plan, Save


def layers(plan: Plan) -> int:
    """Layers, from the seed: the shape must not matter."""
    return 16 + 8 * (plan.seed % 5)


def arguments(plan: Plan, extra: dict[str, object] | None = None) -> dict[str, object]:
    """The arguments every era dumps, under their names."""
    save, evaluation = plan.one(Save), plan.one(Eval)
    return dict(
        sorted(
            {
                "bf16": True,
                "data_parallel_size": plan.world_size // 8,
                "eval_interval": evaluation.every if evaluation else 1000000,
                "eval_iters": 10,
                "ffn_hidden_size": 14336,
                "fp16": False,
                "global_batch_size": plan.batch,
                "hidden_size": 4096,
                "log_interval": plan.log_interval,
                "micro_batch_size": 1,
                "num_attention_heads": 32,
                "num_layers": layers(plan),
                "pipeline_model_parallel_size": 2,
                "save": "/ckpt/run" if save else None,
                "save_interval": save.every if save else None,
                "seq_length": plan.seq_len,
                "tensor_model_parallel_size": 4,
                "train_iters": plan.steps,
                "world_size": plan.world_size,
                **(extra or {}),
            }.items()
        )
    )


def dump(rows: dict[str, object], width: int = 48, header: str = "-" * 24) -> list[Text]:
    """The argument block."""
    lines = [f"{header} arguments {header}", *(dotted(name, value, width) for name, value in rows.items())]
    return [Text(line) for line in [*lines, "-" * 20 + " end of arguments " + "-" * 21]]


def _process(plan: Plan, moment: Moment, *, micros: bool) -> list[Text]:
    sizes = (
        f"using world size: {plan.world_size}, data-parallel size: {plan.world_size // 8}, context-parallel size: 1, "
        "hierarchical context-parallel sizes: None, tensor-model-parallel size: 4, pipeline-model-parallel size: 2"
    )
    save = plan.one(Save)
    extra = {
        "async_save": save.asynchronous if save else None,
        "group_query_attention": True,
        "kv_channels": 128,
        "log_throughput": True,
        "num_query_groups": 8,
        "swiglu": True,
        "timing_log_level": 2 if plan.timers else 0,
        "untie_embeddings_and_output_weights": True,
    }
    padded = " > padded vocab (size: 128000) with 256 dummy tokens (new size: 128256)"
    first = (
        _datetime("after in-process setup and before initialize_megatron", moment, micros) if micros else []
    )
    return [Text(sizes), *dump(arguments(plan, extra)), Text(padded), *first]


def _datetime(what: str, moment: Moment, micros: bool) -> list[Text]:
    stamp = micros_stamp if micros else seconds_stamp
    return [Text(f"[{what}] datetime: {stamp(moment.time)} ", stamped=True)]


def _initialized(plan: Plan, moment: Moment, *, micros: bool) -> list[Text]:
    spent = Text(f"time to initialize megatron (seconds): {plan.initialise:.3f}")
    return [spent, *_datetime("after megatron is initialized", moment, micros)]


def _built(plan: Plan, moment: Moment, *, micros: bool) -> list[Text]:
    what = "after model, optimizer, and learning rate scheduler are built"
    building = Text("> building train, validation, and test datasets ...")
    return [*_datetime(what, moment, micros), building]


def _training(plan: Plan, moment: Moment, *, micros: bool) -> list[Text]:
    return [
        *_datetime("after dataloaders are built", moment, micros),
        Text("done with setup ..."),
        Text("training ..."),
        *_datetime("before the start of training step", moment, micros),
    ]


def no_checkpoint(plan: Plan, moment: Moment) -> list[Text]:
    """Nothing to load."""
    if plan.one(Save) is None:
        return []
    where = "/ckpt/run/latest_checkpointed_iteration.txt"
    return [
        Text(f"WARNING: could not find the metadata file {where}"),
        Text("    will not load any checkpoints and will start from random"),
    ]


def _load_start(plan: Plan, moment: Moment) -> list[Text]:
    return [Text(f" loading distributed checkpoint from /ckpt/run at iteration {moment.step}")]


def _load_end(plan: Plan, moment: Moment, *, micros: bool) -> list[Text]:
    return [
        Text(" checkpoint version 3.0"),
        Text(
            f"  successfully loaded checkpoint from /ckpt/run [ t 1/4, p 1/2 ] at iteration {moment.step}"
        ),
        *_block({"load-checkpoint": moment.seconds * 1000}, plan, micros=micros),
    ]


def _block(timers: dict[str, float], plan: Plan, *, micros: bool) -> list[Text]:
    """A block of timers; milliseconds, least and most over ranks."""
    prefix = "INFO:megatron.core.timers:" if micros else ""
    rows = [
        f"    {name} {'.' * (47 - len(name))}: ({value * 0.998:.2f}, {value:.2f})"
        for name, value in timers.items()
    ]
    last = plan.world_size - 1
    return [Text(line, rank=last) for line in [f"{prefix}(min, max) time across ranks (ms):", *rows]]


def step_timers(plan: Plan, row: Row) -> dict[str, float]:
    """Per-step timers in ms: sums over the interval, divided by the log interval whatever it covered."""
    busy = 1000 * row.busy / plan.log_interval
    wait = 1000 * row.wait / plan.log_interval + 0.0004 * 1000 * plan.step_time
    work = busy - 1000 * row.wait / plan.log_interval
    return {
        "forward-backward": busy - 0.04 * work,
        "forward-compute": 0.31 * work,
        "backward-compute": 0.60 * work,
        "batch-generator": wait,
        "all-grads-sync": 0.012 * work,
        "optimizer": 0.02 * work,
    }


def _step(plan: Plan, moment: Moment, *, micros: bool) -> list[Text]:
    row = moment.row
    loss = "" if row.loss is None else f" lm loss: {row.loss:.6E} |"
    stamp = micros_stamp(moment.time) if micros else seconds_stamp(moment.time)
    tflops = plan.tflops * plan.step_time * row.batch / plan.batch / row.mean
    line = (
        f" [{stamp}] iteration {row.step:8d}/{plan.steps:8d} | consumed samples: {row.consumed:12d} |"
        f" elapsed time per iteration (ms): {row.mean * 1000:.1f} | throughput per GPU (TFLOP/s/GPU): {tflops:.1f} |"
        f" learning rate: 1.200000E-04 | global batch size: {row.batch:5d} |{loss} loss scale: 1.0 |"
        f" grad norm: {'nan' if row.loss is None else f'{0.4 + 1 / (1 + row.step / 50):.3f}'} |"
        f" number of skipped iterations: {row.skipped:3d} | number of nan iterations: {row.nan:3d} |"
    )
    block = _block(step_timers(plan, row), plan, micros=micros) if plan.timers else []
    return [Text(line, stamped=True, rank=plan.world_size - 1), *block]


def validation(plan: Plan, step: int, *, prefix: str = " ") -> list[Text]:
    """The three lines of an evaluation result."""
    loss = 2.1 + 8.0 * math.exp(-step / 400)
    what = f"{prefix}validation loss at iteration {step}"
    line = f"{what} | lm loss value: {loss:.6E} | lm loss PPL: {math.exp(min(20, loss)):.6E} | "
    dashes = "-" * (len(line) + 1)
    return [Text(text, rank=plan.world_size - 1) for text in (dashes, line, dashes)]


def _eval_end(plan: Plan, moment: Moment, *, micros: bool) -> list[Text]:
    return [
        *_block({"evaluate": moment.seconds * 1000}, plan, micros=micros),
        *validation(plan, moment.step),
    ]


def _stamp(moment: Moment, micros: bool) -> str:
    return f"[{micros_stamp(moment.time)}] " if micros else ""


def _save_start(plan: Plan, moment: Moment, *, micros: bool) -> list[Text]:
    line = f"{_stamp(moment, micros)}saving checkpoint at iteration {moment.step:7d} to /ckpt/run in torch_dist format"
    return [Text(line, stamped=micros)]


def _saved(moment: Moment, *, micros: bool) -> Text:
    head = f"  {_stamp(moment, micros)}successfully saved checkpoint from iteration {moment.step:7d}"
    return Text(f"{head} to /ckpt/run [ t 1/4, p 1/2 ]", stamped=micros)


def _save_end(plan: Plan, moment: Moment, *, micros: bool) -> list[Text]:
    block = _block({"save-checkpoint": moment.seconds * 1000}, plan, micros=micros)
    return [_saved(moment, micros=micros), *block]


def _save_scheduled(plan: Plan, moment: Moment, *, micros: bool) -> list[Text]:
    line = f"  {_stamp(moment, micros)}scheduled an async checkpoint save at iteration {moment.step:7d} to /ckpt/run"
    block = _block({"save-checkpoint": moment.seconds * 1000}, plan, micros=micros)
    return [Text(line, stamped=micros), *block]


def _save_done(plan: Plan, moment: Moment, *, micros: bool) -> list[Text]:
    return [_saved(moment, micros=micros)]


def _finished(plan: Plan, moment: Moment, *, micros: bool) -> list[Text]:
    return _datetime("after training is done", moment, micros)


def silent(plan: Plan, moment: Moment) -> list[Text]:
    """A moment this framework does not print about."""
    return []


def _layout(*, micros: bool) -> Layout:
    timed = {
        "process": _process,
        "initialized": _initialized,
        "load_end": _load_end,
        "built": _built,
        "training": _training,
        "step": _step,
        "eval_end": _eval_end,
        "save_start": _save_start,
        "save_scheduled": _save_scheduled,
        "save_end": _save_end,
        "save_done": _save_done,
        "finished": _finished,
    }
    return Layout(
        clock="stamps",
        resolution=1e-6 if micros else 1.0,
        first_line=micros,
        measures=frozenset({"checkpoint", "evaluation"}),
        names=frozenset({"checkpoint", "evaluation"}),
        lines={
            "load_start": _load_start,
            "load_none": no_checkpoint,
            "eval_start": silent,
            "failure": failure,
            "launcher": torchrun,
            **{name: partial(function, micros=micros) for name, function in timed.items()},
        },
    )


SECONDS = _layout(micros=False)
MICROS = _layout(micros=True)
