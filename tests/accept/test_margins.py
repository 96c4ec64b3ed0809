"""How sure the target is of every token of an output, whichever rule has chosen it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.accept.exact import Exact
from redraft.accept.margins import Margins, margin
from redraft.decode import decode
from redraft.drive import run
from redraft.method import Setup
from redraft.methods import get_method
from redraft.types import ROOT, Draft, Provenance, Rule, Score, Verdict
from tests.fakes import RandomModel, distribution


def expected(model: RandomModel, prefix: list[int], token: int) -> float:
    """By the definition, over the whole vocabulary."""
    (rows,) = model.score([(0, Score(tuple(prefix)))])
    probabilities = distribution(rows, ROOT)
    return probabilities[token] - max(p for other, p in enumerate(probabilities) if other != token)


def test_a_margin_is_positive_for_the_best_token_alone() -> None:
    model = RandomModel(1)
    (rows,) = model.score([(0, Score((1, 2, 3)))])
    best = rows.argmax(ROOT)
    for token in range(model.vocabulary):
        found = margin(rows, ROOT, token)
        assert found == pytest.approx(expected(model, [1, 2, 3], token))
        assert (found > 0) == (token == best)


@given(st.integers(0, 60), st.sampled_from(["ar", "ssbd", "cd", "redraft", "redraft-tree", "pld", "gs-jacobi"]))
def test_every_token_of_an_output_has_its_margin(seed: int, name: str) -> None:
    model, prompt = RandomModel(seed, end_bias=0.5), (3, 4, 5)
    method = get_method(name)
    options = {"cost": "flat"} if name.startswith("redraft") else {}
    drafter, rule = method.build(Setup(method.check(options), model.end_tokens, model.pad_token))
    watched = Margins(rule)
    assert isinstance(watched, Rule)
    previous = tuple(token for token in (7, 8, 9, 7, 8) if name != "ar")
    asking = decode(prompt, drafter, watched, previous=previous, end_tokens=model.end_tokens, limit=12)
    output = run(asking, model, model.open_slot()).tokens
    assert len(watched.found) >= len(output)
    for place, token in enumerate(output):
        assert watched.found[place] == pytest.approx(expected(model, [*prompt, *output[:place]], token))


def test_the_verdict_is_the_rules_own_and_one_that_holds_back_is_heard() -> None:
    class Waits:
        def judge(self, draft: Draft, rows: object) -> Verdict:
            return Verdict((0,), None)

    model, draft = RandomModel(2), Draft.chain((4, 5), Provenance.PREVIOUS)
    (rows,) = model.score([(0, Score((1, 2), draft))])
    watched = Margins(Waits())
    assert watched.judge(draft, rows) == Verdict((0,), None)
    assert watched.found == [margin(rows, ROOT, 4)]
    assert Margins(Exact()).judge(draft, rows) == Exact().judge(draft, rows)
    assert math.isclose(watched.found[0], expected(model, [1, 2], 4))
