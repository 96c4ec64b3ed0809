"""The loss: cross-entropy of the targets with its gradient, in chunks that fit the cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from redraft_train.recipe.examples import Batch
from redraft_train.recipe.model import Decoder, product_type


def softmax_slope(logits: Tensor, targets: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Return the cross-entropy of a chunk, summed over rows with a target, and ``scale`` times its gradient.

    Args:
        logits: (n, vocabulary).
        targets: (n,) ids, -1 in rows that are ignored.
        scale: () factor of the gradient.
    """
    numbers = logits.float()
    wanted = targets[:, None] == torch.arange(logits.shape[1], device=logits.device)[None]
    normaliser = torch.logsumexp(numbers, dim=-1, keepdim=True)
    counts = (targets >= 0).float()[:, None]
    loss = ((normaliser - (numbers * wanted).sum(dim=-1, keepdim=True)) * counts).sum()
    slope = (torch.exp(numbers - normaliser) - wanted.float()) * (counts * scale)
    return loss, slope.to(logits.dtype)


def divergence_slope(logits: Tensor, original: Tensor, targets: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Return the Kullback-Leibler divergence from ``original`` logits, and ``scale`` times its gradient.

    Arguments and sums are those of `softmax_slope`.
    """
    counts = (targets >= 0).float()[:, None]
    new, old = torch.log_softmax(logits.float(), -1), torch.log_softmax(original.float(), -1)
    wanted = old.exp()
    loss = ((wanted * (old - new)).sum(-1, keepdim=True) * counts).sum()
    return loss, ((new.exp() - wanted) * (counts * scale)).to(logits.dtype)


def batch_loss(
    model: Decoder,
    batch: Batch,
    device: str,
    slope: Callable[..., tuple[Tensor, Tensor]] = softmax_slope,
    original: Decoder | None = None,
) -> Tensor:
    """Return the mean cross-entropy of the targets; with ``original``, the divergence from what that model predicts.

    ``slope`` is `softmax_slope`, or with ``original`` `divergence_slope`.

    There is no label smoothing, which would flatten the probabilities that the bias compares.
    """
    ids, rows, columns, targets = (
        moved(array, device) for array in (batch.ids, batch.rows, batch.columns, batch.targets)
    )
    lower = product_type(device)
    with torch.autocast(device, lower, enabled=lower != torch.float32):
        hidden = model.hidden(ids)[rows, columns]
        old = None
        if original is not None:
            with torch.no_grad():
                old = original.hidden(ids)[rows, columns], original.embedding.weight
    loss: Tensor = TiedCrossEntropy.apply(hidden, model.embedding.weight, targets, slope, old)
    return loss


def moved(array: NDArray[np.int64], device: str) -> Tensor:
    """Move ``array`` to a device; a copy to a GPU is asynchronous."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device == "cuda" else tensor


class TiedCrossEntropy(torch.autograd.Function):
    """Mean cross-entropy of ``hidden @ weight.T`` in chunks of rows.

    The gradients are computed in the forward pass, so the (n, vocabulary) logits are never stored; on a CPU this is
    twice as fast as the plain implementation, which is limited by memory bandwidth.
    """

    #: Rows per chunk by device: with their logits, they fit a CPU's cache or fill a GPU.
    CHUNK: ClassVar = {"cpu": 512, "cuda": 4096}

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        targets: Tensor,
        slope: Callable[..., tuple[Tensor, Tensor]],
        original: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:
        """Map ``hidden`` (n, hidden), ``weight`` (vocabulary, hidden) and ``targets`` (n,) to a scalar.

        With ``original``, another model's hidden states and weight, it is the divergence from that model.
        """
        n, chunk = len(hidden), TiedCrossEntropy.CHUNK[hidden.device.type]
        padding = -n % chunk
        rows = F.pad(hidden.detach(), (0, 0, 0, padding)).to(product_type(hidden.device.type))
        wanted = F.pad(targets, (0, padding), value=-1)
        low = weight.detach().to(rows.dtype)
        grad_rows, grad_weight = torch.empty_like(rows), torch.zeros_like(weight)
        total = torch.zeros((), device=hidden.device)
        if original is not None:
            other, low_other = F.pad(original[0], (0, 0, 0, padding)).to(rows.dtype), original[1].to(rows.dtype)
        scale = torch.full((), 1.0 / n, device=hidden.device)
        for start in range(0, len(rows), chunk):
            here = slice(start, start + chunk)
            logits = rows[here] @ low.T
            if original is None:
                loss, slopes = slope(logits, wanted[here], scale)
            else:
                loss, slopes = slope(logits, other[here] @ low_other.T, wanted[here], scale)
            total += loss
            grad_rows[here] = slopes @ low
            grad_weight += slopes.T @ rows[here]
        ctx.save_for_backward(grad_rows[:n].to(hidden.dtype), grad_weight)
        return total / n

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        """Scale the gradients computed by `forward`."""
        grad_hidden, grad_weight = ctx.saved_tensors
        return grad_hidden * grad_outputs[0], grad_weight * grad_outputs[0], None, None, None
