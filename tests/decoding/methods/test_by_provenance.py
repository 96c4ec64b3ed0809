"""Which rule a draft falls under, and SSBD in front of an exact drafter."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.decoding.decode import decode
from redraft.decoding.drive import run
from redraft.decoding.methods.bild import Rollback
from redraft.decoding.methods.combined import ByProvenance, FirstNonEmpty
from redraft.decoding.methods.lookup import Lookup
from redraft.decoding.methods.ssbd import Biased, Everything, PreviousOutput
from redraft.decoding.rules import Exact
from redraft.decoding.sampling import Sampler
from redraft.decoding.types import OF_PREVIOUS, Draft, Provenance, Rule, Score
from tests.fakes import END, RandomModel

RULE = ByProvenance({Provenance.PREVIOUS: Everything(), Provenance.MODEL: Everything()}, Exact())
tokens = st.lists(st.integers(1, 4), max_size=20).map(tuple)


@pytest.mark.parametrize("provenance", [Provenance.SHOWN, Provenance.PREVIOUS, Provenance.MODEL, "from a plug-in"])
def test_first_token_decides(provenance: str) -> None:
    model = RandomModel(1)
    worst = int(model.logits((1, 2)).argmin())
    draft = Draft((worst, worst), (-1, 0), (provenance, Provenance.PROMPT))
    accepted = RULE.judge(draft, model.score([(0, Score((1, 2), draft))])[0]).accepted
    assert accepted == ((0, 1) if provenance in (Provenance.PREVIOUS, Provenance.MODEL) else ())


def test_empty_draft_falls_under_other_rule() -> None:
    model = RandomModel(1)
    verdict = RULE.judge(Draft(), model.score([(0, Score((1, 2)))])[0])
    assert (verdict.accepted, verdict.token) == ((), int(model.logits((1, 2)).argmax()))


@given(st.integers(0, 10_000), tokens, tokens, st.integers(0, 20), st.floats(0, 1), st.integers(1, 24))
def test_lookup_after_ssbd(
    seed: int, prompt: tuple[int, ...], previous: tuple[int, ...], shown: int, beta: float, limit: int
) -> None:
    model, prompt = RandomModel(seed, vocabulary=5), (1, *prompt)
    biased = Biased(beta, 0.0, model.end_tokens)

    def passes_and_ids(drafter: PreviousOutput | FirstNonEmpty, rule: Rule) -> tuple[int, tuple[int, ...], bool]:
        asking = decode(prompt, drafter, rule, previous=previous, shown=shown, end_tokens=frozenset({END}), limit=limit)
        output = run(asking, model, 0)
        return output.passes, output.tokens, output.finished

    alone = passes_and_ids(PreviousOutput(), biased)
    both = passes_and_ids(
        FirstNonEmpty(PreviousOutput(), Lookup(3, 10, model.end_tokens)),
        ByProvenance(dict.fromkeys(OF_PREVIOUS, biased), Exact()),
    )
    assert both[1:] == alone[1:]
    assert both[0] <= alone[0]


def test_biases_are_those_of_rule_for_draft() -> None:
    rule = ByProvenance(dict.fromkeys(OF_PREVIOUS, Biased(0.3, hidden=0.1)), Exact())
    assert rule.biases(Draft.previous((4, 5, 6), 1)) == (0.3, 0.1, 0.1)
    assert rule.biases(Draft.chain((4, 5), Provenance.PROMPT)) == (0.0, 0.0)
    rollback = ByProvenance(dict.fromkeys(OF_PREVIOUS, Biased(0.3)), Rollback(2.0, Sampler()))
    assert rollback.biases(Draft.chain((4,), Provenance.MODEL)) is None
    assert rollback.biases(Draft()) is None
