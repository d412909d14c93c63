"""What the caller may decide about an analysis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

GRADES = (0.55, 0.40, 0.25)
"""Lower borders of excellent, good and average. No source states these bands; against the published
tables of 2021-2026 they fit dense BF16/FP16 training with full attention and sequences up to 8k."""
GRADE_NAMES = ("excellent", "good", "average", "poor")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of :func:`logmfu.analyze`; what is ``None`` is taken from the log."""

    gpu: str | None = None
    precision: str | None = None
    peak_tflops: float | None = None
    world_size: int | None = None
    seq_len: int | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Facts the log lacks, by their canonical names (``--set``)."""
    attention: Literal["logged", "full", "half"] = "logged"
    since: float | int | None = None
    until: float | int | None = None
    """Bounds: an ``int`` is a step, a ``float`` seconds since 1970 of the printed clock."""
    utc_offset: int | None = None
    """Seconds east of UTC of the printed clock (``--timezone``)."""
    gpu_hour_price: float | None = None
    grade_bands: tuple[float, float, float] = GRADES
    min_mfu: float | None = None
    fail_on: tuple[str, ...] = ()

    def given(self) -> dict[str, Any]:
        """The options that differ from their defaults, for provenance."""
        default = asdict(Options())
        return {name: value for name, value in asdict(self).items() if value != default[name]}


def grade(mfu: float, bands: tuple[float, float, float] = GRADES) -> str:
    """Name of the band an MFU lies in; a value on a border belongs to the better band's lower side."""
    for name, border in zip(GRADE_NAMES, bands, strict=False):
        if mfu > border or (mfu == border and name != "excellent"):
            return name
    return GRADE_NAMES[-1]
