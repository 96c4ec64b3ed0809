"""Merging paths into a draft tree under caps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from redraft.decoding.drafters import Tree
from redraft.decoding.types import ROOT, Draft, Provenance

PROMPT, GENERATED = Provenance.PROMPT, Provenance.GENERATED


def steps(*tokens: int, provenance: str = PROMPT) -> list[tuple[int, str]]:
    return [(token, provenance) for token in tokens]


def leaves(draft: Draft) -> int:
    return len(set(range(len(draft))) - set(draft.parents))


def test_equal_beginnings_are_merged() -> None:
    tree = Tree(9, 99)
    assert tree.add_path(ROOT, steps(1, 2, 3)) == [0, 1, 2]
    assert tree.add_path(ROOT, steps(1, 2, 4)) == [0, 1, 3]
    assert tree.add_path(0, steps(2, 3, 5)) == [1, 2, 4]
    nodes = (1, 2, 3, 4, 5), (-1, 0, 1, 1, 2), (PROMPT,) * 5
    assert tree.draft(7) == Draft(*nodes, prompt_rows=7)
    assert tree.draft(leaves_only=True) == Draft(*nodes, leaves_only=True)


def test_provenance_of_merged_token() -> None:
    for first, second in ((PROMPT, GENERATED), (GENERATED, PROMPT)):
        tree = Tree(9, 99, PROMPT)
        tree.add_path(ROOT, steps(1, provenance=first))
        tree.add_path(ROOT, [*steps(1, provenance=second), *steps(2, provenance=GENERATED)])
        assert tree.draft().provenance == (PROMPT, GENERATED)


def test_caps_cut_path_where_it_branches_off() -> None:
    tree = Tree(2, 99)
    tree.add_path(ROOT, steps(1, 2))
    tree.add_path(ROOT, steps(1, 3))
    assert tree.add_path(ROOT, steps(1, 4, 5)) == [0], "a third leaf is one too many"
    assert tree.add_path(ROOT, steps(1, 4, 2)) == [0], "and what follows it would stand elsewhere"
    assert tree.add_path(ROOT, steps(1, 3, 6)) == [0, 2, 3], "but a leaf can be continued"
    tree = Tree(9, 3)
    assert tree.add_path(ROOT, steps(1, 2, 3, 4)) == [0, 1, 2]
    assert tree.add_path(ROOT, steps(5)) == []


@given(
    st.integers(1, 5),
    st.integers(1, 12),
    st.lists(st.tuples(st.integers(-1, 20), st.lists(st.integers(0, 3), max_size=5)), max_size=12),
)
def test_caps_hold_and_siblings_differ(most_leaves: int, most_nodes: int, paths: list[tuple[int, list[int]]]) -> None:
    tree = Tree(most_leaves, most_nodes)
    for parent, tokens in paths:
        if parent < len(tree.draft()):
            tree.add_path(parent, steps(*tokens))
    draft = tree.draft()
    assert leaves(draft) <= most_leaves
    assert len(draft) <= most_nodes
    assert len(set(zip(draft.parents, draft.tokens, strict=True))) == len(draft)
    if any(parent == ROOT and tokens for parent, tokens in paths):
        assert len(draft) >= 1
