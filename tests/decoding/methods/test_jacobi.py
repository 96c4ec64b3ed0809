"""Jacobi decoding: greedy's ids from any start (Proposition 1), iterations counted, blocks that end early."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.decoding.decode import decode
from redraft.decoding.drive import run
from redraft.decoding.methods.combined import InTurn
from redraft.decoding.methods.jacobi import STARTS, Agreement, Jacobi, estimated_length
from redraft.decoding.methods.lookup import Lookup
from redraft.decoding.methods.ssbd import PreviousOutput
from redraft.decoding.rules import Exact
from redraft.decoding.types import Context, Draft, Output, Prompt, Provenance, Score, Verdict
from tests.fakes import END, RandomModel, greedy

prompts = st.lists(st.integers(1, 11), min_size=1, max_size=8).map(tuple)
ids = st.lists(st.integers(0, 11), max_size=20).map(tuple)
seeds = st.integers(0, 10_000)
limits = st.integers(1, 24)
blocks = st.integers(0, 9)


def decoded(
    model: RandomModel,
    prompt: tuple[int, ...],
    drafter: Jacobi,
    *,
    paper: bool,
    limit: int,
    previous: tuple[int, ...] = (),
    source_ids: tuple[int, ...] = (),
) -> Output:
    rule = Agreement(model.end_tokens) if paper else Exact()
    asking = decode(
        Prompt(prompt, source_ids=source_ids),
        drafter,
        rule,
        previous=previous,
        end_tokens=model.end_tokens,
        limit=limit,
    )
    return run(asking, model, 0)


@given(seeds, prompts, blocks, st.sampled_from(STARTS), ids, limits, st.booleans())
def test_proposition_1(
    seed: int, prompt: tuple[int, ...], block: int, start: str, copied: tuple[int, ...], limit: int, paper: bool
) -> None:
    model = RandomModel(seed)
    expected = greedy(model, prompt, limit)
    output = decoded(
        model,
        prompt,
        Jacobi(1, block, start=start, slides=not paper),
        paper=paper,
        limit=limit,
        previous=copied,
        source_ids=copied,
    )
    assert list(output.tokens) == expected
    assert output.finished == (len(expected) < limit)
    assert output.passes <= len(expected) + output.finished
    assert output.passes == len(model.requests), "every iteration is a pass, and every pass is counted"


@given(seeds, prompts, ids, st.integers(0, 6), limits, st.booleans())
def test_papers_mode_gives_greedy_ids_whoever_drafts(
    seed: int, prompt: tuple[int, ...], previous: tuple[int, ...], block: int, limit: int, jacobi: bool
) -> None:
    model = RandomModel(seed, vocabulary=6)
    second = Jacobi(1, block) if jacobi else Lookup(3, 10, model.end_tokens)
    asking = decode(
        Prompt(prompt),
        InTurn((PreviousOutput(), Exact()), (second, Exact())),
        Agreement(model.end_tokens),
        previous=previous,
        end_tokens=model.end_tokens,
        limit=limit,
    )
    assert list(run(asking, model, 0).tokens) == greedy(model, prompt, limit)


@given(seeds, prompts, st.integers(1, 6), limits)
def test_papers_mode_needs_at_least_as_many_passes(seed: int, prompt: tuple[int, ...], block: int, limit: int) -> None:
    model = RandomModel(seed)
    passes = [
        decoded(model, prompt, Jacobi(1, block, slides=not paper), paper=paper, limit=limit).passes
        for paper in (True, False)
    ]
    assert passes[0] >= passes[1]


@given(seeds, prompts, limits, st.booleans())
def test_block_of_one_is_autoregression(seed: int, prompt: tuple[int, ...], limit: int, paper: bool) -> None:
    model = RandomModel(seed)
    output = decoded(model, prompt, Jacobi(1, 1), paper=paper, limit=limit)
    assert output.passes == len(output.tokens) + output.finished
    assert output.drafted == 0


@given(seeds, prompts, limits, st.integers(0, 10), st.booleans())
def test_hybrid_goes_on_autoregressively(
    seed: int, prompt: tuple[int, ...], limit: int, parallel: int, paper: bool
) -> None:
    model = RandomModel(seed, end_bias=-100)
    output = decoded(model, prompt, Jacobi(1, 4, parallel, slides=not paper), paper=paper, limit=limit)
    assert list(output.tokens) == greedy(model, prompt, limit)
    for request in model.requests:
        done = len(request.prefix) - len(prompt)
        if (done - done % 4 if paper else done) >= parallel:
            assert not request.draft


def iterations(model: RandomModel, prompt: tuple[int, ...], block: int, parallel: int, limit: int) -> int:
    """Algorithms 2 and 3 as the authors' code runs them, on whole blocks and without a cache."""
    output: list[int] = []
    count = 0
    while len(output) < limit and END not in output:
        size = min(block, limit - len(output)) if len(output) < parallel else 1
        guess = [1] * (size - 1)
        for _ in range(size):
            count += 1
            new = [int(model.logits([*prompt, *output, *guess[:place]]).argmax()) for place in range(size)]
            last = new.index(END) if END in new else size - 1
            same, guess = guess[:last] == new[:last], new[:-1]
            if same:
                break
        output += new
    return count


@given(seeds, prompts, st.integers(1, 6), st.integers(0, 12), limits)
def test_papers_iterations(seed: int, prompt: tuple[int, ...], block: int, parallel: int, limit: int) -> None:
    model = RandomModel(seed)
    output = decoded(model, prompt, Jacobi(1, block, parallel), paper=True, limit=limit)
    assert output.passes == iterations(model, prompt, block, parallel, limit)
    # What is final is not computed again: a pass reads the tokens after it, and the draft has the rest of the block.
    for request in model.requests:
        done = len(request.prefix) - len(prompt)
        assert len(request.draft) in (0, min(block - done % block, limit - done) - 1)


def test_solution_as_first_guess() -> None:
    model = RandomModel(4, end_bias=-100)
    known = tuple(greedy(model, (1, 2), 12))
    for paper in (False, True):
        # Three guesses a block agree at once, and the position after them follows.
        drafter = Jacobi(1, 4, start="previous", slides=not paper)
        output = decoded(model, (1, 2), drafter, paper=paper, limit=12, previous=known)
        assert (output.tokens, output.passes) == (known, 3)


def test_papers_iterations_by_hand() -> None:
    """A model that counts upwards: from padding, a block of 3 takes 3 iterations, which the block's length bounds."""
    model = Counting(9)
    output = decoded(model, (1,), Jacobi(0, 3), paper=True, limit=6)
    assert (output.tokens, output.passes) == ((2, 3, 4, 5, 6, 7), 6)
    guesses = [request.draft.tokens for request in model.requests]
    assert guesses[:3] == [(0, 0), (1,), ()]
    assert [len(request.prefix) for request in model.requests[:3]] == [1, 2, 3]


def test_positions_after_end_token_need_not_agree() -> None:
    model = Counting(4)  # 2, 3, END
    for paper in (True, False):
        output = decoded(model, (1,), Jacobi(1, 8), paper=paper, limit=20)
        assert (output.tokens, output.finished, output.passes) == ((2, 3), True, 3)


def test_estimated_length() -> None:
    assert estimated_length(Context(Prompt((1,)), (), (5,) * 6, 50)) == 14
    assert estimated_length(Context(Prompt((1,) * 9, (1,) * 4), (), (), 50)) == 10
    assert estimated_length(Context(Prompt((1,), encoder=(1,) * 2), (), (), 50)) == 7
    assert estimated_length(Context(Prompt((1,) * 2), (), (), 50)) == 7


@pytest.mark.parametrize(
    ("draft", "verdicts"),
    [
        # Predictions are 2, 3, 4 for the right draft (2, 3) after the prefix (1,).
        ((2, 3), [Verdict((0, 1), 4)]),
        # The first position is final after an iteration, even if more has converged.
        ((2, 9), [Verdict((), 2)]),
        ((), [Verdict((), 2)]),
    ],
)
def test_agreement(draft: tuple[int, ...], verdicts: list[Verdict]) -> None:
    model, rule = Counting(90), Agreement(frozenset({END}))
    for expected in verdicts * 2:  # the next block is judged like the first
        chain = Draft.chain(draft, Provenance.ITERATION)
        assert rule.judge(chain, model.score([(0, Score((1,), chain))])[0]) == expected


def test_end_token_of_draft_is_models_own_and_nothing_behind_it_is_kept() -> None:
    model, chain = Counting(2), Draft.chain((END, 1), Provenance.ITERATION)
    rows = model.score([(0, Score((1,), chain))])[0]
    assert [rows.argmax(node) for node in (-1, 0)] == [END, 1]
    assert Agreement(model.end_tokens).judge(chain, rows) == Verdict((), END)
    model, chain = Counting(3), Draft.chain((2, END, 9), Provenance.ITERATION)
    rows = model.score([(0, Score((1,), chain))])[0]
    assert Agreement(model.end_tokens).judge(chain, rows) == Verdict((0,), END), "what follows the end may change"


def test_whole_sentence_that_was_estimated_too_short_gets_another_block() -> None:
    model = Counting(90)
    output = decoded(model, (1, 1), Jacobi(0, 0), paper=False, limit=30)
    assert output.tokens == tuple(range(2, 32))
    for request in model.requests[:-8]:  # in the end, the limit leaves less room
        done = len(request.prefix) - 2
        assert len(request.draft) == 7 - done % 7 - 1
        assert set(request.draft.provenance) <= {Provenance.ITERATION}


class Counting(RandomModel):
    """The token after n is n + 1, the one after ``last - 1`` is the end."""

    def __init__(self, last: int) -> None:
        super().__init__(vocabulary=100)
        self.last = last

    def logits(self, ids: Sequence[int]) -> np.ndarray:
        row = super().logits(ids) * 0
        row[END if ids[-1] + 1 == self.last else (ids[-1] + 1) % 100] = 5
        return row
