"""Two drafters in turn: the order in which they draft, and that both observe every pass."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from redraft.decoding.decode import decode
from redraft.decoding.drafters import Nothing
from redraft.decoding.drive import run
from redraft.decoding.methods.aasd import Aligned
from redraft.decoding.methods.combined import InTurn
from redraft.decoding.methods.lookup import Lookup
from redraft.decoding.methods.ssbd import PreviousOutput
from redraft.decoding.rules import Exact
from redraft.decoding.types import (
    DRAFT_MODEL,
    EMPTY_DRAFT,
    Asking,
    Context,
    Draft,
    Drafter,
    Prompt,
    Provenance,
    Rows,
    Score,
    Verdict,
)
from tests.fakes import RandomModel, greedy

tokens = st.lists(st.integers(0, 4), max_size=20).map(tuple)
seeds = st.integers(0, 10_000)


def in_turn(*drafters: Drafter) -> InTurn:
    return InTurn(*((drafter, Exact()) for drafter in drafters))


class Every(Drafter):
    """Drafts one token in every ``period``-th call, asking its own model first; records what it observes."""

    def __init__(self, token: int, period: int = 1, prompt_rows: int = 1) -> None:
        self.token, self.period, self.prompt_rows = token, period, prompt_rows
        self.calls = 0
        self.told: list[tuple[Draft, Verdict]] = []

    def drafting(self, context: Context) -> Asking[Draft]:
        self.calls += 1
        yield Score(context.prompt.ids, model=DRAFT_MODEL)
        if self.calls % self.period:
            return Draft(prompt_rows=self.prompt_rows)
        return Draft((self.token,), (-1,), (Provenance.MODEL,), prompt_rows=self.prompt_rows)

    def observe(self, draft: Draft, rows: Rows, verdict: Verdict) -> None:
        self.told.append((draft, verdict))


def drafted(first: Every, second: Every, passes: int) -> tuple[list[Draft], int]:
    model = RandomModel(4, end_bias=-100)
    asking = decode(Prompt((1, 2)), in_turn(first, second), Exact(), end_tokens=model.end_tokens, limit=99)
    drafts: list[Draft] = []
    asked = 0
    request = next(asking)
    while len(drafts) < passes:
        if request.model == DRAFT_MODEL:
            asked += 1
        else:
            drafts.append(request.draft)
        request = asking.send(model.score([(0, request)])[0])
    return drafts, asked


def test_second_drafts_where_first_does_not() -> None:
    first, second = Every(3, period=2), Every(4)
    drafts, asked = drafted(first, second, 4)
    assert [draft.tokens for draft in drafts] == [(4,), (3,), (4,), (3,)]
    assert (asked, second.calls) == (6, 2), "the second is asked only where it is needed"


def test_both_are_told_of_every_pass() -> None:
    first, second = Every(3, period=2), Every(4)
    drafts, _ = drafted(first, second, 4)
    assert [draft for draft, _verdict in first.told] == drafts
    assert first.told == second.told


def test_prompt_rows_are_those_of_whoever_wants_most() -> None:
    first, second = Every(3, period=99, prompt_rows=2), Every(4, period=99)
    assert [draft.prompt_rows for draft in drafted(first, second, 2)[0]] == [2, 2]
    first, second = Every(3, period=99), Every(4, prompt_rows=2)
    assert [draft.prompt_rows for draft in drafted(first, second, 2)[0]] == [2, 2]


def test_nothing_then_nothing_is_autoregression() -> None:
    model = RandomModel(2, end_bias=-100)
    asking = decode(Prompt((1, 2)), in_turn(Nothing(), Nothing()), Exact(), end_tokens=model.end_tokens, limit=5)
    assert run(asking, model, 0).passes == 5
    assert all(request.draft == EMPTY_DRAFT for request in model.requests)


@given(seeds, tokens, tokens, st.integers(1, 24), st.booleans())
def test_previous_output_first(
    seed: int, prompt: tuple[int, ...], previous: tuple[int, ...], limit: int, tree: bool
) -> None:
    model, prompt = RandomModel(seed, vocabulary=5), (1, *prompt)
    second = Aligned(end_tokens=model.end_tokens) if tree else Lookup(3, 10, model.end_tokens)
    drafter = in_turn(PreviousOutput(), second)
    output = run(
        decode(Prompt(prompt), drafter, Exact(), previous=previous, end_tokens=model.end_tokens, limit=limit), model, 0
    )
    expected = greedy(model, prompt, limit)
    assert list(output.tokens) == expected
    assert output.passes == len(expected) + output.finished - output.accepted + output.end_drafted
    if previous and limit > 1:
        assert {request.prompt_rows for request in model.requests} == {1}, "the prompt is not computed twice"
