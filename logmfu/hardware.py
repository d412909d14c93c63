"""Dense peaks of accelerators: rows with a source and with what was seen for that very number.

A peak is per *device as counted in the world size*: one GCD, one core, one die where programs count those.
The rows live in ``peaks.csv``; a peak the log prints or the user gives is better than any row here.
"""

from __future__ import annotations

import csv
import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

PRECISIONS = ("bf16", "fp16", "fp8", "fp4", "tf32", "fp32", "int8")
"""Precisions of matrix products a peak can be asked for."""

_CLOSE = 0.006
"""Two figures this near are the same one: tables round 989.4 to 989, data sheets 1978.9 to 1,979."""
_SAME = 0.001
"""The same where no device is named: of 79 devices, some sparse figure is near to any round number."""
_HARMLESS = re.compile(
    r"nvidia|amd|intel|r|tm|huawei|google|cloud|aws|instinct|tesla|geforce|rtx|tensor|core|gpus?|accelerator|"
    r"data|center|ampere|hopper|tpu|dgx|hgx|generation|edition|\d+g|\d+gi?b|hbm3e?|sxm[456]?|nvl\d+|x\d+|\d+x|\d+xlarge"
)
"""Words of a name that do not tell one device of the table from another."""
_SLICE = re.compile(r"\b(v4|v5p|v5e|v5litepod|v6e)-\d+\b")
_COUNT = re.compile(r"\b\d+x(?!large)(?=[a-z])")
_AMBIGUOUS: Mapping[frozenset[str], str] = {
    frozenset({"gfx90a"}): "gfx90a is MI210, MI250 and MI250X",
    frozenset({"gfx942"}): "gfx942 is MI300A, MI300X and MI325X",
    frozenset({"gfx950"}): "gfx950 is MI350X and MI355X",
    frozenset({"v100"}): "V100 is three parts: SXM2 125, PCIe 112 and V100S 130 TFLOP/s fp16",
    frozenset({"h100", "hbm2e"}): "an H100 with HBM2e is the PCIe part (756) or an early SXM part (989.4)",
}
_FRACTIONS = {
    "mig": "a MIG slice",
    "cpx": "a CPX partition",
    "dpx": "a DPX partition",
    "qpx": "a QPX partition",
}
_PRECISION_WORDS = (
    ("fp4", r"fp4|mxfp4|nvfp4|e2m1"),
    ("fp8", r"fp8|float8|mxfp8|e4m3|e5m2|hybrid"),
    ("int8", r"int8"),
    ("bf16", r"bf16|bfloat16"),
    ("fp16", r"fp16|float16|half"),
    ("tf32", r"tf32"),
    ("fp32", r"fp32|float32|float"),
)


@dataclass(frozen=True, slots=True)
class PeakRow:
    """Dense TFLOP/s of one device at one precision. ``evidence`` says what was seen for this number."""

    device: str
    precision: str
    tflops: float
    source: str
    evidence: str
    scope: str
    """What one row is per: device, GCD, core, die, package, chip ..."""
    note: str

    @property
    def recalled(self) -> bool:
        """Whether nothing but memory supports the number: ask before relying on it."""
        return self.evidence == "recalled only"


@dataclass(frozen=True, slots=True)
class Suspect:
    """A dense figure that a given peak is not: it is this device's sparse or other-precision one."""

    device: str
    precision: str
    sparse: bool
    dense: float
    """The dense peak of ``device`` at the precision that was asked for."""
    text: str


def rows() -> list[PeakRow]:
    """Every row of the table, in its order."""
    return list(_table()[0])


def devices() -> list[str]:
    """Names of the devices, in the order of the table."""
    return list(dict.fromkeys(row.device for row in rows()))


def aliases(device: str) -> list[str]:
    """Names a device of the table has in logs."""
    return list(_table()[1].get(device, ()))


def find(name: str) -> str | None:
    """The device of a name as printed in a log; ``None`` when unknown or ambiguous.

    A name matches when its words are those of an alias, apart from vendor, memory size and the like:
    a word that is left over (``Laptop``, ``MIG``, ``CPX``) makes it another, unknown part.
    """
    exact, by_words = _index()
    return exact.get(_squeeze(name)) or by_words.get(_words(name))


def explain(name: str) -> str:
    """Why a name is not found, with near candidates; for a name that is found, which device it is."""
    device = find(name)
    if device:
        return f"{name!r} is {device}"
    words = _words(name)
    fraction = next((_FRACTIONS[word] for word in sorted(words) if word in _FRACTIONS), "")
    if fraction:
        return f"{name!r} is {fraction}, a fraction of a device: no peak is known for it"
    ambiguous = next((text for key, text in _AMBIGUOUS.items() if key <= words), "")
    if ambiguous:
        return f"{name!r} is ambiguous: {ambiguous}"
    candidates = _near(name)
    tail = f"; near: {', '.join(candidates)}" if candidates else ""
    return f"{name!r} is not in the table of peaks{tail}"


def peak(device: str, precision: str) -> PeakRow | None:
    """The row of a device (or any alias of it) at a precision; ``None`` when there is none."""
    name = find(device)
    wanted = precision_of(precision) or precision
    return next((row for row in rows() if (row.device, row.precision) == (name, wanted)), None)


def precision_of(text: str) -> str | None:
    """The precision a text names: ``amp_bf16``, ``torch.bfloat16``, ``MXFP8``, ``FP8-CS``."""
    lowered = text.casefold()
    if lowered in PRECISIONS:
        return lowered
    return next((name for name, words in _PRECISION_WORDS if re.search(words, lowered)), None)


def sparse_suspect(tflops: float, *, device: str | None = None, precision: str = "bf16") -> Suspect | None:
    """The device and precision a too high peak looks like when it is a sparse or other-precision figure.

    With ``device``, only that device is looked at; else a figure that is some device's dense peak at
    ``precision`` is believed.
    """
    name = find(device) if device else None
    dense = [row for row in rows() if row.precision == precision and (name is None or row.device == name)]
    if any(_near_figure(tflops, row.tflops, _CLOSE) for row in dense):
        return None
    near = _CLOSE if name else _SAME
    found = (_suspect(tflops, row, precision, near) for row in dense if tflops > row.tflops)
    return next((suspect for suspect in found if suspect), None)


def _suspect(tflops: float, row: PeakRow, precision: str, near: float) -> Suspect | None:
    """Which figure of the row's device this is, the asked precision first."""
    others = [other for other in rows() if other.device == row.device and other is not row]
    for other in (row, *others):
        for factor, marketed in ((1, ""), (2, "sparse ")):
            # Twice a core or a GCD is the chip or the package, not a sparse figure.
            if (factor == 1 or row.scope == "device") and _near_figure(tflops, factor * other.tflops, near):
                text = f"{tflops:g} is the {marketed}{other.precision} figure of {row.device}"
                dense = f"its dense {precision} peak is {row.tflops:g}"
                return Suspect(row.device, other.precision, factor == 2, row.tflops, f"{text}; {dense}")
    return None


def _near_figure(one: float, other: float, near: float) -> bool:
    return abs(one - other) <= near * other


def _near(name: str) -> list[str]:
    squeezed = {_squeeze(device): device for device in devices()}
    close = difflib.get_close_matches(_squeeze(name), squeezed, n=3, cutoff=0.5)
    shared = [device for device in devices() if _words(device) & _words(name)]
    return list(dict.fromkeys([*shared[:5], *(squeezed[key] for key in close)]))


def _squeeze(name: str) -> str:
    return re.sub(r"[^0-9a-z]+", "", name.casefold())


def _words(name: str) -> frozenset[str]:
    """The words of a name that tell devices apart."""
    plain = _COUNT.sub("", _SLICE.sub(r"\1", name.casefold()))
    return frozenset(word for word in re.findall(r"[0-9a-z]+", plain) if not _HARMLESS.fullmatch(word))


@cache
def _index() -> tuple[dict[str, str], dict[frozenset[str], str]]:
    exact: dict[str, str] = {}
    by_words: dict[frozenset[str], str] = {}
    for device, names in _table()[1].items():
        for name in (device, *names):
            exact.setdefault(_squeeze(name), device)
        for name in names:
            by_words.setdefault(_words(name), device)
    return exact, by_words


@cache
def _table() -> tuple[tuple[PeakRow, ...], dict[str, tuple[str, ...]]]:
    """The rows of ``peaks.csv``, and the aliases of each device (given on its first row)."""
    text = files("logmfu").joinpath("peaks.csv").read_text(encoding="utf-8")
    table: list[PeakRow] = []
    names: dict[str, tuple[str, ...]] = {}
    for row in csv.DictReader(text.splitlines()):
        names.setdefault(row["device"], tuple(row.pop("aliases").split(";")))
        table.append(PeakRow(**{**row, "tflops": float(row["tflops"])}))  # type: ignore[arg-type]
    return tuple(table), names
