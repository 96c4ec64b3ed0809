"""Drivers: many decodings in lock-step give what each gives alone, in fewer passes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.decoding.decode import decode
from redraft.decoding.drafters import Nothing
from redraft.decoding.drive import open_slots, run, run_together
from redraft.decoding.methods.ssbd import PreviousOutput
from redraft.decoding.rules import Exact
from redraft.decoding.types import DRAFT_MODEL, ROOT, TARGET, Asking, Output, Prompt, Rows, Score
from redraft.errors import CapabilityError, ContextOverflow
from tests.fakes import RandomModel, greedy

prompts = st.lists(st.lists(st.integers(1, 11), min_size=1, max_size=9).map(tuple), max_size=6)


def decoding(prompt: tuple[int, ...], limit: int, previous: tuple[int, ...] = ()) -> Asking[Output]:
    return decode(
        Prompt(prompt), PreviousOutput(), Exact(), previous=previous, end_tokens=RandomModel.end_tokens, limit=limit
    )


def asking(label: str, *models: str) -> Asking[str]:
    """Asks these models in turn; returns the label with the tokens found."""
    tokens = []
    for step, model in enumerate(models):
        rows = yield Score((1, 2 + step), model=model)
        tokens.append(rows.argmax(ROOT))
    return f"{label}{tokens}"


@given(st.integers(0, 99), prompts, st.integers(1, 12))
def test_results_are_those_of_each_alone_and_in_order(seed: int, prompts: list[tuple[int, ...]], limit: int) -> None:
    model = RandomModel(seed)
    lanes = [(decoding(prompt, limit), {TARGET: slot}) for slot, prompt in enumerate(prompts)]
    results = run_together(lanes, {TARGET: model})
    assert [list(output.tokens) for output in results] == [greedy(model, prompt, limit) for prompt in prompts]
    # One pass a round for all that are still under way.
    rounds = max((output.passes for output in results), default=0)
    assert model.batches == [sum(output.passes > n for output in results) for n in range(rounds)]


def test_lanes_that_end_early_leave_batch() -> None:
    model = RandomModel(1, end_bias=-100)
    lanes = [(decoding((1, 2), limit), {TARGET: slot}) for slot, limit in enumerate((4, 1, 2))]
    assert [len(output.tokens) for output in run_together(lanes, {TARGET: model})] == [4, 1, 2]
    assert model.batches == [3, 2, 1, 1]


def test_no_lanes_and_lanes_that_ask_nothing() -> None:
    model = RandomModel()
    assert run_together([], {TARGET: model}) == []
    assert run_together([(asking("a"), {}), (asking("b"), {})], {}) == ["a[]", "b[]"]
    assert model.batches == []


def test_backend_without_batches_is_asked_one_at_time() -> None:
    model = RandomModel(2, end_bias=-100)
    model.capabilities = frozenset()
    lanes = [(decoding((1, slot + 1), 3), {TARGET: slot}) for slot in range(3)]
    results = run_together(lanes, {TARGET: model})
    assert model.batches == [1] * 9
    assert [list(output.tokens) for output in results] == [greedy(model, (1, n), 3) for n in (1, 2, 3)]


def test_each_request_goes_to_its_model_and_its_slot() -> None:
    class Slots(RandomModel):
        def score(self, requests: Sequence[tuple[int, Score]]) -> list[Rows]:
            asked.append((self.seed, [slot for slot, _ in requests]))
            return super().score(requests)

    asked: list[tuple[int, list[int]]] = []
    large, small = Slots(1), Slots(2)
    lanes = [
        (asking("a", TARGET, DRAFT_MODEL), {TARGET: 5, DRAFT_MODEL: 7}),
        (asking("b", DRAFT_MODEL, DRAFT_MODEL), {TARGET: 6, DRAFT_MODEL: 8}),
        (asking("c", TARGET), {TARGET: 4, DRAFT_MODEL: 9}),
    ]
    results = run_together(lanes, {TARGET: large, DRAFT_MODEL: small})
    first, second = (int(large.logits((1, n)).argmax()) for n in (2, 3))
    small_first, small_second = (int(small.logits((1, n)).argmax()) for n in (2, 3))
    assert (first, second) != (small_first, small_second)
    assert results == [f"a[{first}, {small_second}]", f"b[{small_first}, {small_second}]", f"c[{first}]"]
    assert sorted(slot for seed, slots in asked for slot in slots if seed == 1) == [4, 5]
    assert sorted(slot for seed, slots in asked for slot in slots if seed == 2) == [7, 8, 8]
    assert (1, [5, 4]) in asked


def test_slots_of_decodings() -> None:
    class Few(RandomModel):
        def open_slot(self) -> int:
            if len(self._slots) == 2:
                raise CapabilityError("all slots are in use")
            return super().open_slot()

    backends = {TARGET: RandomModel(), DRAFT_MODEL: Few()}
    with ExitStack() as stack:
        opened = open_slots(backends, 2, stack)
        assert opened == [{TARGET: 0, DRAFT_MODEL: 0}, {TARGET: 1, DRAFT_MODEL: 1}]
    with pytest.raises(CapabilityError), ExitStack() as stack:
        open_slots(backends, 3, stack)
    assert [backend._slots for backend in backends.values()] == [set(), set()]


def test_errors_of_backend_reach_caller() -> None:
    class Full(RandomModel):
        def score(self, requests: Sequence[tuple[int, Score]]) -> list[Rows]:
            if len(self.batches) == 2:
                raise ContextOverflow("it does not fit")
            return super().score(requests)

    model = Full(1, end_bias=-100)
    with pytest.raises(ContextOverflow, match="it does not fit"):
        run_together([(decoding((1, 2), 9), {TARGET: slot}) for slot in (0, 1)], {TARGET: model})
    assert model.batches == [2, 2]


def test_errors_of_drafter_reach_caller() -> None:
    def broken() -> Asking[Output]:
        yield Score((1,))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_together([(decoding((1, 2), 9), {TARGET: 0}), (broken(), {TARGET: 1})], {TARGET: RandomModel()})


def test_request_for_model_that_is_not_there_is_error() -> None:
    with pytest.raises(KeyError, match=DRAFT_MODEL):
        run(asking("a", DRAFT_MODEL), RandomModel(), 0)


def test_run_is_one_lane() -> None:
    model = RandomModel(4, end_bias=-100)
    plain = decode(Prompt((1, 2)), Nothing(), Exact(), end_tokens=model.end_tokens, limit=5)
    assert list(run(plain, model, 0).tokens) == greedy(model, (1, 2), 5)
    assert model.batches == [1] * 5
