"""Drafts and sequences of ids."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.decoding.types import ROOT, Draft, Provenance, common_prefix

ids = st.lists(st.integers(0, 2), max_size=12)
PROMPT = Provenance.PROMPT


@given(ids, ids, ids)
def test_common_prefix_is_that_of_search_one_by_one(start: list[int], first: list[int], second: list[int]) -> None:
    first, second = start + first, start + second
    expected = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False))))
    assert common_prefix(first, second) == expected
    assert common_prefix(tuple(first), tuple(second)) == expected
    assert common_prefix(tuple(first), second) == expected, "of a tuple and a list"


def test_depths_are_counted_along_parents() -> None:
    draft = Draft((5, 6, 7, 8), (ROOT, 0, ROOT, 1), (PROMPT,) * 4)
    assert draft.depths == (1, 2, 1, 3)
    assert (draft.depth, draft.is_chain) == (3, False)
    assert (Draft().depths, Draft().depth, Draft().is_chain) == ((), 0, True)


def test_what_is_kept_of_draft_has_depths_of_its_own() -> None:
    draft = Draft((5, 6, 7, 8), (ROOT, 0, ROOT, 1), (PROMPT,) * 4, prompt_rows=3, leaves_only=True)
    assert draft.keeping([0, 1, 3]) == replace(Draft.chain((5, 6, 8), PROMPT), prompt_rows=3, leaves_only=True)
    assert draft.keeping([0, 2]).depths == (1, 1)
    assert draft.truncated(1) == draft.keeping([0, 2])
    assert draft.truncated(3) is draft


@pytest.mark.parametrize(("shown", "seen"), [(0, 0), (2, 2), (3, 3), (9, 3)])
def test_draft_of_previous_output(shown: int, seen: int) -> None:
    draft = Draft.previous((5, 6, 7), shown)
    assert draft == replace(Draft.chain((5, 6, 7), PROMPT), provenance=draft.provenance)
    assert draft.provenance == (Provenance.SHOWN,) * seen + (Provenance.PREVIOUS,) * (3 - seen)


@pytest.mark.parametrize("parents", [(0, 1), (ROOT, 1), (ROOT, -2)])
def test_parent_stands_before_its_child(parents: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="before"):
        Draft((1, 2), parents, (PROMPT,) * 2)


@pytest.mark.parametrize("sizes", [(2, 1, 0), (1, 2, 0), (2, 2, 1)])
def test_token_needs_its_parent_and_provenance(sizes: tuple[int, int, int]) -> None:
    parents, provenance, distributions = sizes
    with pytest.raises(ValueError, match="one parent"):
        Draft((1, 2), tuple(range(-1, parents - 1)), (PROMPT,) * provenance, ({1: 1.0},) * distributions)
