"""Models that the planner is compared with: a small Llama in plain PyTorch, and those that the lectures define."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from course_utils import napkin

SOLUTIONS = Path(__file__).parents[2] / "solutions"


def lecture(name: str, *wanted: str) -> dict[str, Any]:
    """The names of a lecture's imports and of the cells that define what is wanted."""
    cells = re.split(r"^# %%", (SOLUTIONS / name).read_text(encoding="utf-8"), flags=re.M)
    code = [cell.partition("\n")[2] for cell in cells if "[markdown]" not in cell.partition("\n")[0]]
    names: dict[str, Any] = {"__name__": "a_lecture"}
    exec(code[1], names)
    for definition in wanted:
        (cell,) = [cell for cell in code if re.search(rf"^(def|class) {definition}\b", cell, re.M)]
        exec(cell, names)
    return names


class RMSNorm(torch.autograd.Function):
    """A fused norm: what a backward pass needs is its input and a number for each token, in float32."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        scale = x.float().square().mean(-1, keepdim=True).add(1e-6).rsqrt()
        ctx.save_for_backward(x, scale, weight)
        return (x * scale).to(x.dtype) * weight

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, scale, weight = ctx.saved_tensors
        g = grad * weight
        of_x = scale * (g - x * scale.square() * (g * x).mean(-1, keepdim=True))
        return of_x.to(x.dtype), (grad * x * scale).sum((0, 1)).to(weight.dtype)


class LlamaLayer(nn.Module):
    """A layer as Llama has it: grouped keys and values, a gated feed-forward, no biases."""

    def __init__(self, width: int, heads: int, kv_heads: int, hidden: int, head: int) -> None:
        super().__init__()
        self.heads, self.kv_heads = heads, kv_heads
        self.q, self.out = nn.Linear(width, heads * head, bias=False), nn.Linear(heads * head, width, bias=False)
        self.k, self.v = (nn.Linear(width, kv_heads * head, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)
        self.scale_1, self.scale_2 = nn.Parameter(torch.ones(width)), nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        normed = RMSNorm.apply(x, self.scale_1)
        q = self.q(normed).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        k, v = (part(normed).unflatten(-1, (self.kv_heads, -1)).transpose(1, 2) for part in (self.k, self.v))
        grouped = self.heads != self.kv_heads
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=grouped)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        normed = RMSNorm.apply(x, self.scale_2)
        return x + self.down(nn.functional.silu(self.gate(normed)) * self.up(normed))


class Llama(nn.Module):
    """A language model of such layers."""

    def __init__(self, shape: napkin.Transformer) -> None:
        super().__init__()
        kv_heads = shape.kv_heads or shape.heads
        self.tokens = nn.Embedding(shape.vocabulary, shape.width)
        layer = (shape.width, shape.heads, kv_heads, shape.hidden, shape.head_width or shape.width // shape.heads)
        self.layers = nn.Sequential(*(LlamaLayer(*layer) for _ in range(shape.layers)))
        self.scale = nn.Parameter(torch.ones(shape.width))
        self.head = nn.Linear(shape.width, shape.vocabulary, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(RMSNorm.apply(self.layers(self.tokens(ids)), self.scale))


class Again(nn.Module):
    """A layer that keeps its input only."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return checkpoint(self.layer, x, use_reentrant=False)


def loss(model: nn.Module, ids: Tensor) -> Tensor:
    return nn.functional.cross_entropy(model(ids).flatten(0, 1).float(), ids.flatten())


LLAMA_LIKE = napkin.Transformer(3, 64, 4, 300, kv_heads=4, feed_forward=160, gated=True, norm_vectors=1)
SHAPES = (LLAMA_LIKE, replace(LLAMA_LIKE, kv_heads=2), replace(LLAMA_LIKE, heads=3, kv_heads=3, head_width=40))


class Scorer(nn.Module):
    """A language model that returns its loss, and a table that is not trained."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Llama(LLAMA_LIKE)
        self.table = nn.Embedding(5, 3).requires_grad_(False)
        self.register_buffer("counter", torch.zeros(7))

    def forward(self, ids: Tensor) -> Tensor:
        return nn.functional.cross_entropy(self.model(ids).flatten(0, 1).float(), ids.flatten())
