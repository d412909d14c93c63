"""MFU and HFU as series and in figures, with their denominator.

MFU = model FLOPs per second and device / peak (PaLM, arXiv:2204.02311, appendix B); HFU counts recomputed
FLOPs too. What a program printed and what is computed from shape, batch and step time stay apart: ``basis``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from logmfu.analysis.intervals import Array, Timeline, median
from logmfu.analysis.options import Options, grade
from logmfu.analysis.peak import Denominator
from logmfu.analysis.printed import Printed, printed
from logmfu.analysis.rates import Computed, batches, column, compute, sequence_lengths, spread
from logmfu.report import Utilization

ABOVE_PEAK = 1.0
OUTSIDE = 1.02
"""Steps may take this much of the wall clock before part of them is taken to lie outside the log (stamps are rounded)."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Everything about utilization: the two figures, and the series behind them."""

    mfu: Utilization
    hfu: Utilization
    mfu_series: Array
    hfu_series: Array
    tflops: Array
    """Model TFLOP/s per device of each row, as logged, else computed."""
    tokens_per_s: Array
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """The series a figure is made of."""

    tflops: Array
    basis: Literal["logged", "computed"]
    attention: str
    convention: str | None


def choose(
    logged: Printed, computed: Computed | str, facts: Mapping[str, Any], options: Options
) -> tuple[Choice | None, str]:
    """The model TFLOP/s to build MFU on, or a sentence why there is none.

    As logged, when the program counts model FLOPs, its number can be trusted, and no other attention
    count is asked for; else computed.
    """
    as_logged = options.attention == "logged" or options.attention == logged.attention
    if logged.there and logged.counts != "hardware" and as_logged and logged.trusted:
        return Choice(logged.tflops, "logged", logged.attention, logged.convention), ""
    wanted = "half" if options.attention == "half" else "full"
    if isinstance(computed, Computed):
        return Choice(computed.model(wanted), "computed", wanted, "canonical"), ""
    if logged.there and logged.counts == "hardware":
        if facts.get("recompute") == "none" and as_logged:
            return Choice(logged.tflops, "logged", logged.attention, logged.convention), ""
        return (
            None,
            f"the printed FLOPs contain recomputation (that is HFU), and MFU cannot be computed: {computed}",
        )
    if logged.there:
        return None, (
            f"the log counts attention {logged.attention}, {options.attention} was asked for, "
            f"and it cannot be computed: {computed}"
        )
    return None, f"the log prints no FLOP/s, and they cannot be computed: {computed}"


def utilizations(
    line: Timeline,
    steps: pd.DataFrame,
    facts: Mapping[str, Any],
    options: Options,
    under: Denominator,
    recounted: Sequence[int],
) -> Numbers:
    """MFU and HFU of a run. ``recounted``: rows from which on the program counts in another way."""
    computed = compute(line, steps, facts)
    logged = printed(line, steps, facts, computed, recounted)
    chosen, why_not = choose(logged, computed, facts, options)
    known = computed if isinstance(computed, Computed) else None
    mfu = _explained(_figure(chosen, under, why_not, options, known), logged, computed)
    hfu_tflops = _hardware_tflops(chosen, logged, computed, facts)
    hfu = _hardware(hfu_tflops, chosen, logged, under, _no_hardware(chosen, computed, facts, mfu))
    return Numbers(
        mfu,
        hfu,
        _series(chosen.tflops if chosen else None, under, mfu, len(line)),
        _series(hfu_tflops, under, hfu, len(line)),
        chosen.tflops if chosen else logged.tflops,
        _tokens(line, steps, facts),
        (*(under.notes if mfu.spread or hfu.spread else ()), *_warnings(logged)),
    )


def _explained(mfu: Utilization, logged: Printed, computed: Computed | str) -> Utilization:
    found = logged.comparison
    if found is None and mfu.basis == "logged" and isinstance(computed, str):
        return replace(mfu, explanation=f"the printed number could not be checked: {computed}")
    if found is None:
        return mfu
    return replace(mfu, logged_over_computed=found.ratio, explanation=found.explanation)


def _warnings(logged: Printed) -> tuple[str, ...]:
    found = logged.comparison
    if found is None or found.trusted:
        return ()
    if not logged.trusted:
        return (f"the printed TFLOP/s is not used for MFU: {found.explanation}",)
    return (f"the printed TFLOP/s is not what the arguments of the run give: {found.explanation}",)


def _figure(
    chosen: Choice | None, under: Denominator, why_not: str, options: Options, computed: Computed | None
) -> Utilization:
    if chosen is None:
        return Utilization(why_not=why_not if under.peak else f"{why_not}; also: {under.why_not}")
    bare = Utilization(basis=chosen.basis, attention=chosen.attention, convention=chosen.convention)
    if under.peak is None:
        return replace(bare, why_not=under.why_not)
    values = spread(chosen.tflops / under.peak.tflops)
    if values is None:
        return replace(bare, why_not="no line has a usable number")
    if values.median > ABOVE_PEAK:
        return replace(bare, peak=under.peak, why_not=_above(values.median, chosen, under))
    return replace(
        bare,
        spread=values,
        grade=grade(values.median, options.grade_bands),
        peak=under.peak,
        alternatives=_alternatives(chosen, under, computed),
    )


def _above(share: float, chosen: Choice, under: Denominator) -> str:
    peak = under.peak
    assert peak is not None  # noqa: S101 - the caller has it
    size = f"{share:.0%} of peak" if share < 1000 else "more than 1000 times the peak"
    return (
        f"{size} is impossible: {median(chosen.tflops):.1f} TFLOP/s per device against {peak.tflops:g} "
        f"({peak.device}, {peak.precision}). Likely causes: another accelerator (--gpu), another precision (--precision), "
        "or a program that prints FLOP/s of the whole job, or in other units"
    )


def _alternatives(chosen: Choice, under: Denominator, computed: Computed | None) -> dict[str, float]:
    """The same figure under other attention counts and other peaks of the device."""
    assert under.peak is not None  # noqa: S101 - the caller has it
    found: dict[str, float] = {}
    if computed is not None:
        for attention in ("full", "half"):
            values = spread(computed.model(attention) / under.peak.tflops)
            if values:
                found[f"computed, attention {attention}"] = values.median
    usual = median(chosen.tflops) if under.others else 0.0
    found.update({f"against the {name}": usual / tflops for name, tflops in under.others.items()})
    return found


def _hardware_tflops(
    chosen: Choice | None, logged: Printed, computed: Computed | str, facts: Mapping[str, Any]
) -> Array | None:
    """Hardware TFLOP/s per device: as printed where the program counts them, else model plus recomputation."""
    if logged.counts == "hardware" and logged.there and logged.trusted:
        return logged.tflops
    recompute = facts.get("recompute")
    if recompute == "none":
        return chosen.tflops if chosen else None
    if recompute is None or isinstance(computed, str) or chosen is None:
        return None
    attention = "half" if chosen.attention == "half" else "full"
    hard = computed.hardware(attention)
    return None if hard is None else chosen.tflops * hard / computed.model(attention)


def _hardware(
    tflops: Array | None, chosen: Choice | None, logged: Printed, under: Denominator, why_not: str
) -> Utilization:
    if tflops is None:
        return Utilization(why_not=why_not)
    if under.peak is None:
        return Utilization(why_not=under.why_not)
    values = spread(tflops / under.peak.tflops)
    if values is None or values.median > ABOVE_PEAK:
        reason = (
            "no line has a usable number"
            if values is None
            else f"{values.median:.0%} of peak is impossible, see MFU"
        )
        return Utilization(peak=under.peak, why_not=reason)
    if logged.counts == "hardware" and tflops is logged.tflops:
        return Utilization(
            spread=values,
            basis="logged",
            attention=logged.attention,
            convention=logged.convention,
            peak=under.peak,
        )
    return Utilization(
        spread=values,
        basis=chosen.basis if chosen else "computed",
        attention=chosen.attention if chosen else None,
        convention=chosen.convention if chosen else None,
        peak=under.peak,
    )


def _no_hardware(
    chosen: Choice | None, computed: Computed | str, facts: Mapping[str, Any], mfu: Utilization
) -> str:
    if facts.get("recompute") is None:
        if facts.get("recompute_note"):
            return str(facts["recompute_note"])
        return "the log does not state the recompute setting: give --set recompute=none|full|selective"
    if chosen is None:
        return mfu.why_not or "there is no MFU to build on"
    return str(computed) if isinstance(computed, str) else "the recompute setting is not understood"


def _series(tflops: Array | None, under: Denominator, figure: Utilization, rows: int) -> Array:
    """Utilization of each row; rows above 100 % are no utilization and left out."""
    if tflops is None or under.peak is None or figure.spread is None:
        return np.broadcast_to(np.nan, rows)
    share = tflops / under.peak.tflops
    share[share > ABOVE_PEAK] = np.nan
    return share


def _tokens(line: Timeline, steps: pd.DataFrame, facts: Mapping[str, Any]) -> Array:
    """Tokens per second of the whole job: printed, else batch times sequence length over step time."""
    printed = column(steps, "tokens_per_s")
    if np.isfinite(printed).any():
        return printed
    per_device, devices = column(steps, "tokens_per_s_gpu"), facts.get("world_size")
    if np.isfinite(per_device).any() and devices:
        return per_device * float(devices)
    tokens = batches(line, facts) * sequence_lengths(steps, facts)
    tokens /= line.step_time_s
    return tokens


def effective(series: Array, line: Timeline, surviving: Array) -> float | None:
    """Utilization over the wall clock: work of surviving steps over the whole of it.

    ``surviving`` is the part of each interval's steps that counts (0 to 1). ``None`` where the steps took longer
    than the wall clock the log covers: their beginning is outside the log.
    """
    with np.errstate(invalid="ignore"):  # an interval of unknown length is NaN, and no work
        seconds = line.step_time_s * line.iterations
        seconds *= surviving
        work = series * seconds
    work[np.isnan(work)] = 0.0
    inside = 0 < np.nansum(seconds) <= line.total_s * OUTSIDE
    return float(work.sum() / line.total_s) if inside and np.isfinite(series).any() else None
