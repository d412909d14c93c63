"""What a convention is: the model and hardware FLOPs of a token as one program or paper counts them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from logmfu.flops import count
from logmfu.flops.shape import ModelShape

Model = Callable[[ModelShape, float, str], float]
"""Shape, sequence length, attention: FLOPs per token."""
Hardware = Callable[[ModelShape, float, str, str], float]
"""The same, and what is recomputed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Convention:
    """One way of counting: the model FLOPs and hardware FLOPs of a token, and which of them is printed."""

    name: str
    title: str
    source: str
    model: Model
    attention: str = "full"
    counts: Literal["model", "hardware"] = "model"
    hardware: Hardware | None = None
    """Where hardware FLOPs are not simply the model's plus what is recomputed."""
    printed: Hardware | None = None
    """Where the printed number is neither: the program's own arithmetic."""
    recompute: str = "none"
    """Recomputation the formula has built in, used unless another is given."""
    logged: bool = True
    """Whether a program prints it per step: a paper's or a calculator's formula explains no line of a log."""
    blind: frozenset[str] = frozenset()
    """Features of a model the formula does not count."""

    def model_flops_per_token(
        self, shape: ModelShape, seq_len: float, *, attention: str | None = None
    ) -> float:
        """Model FLOPs: no recomputation, the numerator of MFU."""
        return self.model(shape, seq_len, attention or self.attention)

    def hardware_flops_per_token(
        self,
        shape: ModelShape,
        seq_len: float,
        *,
        recompute: str | None = None,
        attention: str | None = None,
    ) -> float:
        """Hardware FLOPs: with recomputation, the numerator of HFU."""
        again, attention = recompute or self.recompute, attention or self.attention
        if self.hardware:
            return self.hardware(shape, seq_len, attention, again)
        extra = count.recomputed_flops(shape, seq_len, recompute=again, attention=attention)
        return self.model(shape, seq_len, attention) + extra

    def flops_per_token(
        self,
        shape: ModelShape,
        seq_len: float,
        *,
        recompute: str | None = None,
        attention: str | None = None,
    ) -> float:
        """What this convention prints, per token."""
        if self.printed:
            return self.printed(shape, seq_len, attention or self.attention, recompute or self.recompute)
        if self.counts == "model":
            return self.model_flops_per_token(shape, seq_len, attention=attention)
        return self.hardware_flops_per_token(shape, seq_len, recompute=recompute, attention=attention)

    def flops_per_iteration(
        self,
        shape: ModelShape,
        seq_len: float,
        batch: float,
        recompute: str | None = None,
        *,
        attention: str | None = None,
    ) -> float:
        """What this convention prints, per step of ``batch`` sequences and over all devices."""
        per_token = self.flops_per_token(shape, seq_len, recompute=recompute, attention=attention)
        return per_token * batch * seq_len

    def not_counted(self, shape: ModelShape) -> list[str]:
        """Features this shape has and the formula does not count (or counts wrongly)."""
        return [name for name in FEATURES if name in self.blind and FEATURES[name](shape)]


FEATURES: Mapping[str, Callable[[ModelShape], bool]] = {
    "gated feed-forward": lambda shape: shape.glu or shape.ffn != 4 * shape.hidden,
    "grouped-query attention": lambda shape: shape.kv_heads != shape.heads,
    "head size": lambda shape: not shape.latent and shape.query_width != shape.hidden,
    "experts": lambda shape: shape.experts is not None,
    "expert layer pattern": lambda shape: 0 < shape.expert_layers < shape.layers,
    "expert size": lambda shape: shape.experts is not None and shape.experts.ffn != shape.ffn,
    "shared experts": lambda shape: shape.experts is not None and shape.experts.shared_ffn > 0,
    "router": lambda shape: shape.experts is not None,
    "latent attention": lambda shape: shape.latent is not None,
    "prediction modules": lambda shape: shape.mtp > 0,
    "attention gate": lambda shape: shape.gate,
    "sliding window": lambda shape: shape.windowed_layers > 0,
    "hybrid layers": lambda shape: shape.mamba_layers + shape.delta_layers > 0,
    "unequal gated-delta heads": lambda shape: (
        shape.delta is not None and shape.delta.key_dim != shape.delta.value_dim
    ),
    "attention": lambda shape: True,
    "output layer": lambda shape: True,
    "projections": lambda shape: True,
}
"""Features a formula may be blind to, and how a shape shows them."""
