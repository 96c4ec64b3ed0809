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
            for matrix in group["params"]:
                if matrix.grad is not None:
                    self._update(matrix, matrix.grad, group)

    def _update(self, matrix: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state, kept = self.state[matrix], group["momentum"]
        average = state.get("momentum_buffer")
        if average is None:
            average = state["momentum_buffer"] = torch.zeros_like(gradient)
        average.lerp_(gradient, 1 - kept)
        direction = orthogonal(gradient.lerp(average, kept))
        matrix.mul_(1 - group["lr"] * group["weight_decay"])
        matrix.add_(direction, alpha=-group["lr"] * UPDATE_SIZE * max(matrix.shape) ** 0.5)


def orthogonal(matrix: Tensor) -> Tensor:
    """Return a (rows, columns) matrix with the singular vectors of ``matrix`` and singular values of about 1."""
    a, b, c = COEFFICIENTS
    tall = matrix.shape[0] > matrix.shape[1]
    wide = (matrix.T if tall else matrix).to(product_type(matrix.device.type))
    wide = wide / wide.norm().clamp(min=1e-7)
    for _ in range(ITERATIONS):
        gram = wide @ wide.T
        wide = torch.addmm(wide, torch.addmm(gram, gram, gram, beta=b, alpha=c), wide, beta=a)
    return (wide.T if tall else wide).to(matrix.dtype)
