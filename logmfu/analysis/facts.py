"""The facts an analysis works with: those of the log, with the caller's on top."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import numpy as np
import pandas as pd

from logmfu import hardware
from logmfu.analysis.account import EVERYTHING
from logmfu.analysis.intervals import Timeline
from logmfu.analysis.options import Options
from logmfu.report import FactLine
from logmfu.tables import Facts, Run

RUN_FACTS = (
    "run_name", "job_id", "world_size", "accelerator", "precision", "global_batch_size", "micro_batch_size", "seq_len",
    "tensor_parallel", "pipeline_parallel", "virtual_pipeline", "data_parallel", "context_parallel", "expert_parallel",
    "grad_accumulation", "train_steps", "log_interval", "save_interval", "eval_interval", "async_save", "recompute",
    "framework_version", "params", "params_active",
)  # fmt: skip
MODEL_FACTS = (
    "layers", "hidden", "ffn", "heads", "kv_heads", "head_dim", "glu", "vocab", "tied_embeddings", "experts",
    "router_topk", "moe_ffn", "shared_ffn", "moe_layers", "moe_latent", "mtp_layers", "mla", "q_lora_rank",
    "kv_lora_rank", "qk_nope_dim", "qk_rope_dim", "v_head_dim", "attention_gate", "window", "hybrid_pattern",
)  # fmt: skip


def gathered(run: Run, options: Options) -> Facts:
    """The log's facts, with those the caller gave on top."""
    facts = Facts()
    for name in run.facts:
        for stated in run.facts.history(name):
            facts.add(name, *stated)
    if options.gpu:
        facts.add("accelerator", hardware.find(options.gpu) or options.gpu)
    own = {"world_size": options.world_size, "seq_len": options.seq_len, "precision": options.precision}
    given = {**options.facts, **{name: value for name, value in own.items() if value is not None}}
    for name, value in given.items():
        if value is not None:
            facts.add(name, value)
    precision = facts.get("precision")
    if isinstance(precision, str) and (known := hardware.precision_of(precision)):
        facts.add("precision", known, *facts.where("precision")[1:])
    return facts


def step_time_includes(facts: Facts) -> frozenset[str]:
    """Pauses the printed step time contains; all of them when the log does not say."""
    stated = facts.get("step_time_includes")
    if stated is None:
        return EVERYTHING
    return frozenset(part.strip() for part in str(stated).split(",") if part.strip())


def planned_steps(line: Timeline, steps: pd.DataFrame, facts: Facts) -> dict[int, int]:
    """Last planned step of each attempt, as its step lines or the arguments say."""
    stated = facts.get("train_steps")
    default = stated if isinstance(stated, int) else None
    totals = steps["total_steps"].to_numpy(dtype=float, na_value=np.nan)
    found: dict[int, int] = {}
    for number in range(1, len(line.starts) + 1):
        printed = totals[line.rows(number)]
        known = printed[~np.isnan(printed)]
        total = int(known[-1]) if len(known) else default
        if len(printed) and total is not None:
            found[number] = total
    return found


def run_name(run: Run, facts: Facts) -> str:
    """Short name for titles: the one the log states, else its first file's."""
    stated = facts.get("run_name")
    if stated:
        return str(stated)
    first = run.inputs[0].path if run.inputs else "-"
    return "standard input" if first == "-" else PurePath(first).name


def properties(facts: Facts) -> dict[str, Any]:
    """What identifies the run and its model; six keys are always there."""
    known = {name: facts[name] for name in RUN_FACTS if facts.get(name) is not None}
    model = {name: facts[name] for name in MODEL_FACTS if facts.get(name) is not None}
    always = {
        name: facts.get(name)
        for name in (
            "world_size",
            "accelerator",
            "precision",
            "global_batch_size",
            "seq_len",
            "log_interval",
        )
    }
    return {**always, **known, "model": model}


def lines(facts: Facts) -> tuple[FactLine, ...]:
    """Every fact with the line that says it."""
    found = []
    for name in facts:
        value, path, number = facts.where(name)
        found.append(FactLine(name, value, path, number, "log" if path else "option"))
    return tuple(found)


def warnings(facts: Facts) -> list[str]:
    """What the log's own facts warn of."""
    return [str(facts[name]) for name in facts if name.endswith("_note")]
