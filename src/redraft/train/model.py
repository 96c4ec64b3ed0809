"""The demo models' architecture in torch: Qwen3's shape (RMSNorm, rotary, SwiGLU, query/key norm), tied embeddings.

Plain enough to train fast on a CPU; `redraft.train.export` writes it as a GGUF that llama.cpp runs as ``qwen3``.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

EPSILON = 1e-6
ROPE_BASE = 10_000.0


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a model; all in units of elements."""

    vocabulary: int
    hidden: int
    layers: int
    heads: int
    feed_forward: int
    head: int = 64


class Norm(nn.Module):
    """Root-mean-square norm over the last dimension."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: Tensor) -> Tensor:
        """``x`` (..., size) -> the same shape."""
        return F.rms_norm(x, (x.shape[-1],), self.weight.to(x.dtype), EPSILON)


class Layer(nn.Module):
    """One pre-norm transformer block; in training a share ``dropout`` of what it adds is left out."""

    def __init__(self, shape: Shape, dropout: float = 0.0) -> None:
        super().__init__()
        self.shape = shape
        self.dropout = nn.Dropout(dropout)
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

    def forward(self, x: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
        """``x`` (rows, length, hidden) -> the same shape."""
        return self.combine(x, _attend(*self.project(x, rotation)))

    def project(self, x: Tensor, rotation: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of ``x`` (rows, length, hidden): (rows, length, heads, head) each."""
        rows, length, _ = x.shape
        split = (rows, length, self.shape.heads, self.shape.head)
        h = self.attention_norm(x)
        query = _rotate(self.query_norm(self.query(h).view(split)), rotation)
        key = _rotate(self.key_norm(self.key(h).view(split)), rotation)
        return query, key, self.value(h).view(split)

    def combine(self, x: Tensor, mixed: Tensor) -> Tensor:
        """``x`` with what attention has ``mixed`` (rows, length, heads, head), and the feed-forward, added."""
        rows, length, _ = x.shape
        x = x + self.dropout(self.output(mixed.reshape(rows, length, -1)))
        h = self.feed_forward_norm(x)
        out: Tensor = x + self.dropout(self.down(F.silu(self.gate(h)) * self.up(h)))
        return out


def _attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Causal attention, (rows, length, heads, head) each.

    Written out, since for sequences this short it is four times as fast on a CPU as torch's fused kernel.
    """
    rows, length, heads, head = query.shape
    q, k, v = (x.transpose(1, 2).reshape(rows * heads, length, head) for x in (query, key, value))
    future = torch.full((length, length), float("-inf"), dtype=q.dtype, device=q.device).triu(1)
    scores = torch.baddbmm(future.expand(rows * heads, length, length), q, k.transpose(1, 2), alpha=head**-0.5)
    mixed = torch.softmax(scores, dim=-1).to(v.dtype) @ v
    return mixed.view(rows, heads, length, head).transpose(1, 2)


class Decoder(nn.Module):
    """A decoder-only language model."""

    def __init__(self, shape: Shape, dropout: float = 0.0) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.vocabulary, shape.hidden)
        self.layers = nn.ModuleList(Layer(shape, dropout) for _ in range(shape.layers))
        self.norm = Norm(shape.hidden)
        self.apply(self._initialise)
        for layer in self.layers:
            for linear in (layer.output, layer.down):
                nn.init.normal_(linear.weight, std=0.02 / (2 * shape.layers) ** 0.5)

    @staticmethod
    def _initialise(module: nn.Module) -> None:
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)

    def hidden(self, ids: Tensor) -> Tensor:
        """``ids`` (rows, length) -> normed hidden states (rows, length, hidden)."""
        x = self.embedding(ids)
        if torch.is_autocast_enabled(x.device.type):
            x = x.to(torch.get_autocast_dtype(x.device.type))
        rotation = rotation_table(ids.shape[1], self.shape.head, x.dtype, x.device)
        for layer in self.layers:
            x = layer(x, rotation)
        out: Tensor = self.norm(x)
        return out

    def logits(self, hidden: Tensor) -> Tensor:
        """Hidden states (n, hidden) -> (n, vocabulary), by the tied embedding."""
        return F.linear(hidden, self.embedding.weight)


def rotation_table(length: int, head: int, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """Cosines and sines of the rotary embedding, (length, 1, head / 2) each."""
    inverse = ROPE_BASE ** (-torch.arange(0, head, 2, device=device, dtype=torch.float32) / head)
    angles = torch.outer(torch.arange(length, device=device, dtype=torch.float32), inverse)
    return angles.cos().to(dtype)[:, None, :], angles.sin().to(dtype)[:, None, :]


def _rotate(x: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
    """Rotary position embedding, halves of the head paired (NEOX order)."""
    cos, sin = rotation
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
