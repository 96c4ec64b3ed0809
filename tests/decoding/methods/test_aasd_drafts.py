"""AASD's drafter: Figure 2, widening, limits, and greedy ids under exact acceptance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from redraft.backends.load import BRANCHES_OF_A_TREE
from redraft.decoding.decode import decode
from redraft.decoding.drafters import Nothing
from redraft.decoding.drive import run
from redraft.decoding.methods.aasd import MOST_LEAVES, MOST_NODES, Aligned, PromptRows
from redraft.decoding.rules import Exact
from redraft.decoding.types import Draft, Output, Prompt, Provenance
from tests.fakes import END, RandomModel, greedy

prompts = st.lists(st.integers(0, 4), min_size=1, max_size=20).map(tuple)
seeds = st.integers(0, 10_000)
limits = st.integers(1, 30)

MICHAEL, JACKSON, IS, WAS, MADE, A, GREAT, SINGER, TELL = range(1, 10)
PROMPT = (MICHAEL, JACKSON, IS, A, GREAT, SINGER, TELL)


#: What the model of Figure 2 ranks first after each token.
RANKING = {
    MICHAEL: [JACKSON],
    JACKSON: [WAS, MADE, IS, A],
    WAS: [A],
    MADE: [A],
    IS: [A],
    A: [GREAT],
    GREAT: [SINGER],
    SINGER: [END, TELL],
    TELL: [MICHAEL],
}


class Figure2(RandomModel):
    """After "Jackson" it prefers was to made to is; everything else that it says is in the prompt."""

    def logits(self, ids: Sequence[int]) -> np.ndarray:
        logits = np.zeros(self.vocabulary)
        for place, token in enumerate(RANKING[ids[-1]]):
            logits[token] = 9 - place
        return logits


def drafted(
    model: RandomModel, prompt: tuple[int, ...], drafter: Aligned, limit: int = 30
) -> tuple[Output, list[Draft]]:
    output = run(decode(Prompt(prompt), drafter, Exact(), end_tokens=model.end_tokens, limit=limit), model, 0)
    return output, [request.draft for request in model.requests]


def paths(draft: Draft) -> set[tuple[int, ...]]:
    """The tokens of every path from the root to a leaf."""
    found: list[tuple[int, ...]] = []
    for token, parent in zip(draft.tokens, draft.parents, strict=True):
        found.append((found[parent] if parent >= 0 else ()) + (token,))
    return {path for node, path in enumerate(found) if node not in draft.parents}


def test_figure_2() -> None:
    output, drafts = drafted(Figure2(), PROMPT, Aligned(end_tokens=frozenset({END})))
    assert output.tokens == (MICHAEL, JACKSON, WAS, A, GREAT, SINGER)
    # "is" is misaligned and gets two siblings; the aligned tokens around it get none.  "tell" is misaligned too, but
    # the token above it is the end, which is never drafted.
    rest = (A, GREAT, SINGER, TELL)
    assert paths(drafts[1]) == {(JACKSON, verb, *rest) for verb in (IS, WAS, MADE)}
    assert set(drafts[1].provenance) == {Provenance.PROMPT}
    # Pass 1 gives "Michael", pass 2 accepts five tokens and gives the end after them.
    assert (output.passes, output.accepted, output.finished) == (2, 5, True)


def test_without_alignment_sampling() -> None:
    output, drafts = drafted(Figure2(), PROMPT, Aligned(width=0, end_tokens=frozenset({END})))
    assert output.tokens == (MICHAEL, JACKSON, WAS, A, GREAT, SINGER)
    assert paths(drafts[1]) == {(JACKSON, IS, A, GREAT, SINGER, TELL)}
    # "Jackson" is accepted and "was" corrects; "was" is no key, so "a" takes a pass; "a" then finds "great singer".
    assert [draft.tokens for draft in drafts[2:]] == [(), (GREAT, SINGER, TELL, MICHAEL, JACKSON, WAS)]
    assert (output.passes, output.accepted) == (4, 3)
    assert {draft.prompt_rows for draft in drafts} == {1}


@pytest.mark.parametrize(("width", "verbs"), [(0, {IS}), (1, {IS, WAS}), (2, {IS, WAS, MADE})])
def test_width_is_most_siblings_of_token(width: int, verbs: set[int]) -> None:
    _, drafts = drafted(Figure2(), PROMPT, Aligned(width=width, end_tokens=frozenset({END})))
    assert {path[1] for path in paths(drafts[1])} == verbs


def test_only_tokens_that_rank_above_are_added() -> None:
    prompt = (MICHAEL, JACKSON, MADE, A, GREAT, SINGER, TELL)
    _, drafts = drafted(Figure2(), prompt, Aligned(end_tokens=frozenset({END})))
    assert {path[1] for path in paths(drafts[1])} == {MADE, WAS}, "the second best has one token above it"


def test_best_token_of_its_row_gets_no_siblings() -> None:
    prompt = (MICHAEL, JACKSON, WAS, A, GREAT, SINGER, TELL)
    _, drafts = drafted(Figure2(), prompt, Aligned(end_tokens=frozenset({END})))
    assert {path[1] for path in paths(drafts[1])} == {WAS}


def test_token_of_prompt_and_of_generated_text_counts_as_prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RANKING, SINGER, [TELL])  # it never ends
    model = Figure2()
    drafted(model, PROMPT, Aligned(key_length=1, ngram=3, width=1), limit=16)
    # After "Jackson" was generated again: "was a great" was generated, and "was" is also above "is" in the prompt.
    (draft,) = (each.draft for each in model.requests if each.prefix[-1] == JACKSON)
    assert paths(draft) == {(IS, A, GREAT), (WAS, A, GREAT)}
    assert set(draft.provenance) == {Provenance.PROMPT}


def test_all_rows_of_prompt_are_asked_for_once() -> None:
    _, drafts = drafted(Figure2(), PROMPT, Aligned(end_tokens=frozenset({END})))
    assert [draft.prompt_rows for draft in drafts] == [len(PROMPT), 1]


def test_output_of_one_token_needs_no_rows_of_prompt() -> None:
    output, drafts = drafted(Figure2(), PROMPT, Aligned(end_tokens=frozenset({END})), limit=1)
    assert (output.tokens, drafts) == ((MICHAEL,), [Draft()])


def test_several_occurrences_are_merged_into_one_tree() -> None:
    model = RandomModel(0, vocabulary=12, end_bias=-100)
    _, drafts = drafted(model, (5, 1, 2, 3, 5, 1, 2, 4, 6, 5), Aligned(ngram=3))
    assert paths(drafts[0]) == {(1, 2, 3), (1, 2, 4)}


@given(seeds, prompts, st.integers(0, 2), st.integers(1, 8), limits)
def test_siblings_are_what_prompt_s_rows_prefer(
    seed: int, prompt: tuple[int, ...], width: int, ngram: int, limit: int
) -> None:
    model = RandomModel(seed, vocabulary=5)
    text = list(prompt)
    drafter = Aligned(ngram=ngram, width=width, end_tokens=model.end_tokens, leaves=999, nodes=9999)
    output, _ = drafted(model, prompt, drafter, limit)
    text += output.tokens
    for request in model.requests:
        length = len(request.prefix)
        known = request.prefix
        room = limit - (length - len(prompt)) - 1
        key = next((k for k in range(6, 0, -1) if k < length and known[-k:] in windows(known[:-1], k)), 0)
        places = [p for p in range(key, length) if key and known[p - key : p] == known[-key:]]
        expected: set[tuple[int, ...]] = set()
        for place in places:
            ngram_ids = known[place : place + min(ngram, room)]
            ngram_ids = ngram_ids[: ngram_ids.index(END)] if END in ngram_ids else ngram_ids
            beginnings = [ngram_ids]
            for depth, token in enumerate(ngram_ids):
                at = place + depth
                if length > len(prompt) and at < len(prompt):
                    order = np.argsort(-model.logits(prompt[:at]), kind="stable")[:width].tolist()
                    above = order[: order.index(token)] if token in order else order
                    beginnings += [(*ngram_ids[:depth], each, *ngram_ids[depth + 1 :]) for each in above if each != END]
            expected |= {path[: size + 1] for path in beginnings for size in range(len(path))}
        assert {path[: size + 1] for path in paths(request.draft) for size in range(len(path))} == expected


def windows(text: tuple[int, ...], size: int) -> set[tuple[int, ...]]:
    return {text[start : start + size] for start in range(len(text) - size + 1)}


@given(seeds, prompts, st.integers(1, 6), st.integers(1, 32), st.integers(0, 2), limits, st.sampled_from([-100.0, 0.0]))
def test_lookup_exact(
    seed: int, prompt: tuple[int, ...], key: int, ngram: int, width: int, limit: int, end_bias: float
) -> None:
    model = RandomModel(seed, vocabulary=5, end_bias=end_bias)
    output, drafts = drafted(model, prompt, Aligned(key, ngram, width, model.end_tokens), limit)
    expected = greedy(model, prompt, limit)
    assert list(output.tokens) == expected
    assert output.passes == len(expected) + output.finished - output.accepted == len(drafts)
    for draft in drafts:
        assert END not in draft.tokens
        assert len(draft) <= MOST_NODES
        assert len(paths(draft)) <= MOST_LEAVES


@given(seeds, prompts, st.integers(1, 3), st.integers(1, 9))
def test_caps_of_tree(seed: int, prompt: tuple[int, ...], leaves: int, nodes: int) -> None:
    model = RandomModel(seed, vocabulary=5, end_bias=-100)
    output, drafts = drafted(model, prompt, Aligned(leaves=leaves, nodes=nodes))
    assert list(output.tokens) == greedy(model, prompt, 30)
    assert all(len(paths(draft)) <= leaves and len(draft) <= nodes for draft in drafts)


def test_trees_fit_branches_that_backend_is_opened_with() -> None:
    assert MOST_LEAVES - 1 <= BRANCHES_OF_A_TREE


def test_alignment_sampling_saves_passes() -> None:
    """Over many random models a tree needs fewer passes than its n-grams alone, and both fewer than none."""
    passes = {0: 0, 2: 0}
    plain = 0
    for seed in range(20):
        prompt = tuple(np.random.default_rng(seed).integers(1, 8, 40).tolist())
        for width in passes:
            model = RandomModel(seed, vocabulary=8, shift=0.0, end_bias=-100)
            passes[width] += drafted(model, prompt, Aligned(width=width))[0].passes
        asking = decode(Prompt(prompt), Nothing(), Exact(), end_tokens=model.end_tokens, limit=30)
        plain += run(asking, model, 0).passes
    assert passes[2] < passes[0] < plain


def test_prompt_rows_once_stream() -> None:
    model, kept = Figure2(), PromptRows()
    drafted(model, PROMPT, Aligned(end_tokens=model.end_tokens, rows=kept), limit=3)
    first = len(model.requests)
    longer = (*PROMPT, MICHAEL, JACKSON)
    output, drafts = drafted(model, longer, Aligned(end_tokens=model.end_tokens, rows=kept), limit=6)
    asked = [request.prompt_rows for request in model.requests]
    assert asked[0] == len(PROMPT) and asked[first] == len(longer) - len(PROMPT) + 1
    assert {1} == {*asked[1:first], *asked[first + 1 :]}
    # What is known widens the first draft already: was and made beside is.
    assert {path[0] for path in paths(drafts[first])} == {IS, WAS, MADE}
    assert output.tokens == tuple(greedy(model, longer, 6))
    second = len(model.requests)
    drafted(model, (*PROMPT[:4], TELL, MICHAEL), Aligned(end_tokens=model.end_tokens, rows=kept), limit=6)
    assert model.requests[second].prompt_rows == 2, "the row after each of the four shared ids is known"


@given(seeds, st.lists(prompts, min_size=2, max_size=4))
def test_kept_rows_are_those_of_prompt(seed: int, stream: list[tuple[int, ...]]) -> None:
    model, kept = RandomModel(seed, vocabulary=5, shift=0.0), PromptRows()
    for prompt in stream:
        drafted(model, prompt, Aligned(width=2, rows=kept), limit=2)
        for place in range(1, len(prompt)):
            logits = model.logits(prompt[:place])
            assert [token for token, _ in kept.at(place)] == sorted(range(5), key=lambda token: -logits[token])[:2]


@given(seeds, prompts, st.floats(0.01, 1))
def test_improbable_siblings_are_left_out(seed: int, prompt: tuple[int, ...], least: float) -> None:
    """N-grams stay whole, and no sibling with a probability of at least ``least`` in the prompt is left out."""
    assume(END not in prompt)  # nothing is drafted behind one
    model = RandomModel(seed, vocabulary=6, end_bias=-100)
    texts = []
    for width, bound in ((0, 0.0), (2, least), (2, 0.0)):
        drafter = Aligned(key_length=1, ngram=3, width=width, end_tokens=model.end_tokens, leaves=99, least=bound)
        _, drafts = drafted(model, prompt, drafter, limit=2)
        found = [{path[: size + 1] for path in paths(draft) for size in range(len(path))} for draft in drafts]
        texts.append(found[1] if len(found) > 1 else set())  # the first draft has no rows yet
    plain, probable, every = texts
    assert plain <= probable <= every
    last = greedy(model, prompt, 1)[0]
    for path in every - plain:
        if len(path) == 1:
            bounds = [
                probability(model, prompt[:place], path[0])
                for place in range(1, len(prompt))
                if prompt[place - 1] == last and path[0] in above(model, prompt, place)
            ]
            if any(each >= least + 1e-6 for each in bounds):
                assert path in probable


def probability(model: RandomModel, ids: tuple[int, ...], token: int) -> float:
    powers = np.exp(model.logits(ids))
    return float(powers[token] / powers.sum())


def above(model: RandomModel, prompt: tuple[int, ...], place: int) -> list[int]:
    """The two best tokens at a place of the prompt, as far as they rank above the one there."""
    order = np.argsort(-model.logits(prompt[:place]), kind="stable")[:2].tolist()
    return order[: order.index(prompt[place])] if prompt[place] in order else order
