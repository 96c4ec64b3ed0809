"""Measure how well a drafting model follows the model that it drafts for: how often both prefer the same token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.nn import functional as F

from redraft_train.batch import TOKENS, Example, collate, grouped, length, logits

if TYPE_CHECKING:  # the recipe runs without llama.cpp, which a teacher needs
    from redraft_train.teacher import HfTeacher


@dataclass(frozen=True, slots=True)
class Agreement:
    """How well a model predicts given outputs with teacher forcing.

    Attributes:
        positions: number of tokens predicted, including ends.
        agreement: share of them that are the model's most probable token, 0-1.
        cross_entropy: their mean negative log-probability in nats.
    """

    positions: int
    agreement: float
    cross_entropy: float


@torch.inference_mode()
def agreement(drafting: HfTeacher, examples: Sequence[Example]) -> Agreement:
    """Return how well a model predicts the outputs of ``examples``; zeros if there are none."""
    positions, same, loss, backend = 0, 0, 0.0, drafting.backend
    for group in grouped([length(each) for each in examples], TOKENS):
        batch = collate([examples[place] for place in group], backend.pad_token, backend.device)
        rows = backend.allowed(logits(backend.model, batch))
        positions += len(batch.targets)
        same += int((rows.argmax(-1) == batch.targets).sum())
        loss += float(F.cross_entropy(rows, batch.targets, reduction="sum"))
    return Agreement(positions, same / max(1, positions), loss / max(1, positions))
