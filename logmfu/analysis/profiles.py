"""Profiler results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from logmfu.report import Evidence, Profile
from logmfu.tables import Run


def profiles(run: Run) -> tuple[Profile, ...]:
    """All profiler results, in the order of the log."""
    found = []
    for profile in run.profiles:
        step = profile.figures.get("step")
        found.append(
            Profile(
                step=int(step) if isinstance(step, int | float) else None,
                flops_per_gpu=_flops(profile.figures),
                figures=profile.figures,
                evidence=(Evidence(profile.path, profile.line),),
            )
        )
    return tuple(found)


def _flops(figures: Mapping[str, Any]) -> float | None:
    """FLOP/s of one device as printed, else factor x forward FLOPs / iteration latency."""
    if figures.get("FLOPS_per_gpu") is not None:
        return float(figures["FLOPS_per_gpu"])
    parts = [figures.get(name) for name in ("flops_factor", "fwd_flops_per_gpu", "iter_latency_s")]
    if any(not isinstance(part, int | float) or part <= 0 for part in parts):
        return None
    factor, forward, latency = (float(part) for part in parts if part is not None)
    return factor * forward / latency
