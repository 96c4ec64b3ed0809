"""The rule on logits keeps what Redraft's own rule keeps on the same rows."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("torch", reason="needs the extra hf")

import numpy as np
import torch

from redraft.backends.numpy_rows import NumpyRows
from redraft.decoding.methods.ssbd import Biased
from redraft.decoding.types import Draft as Chain
from redraft_vllm.drafts import Draft
from redraft_vllm.rule import Judged, lift

VOCABULARY, END = 12, 3


def kept(logits: torch.Tensor, tokens: list[int], bias: float) -> list[bool]:
    """Whether each row's best token is the drafted one after lifting."""
    lifted = logits.clone()
    lift(lifted, [Judged(row, token, Draft([], bias).margin(0), {END}) for row, token in enumerate(tokens)])
    changed = (lifted != logits).sum(dim=-1)
    assert changed.max() <= 1, "nothing but the drafted token changes"
    return [int(best) == token for best, token in zip(lifted.argmax(dim=-1), tokens, strict=True)]


@pytest.mark.parametrize("bias", [0.0, 0.002, 0.05, 0.2, 0.3, 0.49])
@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_rule_of_the_library(bias: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    logits = random.normal(0, 1.0, (400, VOCABULARY)).astype(np.float32)
    tokens = random.integers(0, VOCABULARY, 400).tolist()
    rule = Biased(bias, end_tokens=frozenset({END}))
    wanted = [
        bool(rule.judge(Chain.previous([token], 1), NumpyRows(np.stack([row, row]), 0)).accepted)
        for row, token in zip(logits, tokens, strict=True)
    ]
    assert kept(torch.from_numpy(logits), tokens, bias) == wanted
    assert any(wanted) and not all(wanted)


def test_from_a_bias_of_a_half_on_everything_is_kept() -> None:
    logits = torch.randn(200, VOCABULARY, generator=torch.manual_seed(0))
    assert all(kept(logits, [row % VOCABULARY for row in range(200)], 0.5))


def test_a_bias_of_0_rejects_ties() -> None:
    logits = torch.zeros(1, VOCABULARY)
    assert kept(logits, [5], 0.0) == [False] and kept(logits, [5], 0.001) == [True]


def test_forbidden_tokens_are_not_kept() -> None:
    logits = torch.zeros(2, VOCABULARY)
    logits[:, 5] = -math.inf
    assert kept(logits, [5, 5], 0.4) == kept(logits, [5, 5], 1.0) == [False, False]


def test_rows_that_are_not_judged_stay() -> None:
    logits = torch.randn(3, VOCABULARY, generator=torch.manual_seed(0))
    lifted = logits.clone()
    lift(lifted, [Judged(1, 5, math.inf, ())])
    assert lifted[[0, 2]].equal(logits[[0, 2]]) and int(lifted[1].argmax()) == 5
    lift(lifted, [])
