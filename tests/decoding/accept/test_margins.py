"""How sure the target is of every token of an output, whichever rule has chosen it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.decoding.accept.exact import Exact
from redraft.decoding.accept.margins import Sure, margin
from redraft.decoding.decode import decode
from redraft.decoding.drive import run
from redraft.decoding.method import Setup
from redraft.decoding.methods import get_method
from redraft.decoding.types import ROOT, Draft, Provenance, Rule, Score, Verdict
from tests.fakes import RandomModel, distribution


def expected(model: RandomModel, prefix: list[int], token: int) -> float:
    """By the definition, over the whole vocabulary."""
    (rows,) = model.score([(0, Score(tuple(prefix)))])
    probabilities = distribution(rows, ROOT)
    return probabilities[token] - max(p for other, p in enumerate(probabilities) if other != token)


def test_margin_is_positive_for_best_token_alone() -> None:
    model = RandomModel(1)
    (rows,) = model.score([(0, Score((1, 2, 3)))])
    best = rows.argmax(ROOT)
    for token in range(model.vocabulary):
        found = margin(rows, ROOT, token)
        assert found == pytest.approx(expected(model, [1, 2, 3], token))
        assert (found > 0) == (token == best)


METHODS = ["ar", "ssbd", "cd", "redraft", "redraft-tree", "pld", "gs-jacobi"]


@given(st.integers(0, 60), st.sampled_from(METHODS), st.sampled_from([-1, -0.2, 0, 0.05, 0.3, 1]))
def test_tokens_before_first_small_margin_are_counted(seed: int, name: str, least: float) -> None:
    model, prompt = RandomModel(seed, end_bias=0.5), (3, 4, 5)
    method = get_method(name)
    options = {"cost": "flat"} if name.startswith("redraft") else {}
    drafter, rule = method.build(Setup(method.check(options), model.end_tokens, model.pad_token))
    watched = Sure(rule, least)
    assert isinstance(watched, Rule)
    previous = tuple(token for token in (7, 8, 9, 7, 8) if name != "ar")
    asking = decode(prompt, drafter, watched, previous=previous, end_tokens=model.end_tokens, limit=12)
    output = run(asking, model, model.open_slot()).tokens
    margins = [expected(model, [*prompt, *output[:place]], token) for place, token in enumerate(output)]
    small = [place for place, found in enumerate(margins) if found < least]
    assert min(watched.kept, len(output)) == (small[0] if small else len(output))


class Says:
    """A rule that always says the same."""

    def __init__(self, verdict: Verdict) -> None:
        self._verdict = verdict

    def judge(self, draft: Draft, rows: object) -> Verdict:
        return self._verdict


def test_verdict_is_rules() -> None:
    model, draft = RandomModel(2), Draft.chain((4, 5), Provenance.PREVIOUS)
    (rows,) = model.score([(0, Score((1, 2), draft))])
    watched = Sure(Says(Verdict((0,), None)), -1)
    assert watched.judge(draft, rows) == Verdict((0,), None)
    assert watched.kept == 1
    assert Sure(Exact(), 0).judge(draft, rows) == Exact().judge(draft, rows)


@pytest.mark.parametrize(("tokens", "least", "kept"), [((5, 5), 0, 3), ((5, 5), -0.5, 3), ((4, 5), 0.5, 0)])
def test_probabilities_only_where_needed(tokens: tuple[int, ...], least: float, kept: int) -> None:
    class Ordered:
        """Rows that know nothing but their best token."""

        def argmax(self, node: int) -> int:
            return 5

    watched = Sure(Says(Verdict((0, 1), 5)), least)
    watched.judge(Draft.chain(tokens, Provenance.PREVIOUS), Ordered())  # type: ignore[arg-type]
    assert watched.kept == kept
