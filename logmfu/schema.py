"""The table of columns, events and facts: name, type, unit, meaning.

The documentation, the dtype checks, ``logmfu schema`` and the parser kit read it; nothing repeats it.
"""

from __future__ import annotations

from typing import NamedTuple


class Column(NamedTuple):
    """One column of a table. ``dtype`` is a pandas dtype name."""

    name: str
    dtype: str
    unit: str
    meaning: str


STEPS: tuple[Column, ...] = (
    Column("step", "Int64", "", "number of the last finished step this line reports, as printed"),
    Column("total_steps", "Int64", "", "planned number of steps"),
    Column("time", "datetime64[us]", "", "wall clock of the line, as printed (no zone)"),
    Column("elapsed_s", "float64", "s", "time since the first time stamp of the run"),
    Column("step_time_s", "float64", "s", "printed time per step (mean over the interval)"),
    Column("iterations", "Int64", "", "steps this line's numbers are averaged over"),
    Column(
        "tflops_per_gpu_logged", "float64", "TFLOP/s", "throughput per device as the program printed it"
    ),
    Column("tokens_per_s", "float64", "tokens/s", "whole-job tokens per second, printed"),
    Column("samples_per_s", "float64", "samples/s", "whole-job sequences per second, printed"),
    Column("global_batch_size", "Int64", "samples", "sequences per step, printed"),
    Column("loss", "float64", "", "main training loss, printed; missing where the program left it out"),
    Column("lr", "float64", "", "learning rate, printed"),
    Column("grad_norm", "float64", "", "gradient norm, printed"),
    Column("skipped", "Int64", "", "steps skipped in the interval (loss-scale overflow)"),
    Column("nan", "Int64", "", "steps with a NaN in the interval"),
    Column("attempt", "Int64", "", "number of the process start this row belongs to, from 1"),
    Column("path", "string", "", "file the row was read from"),
    Column("line", "Int64", "", "line number in that file, from 1"),
)
"""Columns every ``run.steps`` has. The framework's own and unknown fields follow them."""

MORE_STEPS: tuple[Column, ...] = (
    Column(
        "throughput_per_gpu_tflops",
        "float64",
        "TFLOP/s",
        "Megatron's throughput field under the name people use for it",
    ),
    Column("FLOPS_per_gpu", "float64", "FLOP/s", "DeepSpeed's FLOPS_per_gpu"),
    Column("consumed_samples", "Int64", "samples", "sequences seen since the beginning of training"),
    Column("consumed_tokens", "Int64", "tokens", "tokens seen since the beginning of training"),
    Column("tokens_per_s_gpu", "float64", "tokens/s", "tokens per second and device, printed"),
    Column("seq_len", "Int64", "tokens", "sequence length of this step, printed"),
    Column("loss_scale", "float64", "", "fp16 loss scale"),
    Column("mfu_logged", "float64", "1", "MFU the program printed, 0 to 1, with its own denominator"),
    Column("hfu_logged", "float64", "1", "HFU the program printed, 0 to 1, with its own denominator"),
    Column("skipped_total", "Int64", "", "steps skipped since the process started"),
    Column("mem_bytes", "float64", "bytes", "device memory in use, printed"),
    Column("mem_max_bytes", "float64", "bytes", "highest device memory in use, printed"),
    Column("energy_j", "float64", "J", "energy per step and device, printed"),
    Column("power_w", "float64", "W", "power per device, printed"),
    Column("num_zeros", "float64", "", "zeros in the gradient, printed"),
    Column("params_norm", "float64", "", "norm of the parameters, printed"),
    Column("rank", "Int64", "", "rank that printed the line, where known"),
    Column("host", "string", "", "host that printed the line, where known"),
)
"""Well-known optional columns of ``run.steps``: present when the log prints them."""

EVENT_COLUMNS: tuple[Column, ...] = (
    Column("event", "string", "", "what happened, one of the event names"),
    Column("step", "Int64", "", "step the line names, else the last step before it"),
    Column("time", "datetime64[us]", "", "wall clock of the line, as printed (no zone)"),
    Column("elapsed_s", "float64", "s", "time since the first time stamp of the run"),
    Column("seconds", "float64", "s", "duration the line itself states"),
    Column("rank", "Int64", "", "rank that printed the line or that it names"),
    Column("host", "string", "", "host that printed the line or that it names"),
    Column("text", "string", "", "the line, shortened"),
    Column("details", "object", "", "further values of the line, a dict"),
    Column("attempt", "Int64", "", "number of the process start, from 1"),
    Column("path", "string", "", "file"),
    Column("line", "Int64", "", "line number, from 1"),
)

TIMER_COLUMNS: tuple[Column, ...] = (
    Column("timer", "string", "", "name as printed"),
    Column("step", "Int64", "", "last step printed before the timer"),
    Column("time", "datetime64[us]", "", "wall clock of the line, else of the step line before it"),
    Column("seconds", "float64", "s", "duration (the longest over ranks where a range is printed)"),
    Column("min_s", "float64", "s", "shortest over ranks, where printed"),
    Column("max_s", "float64", "s", "longest over ranks, where printed"),
    Column("rank", "Int64", "", "rank that printed the line"),
    Column("attempt", "Int64", "", "number of the process start, from 1"),
    Column("path", "string", "", "file"),
    Column("line", "Int64", "", "line number, from 1"),
)

EVENTS: dict[str, str] = {
    # life of a process
    "process_start": "a training process starts: arguments dumped, distributed set up",
    "startup": "a stage of the start is done; details.stage",
    "training_start": "the training loop starts",
    "exit": "the program says it ends; details.reason: finished, interval, duration, signal, kill_switch, straggler",
    # checkpoints
    "save_start": "a checkpoint save starts",
    "save_scheduled": "an asynchronous save was handed to the background; training goes on",
    "save_end": "a checkpoint is complete and durable",
    "save_failed": "a checkpoint save failed",
    "load_start": "loading a checkpoint starts",
    "load_end": "a checkpoint was loaded; details.step is the step to go on from",
    "load_none": "no checkpoint was found; training starts from scratch",
    # evaluation
    "eval_start": "an evaluation starts",
    "eval_end": "an evaluation result",
    # steady state
    "overflow": "a step was skipped because the loss scale overflowed",
    "memory": "memory report",
    "memory_pressure": "the allocator had to flush its cache",
    "gc": "garbage collection, printed",
    "profiler": "a profiler trace was taken or written",
    "straggler": "slowest and fastest ranks, printed",
    "rerun": "result validation: an unexpected result, a rerun",
    "engine_report": "a second program's own report of the same step",
    "batch_size": "the batch size changed",
    "skip_data": "the program skipped iterations on purpose",
    # incidents: what went wrong
    "nccl_timeout": "a collective operation timed out; details.ran_for_s is how long it had run",
    "nccl_error": "a communication library reported an error",
    "heartbeat_timeout": "a watchdog itself got stuck",
    "store_timeout": "processes could not find each other, or lost the store",
    "oom": "an accelerator ran out of memory",
    "host_oom": "a process was killed because the host ran out of memory",
    "cuda_error": "an accelerator reported an error",
    "ecc_error": "uncorrectable memory error of an accelerator or host",
    "xid": "the accelerator's driver logged an Xid",
    "node_failure": "the scheduler lost a node",
    "time_limit": "the scheduler's time limit was reached",
    "preempted": "the scheduler took the allocation away or requeued the job",
    "cancelled": "the job was cancelled, no reason given",
    "killed": "a process was killed by a signal",
    "process_failed": "a launcher reports a worker that ended with an error",
    "process_exit": "a launcher reports a worker that ended well",
    "worker_restart": "an elastic launcher restarts the workers",
    "terminating": "a launcher ends the remaining workers",
    "exception": "a Python exception ended a process",
    "traceback": "a Python traceback starts",
    "segfault": "segmentation fault, bus error or abort",
    "dataloader_error": "a data-loading worker died or timed out",
    "storage_error": "a file system or disk error",
    "connection_lost": "a network connection broke",
    "nan_loss": "the loss or gradient is not a number",
    "loss_scale_floor": "the loss scale cannot be lowered any further",
    "interrupted": "interrupted from the keyboard",
    "queued": "the job waits for an allocation",
    "started": "the job got its allocation",
}
"""Names an event record may have, with their meaning."""

INCIDENTS: frozenset[str] = frozenset(list(EVENTS)[list(EVENTS).index("nccl_timeout") :]) - {
    "process_exit",
    "queued",
    "started",
}
"""Events that say something went wrong."""

FACTS: dict[str, str] = {
    # what the printed numbers mean
    "step_time_includes": "what the printed step time contains beside the steps: any of evaluation, checkpoint (comma separated), or empty",
    "flops_kind": "what the printed FLOPs are: model, hardware or unknown",
    "attention_logged": "attention in the printed FLOPs: full, half, other or unknown",
    "convention": "name of the FLOPs convention the program prints, from logmfu.flops.CONVENTIONS",
    "convention_candidates": "conventions the program may print, when the log does not say which",
    "first_line_repeated": "the first step is printed alone and counted again in the next mean",
    "unit_note": "a known error of the program's units, and what was done about it",
    "step_counter_note": "which counter the steps are taken from, where the program prints several",
    "engines_note": "several engines print the same step numbers",
    "profile_flops_kind": "what a profiler's FLOPs are: model or hardware",
    "profile_note": "what to know about a profiler's figures",
    "recompute_note": "a recomputation setting whose cost is not counted",
    "model_note": "what of a model's description was not used",
    "save_note": "what to know about the printed ends of saves",
    "world_size_note": "what to know about the world size",
    "step_time_kind": "interval_mean, single_step or running_mean",
    "printing_rank": "first, last, every or unknown: the rank that prints step lines",
    "framework_version": "version of the program, or a range",
    "logged_peak_tflops": "peak the program itself divided by",
    # the run
    "run_name": "name of the run or experiment",
    "job_id": "scheduler's job number",
    "world_size": "number of devices, as ranks",
    "accelerator": "name of the accelerator, as printed",
    "precision": "bf16, fp16, fp8, fp4, tf32 or fp32: precision of the matrix products",
    "tensor_parallel": "tensor-parallel size",
    "pipeline_parallel": "pipeline-parallel size",
    "virtual_pipeline": "virtual pipeline stages per device",
    "data_parallel": "data-parallel size",
    "context_parallel": "context-parallel size",
    "expert_parallel": "expert-parallel size",
    "micro_batch_size": "sequences per micro batch",
    "global_batch_size": "sequences per step",
    "grad_accumulation": "micro batches per step",
    "seq_len": "tokens per sequence",
    "train_steps": "planned steps",
    "log_interval": "steps between two step lines",
    "save_interval": "steps between two checkpoints",
    "eval_interval": "steps between two evaluations",
    "zero_stage": "ZeRO stage: 0 none, 1 optimizer, 2 gradients too, 3 parameters too",
    "async_save": "checkpoints are written in the background",
    "recompute": "none, full, selective or early-stop: activation recomputation",
    # the model's shape
    "layers": "transformer layers",
    "hidden": "hidden size",
    "ffn": "hidden size of the dense feed-forward block",
    "heads": "query heads",
    "kv_heads": "key/value heads (equal to heads without grouped-query attention)",
    "head_dim": "size of one head",
    "glu": "the feed-forward block is gated (three matrices)",
    "vocab": "vocabulary as the output layer sees it (padded)",
    "tied_embeddings": "input and output embedding share weights",
    "experts": "routed experts per layer",
    "router_topk": "experts per token",
    "moe_ffn": "hidden size of one expert",
    "shared_ffn": "hidden size of all shared experts together",
    "moe_layers": "which layers are mixture-of-experts: a list of 0 and 1, or a period",
    "moe_latent": "latent size of a latent mixture of experts",
    "mtp_layers": "multi-token-prediction modules",
    "mla": "multi-head latent attention",
    "q_lora_rank": "latent attention: rank of the query projection",
    "kv_lora_rank": "latent attention: rank of the key/value projection",
    "qk_nope_dim": "latent attention: head size without rotary part",
    "qk_rope_dim": "latent attention: rotary head size",
    "v_head_dim": "latent attention: value head size",
    "attention_gate": "output gate in attention",
    "window": "sliding-window size, tokens",
    "window_every": "every n-th layer attends fully, the others within the window; or a list of 0 and 1, 1 within it",
    "hybrid_pattern": "layer pattern of a hybrid model: M Mamba, G gated delta, * attention, - feed-forward, E mixture of experts",
    "mamba_state": "Mamba: state size",
    "mamba_head_dim": "Mamba: head size",
    "mamba_groups": "Mamba: groups",
    "mamba_heads": "Mamba: heads",
    "delta_every": "gated-delta attention: every n-th layer attends fully instead; or a list of 0 and 1, 1 gated delta",
    "delta_key_heads": "gated-delta attention: key heads",
    "delta_value_heads": "gated-delta attention: value heads",
    "delta_key_dim": "gated-delta attention: size of a key head",
    "delta_value_dim": "gated-delta attention: size of a value head",
    "delta_conv": "gated-delta attention: width of the convolution",
    "learned_positions": "number of learned position embeddings",
    "packed_tokens": "packed sequences: real tokens per step, the sum of the documents' lengths",
    "packed_squares": "packed sequences: sum of the squared lengths of the documents of a step",
    "params": "number of parameters",
    "params_active": "parameters active per token",
}
"""Canonical fact names. A raw argument is kept beside them as ``arg.<name>``."""

SCHEMA_ID = "logmfu.report/1"
