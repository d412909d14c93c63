"""The denominator: which peak a run is measured against, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from logmfu import hardware
from logmfu.errors import MissingFactError, OptionError
from logmfu.flops.facts import number

Facts = Mapping[str, Any]
_THOUSAND = 1000


def over_peak(tflops_per_device: float, peak: hardware.PeakRow) -> OptionError:
    """The refusal of an MFU above 100 %, with the likely causes named."""
    causes = [
        f"{tflops_per_device:.5g} TFLOP/s per device against a peak of {peak.tflops:g} ({peak.device}, {peak.precision})"
    ]
    bigger = [
        row for row in hardware.rows() if row.device == peak.device and row.tflops >= tflops_per_device
    ]
    if bigger:
        row = min(bigger, key=lambda row: row.tflops)
        causes.append(
            f"it fits this device at {row.precision} ({row.tflops:g}): is that the precision of the run?"
        )
    ratio = tflops_per_device / peak.tflops
    if 10 <= ratio <= _THOUSAND:
        causes.append(
            f"a thousandth of it would be {ratio / _THOUSAND:.1%}: a time in units of 1000 s, or GFLOP/s as TFLOP/s?"
        )
    causes.append(
        "another accelerator, whole-job figures given per device, or a first step timed before it finished would do this"
    )
    much = f"MFU of {ratio:.0%}" if ratio <= _THOUSAND else f"more than {_THOUSAND} times the peak"
    return OptionError(
        f"{much} cannot be",
        facts=causes,
        hint="--gpu, --precision, --devices, the unit of time",
    )


def slow(mfu: float | None) -> tuple[str, ...]:
    """What to say of an MFU so low that a thousand times of it is usual: the step time is in seconds."""
    if mfu is None or not 0.01 <= mfu * _THOUSAND <= 1 or mfu >= 0.001:
        return ()
    return (
        f"MFU is {mfu:.3%}: --iter-time is in seconds; given in milliseconds it would be {mfu * _THOUSAND:.1%}",
    )


def choose_peak(facts: Facts) -> tuple[hardware.PeakRow | None, tuple[str, ...]]:
    """The peak of ``peak_tflops``, else of ``accelerator`` at ``precision``, and what to say about it.

    ``None`` when neither is given. Raises :class:`MissingFactError` for a device or precision the table does not
    have, and :class:`OptionError` for a figure that is only the sparse or another precision's one.
    """
    name, figure = facts.get("accelerator"), number(facts, "peak_tflops")
    precision, notes = _precision(facts)
    if figure is not None:
        return _given_peak(figure, str(name) if name else None, precision), notes
    if not name:
        return None, ()
    row = hardware.peak(str(name), precision)
    if row is None:
        raise _no_peak(str(name), precision)
    recalled = (
        (f"the peak of {row.device} is recalled only: check it, or give --peak-tflops",)
        if row.recalled
        else ()
    )
    scope = (f"the peak is per {row.scope}: --devices has to count those",) if row.scope != "device" else ()
    return row, (*notes, *recalled, *scope)


def _precision(facts: Facts) -> tuple[str, tuple[str, ...]]:
    text = facts.get("precision")
    if not text:
        return "bf16", ("precision not given: bf16 taken",)
    precision = hardware.precision_of(str(text))
    if precision is None:
        raise OptionError(f"precision {text!r} is not known", hint=", ".join(hardware.PRECISIONS))
    return precision, ()


def _given_peak(figure: float, name: str | None, precision: str) -> hardware.PeakRow:
    if not 0 < figure < 1e6:
        raise OptionError(
            f"a peak of {figure:g} TFLOP/s cannot be", hint="--peak-tflops in TFLOP/s, as 989.4"
        )
    device = hardware.find(name) if name else None
    suspect = hardware.sparse_suspect(figure, device=device, precision=precision)
    if suspect:
        raise OptionError(
            f"{figure:g} TFLOP/s is not the dense {precision} peak",
            facts=[suspect.text],
            hint=f"--peak-tflops {suspect.dense:g}, or --precision if the products run in another one",
        )
    return hardware.PeakRow(device or name or "given", precision, figure, "given", "given", "device", "")


def _no_peak(name: str, precision: str) -> MissingFactError:
    device = hardware.find(name)
    have = [f"{row.precision} {row.tflops:g}" for row in hardware.rows() if row.device == device]
    fact = f"{device} has {', '.join(have)}" if device else hardware.explain(name)
    return MissingFactError(
        f"no {precision} peak is known for {name!r}", facts=[fact], hint="--peak-tflops X"
    )
