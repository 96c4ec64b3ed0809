"""The demo models' architecture in torch: Qwen3's (RMSNorm, rotary, SwiGLU, query/key norm) with tied embeddings.

It is simple enough to train fast on a CPU; `recipe.export` writes it as a GGUF that llama.cpp runs as ``qwen3``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from redraft.backends.machine import processor

EPSILON = 1e-6
#: Features of processors with bfloat16 multiplication; others are three times as fast in 32 bits.
BF16 = {"avx512_bf16", "amx_bf16", "bf16"}
ROPE_BASE = 10_000.0


@dataclass(frozen=True, slots=True)
class Shape:
    """Dimensions of a model, in elements."""

    vocabulary: int
    hidden: int
    layers: int
    heads: int
    feed_forward: int
    head: int = 64


class Norm(nn.Module):
    """RMSNorm over the last dimension."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: Tensor) -> Tensor:
        """Map ``x`` (..., size) to the same shape."""
        return F.rms_norm(x, (x.shape[-1],), self.weight.to(x.dtype), EPSILON)


class Layer(nn.Module):
    """A pre-norm transformer block."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        inner = shape.heads * shape.head
        self.attention_norm, self.feed_forward_norm = Norm(shape.hidden), Norm(shape.hidden)
        self.query_norm, self.key_norm = Norm(shape.head), Norm(shape.head)
        self.query = nn.Linear(shape.hidden, inner, bias=False)
        self.key = nn.Linear(shape.hidden, inner, bias=False)
        self.value = nn.Linear(shape.hidden, inner, bias=False)
        self.output = nn.Linear(inner, shape.hidden, bias=False)
        self.gate = nn.Linear(shape.hidden, shape.feed_forward, bias=False)
        self.up = nn.Linear(shape.hidden, shape.feed_forward, bias=False)
        self.down = nn.Linear(shape.feed_forward, shape.hidden, bias=False)

    def project(self, x: Tensor, rotation: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values of ``x`` (rows, length, hidden): (rows, length, heads, head) each."""
        rows, length, _ = x.shape
        split = (rows, length, self.shape.heads, self.shape.head)
        h = self.attention_norm(x)
        query = _rotate(self.query_norm(self.query(h).view(split)), rotation)
        key = _rotate(self.key_norm(self.key(h).view(split)), rotation)
        return query, key, self.value(h).view(split)

    def combine(self, x: Tensor, mixed: Tensor, keep: tuple[Tensor | float, Tensor | float] = (1.0, 1.0)) -> Tensor:
        """Add attention's output ``mixed`` (rows, length, heads, head) and the feed-forward to ``x``.

        ``keep`` scales both additions: masks of `Dropout`, or 1.
        """
        rows, length, _ = x.shape
        x = x + self.output(mixed.reshape(rows, length, -1)) * keep[0]
        h = self.feed_forward_norm(x)
        out: Tensor = x + self.down(F.silu(self.gate(h)) * self.up(h)) * keep[1]
        return out


class Dropout:
    """Dropout masks cut from a pool of random numbers at random positions.

    Drawing a new mask costs a CPU three times as much as the matrix product to which it is applied.
    """

    POOL = 1 << 24

    def __init__(self, share: float, like: Tensor) -> None:
        size = max(self.POOL, 2 * like.numel())
        self._pool = ((torch.rand(size, device=like.device) >= share) / (1.0 - share)).to(like.dtype)

    def mask(self, shape: torch.Size) -> Tensor:
        """Return 0 for dropped elements, 1 / (1 - share) for the others."""
        start = int(torch.randint(0, len(self._pool) - shape.numel(), ())) // 32 * 32
        return self._pool[start : start + shape.numel()].view(shape)


def _attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Causal attention, (rows, length, heads, head) each.

    Written out on a CPU, where it is four times as fast as torch's fused kernel for sequences this short.
    """
    rows, length, heads, head = query.shape
    if query.is_cuda:
        q, k, v = (x.transpose(1, 2) for x in (query, key, value))
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
    q, k, v = (x.transpose(1, 2).reshape(rows * heads, length, head) for x in (query, key, value))
    future = torch.full((length, length), float("-inf"), dtype=q.dtype, device=q.device).triu(1)
    scores = torch.baddbmm(future.expand(rows * heads, length, length), q, k.transpose(1, 2), alpha=head**-0.5)
    mixed = torch.softmax(scores, dim=-1).to(v.dtype) @ v
    return mixed.view(rows, heads, length, head).transpose(1, 2)


class Decoder(nn.Module):
    """A decoder-only language model; ``dropout`` is the share of each block's output dropped in training."""

    def __init__(self, shape: Shape, dropout: float = 0.0) -> None:
        super().__init__()
        self.shape, self.dropout = shape, dropout
        self.embedding = nn.Embedding(shape.vocabulary, shape.hidden)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = Norm(shape.hidden)
        self.apply(self._initialise)
        for layer in self.layers:
            for linear in (layer.output, layer.down):
                nn.init.normal_(linear.weight, std=0.02 / (2 * shape.layers) ** 0.5)
        self._project: Callable[..., tuple[Tensor, Tensor, Tensor]] = Layer.project
        self._combine: Callable[..., Tensor] = Layer.combine
        self._dropout: Dropout | None = None

    @staticmethod
    def _initialise(module: nn.Module) -> None:
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)

    def compile_blocks(self) -> None:
        """Fuse the operations between matrix products for training; each number of ids is compiled once."""
        self._project = torch.compile(Layer.project, dynamic=False)
        self._combine = torch.compile(Layer.combine, dynamic=False)

    def hidden(self, ids: Tensor) -> Tensor:
        """Map ``ids`` (rows, length) to normed hidden states (rows, length, hidden)."""
        rows, length = ids.shape
        # All modules except attention see one long row, so batches with the same number of ids share a shape.
        x = self.embedding(ids.reshape(1, -1))
        if torch.is_autocast_enabled(x.device.type):
            x = x.to(torch.get_autocast_dtype(x.device.type))
        cos, sin = rotation_table(length, self.shape.head, x.dtype, x.device)
        rotation = cos.repeat(rows, 1, 1), sin.repeat(rows, 1, 1)
        split = (rows, length, self.shape.heads, self.shape.head)
        for layer in self.layers:
            query, key, value = self._project(layer, x, rotation)
            mixed = _attend(query.reshape(split), key.reshape(split), value.reshape(split))
            x = self._combine(layer, x, mixed.reshape(1, rows * length, *split[2:]), self._keep(x))
        out: Tensor = self.norm(x).view(rows, length, -1)
        return out

    def _keep(self, x: Tensor) -> tuple[Tensor | float, Tensor | float]:
        if not self.training or self.dropout == 0.0:
            return 1.0, 1.0
        if self._dropout is None:
            self._dropout = Dropout(self.dropout, x)
        return self._dropout.mask(x.shape), self._dropout.mask(x.shape)

    def logits(self, hidden: Tensor) -> Tensor:
        """Map hidden states (n, hidden) to logits (n, vocabulary) with the tied embedding."""
        return F.linear(hidden, self.embedding.weight)


@cache
def product_type(device: str) -> torch.dtype:
    """Return the dtype of matrix products: bfloat16 if ``device`` is fast with it, otherwise 32 bits."""
    return torch.bfloat16 if device == "cuda" or BF16 & processor().features else torch.float32


def rotation_table(length: int, head: int, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return cosines and sines of the rotary embedding, (length, 1, head / 2) each."""
    inverse = ROPE_BASE ** (-torch.arange(0, head, 2, device=device, dtype=torch.float32) / head)
    angles = torch.outer(torch.arange(length, device=device, dtype=torch.float32), inverse)
    return angles.cos().to(dtype)[:, None, :], angles.sin().to(dtype)[:, None, :]


def _rotate(x: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
    """Apply rotary position embedding, pairing halves of the head (NEOX order)."""
    cos, sin = rotation
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
