"""Repetitive outputs are decoded again, or cut, at the same place by every method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.captions.events import Caption, Failure
from redraft.decoding.decode import decode
from redraft.decoding.drafters import Nothing
from redraft.decoding.drive import run
from redraft.decoding.ends import LEAST_ROUNDS, LEAST_TOKENS, MOST_ESCAPES, longest_output, loop_at_end, out_of_loops
from redraft.decoding.methods.ssbd import PreviousOutput
from redraft.decoding.rules import Exact
from redraft.decoding.selection import EVERYTHING, Selection
from redraft.decoding.types import NOTHING_BARRED, Asking, Barred, Drafter, Output, Prompt
from tests.captions.streams import Stream
from tests.fakes import END, RandomModel, greedy

ids = st.lists(st.integers(1, 4), max_size=12).map(tuple)
#: As if 2 were " in" and 3 and 4 foreign pieces of words.
SPELT = Selection(frozenset({3, 4}), frozenset({4}), frozenset({2, 3, 4}), frozenset({(2, 3, 4), (3, 2), (3, 4, 4)}))


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
def test_how_often_is_loop(cycle: tuple[int, ...], rounds: int, repeated: int) -> None:
    assert loop_at_end(cycle * rounds) == repeated
    assert loop_at_end((1, 2, 3, *cycle * rounds)) == repeated
    assert loop_at_end((*cycle * rounds, 99)) == 0


def test_short_outputs_are_none() -> None:
    assert loop_at_end(()) == loop_at_end((1,)) == loop_at_end((1, 1, 1, 1)) == 0
    assert loop_at_end(((1, 2, 3, 4, 4) * 5)[:-1]) == 0, "one token short of five rounds"


def test_longest_output() -> None:
    assert longest_output(Prompt((1, 2))) == 24
    assert longest_output(Prompt((1, 2), encoder=(1,) * 10)) == 56, "what an encoder reads is the source"


@given(ids, ids.filter(bool), st.integers(4, 30))
def test_what_is_dropped_goes_on_with_cycle_that_is_left(head: tuple[int, ...], cycle: tuple[int, ...], n: int) -> None:
    output = head + cycle * n
    repeated = loop_at_end(output)
    assert (repeated > 0) or n * len(cycle) < LEAST_TOKENS
    left, dropped = output[: len(output) - repeated], output[len(output) - repeated :]
    assert repeated == 0 or any(
        (left[-size:] * len(output))[: len(dropped)] == dropped for size in range(1, len(left) + 1)
    )


@given(st.integers(0, 10_000), ids.filter(bool), ids)
def test_every_draft_finds_it_at_same_place(seed: int, prompt: tuple[int, ...], wrong: tuple[int, ...]) -> None:
    model = RandomModel(seed, vocabulary=5, shift=0.0, end_bias=-9.0)
    known = tuple(greedy(model, prompt, 90))

    def decoded(drafter: Drafter, previous: tuple[int, ...]) -> Output:
        asking = decode(
            Prompt(prompt), drafter, Exact(), previous=previous, end_tokens=model.end_tokens, limit=100, stop_loops=True
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


def escaped(model: RandomModel, prompt: tuple[int, ...], limit: int, selection: Selection) -> tuple[list[int], bool]:
    """Greedy decoding that escapes loops, written without the engine: the output, and whether it ended."""
    output: list[int] = []
    barred: dict[int, int] = {}
    escapes = 0
    while len(output) < limit:
        logits = model.logits([*prompt, *output])
        possible = selection.after(tuple(output)).among(range(model.vocabulary))
        if possible != [barred.get(len(output))]:
            possible = [token for token in possible if token != barred.get(len(output))]
        token = max(possible, key=lambda token: float(logits[token]))
        if token in model.end_tokens:
            return output, True
        output.append(token)
        if repeated := loop_at_end(output):
            place = len(output) - repeated
            while selection.is_forced(tuple(output[:place])):
                place -= 1
            again, output = output[place], output[:place]
            if place in barred or escapes == MOST_ESCAPES:
                return output, False
            barred[place] = again
            escapes += 1
    return output, False


@pytest.mark.parametrize("selection", [EVERYTHING, SPELT])
@given(st.integers(0, 10_000), ids.filter(bool), ids, st.sampled_from([-9.0, -1.0]), st.integers(30, 150))
def test_every_draft_escapes_in_same_way(
    selection: Selection, seed: int, prompt: tuple[int, ...], wrong: tuple[int, ...], end_bias: float, limit: int
) -> None:
    model = RandomModel(seed, vocabulary=5, shift=0.0, end_bias=end_bias)
    expected, finished = escaped(model, prompt, limit, selection)
    for drafter, previous in ((Nothing, ()), (PreviousOutput, tuple(expected)), (PreviousOutput, wrong)):
        output = run(out_of_loops(partial(attempt, model, prompt, limit, selection, drafter), previous), model, 0)[0]
        assert (list(output.tokens), output.finished) == (expected, finished)
        assert output.passes == len(model.requests)
        model.requests.clear()


def attempt(
    model: RandomModel,
    prompt: tuple[int, ...],
    limit: int,
    selection: Selection,
    drafter: Callable[[], Drafter],
    draft: tuple[int, ...],
    barred: Barred,
) -> Asking[tuple[Output, None]]:
    options: dict[str, Any] = {"end_tokens": model.end_tokens, "limit": limit, "stop_loops": True, "barred": barred}
    output = yield from decode(Prompt(prompt, selection=selection), drafter(), Exact(), previous=draft, **options)
    return output, None


def test_attempts_out_of_loops() -> None:
    asked: list[tuple[tuple[int, ...], Barred]] = []
    first, second, third = (
        Output((1, 2, 3), False, 10, 20, 30, 40, loop=7),
        Output((1,), False, 1, 2, 3, 4, loop=8),
        Output((1, 9), True, 5, 6, 7, 8),
    )

    def found(*outputs: Output) -> Output:
        left = iter(outputs)

        def attempt(draft: tuple[int, ...], barred: Barred) -> Asking[tuple[Output, None]]:
            yield from ()
            asked.append((draft, barred))
            return next(left), None

        asked.clear()
        with pytest.raises(StopIteration) as stop:
            next(out_of_loops(attempt, (5,), {9: frozenset({END})}))
        output: Output = stop.value.value[0]
        return output

    assert found(first, second, third) == Output((1, 9), True, 16, 28, 40, 52)
    bars = {9: frozenset({END})}
    assert asked == [
        ((5,), bars),
        ((1, 2, 3), bars | {3: frozenset({7})}),
        ((1,), bars | {3: frozenset({7}), 1: frozenset({8})}),
    ]
    assert found(first, first) == Output((1, 2, 3), False, 20, 40, 60, 80, loop=7), "nothing else may stand there"


class Buffalo(RandomModel):
    """Says "Buf fa lo" (1, 3, 4), then "buf fa lo" (2, 3, 4) for ever; where it may not say "buf", 5 and the end."""

    def logits(self, ids: Sequence[int]) -> np.ndarray:
        row = np.zeros(self.vocabulary)
        row[{1: 3, 2: 3, 3: 4, 4: 2, 5: END}.get(ids[-1], 1)] = 9.0
        row[5] += 5.0
        return row


@pytest.mark.parametrize("drafter", [Nothing, PreviousOutput])
def test_loop_inside_word_is_left_before_it(drafter: Callable[[], Drafter]) -> None:
    model = Buffalo()
    words = frozenset({(1, 3, 4), (2, 3, 4)})
    selection = Selection(frozenset({1, 2, 3, 4}), frozenset({3, 4}), frozenset({1, 2, 3, 4}), words)
    first = run(attempt(model, (9,), 90, selection, drafter, (), NOTHING_BARRED), model, 0)[0]
    assert (first.tokens, first.finished, first.loop) == ((1, 3, 4), False, 2), "no half word, which 3 must follow"
    output = run(out_of_loops(partial(attempt, model, (9,), 90, selection, drafter), ()), model, 0)[0]
    assert (output.tokens, output.finished) == ((1, 3, 4, 5), True)


class Stuck(RandomModel):
    """Says 4 and then 5, 6 for ever after the prompts of this test, which end with id 3.  Then it says 1, 2, 3."""

    def logits(self, ids: Sequence[int]) -> np.ndarray:
        row = np.zeros(self.vocabulary)
        row[END] = -9.0
        row[{2: 3, 3: 4, 4: 5, 5: 6, 6: 5}.get(ids[-1], 2)] = 9.0
        return row


def test_loop_in_session() -> None:
    model = Stuck()
    stream = Stream(model, max_tokens=100)
    failure, caption = stream.send("a b c d")
    assert isinstance(failure, Failure) and isinstance(caption, Caption)
    assert failure.message == "the translation was cut after 21 tokens, since from there on the model repeats itself"
    stuck = [4, 5, 6, *[1, 2, 3, 4, 5, 6] * MOST_ESCAPES]
    assert stream.output() == stuck
    (again,) = stream.send("a b c d e")
    assert isinstance(again, Caption) and again.text == caption.text
    assert not stream.asked[0].draft, "what was cut is no draft"
    failure, caption = stream.send("a b c d e f", final=True)
    assert isinstance(failure, Failure) and failure.seq == stream.seq, "of a final one it is reported again"
    assert isinstance(caption, Caption) and caption.final and caption.cut
    assert not stream.asked[0].draft
