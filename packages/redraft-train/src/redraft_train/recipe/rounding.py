"""Rounding of weights as in llama.cpp's Q4_0, for training with the weights that a Q4_0 file will have.

In each step, the loss and its gradients are computed with rounded weights, and the optimizer applies these gradients to
the unrounded ones (straight-through estimator: Bengio et al. 2013).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

#: Consecutive weights of a row that share a scale.
BLOCK = 32


def q4_0(weights: Tensor) -> Tensor:
    """Return float32 ``weights`` (..., a multiple of `BLOCK`) after quantising to Q4_0 and back.

    The scale of a block is its largest weight in magnitude, with its sign, divided by -8 and stored in 16 bits; each
    weight becomes one of -8 to 7 times the scale.  Equal bit for bit to ``gguf.quants``, which rounds with the scale
    before it is stored.
    """
    blocks = weights.reshape(-1, BLOCK)
    largest = blocks.gather(1, blocks.abs().argmax(1, keepdim=True))
    scale = largest / -8
    inverse = torch.where(scale == 0, 0, 1 / scale)
    steps = (blocks.double() * inverse.double() + 8.5).trunc().clamp(0, 15).float() - 8
    return (steps * scale.half().float()).view_as(weights)


@contextmanager
def rounded(weights: Sequence[Tensor]) -> Iterator[None]:
    """Replace ``weights`` by their `q4_0` within the context, in place."""
    kept = [each.detach().clone() for each in weights]
    with torch.no_grad():
        for each in weights:
            each.copy_(q4_0(each))
    try:
        yield
    finally:
        with torch.no_grad():
            for each, value in zip(weights, kept, strict=True):
                each.copy_(value)
