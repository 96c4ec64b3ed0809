"""Figure 1 and equation 7 of AASD by hand."""

from __future__ import annotations

from collections import Counter

import pytest

from redraft.decoding.decode import decode
from redraft.decoding.drive import run
from redraft.decoding.methods.lookup import Lookup
from redraft.decoding.rules import Exact
from redraft.decoding.types import Prompt
from redraft_bench.scripts.alignment import Aligning, overlap
from tests.fakes import RandomModel, greedy


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [("a b c d", "b d", 1.0), ("a b c", "c b", 0.5), ("a b", "x y", 0.0), ("a", "", 0.0), ("a b a b", "b a x b", 0.75)],
)
def test_overlap(source: str, target: str, expected: float) -> None:
    assert overlap(source.split(), target.split()) == expected


def test_aligned_tokens_are_accepted_more_often() -> None:
    counts: Counter[tuple[bool, bool]] = Counter()
    outputs = 0
    for seed in range(40):
        model = RandomModel(seed, vocabulary=6, shift=0.0, end_bias=-9)
        prompt = (1, 2, *greedy(model, (1, 2), 8), 1, 3, 2, 1, 2)
        drafter = Aligning(Lookup(3, 4, model.end_tokens), counts)
        output = run(decode(Prompt(prompt), drafter, Exact(), end_tokens=model.end_tokens, limit=12), model, 0)
        assert list(output.tokens) == greedy(model, prompt, 12)
        outputs += output.accepted
    # The next token depends on the last two alone, so what the model wrote before, it writes again.
    assert counts[True, True] > 5 * counts[True, False]
    assert counts[False, False] > counts[False, True]
    assert 0 < counts[True, True] + counts[False, True] <= outputs
