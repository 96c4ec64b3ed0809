"""Average the weights of checkpoints of one training: better than each of them (Izmailov et al. 2018).

    python -m redraft_train.recipe average OUT.pt CHECKPOINT ...

A mean with the weights that a training began with forgets less (Wortsman et al. 2022, "Robust fine-tuning").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import torch

from redraft.errors import ModelError
from redraft_train.recipe.restart import read_model


def average(files: Sequence[Path], out: Path, shares: Sequence[float] = ()) -> None:
    """Write the mean of checkpoints or GGUFs, atomically.

    Args:
        files: their files, at least one.
        out: checkpoint to write.
        shares: weight of each in the mean; empty for equal ones.

    Raises:
        ModelError: a file cannot be read, or the shapes differ.
    """
    weights = [share / sum(shares) for share in shares] or [1 / len(files)] * len(files)
    first = read_model(files[0])
    total = {name: value * weights[0] for name, value in first.state_dict().items()}
    for file, weight in zip(files[1:], weights[1:], strict=True):
        model = read_model(file)
        if model.shape != first.shape:
            raise ModelError(f"checkpoint {str(file)!r} has another shape than {str(files[0])!r}")
        for name, value in model.state_dict().items():
            total[name] += value * weight
    part = out.with_suffix(".part")
    torch.save({"shape": asdict(first.shape), "model": total}, part)
    part.replace(out)
