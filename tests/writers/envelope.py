"""Prefixes that launchers and containers put before each line."""

from __future__ import annotations

from writers.layout import Text, when
from writers.plan import Plan


def wrap(plan: Plan, text: Text, time: float) -> str:
    """A line as it stands in the file."""
    return _WRAPPERS[plan.envelope](plan, text, time)


def _plain(plan: Plan, text: Text, time: float) -> str:
    return text.text


def _srun(plan: Plan, text: Text, time: float) -> str:
    """``srun --label``: one task per device, the label as wide as the highest."""
    if text.rank is None:
        return text.text
    return f"{text.rank:{len(str(plan.world_size - 1))}d}: {text.text}"


def _torchrun(plan: Plan, text: Text, time: float) -> str:
    """``torchrun --tee 3``: local rank, no blank."""
    return text.text if text.rank is None else f"[default{text.rank % 8}]:{text.text}"


def _cri(plan: Plan, text: Text, time: float) -> str:
    """A container's log file: every line gets a time."""
    return f"{when(time):%Y-%m-%dT%H:%M:%S.%f}000Z stdout F {text.text}"


_WRAPPERS = {None: _plain, "srun": _srun, "torchrun": _torchrun, "cri": _cri}
