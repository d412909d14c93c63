"""The shape of a model: what the FLOPs of one token depend on, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Experts:
    """A mixture-of-experts feed-forward block."""

    count: int
    topk: int
    ffn: int
    shared_ffn: int = 0
    """Hidden size of all shared experts together."""
    latent: int | None = None
    """Latent size the routed experts work in, with a projection down and one up."""


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Multi-head latent attention (arXiv:2405.04434 section 2.1)."""

    q_rank: int | None
    kv_rank: int
    nope: int
    rope: int
    v: int


@dataclass(frozen=True, slots=True)
class GatedDelta:
    """Gated-delta (linear attention) layers, ``layers`` of them."""

    layers: int
    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    conv: int = 4


@dataclass(frozen=True, slots=True)
class Mamba:
    """A Mamba-2 mixer. ``inner`` is heads x head size."""

    state: int
    groups: int
    heads: int
    inner: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """A decoder: sizes per layer, and which layer is what.

    ``kinds`` has one letter per layer of a hybrid model: ``M`` Mamba, ``G`` gated delta, ``*`` attention,
    ``-`` feed-forward, ``E`` mixture of experts. Without it every layer is attention (or gated delta) and a feed-forward block.
    """

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    glu: bool = False
    tied: bool = False
    gate: bool = False
    """Attention has an output gate, one more projection as wide as the queries."""
    experts: Experts | None = None
    expert_layers: int = 0
    last_is_expert: bool = False
    latent: LatentAttention | None = None
    mtp: int = 0
    """Multi-token-prediction modules the run trains."""
    window: int | None = None
    unwindowed: int = 0
    """Attention layers that see every key although there is a ``window``."""
    delta: GatedDelta | None = None
    mamba: Mamba | None = None
    kinds: str = ""
    positions: int = 0
    """Learned position embeddings; they cost no FLOPs and only count as parameters."""
    params: float | None = None
    params_active: float | None = None
    assumed: tuple[str, ...] = ()
    """What was not given and taken as usual, in words."""

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> ModelShape:
        """The shape that facts under their canonical names (:data:`logmfu.schema.FACTS`) describe.

        Raises :class:`logmfu.errors.MissingFactError` with the flag for each fact that is missing, and
        :class:`logmfu.errors.OptionError` for a value that cannot be.
        """
        from logmfu.flops.facts import shape_of

        return shape_of(facts)

    @property
    def kv_groups(self) -> int:
        """Query heads that share one key/value head."""
        return self.heads // self.kv_heads

    @property
    def query_width(self) -> int:
        """Query heads x head size."""
        return self.heads * self.head_dim

    @property
    def core_width(self) -> int:
        """FLOPs/2 of the attention core per query and key: heads x (query-key size + value size)."""
        if self.latent:
            return self.heads * (self.latent.nope + self.latent.rope + self.latent.v)
        return 2 * self.query_width

    @property
    def matrices(self) -> int:
        """Matrices of a feed-forward block: three when gated."""
        return 3 if self.glu else 2

    @property
    def attention_layers(self) -> int:
        """Layers with softmax attention."""
        if self.kinds:
            return self.kinds.count("*")
        return self.layers - self.delta_layers

    @property
    def delta_layers(self) -> int:
        """Layers with gated-delta attention."""
        return self.delta.layers if self.delta else 0

    @property
    def mamba_layers(self) -> int:
        """Layers with a Mamba mixer."""
        return self.kinds.count("M")

    @property
    def dense_layers(self) -> int:
        """Layers with a dense feed-forward block."""
        return self.kinds.count("-") if self.kinds else self.layers - self.expert_layers

    @property
    def windowed_layers(self) -> int:
        """Attention layers that only see ``window`` keys."""
        return max(self.attention_layers - self.unwindowed, 0) if self.window else 0
