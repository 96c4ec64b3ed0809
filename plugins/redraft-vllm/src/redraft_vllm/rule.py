"""Biased acceptance on logits (SSBD v2, section 3.3, equation 3), by Redraft's rule.

A drafted token is kept where

    p_max - p_draft <= beta / (1 - beta)

With a beta below 0.5 the end of the output is the model's own decision: the bias neither keeps a drafted end token that
is not the best one, nor overrules an end token that is. Tokens that the request forbids are never kept.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Judged:
    """A drafted token that one row decides about.

    Attributes:
        row: of the logits.
        token: the drafted one.
        margin: how much less probable than the best one it may be (`redraft_vllm.drafts.Draft.margin`).
        ends: ids that end the output.
    """

    row: int
    token: int
    margin: float
    ends: Collection[int]


def lift(logits: torch.Tensor, judged: Sequence[Judged]) -> None:
    """Make the drafted token the best one of every row that keeps it.

    Args:
        logits: (rows, vocabulary) in 32-bit floats; changed in place, and only where a drafted token is kept.
        judged: at most one for a row.
    """
    # A margin of 0 keeps nothing but the best token, ties included.
    judged = [each for each in judged if each.margin > 0]
    if not judged:
        return
    rows = torch.tensor([each.row for each in judged], device=logits.device)
    tokens = torch.tensor([each.token for each in judged], device=logits.device)
    margins = torch.tensor([each.margin for each in judged], device=logits.device)
    picked = logits[rows]
    highest, best = picked.max(dim=-1)
    drafted = picked.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
    total = picked.logsumexp(dim=-1)
    keeps = (highest - total).exp() - (drafted - total).exp() <= margins
    keeps &= drafted.isfinite()
    for place, (each, first) in enumerate(zip(judged, best.tolist(), strict=True)):
        if each.margin < math.inf and (first in each.ends or each.token in each.ends):
            keeps[place] = False
    logits[rows[keeps], tokens[keeps]] = highest[keeps] + 1.0
