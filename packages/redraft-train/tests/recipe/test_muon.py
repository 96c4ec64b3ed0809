"""The optimizer of the matrices follows torch's, whose products are in bfloat16."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs recipe.txt of redraft-train")

from redraft_train.recipe.muon import Muon  # noqa: E402


@pytest.mark.parametrize("shape", [(24, 8), (8, 24), (16, 16)])
def test_muon_follows_torch(shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    ours = torch.nn.Parameter(torch.randn(shape))
    theirs = torch.nn.Parameter(ours.detach().clone())
    begun = ours.detach().clone()
    optimizers = (
        Muon([ours], lr=0.01),
        torch.optim.Muon([theirs], lr=0.01, weight_decay=0.05, adjust_lr_fn="match_rms_adamw"),
    )
    for _ in range(5):
        ours.grad = torch.randn(shape)
        theirs.grad = ours.grad.clone()
        for optimizer in optimizers:
            optimizer.step()
    moved = (theirs.detach() - begun).norm()
    assert moved > 0.01
    assert (ours - theirs).norm() < 0.05 * moved
