"""Muon in the precision that the processor multiplies fast.

`torch.optim.Muon` always orthogonalises in bfloat16.  A processor without instructions for it is fifty times slower
that way than in 32 bits, so that a step spent four fifths of its time here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from redraft_train.recipe.model import product_type

#: Coefficients of the quintic iteration, and the number of iterations (Jordan et al. 2024, "Muon").
COEFFICIENTS, ITERATIONS = (3.4445, -4.7750, 2.0315), 5
#: Updates have this root mean square, as those of AdamW do (Liu et al. 2025, "Muon is scalable for LLM training").
UPDATE_SIZE = 0.2


class Muon(torch.optim.Optimizer):
    """Nesterov momentum, orthogonalised; for matrices only."""

    def __init__(
        self, matrices: Iterable[Tensor], lr: float, momentum: float = 0.95, weight_decay: float = 0.05
    ) -> None:
        super().__init__(matrices, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Do one step from the gradients; ``closure`` must be None."""
        for group in self.param_groups:
            alike: dict[torch.Size, list[Tensor]] = {}  # together, since a GPU waits for many small products
            for matrix in group["params"]:
                if matrix.grad is not None:
                    alike.setdefault(matrix.shape, []).append(matrix)
            for shape, matrices in alike.items():
                smoothed = [self._smoothed(matrix, matrix.grad, group["momentum"]) for matrix in matrices]
                directions = orthogonal(torch.stack(smoothed))
                torch._foreach_mul_(matrices, 1 - group["lr"] * group["weight_decay"])
                size = group["lr"] * UPDATE_SIZE * max(shape) ** 0.5
                torch._foreach_add_(matrices, [*directions], alpha=-size)

    def _smoothed(self, matrix: Tensor, gradient: Tensor, kept: float) -> Tensor:
        """Return the gradient with Nesterov momentum."""
        state = self.state[matrix]
        average = state.get("momentum_buffer")
        if average is None:
            average = state["momentum_buffer"] = torch.zeros_like(gradient)
        average.lerp_(gradient, 1 - kept)
        return gradient.lerp(average, kept)


def orthogonal(matrices: Tensor) -> Tensor:
    """Return (n, rows, columns) matrices with the singular vectors of ``matrices`` and singular values of about 1."""
    a, b, c = COEFFICIENTS
    tall = matrices.shape[1] > matrices.shape[2]
    wide = (matrices.mT if tall else matrices).to(product_type(matrices.device.type))
    wide = wide / wide.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    for _ in range(ITERATIONS):
        gram = wide @ wide.mT
        wide = torch.baddbmm(wide, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), wide, beta=a)
    return (wide.mT if tall else wide).to(matrices.dtype)
