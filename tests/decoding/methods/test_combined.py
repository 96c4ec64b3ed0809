"""Which rule a draft falls under, and SSBD in front of an exact drafter."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.decoding.decode import decode
from redraft.decoding.drive import run
from redraft.decoding.methods.bild import Rollback
from redraft.decoding.methods.combined import InTurn
from redraft.decoding.methods.lookup import Lookup
from redraft.decoding.methods.ssbd import Biased, PreviousOutput
from redraft.decoding.rules import Exact, Sampler
from redraft.decoding.types import Context, Draft, Drafter, Prompt, Provenance, Rule, Score
from tests.fakes import END, Everything, RandomModel

tokens = st.lists(st.integers(1, 4), max_size=20).map(tuple)


class Planted(Drafter):
    """Always drafts the same."""

    def __init__(self, tokens: tuple[int, ...]) -> None:
        self.tokens = tokens

    def propose(self, context: Context) -> Draft:
        return Draft.chain(self.tokens, Provenance.MODEL)


def proposed(method: InTurn, previous: tuple[int, ...], output: tuple[int, ...] = ()) -> Draft:
    try:
        next(method.drafting(Context(Prompt((1, 2)), output, previous, 9, shown=1)))
    except StopIteration as stop:
        return cast("Draft", stop.value)
    raise AssertionError


@pytest.mark.parametrize("first", [True, False])
def test_rule_is_that_of_the_drafter(first: bool) -> None:
    model = RandomModel(1)
    worst = int(model.logits((1, 2)).argmin())
    exact, everything = (PreviousOutput(), Exact()), (Planted((worst, worst)), Everything())
    draft = proposed(method := InTurn(exact, everything), (worst, worst) if first else ())
    assert draft.tokens == (worst, worst)
    accepted = method.judge(draft, model.score([(0, Score((1, 2), draft))])[0]).accepted
    assert accepted == (() if first else (0, 1))


def test_empty_draft_falls_to_the_last_rule() -> None:
    model = RandomModel(1)
    method = InTurn((PreviousOutput(), Exact()), (Planted(()), Rollback(2.0, Sampler())))
    draft = proposed(method, ())
    verdict = method.judge(draft, model.score([(0, Score((1, 2)))])[0])
    assert (verdict.accepted, verdict.token) == ((), int(model.logits((1, 2)).argmax()))
    assert method.biases(draft) is None


@given(st.integers(0, 10_000), tokens, tokens, st.integers(0, 20), st.floats(0, 1), st.integers(1, 24))
def test_lookup_after_ssbd(
    seed: int, prompt: tuple[int, ...], previous: tuple[int, ...], shown: int, beta: float, limit: int
) -> None:
    model, prompt = RandomModel(seed, vocabulary=5), (1, *prompt)
    biased = Biased(beta, 0.0, model.end_tokens)

    def passes_and_ids(drafter: Drafter, rule: Rule) -> tuple[int, tuple[int, ...], bool]:
        asking = decode(
            Prompt(prompt), drafter, rule, previous=previous, shown=shown, end_tokens=frozenset({END}), limit=limit
        )
        output = run(asking, model, 0)
        return output.passes, output.tokens, output.finished

    alone = passes_and_ids(PreviousOutput(), biased)
    method = InTurn((PreviousOutput(), biased), (Lookup(3, 10, model.end_tokens), Exact()))
    both = passes_and_ids(method, method)
    assert both[1:] == alone[1:]
    assert both[0] <= alone[0]


def test_biases_are_those_of_the_drafters_rule() -> None:
    method = InTurn((PreviousOutput(), Biased(0.3, hidden=0.1)), (Planted((4,)), Rollback(2.0, Sampler())))
    previous = Draft.previous((4, 5, 6), 1)
    assert method.biases(previous) == (0.3, 0.1, 0.1), "before a pass, those towards the previous output"
    assert method.biases(proposed(method, (4, 5, 6))) == (0.3, 0.1, 0.1)
    assert method.biases(proposed(method, (4, 5, 6), (4, 7))) is None
