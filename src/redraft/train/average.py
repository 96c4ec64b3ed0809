"""Averages of weights: fine-tunings of one model, each better at something, become one model.

After Wortsman et al. 2022, "Model soups: averaging weights of multiple fine-tuned models improves accuracy without
increasing inference time".  It needs a common ancestor: the mean of models trained apart is no model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from redraft.errors import ModelError


@dataclass(frozen=True, slots=True)
class Average:
    """A model of the recipe that is not trained.

    Attributes:
        shares: what each stage's weights count, by name; they sum to 1.
    """

    shares: Mapping[str, float]


def average(checkpoints: Mapping[Path, float], out: Path) -> None:
    """Write the mean of checkpoints as one without optimizers, whole or not at all.

    Args:
        checkpoints: what each file's weights count.

    Raises:
        ModelError: their models are of different shapes.
    """
    states = {path: torch.load(path, map_location="cpu") for path in checkpoints}
    first, *others = states
    for path in others:
        if states[path]["shape"] != states[first]["shape"]:
            raise ModelError(
                f"{str(first)!r} and {str(path)!r} cannot be averaged: their models must be of one shape, and are of "
                f"{states[first]['shape']} and {states[path]['shape']}"
            )
    mean = {
        name: sum((share * states[path]["model"][name] for path, share in checkpoints.items()), torch.zeros(()))
        for name in states[first]["model"]
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_suffix(".part")
    torch.save({"shape": states[first]["shape"], "model": mean}, part)
    part.replace(out)
