"""Invented logs of any size for the speed benchmark: step lines of Megatron-LM core 0.12 in noise of many ranks."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
STEP_S = 5.125
STAMP = b"@stamp@"
"""Stands in noise lines for the time of the step they follow."""
NOISE = 4000
"""Different noise lines; they are drawn again and again."""
HEAD = """\
using world size: 1024, data-parallel size: 64, context-parallel size: 1, hierarchical context-parallel sizes: Nonetensor-model-parallel size: 8, pipeline-model-parallel size: 2
------------------------ arguments ------------------------
  global_batch_size ............................... 1024
  hidden_size ..................................... 8192
  log_interval .................................... 1
  num_attention_heads ............................. 64
  num_layers ...................................... 80
  seq_length ...................................... 4096
-------------------- end of arguments ---------------------
[before the start of training step] datetime: 2026-01-02 03:04:05
"""


def step_line(step: int, moment: datetime, draw: random.Random) -> str:
    """One iteration line; its numbers vary in value and in width."""
    seconds = draw.gauss(STEP_S, 0.03)
    if draw.random() < 0.001:
        seconds *= 4
    loss = 2.0 + 9.0 / (1.0 + step / 500.0) + draw.gauss(0.0, 0.02)
    return (
        f" [{moment:%Y-%m-%d %H:%M:%S}] iteration {step:8d}/ 5000000 | consumed samples: {step * 1024:12d} | "
        f"elapsed time per iteration (ms): {seconds * 1e3:.1f} | throughput per GPU (TFLOP/s/GPU): {2150 / seconds:.1f} | "
        f"learning rate: {3e-4 * min(1.0, step / 2000.0):.6E} | global batch size: {1024:5d} | lm loss: {loss:.6E} | loss scale: 1.0 | "
        f"grad norm: {abs(draw.gauss(0.6, 0.2)):.3f} | num zeros: {draw.randrange(10**8, 10**9)} | "
        "number of skipped iterations:   0 | number of nan iterations:   0 |\n"
    )


def noise_lines(draw: random.Random) -> list[bytes]:
    """What the other ranks and the libraries write."""
    shapes = (
        lambda: f"node-{draw.randrange(128)}:{draw.randrange(9999)}:{draw.randrange(9999)} [{draw.randrange(8)}] NCCL INFO Channel {draw.randrange(32):02d}/0 : {draw.randrange(1024)}[{draw.randrange(8)}] -> {draw.randrange(1024)}[{draw.randrange(8)}] via P2P/CUMEM/read",
        lambda: f"[default{draw.randrange(8)}]:{STAMP.decode()},{draw.randrange(1000):03d} INFO data.loader: shard {draw.randrange(4096)} of 4096 opened, {draw.randrange(10**9)} tokens left in this epoch",
        lambda: f"[rank{draw.randrange(1024)}]: prefetch queue {draw.randrange(64)} deep, batch {draw.randrange(10**6)} built in {draw.random() * 90:.2f} ms on worker {draw.randrange(16)}",
        lambda: f"  attention kernel: flash, heads {draw.randrange(64)}, head dim 128, causal, dropout 0.0, {draw.randrange(10**6)} calls, deterministic False, split {draw.randrange(8)}",
        lambda: "/opt/venv/lib/python3.12/site-packages/torch/utils/checkpoint.py:86: UserWarning: None of the inputs have requires_grad, gradients will be none",
        lambda: f"moe router: expert {draw.randrange(128)} took {draw.randrange(10**5)} tokens, capacity {draw.randrange(10**5)}, aux {draw.random():.6f}, z {draw.random():.6f}, step bias {draw.random():.8f}",
    )  # fmt: skip
    return [(draw.choice(shapes)() + "\n").encode() for _ in range(NOISE)]


def chunks(steps: int, *, noise: int, seed: int = 7) -> Iterator[bytes]:
    """A log with ``noise`` other lines per step line."""
    draw = random.Random(seed)
    yield HEAD.encode()
    moment, step = START, 0
    while step < steps:
        others = noise_lines(draw) if noise else []
        out: list[bytes] = []
        for _ in range(min(2000, steps - step)):
            step += 1
            moment += timedelta(seconds=STEP_S)
            out.append(step_line(step, moment, draw).encode())
            if noise:
                at = draw.randrange(NOISE - noise)
                stamp = f"{moment:%Y-%m-%d %H:%M:%S}".encode()
                out.append(b"".join(others[at : at + noise]).replace(STAMP, stamp))
        yield b"".join(out)


def deepspeed_lines(step: int, moment: datetime, draw: random.Random) -> str:
    """The step line and the throughput line."""
    rate, lr = 2048 / draw.gauss(STEP_S, 0.03), 3e-4 / (1 + step / 1e4)
    head = f"[{moment:%Y-%m-%d %H:%M:%S},{draw.randrange(1000):03d}] [INFO]"
    return (
        f"{head} [logging.py:128:log_dist] [Rank 0] step={step}, skipped={step // 5000}, lr=[{lr!r}], mom=[[0.9, 0.95]]\n"
        f"{head} [timer.py:264:stop] epoch=0/micro_step={step * 4}/global_step={step}, RunningAvgSamplesPerSec={rate!r}, "
        f"CurrSamplesPerSec={rate + draw.gauss(0, 1)!r}, MemAllocated=2.17GB, MaxMemAllocated=16.05GB\n"
    )


def timer_lines(step: int, moment: datetime, draw: random.Random) -> str:
    """The step line, and the wall-clock breakdown of ten timers in two lines."""
    head = (
        f"[{moment:%Y-%m-%d %H:%M:%S},{draw.randrange(1000):03d}] [INFO] [logging.py:128:log_dist] [Rank 0]"
    )
    inner = " | ".join(
        f"{name}_microstep: {draw.uniform(1, 999):.2f}"
        for name in ("fwd", "bwd", "bwd_inner", "bwd_allreduce", "step")
    )
    outer = inner.replace("_microstep", "")
    return f"{head} step={step}, skipped=0, lr=[0.0003], mom=[[0.9, 0.95]]\n{head} time (ms) | {inner}\n{head} time (ms) | {outer}\n"


TIMERS = {
    "forward-backward": 0.95, "forward-compute": 0.31, "backward-compute": 0.6, "batch-generator": 0.0005,
    "forward-recv": 0.02, "forward-send": 0.002, "backward-recv": 0.02, "backward-send": 0.002,
    "layernorm-grads-all-reduce": 0.001, "embedding-grads-all-reduce": 0.003, "all-grads-sync": 0.01,
    "optimizer-copy-to-main-grad": 0.001, "optimizer-clip-main-grad": 0.002, "optimizer-inner-step": 0.01,
    "optimizer-copy-main-to-model-params": 0.001, "optimizer": 0.02,
}  # fmt: skip
"""Share of a step of each timer."""


def timer_block_lines(step: int, moment: datetime, draw: random.Random) -> str:
    """The step line, and the block that ``--timing-log-level 2`` prints behind it."""
    lines = [step_line(step, moment, draw), "(min, max) time across ranks (ms):\n"]
    for name, share in TIMERS.items():
        least = draw.gauss(1e3 * STEP_S * share, 50 * share)
        lines.append(f"    {name + ' ':.<48}: ({least:.2f}, {least * draw.uniform(1, 1.02):.2f})\n")
    return "".join(lines)


def saving_lines(step: int, moment: datetime, draw: random.Random) -> str:
    """The step line, and every fifty steps a checkpoint."""
    if step % 50:
        return step_line(step, moment, draw)
    return (
        step_line(step, moment, draw)
        + f"saving checkpoint at iteration {step:7d} to /data/checkpoints in torch_dist format\n"
        + f"  successfully saved checkpoint from iteration {step:7d} to /data/checkpoints\n"
        + f"(min, max) time across ranks (ms):\n    save-checkpoint {'.' * 31}: ({draw.uniform(9e3, 1e4):.2f}, {draw.uniform(1e4, 2e4):.2f})\n"
    )


def megatron_deepspeed_lines(step: int, moment: datetime, draw: random.Random) -> str:
    """The iteration line of the last rank, and DeepSpeed's step line."""
    seconds, lr = draw.gauss(STEP_S, 0.03), 3e-4 / (1 + step / 1e4)
    return (
        f"[default7]: iteration {step:8d}/  500000 | consumed samples: {step * 256:12d} | consumed tokens: {step * 524288:12d} | "
        f"elapsed time per iteration (ms): {seconds * 1e3:.1f} | learning rate: {lr:.3E} | global batch size:   256 | "
        f"lm loss: {draw.uniform(2, 3):.6E} | loss scale: 1.0 | grad norm: {draw.uniform(0.1, 2):.3f} | actual seqlen:  2048 | "
        "number of skipped iterations:   0 | number of nan iterations:   0 | "
        f"samples per second: {256 / seconds:.3f} | tokens per gpu per second (tgs): {32768 / seconds:.3f} | TFLOPs: {750 / seconds:.2f} |\n"
        f"[default0]:[{moment:%Y-%m-%d %H:%M:%S},{draw.randrange(1000):03d}] [INFO] [logging.py:68:log_dist] [Rank 0] "
        f"step={step}, skipped=0, lr=[{lr!r}, {lr!r}], mom=[(0.9, 0.95), (0.9, 0.95)]\n"
    )


Lines = Callable[[int, datetime, random.Random], str]
LAYOUTS: dict[str, Lines] = {
    "megatron": step_line,
    "megatron-timers": timer_block_lines,
    "megatron-saves": saving_lines,
    "megatron-deepspeed": megatron_deepspeed_lines,
    "deepspeed": deepspeed_lines,
    "deepspeed-timers": timer_lines,
}


def write_lines(path: Path, lines: Lines, steps: int, *, seed: int = 7) -> Path:
    """A log of nothing but lines about steps, unless it is there already."""
    if not path.exists():
        draw = random.Random(seed)
        with path.open("w") as file:
            for step in range(1, steps + 1):
                file.write(lines(step, START + timedelta(seconds=step * STEP_S), draw))
    return path


def write(path: Path, steps: int, *, noise: int, seed: int = 7) -> Path:
    """The log as a file, unless it is there already."""
    if not path.exists():
        partial = path.with_suffix(".partial")
        with partial.open("wb") as file:
            file.writelines(chunks(steps, noise=noise, seed=seed))
        partial.rename(path)
    return path
