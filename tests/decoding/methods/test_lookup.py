"""Prompt lookup: which n-gram is drafted, greedy's ids in fewer passes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from redraft.decoding.decode import decode
from redraft.decoding.drive import run
from redraft.decoding.methods.lookup import Lookup
from redraft.decoding.rules import Exact
from redraft.decoding.types import EMPTY_DRAFT, Context, Draft, Prompt, Provenance
from tests.fakes import END, RandomModel, greedy

prompts = st.lists(st.integers(0, 4), min_size=1, max_size=20).map(tuple)
seeds = st.integers(0, 10_000)


def proposed(drafter: Lookup, prompt: tuple[int, ...], output: tuple[int, ...] = (), room: int = 20) -> Draft:
    return drafter.propose(Context(Prompt(prompt), output, (), room))


def test_first_occurrence_of_longest_key_is_continued() -> None:
    prompt = (5, 6, 7, 1, 9, 6, 7, 2, 5, 6, 7)
    assert proposed(Lookup(3, 4), prompt).tokens == (1, 9, 6, 7)
    assert proposed(Lookup(2, 2), (8, 7, 3, 6, 7, 1, 6, 7, 2, 6, 7)).tokens == (1, 6)
    assert proposed(Lookup(1, 2), (8, 7, 3, 6, 7, 1, 6, 7, 2, 6, 7)).tokens == (3, 6)


def test_prompt_and_output_are_one_chain() -> None:
    draft = proposed(Lookup(2, 3), (1, 2), (3, 4, 1, 2))
    assert draft == Draft((3, 4, 1), (-1, 0, 1), (Provenance.GENERATED, Provenance.GENERATED, Provenance.GENERATED))
    across = proposed(Lookup(2, 3), (1, 2, 6), (3, 4, 1, 2))
    assert across.tokens == (6, 3, 4)
    assert across.provenance == (Provenance.PROMPT, Provenance.GENERATED, Provenance.GENERATED)


def test_no_key_no_room_or_end_draft_nothing() -> None:
    assert proposed(Lookup(3, 10), (1, 2, 3)) == EMPTY_DRAFT
    assert proposed(Lookup(3, 10), (1, 2, 1), room=0) == EMPTY_DRAFT
    assert proposed(Lookup(3, 10, frozenset({END})), (1, END, 5, 1)) == EMPTY_DRAFT
    assert proposed(Lookup(3, 10), (1, 2, 3, 1), room=1).tokens == (2,)


@given(seeds, prompts, st.integers(1, 4), st.integers(1, 8), st.integers(1, 30), st.sampled_from([-100.0, 0.0]))
def test_lookup_exact(seed: int, prompt: tuple[int, ...], key: int, ngram: int, limit: int, end_bias: float) -> None:
    model = RandomModel(seed, vocabulary=5, end_bias=end_bias)
    drafter = Lookup(key, ngram, model.end_tokens)
    output = run(decode(Prompt(prompt), drafter, Exact(), end_tokens=model.end_tokens, limit=limit), model, 0)
    expected = greedy(model, prompt, limit)
    assert list(output.tokens) == expected
    assert output.passes == len(expected) + output.finished - output.accepted == len(model.requests)
    assert all(END not in request.draft.tokens for request in model.requests)


def test_repetitive_output_takes_fraction_of_passes() -> None:
    # Five tokens and a model that looks at two: after a while its output repeats itself.
    model = RandomModel(3, vocabulary=5, shift=0.0, end_bias=-100)
    output = run(decode(Prompt((1, 2)), Lookup(3, 10), Exact(), end_tokens=model.end_tokens, limit=80), model, 0)
    assert output.passes < 30
    assert output.accepted == 80 - output.passes
