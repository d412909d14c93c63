"""One case by hand: a shape, a speed and a device to FLOPs, TFLOP/s, MFU and HFU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from logmfu import hardware
from logmfu.errors import LogmfuError, MissingFactError, OptionError
from logmfu.flops import inputs, modelfile, presets
from logmfu.flops.convention import Convention
from logmfu.flops.conventions import CONVENTIONS
from logmfu.flops.count import flops_per_token, packed_length, recomputed_flops, tflops
from logmfu.flops.denominator import choose_peak, over_peak, slow
from logmfu.flops.facts import flag, integer, number, positive, truth
from logmfu.flops.shape import ModelShape

Facts = Mapping[str, Any]

_LONG = 32_768
"""Sequence length from which on attention is most of the work of usual models."""
ADDED = ("flops_per_token", "flops_per_iteration", "tflops_per_device", "mfu", "hfu")
"""Columns :func:`evaluate_rows` adds."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """FLOPs and utilization of one case under one convention; ``None`` where an input is not given."""

    convention: str
    title: str
    attention: str
    recompute: str
    counts: str
    """``model`` or ``hardware``: what the printed number of this convention is."""
    flops_per_token: float | None
    """What the convention prints, per token; :attr:`model_flops_per_token` is the numerator of MFU."""
    model_flops_per_token: float | None
    hardware_flops_per_token: float | None
    flops_per_iteration: float | None
    tflops_per_device: float | None
    """Of :attr:`flops_per_token`: what the program's own log line would show."""
    model_tflops_per_device: float | None
    mfu: float | None
    hfu: float | None
    peak: hardware.PeakRow | None
    alternatives: Mapping[str, float] = field(default_factory=dict)
    """MFU counted otherwise: full and half attention, and the BF16 peak of an FP8 or FP4 run."""
    not_counted: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """What is evaluated, resolved: the shape, the tokens of a step, the speed, the peak."""

    shape: ModelShape
    seq_len: float
    tokens: float | None
    """Tokens of a step, over all devices."""
    tokens_per_s_device: float | None
    peak: hardware.PeakRow | None
    notes: tuple[str, ...]


def evaluate(facts: Facts) -> Evaluation:
    """FLOPs, TFLOP/s per device, MFU and HFU of one case.

    ``facts`` are canonical facts or flags by name, with ``iter_time`` (s) or ``tokens_per_s_per_device``,
    ``peak_tflops``, ``convention``, ``attention``, ``recompute`` and ``model`` (a file or preset).
    Raises :class:`MissingFactError` for what is missing and :class:`OptionError` for what cannot be.
    """
    merged = _merged(facts)
    if "flops" in merged or "profiled_forward_flops" in merged:
        return _measured(merged)
    return _evaluated(resolve(merged), _convention(merged), merged)


def evaluate_all(facts: Facts) -> list[Evaluation]:
    """The same case under every convention, side by side, each with its own attention.

    A convention that comes out above the peak has no MFU; the canonical one above it is refused.
    """
    merged = _merged(facts)
    if "flops" in merged or "profiled_forward_flops" in merged:
        raise OptionError("FLOPs that are given are the same under every convention", hint="a shape")
    case = resolve(merged)
    return [
        _evaluated(case, convention, merged, strict=convention.name == "canonical")
        for convention in CONVENTIONS.values()
    ]


def evaluate_rows(
    rows: list[dict[str, str]], defaults: Facts
) -> Iterator[tuple[dict[str, Any], LogmfuError | None]]:
    """Each row with :data:`ADDED` columns, and the error of a row that cannot be evaluated (its cells stay empty).

    A cell wins over ``defaults``.
    """
    for row in rows:
        cells = {name: value for name, value in row.items() if name and value not in {None, ""}}
        try:
            result = evaluate({**inputs.canonical(defaults), **inputs.canonical(cells)})
        except LogmfuError as error:
            yield {**row, **dict.fromkeys(ADDED, "")}, error
            continue
        values = {name: getattr(result, name) for name in ADDED}
        yield {**row, **{name: "" if value is None else value for name, value in values.items()}}, None


def resolve(facts: Facts) -> Case:
    """The case that canonical facts describe."""
    shape = ModelShape.from_facts(facts)
    seq_len, tokens = _tokens(facts)
    peak, notes = choose_peak(facts)
    speed = _speed(facts, tokens)
    of_model = [str(facts["model_note"])] if facts.get("model_note") else []
    said = (*_assumptions(shape), *of_model, *notes, *_cautions(seq_len, speed, peak))
    return Case(shape, seq_len, tokens, speed, peak, said)


def _merged(facts: Facts) -> dict[str, Any]:
    """What is given, on top of what the model says; combinations that cannot be are refused."""
    given = inputs.canonical(facts)
    name = given.get("model")
    alone = "flops" in given  # a shape is not even looked at
    merged = {**(model_facts(str(name)) if name and not alone else {}), **given}
    inputs.together(given, merged)
    if alone or "profiled_forward_flops" in merged:
        inputs.measured_alone(given, merged)
    return merged


def model_facts(name: str) -> dict[str, Any]:
    """Canonical facts of a preset or a model file. Raises ``OptionError`` for a name that is neither."""
    found = presets.preset(name)
    if found:
        return dict(found.facts)
    path = Path(name)
    if not path.is_file():
        raise presets.unknown(name)
    return modelfile.read(path)


def _convention(facts: Facts) -> Convention:
    name = str(facts.get("convention") or "canonical")
    if name not in CONVENTIONS:
        raise OptionError(f"convention {name!r} is not known", hint=f"one of {', '.join(CONVENTIONS)}")
    if name == "canonical" and not truth(facts.get("router", True)):
        return replace(CONVENTIONS[name], model=_without_router)
    return CONVENTIONS[name]


def _without_router(shape: ModelShape, seq_len: float, attention: str) -> float:
    return flops_per_token(shape, seq_len, attention=attention, router=False)


def _tokens(facts: Facts) -> tuple[float, float | None]:
    """The sequence length attention sees, and the tokens of a step."""
    packed, squares = number(facts, "packed_tokens"), number(facts, "packed_squares")
    if packed is not None and squares is not None:
        return packed_length(packed, squares), packed
    positive(facts, "seq_len")
    seq_len = integer(facts, "seq_len")
    if seq_len is None:
        raise MissingFactError(
            "attention needs the sequence length", facts=["missing: seq_len"], hint="--seq-len N"
        )
    batch = positive(facts, "global_batch_size")
    return seq_len, batch * seq_len if batch else None


def _speed(facts: Facts, tokens: float | None) -> float | None:
    """Tokens per second and device, from the time of a step or as given."""
    seconds, given = positive(facts, "iter_time"), positive(facts, "tokens_per_s_per_device")
    devices = inputs.devices(facts)
    if seconds and tokens and devices:
        return inputs.speed(tokens / seconds / devices, given)
    if seconds and given:
        raise OptionError(
            "a time per step and a speed are both given, and cannot be compared",
            hint="either --iter-time or --tokens-per-s-per-device",
        )
    if seconds:
        names = {"global_batch_size": tokens, "world_size": devices}
        missing = [name for name, value in names.items() if not value]
        raise MissingFactError(
            "a time per step says nothing without the tokens of a step and the devices",
            facts=[f"missing: {', '.join(missing)}"],
            hint=" ".join(f"{flag(name)} N" for name in missing),
        )
    return given


def _assumptions(shape: ModelShape) -> tuple[str, ...]:
    return (f"taken as usual: {'; '.join(shape.assumed)}",) if shape.assumed else ()


def _cautions(seq_len: float, speed: float | None, peak: hardware.PeakRow | None) -> Iterator[str]:
    if seq_len > _LONG:
        yield f"above {_LONG} tokens the full attention count can exceed what the device did: kernels skip masked blocks"
    if speed and peak is None:
        yield "no MFU without a peak: --gpu NAME or --peak-tflops X"


def _measured(facts: Facts) -> Evaluation:
    """FLOPs that are known already: ``flops`` of a step over all devices, or a profiler's forward pass.

    A profiler counts one device and micro batch; a step is three forward passes (model FLOPs).
    """
    devices, seconds = inputs.devices(facts), positive(facts, "iter_time")
    total = positive(facts, "flops")
    alone = ("devices not given: the FLOPs are taken as those of one device",) if devices is None else ()
    devices = devices or 1
    if total is None:
        forward = positive(facts, "profiled_forward_flops") or 0
        total = 3 * forward * (positive(facts, "grad_accumulation") or 1) * devices
    peak, notes = choose_peak(facts)
    rate = tflops(total / devices, seconds) if seconds is not None else None
    share = _share(rate, peak)
    return Evaluation(
        convention="given",
        title="FLOPs as given",
        attention="as given",
        recompute="as given",
        counts="model",
        flops_per_token=None,
        model_flops_per_token=None,
        hardware_flops_per_token=None,
        flops_per_iteration=total,
        tflops_per_device=rate,
        model_tflops_per_device=rate,
        mfu=share,
        hfu=None,
        peak=peak,
        notes=(*alone, *notes, *slow(share)),
    )


def _evaluated(case: Case, convention: Convention, facts: Facts, *, strict: bool = True) -> Evaluation:
    attention = str(facts.get("attention") or "") or None
    again = str(facts.get("recompute") or convention.recompute)
    # Said even where the formula has no use for it, so that a slip of the pen is not silent.
    recomputed_flops(case.shape, case.seq_len, recompute=again)
    model = convention.model_flops_per_token(case.shape, case.seq_len, attention=attention)
    executed = convention.hardware_flops_per_token(
        case.shape, case.seq_len, recompute=again, attention=attention
    )
    printed = convention.flops_per_token(case.shape, case.seq_len, recompute=again, attention=attention)
    mfu = _share(_rate(model, case), case.peak, strict=strict)
    otherwise = _otherwise(case, _rate(model, case))
    return Evaluation(
        convention=convention.name,
        title=convention.title,
        attention=attention or convention.attention,
        recompute=again,
        counts=convention.counts,
        flops_per_token=printed,
        model_flops_per_token=model,
        hardware_flops_per_token=executed,
        flops_per_iteration=printed * case.tokens if case.tokens else None,
        tflops_per_device=_rate(printed, case),
        model_tflops_per_device=_rate(model, case),
        mfu=mfu,
        hfu=_share(_rate(executed, case), case.peak, strict=strict),
        peak=case.peak,
        alternatives={name: share for name, share in otherwise.items() if share <= 1},
        not_counted=tuple(convention.not_counted(case.shape)),
        notes=(*case.notes, *slow(mfu), *_above(otherwise)),
    )


def _rate(flops_per_token: float, case: Case) -> float | None:
    speed = case.tokens_per_s_device
    return tflops(flops_per_token, 1 / speed) if speed else None


def _share(rate: float | None, peak: hardware.PeakRow | None, *, strict: bool = True) -> float | None:
    """Utilization; more than the device can do is refused, or none when not ``strict``."""
    if rate is None or peak is None:
        return None
    if rate > peak.tflops and strict:
        raise over_peak(rate, peak)
    return rate / peak.tflops if rate <= peak.tflops else None


def _above(otherwise: Mapping[str, float]) -> Iterator[str]:
    """Counts that come out above the peak: they are no utilization, and said to be none."""
    for name, share in otherwise.items():
        if share > 1 and name.startswith("canonical"):
            yield (
                f"no MFU under {name}: it is {share:.0%} of peak; a full count has masked blocks in it "
                "that kernels skip"
            )
        elif share > 1:
            yield f"no MFU {name}: narrower products do {share:.0%} of it"


def _otherwise(case: Case, model_rate: float | None) -> dict[str, float]:
    """Shares of peak with attention counted in full and in half, and against the BF16 peak of an FP8 or FP4 run."""
    if model_rate is None or case.peak is None:
        return {}
    found: dict[str, float] = {}
    for attention in ("full", "half"):
        per_token = CONVENTIONS["canonical"].model_flops_per_token(
            case.shape, case.seq_len, attention=attention
        )
        found[f"canonical, {attention} attention"] = (_rate(per_token, case) or 0.0) / case.peak.tflops
    other = hardware.peak(case.peak.device, "bf16") if case.peak.precision in {"fp8", "fp4"} else None
    if other:
        found["against the bf16 peak"] = model_rate / other.tflops
    return found
