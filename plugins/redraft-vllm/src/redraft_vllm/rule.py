"""Biased acceptance on logits (SSBD v2, section 3.3, equation 3), by Redraft's rule.

A drafted token is accepted if

    p_max - p_draft <= beta / (1 - beta)

With beta below 0.5, the end of the output is the model's own decision: the bias neither accepts a drafted end token
that is not the most probable one, nor overrides an end token that is.  Tokens that the request forbids are never
accepted.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Judged:
    """A drafted token that a row decides about.

    Attributes:
        row: its row in the logits.
        token: the drafted token.
        margin: maximum difference in probability to the best one (`redraft_vllm.drafts.Draft.margin`).
        ends: ids that end the output.
    """

    row: int
    token: int
    margin: float
    ends: Collection[int]


def lift(logits: torch.Tensor, judged: Sequence[Judged]) -> None:
    """Make the drafted token the most probable one in every row that accepts it.

    Args:
        logits: (rows, vocabulary) 32-bit floats; changed in place, only where a drafted token is accepted.
        judged: at most one per row.
    """
    # A margin of 0 accepts only the best token, even with ties.
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
