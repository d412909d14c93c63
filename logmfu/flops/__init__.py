"""FLOPs of training a decoder: the shape, the count, and what each program prints."""

from __future__ import annotations

from logmfu.flops.convention import Convention
from logmfu.flops.conventions import CONVENTIONS
from logmfu.flops.count import (
    flops_per_token,
    hardware_flops_per_token,
    packed_length,
    parameters,
    recomputed_flops,
    tflops,
)
from logmfu.flops.shape import ModelShape

__all__ = [
    "CONVENTIONS",
    "Convention",
    "ModelShape",
    "flops_per_token",
    "hardware_flops_per_token",
    "packed_length",
    "parameters",
    "recomputed_flops",
    "tflops",
]
