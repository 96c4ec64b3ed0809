"""Outputs that go round in circles are given up at the same place by every method, and shown without the repetition."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.accept.exact import Exact
from redraft.decode import decode
from redraft.draft.nothing import Nothing
from redraft.draft.previous import PreviousOutput
from redraft.drive import run
from redraft.loops import LEAST_ROUNDS, LEAST_TOKENS, loop_at_end
from redraft.types import Drafter, Output
from tests.fakes import RandomModel, greedy

ids = st.lists(st.integers(1, 4), max_size=12).map(tuple)


@pytest.mark.parametrize(
    ("cycle", "rounds", "repeated"),
    [
        ((5,), LEAST_TOKENS, LEAST_TOKENS - 1),
        ((5,), LEAST_TOKENS - 1, 0),
        ((5, 6), 12, 22),
        ((5, 6), 11, 0),
        (tuple(range(10)), LEAST_ROUNDS, 30),
        (tuple(range(10)), LEAST_ROUNDS - 1, 0),
    ],
)
def test_how_often_is_a_loop(cycle: tuple[int, ...], rounds: int, repeated: int) -> None:
    assert loop_at_end(cycle * rounds) == repeated
    assert loop_at_end((1, 2, 3, *cycle * rounds)) == repeated
    assert loop_at_end((*cycle * rounds, 99)) == 0


def test_short_outputs_are_none() -> None:
    assert loop_at_end(()) == loop_at_end((1,)) == loop_at_end((1, 1, 1, 1)) == 0


@given(ids, ids.filter(bool), st.integers(4, 30))
def test_what_is_dropped_goes_on_with_the_cycle_that_is_left(
    head: tuple[int, ...], cycle: tuple[int, ...], n: int
) -> None:
    output = head + cycle * n
    repeated = loop_at_end(output)
    assert (repeated > 0) or n * len(cycle) < LEAST_TOKENS
    left, dropped = output[: len(output) - repeated], output[len(output) - repeated :]
    assert repeated == 0 or any(
        (left[-size:] * len(output))[: len(dropped)] == dropped for size in range(1, len(left) + 1)
    )


@given(st.integers(0, 10_000), ids.filter(bool), ids)
def test_every_draft_finds_it_at_the_same_place(seed: int, prompt: tuple[int, ...], wrong: tuple[int, ...]) -> None:
    model = RandomModel(seed, vocabulary=5, shift=0.0, end_bias=-9.0)
    known = tuple(greedy(model, prompt, 90))

    def decoded(drafter: Drafter, previous: tuple[int, ...]) -> Output:
        asking = decode(
            prompt, drafter, Exact(), previous=previous, end_tokens=model.end_tokens, limit=100, stop_loops=True
        )
        return run(asking, model, 0)

    plain = decoded(Nothing(), ())
    for previous in (known, known[:20], known[:7] + wrong):
        drafted = decoded(PreviousOutput(), previous)
        assert (drafted.tokens, drafted.finished) == (plain.tokens, plain.finished)
        assert drafted.passes <= plain.passes
        assert drafted.accepted <= len(drafted.tokens), "what is dropped does not count as kept"
    if not plain.finished:
        assert len(plain.tokens) < 100, "two ids decide the third, so 100 of them must go round"
