"""The printed TFLOP/s against the computed one: which convention explains the ratio, and is it to be trusted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from logmfu.errors import OptionError
from logmfu.flops import CONVENTIONS, Convention, ModelShape, flops_per_token
from logmfu.flops.bugs import known_bugs
from logmfu.flops.count import Recompute

Kind = Literal[
    "equal", "attention", "hardware", "version", "experts", "unit", "recompute", "packed", "unexplained"
]
"""Why the printed number is not the computed one.

``equal``       it is
``attention``   attention is counted in half
``hardware``    recomputation is in it
``version``     the formula of that version leaves something out or miscounts it
``experts``     the same, for a mixture of experts
``unit``        a factor of 1000, of the number of devices, of 2 or of 3
``recompute``   it fits another recomputation than the one that was stated
``packed``      less attention than the sequence length has: packed documents, counted by their own lengths
``unexplained`` nothing known fits: a warning
"""
TOLERANCE = 0.005
"""Relative difference within which two numbers are the same; printed digits are not worth more."""
_EXPERT_FEATURES = {"experts", "expert layer pattern", "expert size", "shared experts"}


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a printed TFLOP/s is."""

    convention: str | None
    """The convention that reproduces it, the stated one if that does."""
    ratio: float
    """Printed / computed (canonical model FLOPs, full attention)."""
    explanation: str
    trusted: bool
    """The printed number is right for what it claims to count; else use the computed one."""
    candidates: tuple[str, ...]
    """Every convention looked at that reproduces it."""
    kind: Kind
    attention: str
    """``full``, ``half``, ``none`` or ``unknown``: attention in the printed number."""
    counts: str
    """``model``, ``hardware`` or ``unknown``."""
    computed_tflops: float


@dataclass(frozen=True, slots=True)
class _Printed:
    """A printed number and the run it is about, per token."""

    per_token: float
    shape: ModelShape
    seq_len: float
    recompute: str | None
    """``None`` when it is not stated."""
    devices: int
    tolerance: float

    def fits(self, per_token: float) -> bool:
        return per_token > 0 and abs(self.per_token / per_token - 1) <= self.tolerance

    @property
    def settings(self) -> tuple[str, ...]:
        """Recomputation settings the run may have had, the plainest first."""
        return (self.recompute,) if self.recompute else get_args(Recompute)

    def predicted(self, convention: Convention, recompute: str | None = None) -> float:
        again = recompute or self.recompute or "none"
        return convention.flops_per_token(self.shape, self.seq_len, recompute=again)

    def explained_by(self, convention: Convention) -> str | None:
        """The recomputation with which a convention gives the number; ``None`` when it does with none."""
        tried = self.settings if convention.counts == "hardware" else self.settings[:1]
        return next((again for again in tried if self.fits(self.predicted(convention, again))), None)

    def canonical(self, attention: str) -> float:
        return flops_per_token(self.shape, self.seq_len, attention=attention)


def compare(
    logged_tflops: float,
    step_time_s: float,
    *,
    shape: ModelShape,
    seq_len: float,
    batch: float,
    devices: int,
    recompute: str | None = None,
    convention: str | None = None,
    candidates: Sequence[str] | str = (),
    tolerance: float = TOLERANCE,
) -> Comparison:
    """Explain a printed TFLOP/s per device by the convention behind it.

    ``convention`` is the one the log states; else ``candidates`` (a list, or names between commas), or all that
    programs print, are tried. ``recompute`` is ``None`` when nobody states it. ``batch`` sequences of ``seq_len``
    tokens make a step of ``step_time_s``. Raises :class:`OptionError` on numbers that cannot be.
    """
    for name, value in {
        "step_time_s": step_time_s,
        "batch": batch,
        "devices": devices,
        "seq_len": seq_len,
    }.items():
        if not value > 0:
            raise OptionError(f"{name} is {value}, and must be above zero")
    tokens_per_s = batch * seq_len / step_time_s / devices
    if not (tokens_per_s > 0 and flops_per_token(shape, seq_len, attention="full") > 0):
        raise OptionError("a step of no tokens, or a model of no FLOPs, cannot be compared")
    printed = _Printed(logged_tflops * 1e12 / tokens_per_s, shape, seq_len, recompute, devices, tolerance)
    found = _explained(printed, _stated(convention, candidates))
    return replace(found, computed_tflops=printed.canonical("full") * tokens_per_s / 1e12)


def _stated(convention: str | None, candidates: Sequence[str] | str) -> list[Convention]:
    """What the program that wrote the log may print."""
    listed = candidates.split(",") if isinstance(candidates, str) else candidates
    names = [convention] if convention else [name.strip() for name in listed]
    return [CONVENTIONS[name] for name in names if name in CONVENTIONS]


def _explained(printed: _Printed, stated: list[Convention]) -> Comparison:
    """The first explanation that fits: as stated, an earlier bug, another convention, recomputation or unit."""
    matched = _fitting(printed, stated)
    if matched:
        return _matched(printed, matched)
    others = _fitting(printed, [convention for convention in CONVENTIONS.values() if convention.logged])
    if others and not stated:
        return _matched(printed, others)
    for found in (_known_bug(printed), _recomputed(printed, stated), _unit(printed, stated)):
        if found and not (others and found.kind == "unit"):
            return found
    if others:
        return _another(printed, stated, others)
    halved = [convention for convention in CONVENTIONS.values() if convention.attention == "half"]
    return _packed(printed, stated or halved) or _unexplained(printed, stated)


def _fitting(printed: _Printed, conventions: list[Convention]) -> list[Convention]:
    return [convention for convention in conventions if printed.explained_by(convention)]


def _matched(printed: _Printed, matched: list[Convention]) -> Comparison:
    again = printed.explained_by(matched[0]) or "none"
    kind, explanation = _reason(replace(printed, recompute=again), matched[0])
    if printed.recompute is None and matched[0].counts == "hardware":
        explanation = f"{explanation}; the recomputation is not stated, and {again} fits"
    return Comparison(
        convention=matched[0].name,
        ratio=printed.per_token / printed.canonical("full"),
        explanation=explanation,
        trusted=kind in {"equal", "attention", "hardware"},
        candidates=tuple(convention.name for convention in matched),
        kind=kind,
        attention=_common(convention.attention for convention in matched),
        counts=_common(convention.counts for convention in matched),
        computed_tflops=0.0,
    )


def _reason(printed: _Printed, convention: Convention) -> tuple[Kind, str]:
    """Why this convention's number is not the canonical one, if it is not."""
    predicted, full, half = (
        printed.predicted(convention),
        printed.canonical("full"),
        printed.canonical("half"),
    )
    same = replace(printed, per_token=predicted)
    hardware = CONVENTIONS["canonical"].hardware_flops_per_token(
        printed.shape, printed.seq_len, recompute=printed.recompute
    )
    if same.fits(full):
        return "equal", f"equal to the computed model FLOPs, attention in full ({convention.name})"
    if convention.counts == "hardware" and printed.recompute != "none" and same.fits(hardware):
        text = f"recomputation ({printed.recompute}) is in the printed number: it is hardware FLOPs"
        return "hardware", f"{text}, {predicted / full:.3f} times the model's ({convention.name})"
    if convention.attention == "half" and same.fits(half):
        return (
            "attention",
            f"attention is counted in half, {predicted / full:.3f} of the full count ({convention.name})",
        )
    return _miscounted(printed, convention, predicted / full)


def _miscounted(printed: _Printed, convention: Convention, share: float) -> tuple[Kind, str]:
    missed = convention.not_counted(printed.shape)
    kind: Kind = "experts" if _EXPERT_FEATURES & set(missed) else "version"
    what = f"does not count, or miscounts, {', '.join(missed)}" if missed else "counts otherwise"
    recomputed = convention.counts == "hardware" and printed.recompute != "none"
    also = "; recomputation is in it" if recomputed else ""
    return (
        kind,
        f"{convention.name} {what}: {share:.3f} of the computed model FLOPs{also}; use the computed number",
    )


def _known_bug(printed: _Printed) -> Comparison | None:
    for again in printed.settings:
        for name, per_token in known_bugs(printed.shape, printed.seq_len, again):
            if printed.fits(per_token):
                return _other(printed, "version", f"as printed by {name}; use the computed number")
    return None


def _recomputed(printed: _Printed, stated: list[Convention]) -> Comparison | None:
    """Another recomputation than the stated one; without a stated one nothing can contradict it."""
    for convention in stated if printed.recompute else ():
        for other in get_args(Recompute):
            if convention.counts == "hardware" and printed.fits(printed.predicted(convention, other)):
                text = f"{convention.name} gives this number with recomputation {other}, not {printed.recompute} as stated"
                return replace(
                    _other(printed, "recompute", text), convention=convention.name, counts="hardware"
                )
    return None


def _unit(printed: _Printed, stated: list[Convention]) -> Comparison | None:
    """A factor between the printed number and the first stated convention's."""
    factors = {
        1000.0: "GFLOP/s labelled as TFLOP/s, or milliseconds taken as seconds",
        0.001: "PFLOP/s labelled as TFLOP/s",
        float(printed.devices): "the whole job's figure, not one device's",
        1 / printed.devices: "divided by the number of devices twice",
        0.5: "multiply-accumulates counted as one FLOP",
        1 / 3: "the forward pass alone",
    }
    for convention in stated[:1] or [CONVENTIONS["canonical"]]:
        for factor, text in factors.items():
            if factor != 1 and printed.fits(printed.predicted(convention) * factor):
                return _other(
                    printed, "unit", f"{factor:.6g} times the number of {convention.name}: {text}"
                )
    return None


def _packed(printed: _Printed, stated: list[Convention]) -> Comparison | None:
    """Between no attention and the causal half: the length that documents inside a sequence would need to have."""
    for convention in stated:
        bare = convention.flops_per_token(printed.shape, printed.seq_len, attention="none")
        whole = printed.predicted(convention)
        if convention.attention == "half" and bare < printed.per_token < whole:
            length = printed.seq_len * (printed.per_token - bare) / (whole - bare)
            text = f"{printed.per_token / whole:.3f} of {convention.name}: documents of about {length:.0f} tokens packed into"
            text = f"{text} sequences of {printed.seq_len:.0f} would print this; the computed number counts whole sequences"
            return _other(printed, "packed", text)
    return None


def _another(printed: _Printed, stated: list[Convention], others: list[Convention]) -> Comparison:
    """Another convention fits than the stated ones: said, and not trusted."""
    found = _matched(printed, others)
    was = ", ".join(convention.name for convention in stated) or "the stated convention"
    text = f"not what {was} prints; {found.explanation}"
    return replace(found, explanation=text, trusted=False)


def _unexplained(printed: _Printed, stated: list[Convention]) -> Comparison:
    ratios = [f"{printed.per_token / printed.predicted(one):.3f} of {one.name}" for one in stated]
    share = printed.per_token / printed.canonical("full")
    others = ", ".join(ratios) or "and what the program counts is not known"
    text = f"not explained: {share:.3f} of the computed model FLOPs, {others}"
    return _other(
        printed,
        "unexplained",
        f"{text}; a wrong shape, batch ramp-up, padding or packed data would do this",
    )


def _other(printed: _Printed, kind: Kind, explanation: str) -> Comparison:
    ratio = printed.per_token / printed.canonical("full")
    return Comparison(None, ratio, explanation, False, (), kind, "unknown", "unknown", 0.0)


def _common(names: Iterator[str]) -> str:
    """The one name all agree on, else ``unknown``."""
    found = set(names)
    return found.pop() if len(found) == 1 else "unknown"
