"""The engine against ``torch.utils.flop_counter``: exactly equal, forward and training, for every kind of layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from logmfu.flops import ModelShape, flops_per_token, hardware_flops_per_token

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils import checkpoint  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

BATCH, SEQ = 2, 8
DENSE = {"layers": 2, "hidden": 16, "heads": 4, "ffn": 64, "vocab": 40, "glu": False}
LATENT = {
    "mla": True,
    "q_lora_rank": 12,
    "kv_lora_rank": 10,
    "qk_nope_dim": 6,
    "qk_rope_dim": 2,
    "v_head_dim": 5,
}
EXPERTS = {"experts": 8, "router_topk": 2, "moe_ffn": 12}
SHAPES: dict[str, dict[str, Any]] = {
    "dense": DENSE,
    "tied": {**DENSE, "tied_embeddings": True},
    "grouped, gated": {**DENSE, "kv_heads": 2, "ffn": 44, "glu": True},
    "head size is not hidden / heads": {**DENSE, "head_dim": 6},
    "output gate": {**DENSE, "attention_gate": True},
    "experts": {**DENSE, **EXPERTS, "glu": True, "kv_heads": 2},
    "experts, shared, first layer dense": {
        **DENSE,
        **EXPERTS,
        "shared_ffn": 20,
        "moe_layers": "0,1",
        "glu": True,
    },
    "latent experts": {**DENSE, **EXPERTS, "moe_latent": 10},
    "latent attention": {**DENSE, **LATENT},
    "latent attention without query rank": {**DENSE, **LATENT, "q_lora_rank": None},
    "latent attention, experts, prediction module": {
        **DENSE,
        **LATENT,
        **EXPERTS,
        "moe_layers": "0,1",
        "mtp_layers": 1,
    },
    "prediction module": {**DENSE, "mtp_layers": 2},
}


def matrix(rows: int, columns: int) -> nn.Parameter:
    """A weight on the meta device: shapes are all that counts."""
    return nn.Parameter(torch.empty(rows, columns, device="meta"))


class Attention(nn.Module):
    """Explicit products, full attention, no bias."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        h, width, mla = shape.hidden, shape.query_width, shape.latent
        self.shape = shape
        self.v_dim = mla.v if mla else shape.head_dim
        if mla:
            ranks = [mla.q_rank] if mla.q_rank else []
            self.query = nn.ParameterList(
                matrix(a, b) for a, b in zip([h, *ranks], [*ranks, width], strict=True)
            )
            self.down = matrix(h, mla.kv_rank + mla.rope)
            self.up = matrix(mla.kv_rank, shape.heads * (mla.nope + mla.v))
        else:
            self.query = nn.ParameterList([matrix(h, width)])
            self.down = matrix(h, 2 * shape.kv_heads * shape.head_dim)
        self.gate = matrix(h, width) if shape.gate else None
        self.out = matrix(shape.heads * self.v_dim, h)

    def heads(self, x: Any, count: int) -> Any:
        """Split the last axis into heads."""
        return x.view(BATCH, SEQ, count, -1).transpose(1, 2)

    def key_value(self, x: Any) -> tuple[Any, Any]:
        """Keys and values of every query head."""
        shape, mla = self.shape, self.shape.latent
        if mla is None:
            key, value = (x @ self.down).chunk(2, dim=-1)
            groups = shape.kv_groups
            return tuple(
                self.heads(part, shape.kv_heads).repeat_interleave(groups, 1) for part in (key, value)
            )
        low, rope = (x @ self.down).split([mla.kv_rank, mla.rope], dim=-1)
        nope, value = self.heads(low @ self.up, shape.heads).split([mla.nope, mla.v], dim=-1)
        rotary = rope.unsqueeze(1).expand(BATCH, shape.heads, SEQ, mla.rope)
        return torch.cat([nope, rotary], dim=-1), value

    def core(self, query: Any, key: Any, value: Any) -> Any:
        """Scores and values."""
        return (query @ key.transpose(-1, -2)).softmax(-1) @ value

    def forward(self, x: Any, core: Callable[..., Any]) -> Any:
        """One pass; ``core`` calls the attention core."""
        query = x
        for weight in self.query:
            query = query @ weight
        mixed = core(self.core, self.heads(query, self.shape.heads), *self.key_value(x))
        mixed = mixed.transpose(1, 2).reshape(BATCH, SEQ, -1)
        if self.gate is not None:
            mixed = mixed * (x @ self.gate)
        return mixed @ self.out


class FeedForward(nn.Module):
    """Two matrices, or three when gated."""

    def __init__(self, hidden: int, ffn: int, glu: bool) -> None:
        super().__init__()
        self.ups = nn.ParameterList(matrix(hidden, ffn) for _ in range(2 if glu else 1))
        self.down = matrix(ffn, hidden)

    def forward(self, x: Any) -> Any:
        """One pass."""
        inner = x @ self.ups[0]
        for weight in self.ups[1:]:
            inner = inner * (x @ weight)
        return inner @ self.down


class Experts(nn.Module):
    """Token i goes to experts i, i + 1, ... (balanced), weighted by the router."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        moe = shape.experts
        self.moe = moe
        width = moe.latent or shape.hidden
        self.router = matrix(shape.hidden, moe.count)
        self.into, self.back = (
            (matrix(shape.hidden, width), matrix(width, shape.hidden)) if moe.latent else (None, None)
        )
        self.experts = nn.ModuleList(FeedForward(width, moe.ffn, shape.glu) for _ in range(moe.count))
        self.shared = FeedForward(shape.hidden, moe.shared_ffn, shape.glu) if moe.shared_ffn else None

    def forward(self, x: Any) -> Any:
        """One pass."""
        flat = x.reshape(BATCH * SEQ, -1)
        weights = (flat @ self.router).softmax(-1)
        inside = flat if self.into is None else flat @ self.into
        mixed = torch.zeros_like(inside)
        tokens = torch.arange(BATCH * SEQ)
        for number, expert in enumerate(self.experts):
            mine = [i for i in tokens.tolist() if (number - i) % self.moe.count < self.moe.topk]
            index = torch.tensor(mine)
            mixed = mixed.index_add(
                0, index.to("meta"), expert(inside[mine]) * weights[mine, number : number + 1]
            )
        routed = mixed if self.back is None else mixed @ self.back
        routed = routed.view_as(x)
        return routed + self.shared(x) if self.shared is not None else routed


class Block(nn.Module):
    """Attention and a feed-forward block."""

    def __init__(self, shape: ModelShape, expert: bool) -> None:
        super().__init__()
        self.attention = Attention(shape)
        self.feed_forward = Experts(shape) if expert else FeedForward(shape.hidden, shape.ffn, shape.glu)

    def forward(self, x: Any, core: Callable[..., Any]) -> Any:
        """One pass; ``core`` calls the attention core."""
        x = x + self.attention(x, core)
        return self.feed_forward(x) + x * 0


class Decoder(nn.Module):
    """What a :class:`ModelShape` describes."""

    def __init__(self, facts: dict[str, Any]) -> None:
        super().__init__()
        shape = ModelShape.from_facts(facts)
        self.shape = shape
        dense_first = shape.layers - shape.expert_layers
        self.embedding = matrix(shape.vocab, shape.hidden)
        self.blocks = nn.ModuleList(Block(shape, index >= dense_first) for index in range(shape.layers))
        self.joins = nn.ParameterList(matrix(2 * shape.hidden, shape.hidden) for _ in range(shape.mtp))
        self.modules_ = nn.ModuleList(Block(shape, shape.last_is_expert) for _ in range(shape.mtp))
        self.head = matrix(shape.vocab, shape.hidden)

    def forward(self, block: Callable[..., Any], core: Callable[..., Any]) -> Any:
        """Sum of all logits; ``block`` calls a block."""
        embedded = self.embedding[torch.zeros(BATCH, SEQ, dtype=torch.long, device="meta")]
        head = self.embedding if self.shape.tied else self.head
        x = embedded
        for layer in self.blocks:
            x = block(layer, x, core)
        total = (x @ head.t()).sum()
        for join, layer in zip(self.joins, self.modules_, strict=True):
            x = block(layer, torch.cat([x, embedded], dim=-1) @ join, core)
            total = total + (x @ head.t()).sum()
        return total


def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """No recomputation."""
    return function(*arguments)


def checkpointed(early_stop: bool) -> Callable[..., Any]:
    """``torch.utils.checkpoint`` around a block or the attention core."""

    def run(function: Callable[..., Any], *arguments: Any) -> Any:
        with checkpoint.set_checkpoint_early_stop(early_stop):
            return checkpoint.checkpoint(function, *arguments, use_reentrant=False)

    return run


def counted(
    facts: dict[str, Any], *, train: bool, block: Callable[..., Any] = call, core: Callable[..., Any] = call
) -> int:
    """FLOPs torch counts for one step."""
    model = Decoder(facts)
    with FlopCounterMode(display=False) as counter:
        loss = model(block, core)
        if train:
            loss.backward()
    return counter.get_total_flops()


@pytest.mark.parametrize("name", SHAPES)
def test_forward_equals_torch(name: str) -> None:
    """A forward pass is a third of the engine's model FLOPs, to the last FLOP."""
    engine = flops_per_token(ModelShape.from_facts(SHAPES[name]), SEQ) * BATCH * SEQ
    assert engine == 3 * counted(SHAPES[name], train=False)


@pytest.mark.parametrize("name", SHAPES)
def test_training_equals_torch(name: str) -> None:
    """Forward and backward are the engine's model FLOPs, to the last FLOP."""
    engine = flops_per_token(ModelShape.from_facts(SHAPES[name]), SEQ) * BATCH * SEQ
    assert engine == counted(SHAPES[name], train=True)


@pytest.mark.parametrize("name", ["dense", "grouped, gated", "latent attention", "experts"])
@pytest.mark.parametrize(("recompute", "early_stop"), [("full", False), ("early-stop", True)])
def test_checkpointed_blocks_equal_torch(name: str, recompute: str, early_stop: bool) -> None:
    """Recomputing every block costs what torch counts, with and without its early stop."""
    engine = (
        hardware_flops_per_token(ModelShape.from_facts(SHAPES[name]), SEQ, recompute=recompute)
        * BATCH
        * SEQ
    )
    assert engine == counted(SHAPES[name], train=True, block=checkpointed(early_stop))


@pytest.mark.parametrize("name", ["dense", "grouped, gated", "latent attention", "prediction module"])
def test_checkpointed_attention_core_equals_torch(name: str) -> None:
    """Recomputing the attention core alone costs what torch counts."""
    engine = (
        hardware_flops_per_token(ModelShape.from_facts(SHAPES[name]), SEQ, recompute="selective")
        * BATCH
        * SEQ
    )
    assert engine == counted(SHAPES[name], train=True, core=checkpointed(False))
