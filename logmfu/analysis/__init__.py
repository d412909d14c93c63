"""From the tables of a run to a report: pure functions of tables and options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import numpy as np
import pandas as pd

from logmfu import hardware
from logmfu.analysis import (
    account,
    attempts,
    changes,
    costs,
    incidents,
    intervals,
    ledger,
    marks,
    mfu,
    pace,
    peak,
    periods,
    rows,
    stalls,
    suspects,
    waits,
    window,
    words,
)  # fmt: skip
from logmfu.analysis.options import Options
from logmfu.errors import OptionError
from logmfu.report import (
    Coverage,
    Evidence,
    FactLine,
    Incident,
    InputFile,
    NearMiss,
    Profile,
    Report,
    Stall,
    Utilization,
)
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


def analyze(run: Run, **options: Any) -> Report:
    """Analyse a run; the keyword arguments are the fields of :class:`logmfu.analysis.options.Options`.

    Raises ``OptionError`` for an option that does not exist.
    """
    unknown = set(options) - set(Options.__dataclass_fields__)
    if unknown:
        raise OptionError(
            f"there is no option {', '.join(sorted(unknown))}",
            hint=", ".join(sorted(Options.__dataclass_fields__)),
        )
    return report(run, Options(**options))


def report(run: Run, options: Options) -> Report:
    """The report of a run under the given options."""
    run = window.window(run, options.since, options.until)
    facts = _facts(run, options)
    line = intervals.timeline(run)
    events, timers = rows.events(run.events), rows.timers(run.timers)
    found_saves = marks.saves(events)
    all_marks = marks.pause_marks(line, events, timers, found_saves)
    found_waits = waits.data_waits(line, timers)
    rhythm = _pace(line, all_marks, found_waits, facts)
    book = account.account(line, rhythm, all_marks, found_waits, _includes(facts))
    inside = account.EVERYTHING if line.step_clock == "stamps" else _includes(facts)
    periods.name_by_period(book, facts, {mark.kind for mark in all_marks}, inside)
    steps = run.steps[run.steps["step"].notna()].reset_index(drop=True)
    tries = attempts.attempts(
        line,
        events,
        found_saves,
        origin=run.start,
        no_loss=changes.without_loss(line, steps),
        planned=_planned(steps, facts),
    )
    around = ledger.surroundings(book, tries, all_marks, incidents.watchdog_hangs(events))
    seconds = ledger.totals(book, tries, around)
    devices = facts.get("world_size")
    entries = ledger.ledger(seconds, line.total_s, devices=devices, price=options.gpu_hour_price)
    numbers = mfu.utilizations(line, steps, facts, options, peak.denominator(facts, options))
    found = stalls.stalls(book, around, origin=run.start, devices=devices)
    moved = changes.changes(line, rhythm, steps, timers)
    trouble = incidents.incidents(events, origin=run.start)
    surviving = _surviving(line, tries)
    costs_of_saves = costs.save_summary(book, found_saves, all_marks, tries)
    productive = next((entry.share for entry in entries if entry.kind == "productive"), 0.0)
    use = _with_effective(numbers, line, surviving)
    return Report(
        name=_name(run, facts),
        inputs=tuple(InputFile(file.path, file.bytes, file.lines, file.note) for file in run.inputs),
        parser=run.parser,
        parser_title=run.parser_title,
        run=_run(facts),
        facts=_fact_lines(facts),
        clock=line.clock,
        utc_offset=run.utc_offset if options.utc_offset is None else options.utc_offset,
        start=run.start if line.clock == "timestamps" else None,
        end=None if line.clock != "timestamps" or run.start is None else run.start + line.total_s,
        wall_clock_s=line.total_s if line.clock != "none" else None,
        step_count=len(run.steps),
        first_step=_step(steps, 0),
        last_step=_step(steps, -1),
        step_time_s=mfu.spread(mfu.column(steps, "step_time_s")) or mfu.spread(line.step_time_s),
        mfu=use,
        hfu=numbers.hfu,
        attempts=tuple(tries),
        ledger=entries,
        goodput=productive if line.total_s > 0 and (line.step_clock != "none" or not len(line)) else None,
        stalls=found,
        changes=moved,
        incidents=trouble,
        saves=costs_of_saves,
        data_wait=costs.data_wait_summary(book, found_waits),
        suspects=suspects.suspects(book, timers, found_waits, entries, use, numbers.hfu, facts),
        profiles=_profiles(run),
        coverage=_coverage(run),
        notes=(*run.notes, *line.notes, *numbers.notes, *_notes(facts)),
        losses=words.losses(entries, found, tries, costs_of_saves),
        series=_series(line, steps, numbers, surviving),
        tokens_per_s=mfu.spread(numbers.tokens_per_s),
        tflops_per_gpu=mfu.spread(mfu.column(steps, "tflops_per_gpu_logged")) or mfu.spread(numbers.tflops),
        gpu_hour_price=options.gpu_hour_price,
        options=options.given(),
        tripped=_tripped(
            options, use.spread.median if use.spread else None, use.why_not, found, trouble, tries
        ),
    )


def _facts(run: Run, options: Options) -> Facts:
    """The log's facts, with those the caller gave on top."""
    facts = Facts()
    for name in run.facts:
        for stated in run.facts.history(name):
            facts.add(name, *stated)
    given = {
        **options.facts,
        "world_size": options.world_size,
        "seq_len": options.seq_len,
        "precision": options.precision,
    }
    for name, value in given.items():
        if value is not None:
            facts.add(name, value)
    precision = facts.get("precision")
    if isinstance(precision, str) and (known := hardware.precision_of(precision)):
        facts.add("precision", known, *facts.where("precision")[1:])
    return facts


def _planned(steps: pd.DataFrame, facts: Facts) -> dict[int, int]:
    """Last planned step of each attempt, as its step lines or the arguments say."""
    stated = facts.get("train_steps")
    default = stated if isinstance(stated, int) else None
    last = steps.groupby("attempt")["total_steps"].last()
    totals = last.to_numpy(dtype=float, na_value=np.nan)
    found = {
        int(number): default if np.isnan(total) else int(total)
        for number, total in zip(last.index.tolist(), totals, strict=True)
    }
    return {number: total for number, total in found.items() if total is not None}


def _includes(facts: Facts) -> frozenset[str]:
    """Pauses the printed step time contains; all of them when the log does not say."""
    stated = facts.get("step_time_includes")
    if stated is None:
        return account.EVERYTHING
    return frozenset(part.strip() for part in str(stated).split(",") if part.strip())


def _pace(
    line: intervals.Timeline, found: list[marks.Mark], found_waits: waits.Waits, facts: Facts
) -> pace.Pace:
    """The run's pace, over intervals that no pause inside the step time disturbs."""
    clean = ~line.first & np.isfinite(line.step_time_s)
    inside = account.EVERYTHING if line.step_clock == "stamps" else _includes(facts)
    for mark in found:
        if mark.place == "interval" and (mark.kind in inside or mark.kind not in account.PAUSES):
            clean[mark.row] = False
    if found_waits.known:
        clean &= ~(found_waits.excess() > 0.05 * np.nan_to_num(line.step_time_s, nan=np.inf))
    return pace.pace(line.step_time_s, line.batch, line.iterations, clean)


def _surviving(line: intervals.Timeline, tries: list[Any]) -> intervals.Array:
    """Part of each interval's steps that was not done again."""
    share = np.ones(len(line))
    for attempt in tries:
        mine = line.attempt == attempt.number
        share[mine] = 1.0 - ledger.lost_share(line, attempt)[mine]
    return share


def _with_effective(
    numbers: mfu.Numbers, line: intervals.Timeline, surviving: intervals.Array
) -> Utilization:
    return replace(numbers.mfu, effective=mfu.effective(numbers.mfu_series, line, surviving))


def _name(run: Run, facts: Facts) -> str:
    stated = facts.get("run_name")
    if stated:
        return str(stated)
    first = run.inputs[0].path if run.inputs else "-"
    return "standard input" if first == "-" else PurePath(first).name


def _run(facts: Facts) -> dict[str, Any]:
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


def _fact_lines(facts: Facts) -> tuple[FactLine, ...]:
    lines = []
    for name in facts:
        value, path, number = facts.where(name)
        lines.append(FactLine(name, value, path, number, "log" if path else "option"))
    return tuple(lines)


def _step(steps: pd.DataFrame, at: int) -> int | None:
    return int(steps["step"].iloc[at]) if len(steps) else None


def _profiles(run: Run) -> tuple[Profile, ...]:
    found = []
    for profile in run.profiles:
        step = profile.figures.get("step")
        found.append(
            Profile(
                step=int(step) if isinstance(step, int | float) else None,
                flops_per_gpu=_profiled(profile.figures),
                figures=profile.figures,
                evidence=(Evidence(profile.path, profile.line),),
            )
        )
    return tuple(found)


def _profiled(figures: Mapping[str, Any]) -> float | None:
    """FLOP/s of one device as printed, else factor x forward FLOPs / iteration latency."""
    if figures.get("FLOPS_per_gpu") is not None:
        return float(figures["FLOPS_per_gpu"])
    parts = [figures.get(name) for name in ("flops_factor", "fwd_flops_per_gpu", "iter_latency_s")]
    if any(not isinstance(part, int | float) or part <= 0 for part in parts):
        return None
    factor, forward, latency = (float(part) for part in parts if part is not None)
    return factor * forward / latency


def _coverage(run: Run) -> Coverage:
    counts = run.coverage
    examples = tuple(
        NearMiss(miss.path, miss.line, miss.rule, miss.reason, miss.text) for miss in counts.examples
    )
    return Coverage(counts.lines, counts.matched, counts.near_misses, counts.other, examples)


def _notes(facts: Facts) -> list[str]:
    """What the log's own facts warn of."""
    return [str(facts[name]) for name in facts if name.endswith("_note")]


def _series(
    line: intervals.Timeline, steps: pd.DataFrame, numbers: mfu.Numbers, surviving: intervals.Array
) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "step": line.step,
            "time": steps["time"],
            "elapsed_s": line.end_s,
            "step_time_s": line.step_time_s,
            "iterations": line.iterations,
            "mfu": numbers.mfu_series,
            "hfu": numbers.hfu_series,
            "tflops_per_gpu": numbers.tflops,
            "tokens_per_s": numbers.tokens_per_s,
            "loss": mfu.column(steps, "loss"),
            "attempt": line.attempt,
            "lost": surviving < 0.5,
            "path": steps["path"],
            "line": line.line,
        }
    )


def _tripped(
    options: Options, median: float | None, why_not: str | None,
    found: tuple[Stall, ...], trouble: tuple[Incident, ...], tries: list[Any],
) -> tuple[str, ...]:  # fmt: skip
    """Gates that were asked for and not met. An MFU that is not known does not pass."""
    out = []
    if options.min_mfu is not None and (median is None or median < options.min_mfu):
        shown = f"not known ({why_not})" if median is None else f"{median:.1%}"
        out.append(f"MFU is {shown}, --min-mfu asks for {options.min_mfu:.1%}")
    for kind in options.fail_on:
        count = (
            sum(s.kind == kind for s in found)
            + sum(i.kind == kind for i in trouble)
            + sum(a.exit == kind for a in tries)
        )
        if count:
            out.append(f"{kind} was found {count} time(s), --fail-on asks for none")
    return tuple(out)
