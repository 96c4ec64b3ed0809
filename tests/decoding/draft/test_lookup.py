"""Prompt lookup: which n-gram is drafted, greedy's ids in fewer passes."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from redraft.decoding.draft.lookup import Lookup
from redraft.decoding.types import EMPTY_DRAFT, Context, Draft, Provenance
from tests.fakes import END

prompts = st.lists(st.integers(0, 4), min_size=1, max_size=20).map(tuple)
seeds = st.integers(0, 10_000)


def proposed(drafter: Lookup, prompt: tuple[int, ...], output: tuple[int, ...] = (), room: int = 20) -> Draft:
    with pytest.raises(StopIteration) as stop:
        next(drafter.propose(Context(prompt, output, (), room)))
    draft = stop.value.value
    assert isinstance(draft, Draft)
    return draft


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
    assert proposed(Lookup(), (1, 2, 3)) == EMPTY_DRAFT
    assert proposed(Lookup(), (1, 2, 1), room=0) == EMPTY_DRAFT
    assert proposed(Lookup(end_tokens=frozenset({END})), (1, END, 5, 1)) == EMPTY_DRAFT
    assert proposed(Lookup(), (1, 2, 3, 1), room=1).tokens == (2,)
