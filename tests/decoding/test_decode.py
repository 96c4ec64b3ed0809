"""The loop: same ids as greedy decoding for every drafter with exact acceptance, in the fewest passes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.decoding.decode import decode
from redraft.decoding.drafters import Nothing
from redraft.decoding.drive import run
from redraft.decoding.ends import LineBreaks
from redraft.decoding.methods.bild import Rollback
from redraft.decoding.methods.ssbd import Biased, PreviousOutput
from redraft.decoding.rules import Exact, Sampler
from redraft.decoding.types import Context, Draft, Drafter, Output, Prompt, Provenance, Rule, Verdict
from tests.fakes import END, Everything, RandomModel, greedy

prompts = st.lists(st.integers(1, 11), min_size=1, max_size=12).map(tuple)
tokens = st.lists(st.integers(0, 11), max_size=30).map(tuple)
seeds = st.integers(0, 10_000)
limits = st.integers(1, 24)


class Fixed(Drafter):
    """Drafts the given tokens at every call."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft

    def propose(self, context: Context) -> Draft:
        return self.draft

    def observe(self, draft: Draft, rows: object, verdict: Verdict) -> None:
        pass


def run_previous(
    model: RandomModel, prompt: tuple[int, ...], previous: tuple[int, ...], rule: Rule, limit: int
) -> Output:
    asking = decode(Prompt(prompt), PreviousOutput(), rule, previous=previous, end_tokens=model.end_tokens, limit=limit)
    return run(asking, model, 0)


def test_drafter_is_told_what_is_known_and_what_became_of_its_draft() -> None:
    told: list[Context] = []
    became: list[tuple[Draft, Verdict]] = []

    class Asked(Fixed):
        def propose(self, context: Context) -> Draft:
            told.append(context)
            return super().propose(context)

        def observe(self, draft: Draft, rows: object, verdict: Verdict) -> None:
            became.append((draft, verdict))

    model, ends = RandomModel(3, end_bias=-100), frozenset({END})
    asked = Prompt((1, 2), (7, 8), (9,))
    known = decode(asked, Asked(Draft()), Exact(), previous=(5, 6), shown=1, end_tokens=ends, limit=2)
    run(known, model, 0)
    assert [each.encoder for each in model.requests] == [(9,), (9,)]
    run(decode(Prompt((1, 2)), Asked(Draft()), Exact(), end_tokens=ends, limit=1, previous=(5,)), model, 0)
    first = tuple(greedy(model, (1, 2), 1))
    assert told == [
        Context(asked, (), (5, 6), 1, 1),
        Context(asked, first, (5, 6), 0, 1),
        Context(Prompt((1, 2)), (), (5,), 0),
    ]
    assert became[0] == (Draft(), Verdict((), first[0]))


def test_autoregression_is_greedy_at_one_pass_token() -> None:
    model = RandomModel(3, end_bias=-100)
    output = run(decode(Prompt((1, 2)), Nothing(), Exact(), end_tokens=model.end_tokens, limit=9), model, 0)
    assert list(output.tokens) == greedy(model, (1, 2), 9)
    assert (output.passes, output.finished, output.drafted) == (9, False, 0)


@given(seeds, prompts, tokens, limits)
def test_exact_acceptance_of_any_draft(
    seed: int, prompt: tuple[int, ...], previous: tuple[int, ...], limit: int
) -> None:
    model = RandomModel(seed)
    expected = greedy(model, prompt, limit)
    output = run_previous(model, prompt, previous, Exact(), limit)
    assert list(output.tokens) == expected
    plain = run(decode(Prompt(prompt), Nothing(), Exact(), end_tokens=model.end_tokens, limit=limit), model, 0)
    # Every accepted token is one pass less: the pass that verifies them gives the token after them too.
    assert output.passes == plain.passes - output.accepted + output.end_drafted
    assert output.finished == plain.finished


@given(seeds, prompts, limits)
def test_own_output_as_draft_takes_one_pass(seed: int, prompt: tuple[int, ...], limit: int) -> None:
    model = RandomModel(seed)
    expected = greedy(model, prompt, limit)
    output = run_previous(model, prompt, tuple(expected), Exact(), limit)
    assert (list(output.tokens), output.passes) == (expected, 1)


@given(seeds, prompts, st.data(), limits)
def test_any_tree_gives_greedy_ids(seed: int, prompt: tuple[int, ...], data: st.DataObject, limit: int) -> None:
    ids = data.draw(st.lists(st.integers(0, 11), max_size=12))
    parents = tuple(data.draw(st.integers(-1, node - 1)) for node in range(len(ids)))
    draft = Draft(tuple(ids), parents, (Provenance.GENERATED,) * len(ids))
    model = RandomModel(seed, vocabulary=12)
    output = run(decode(Prompt(prompt), Fixed(draft), Exact(), end_tokens=model.end_tokens, limit=limit), model, 0)
    assert list(output.tokens) == greedy(model, prompt, limit)
    assert output.passes <= len(output.tokens) + 1


def test_end_token_inside_accepted_draft_ends_output() -> None:
    model = RandomModel(1)
    output = run_previous(model, (1,), (3, END, 4), Everything(), 10)
    assert (output.tokens, output.finished, output.passes) == ((3,), True, 1)


def test_first_of_two_ends_ends_output() -> None:
    for draft in ((3, END, 4, 5), (3, 5, END, 4)):
        asking = decode(
            Prompt((1,)),
            PreviousOutput(),
            Everything(),
            previous=draft,
            end_tokens=frozenset({END}),
            line_end=LineBreaks(frozenset({5})).end,
            limit=10,
        )
        output = run(asking, RandomModel(1), 0)
        assert (output.tokens, output.finished) == ((3,), True)


def test_accepted_end_counts_and_draft_tokens_behind_it_do_not() -> None:
    class Planned(Fixed):
        def propose(self, context: Context) -> Draft:
            return Draft.chain((6, END, 7) if context.output else (5,), Provenance.GENERATED)

    model = RandomModel(3, end_bias=-100)
    planned = decode(Prompt((1, 2)), Planned(Draft()), Everything(), end_tokens=model.end_tokens, limit=9)
    output = run(planned, model, 0)
    assert output.tokens[0::2] == (5, 6) and (len(output.tokens), output.finished) == (3, True)
    assert (output.passes, output.drafted, output.accepted, output.end_drafted) == (2, 4, 3, True)


def test_draft_over_limit() -> None:
    model = RandomModel(1, end_bias=-100)
    output = run_previous(model, (1,), (2,) * 50, Everything(), 10)
    assert (len(output.tokens), output.drafted, output.passes, output.finished) == (10, 9, 1, False)


def test_limit_of_one_drafts_nothing() -> None:
    model = RandomModel(1, end_bias=-100)
    output = run_previous(model, (1,), (2, 3), Exact(), 1)
    assert (len(output.tokens), output.drafted) == (1, 0)


def test_continued_draft() -> None:
    model = RandomModel(5, end_bias=-100)
    output = run_previous(model, (1, 2, 3), (4, 5), Everything(), 6)
    assert output.tokens[:2] == (4, 5)
    assert len(output.tokens) == 6


@given(seeds, prompts, tokens.map(lambda ids: tuple(i for i in ids if i != END)), limits, st.floats(0.5, 1))
def test_strong_bias_is_continuous_decoding(
    seed: int, prompt: tuple[int, ...], previous: tuple[int, ...], limit: int, beta: float
) -> None:
    model = RandomModel(seed)
    biased = run_previous(model, prompt, previous, Biased(beta, 0.0, model.end_tokens), limit)
    assert biased == run_previous(model, prompt, previous, Everything(), limit)


@given(seeds, prompts, tokens, limits)
def test_zero_bias_is_exact(seed: int, prompt: tuple[int, ...], previous: tuple[int, ...], limit: int) -> None:
    model = RandomModel(seed)
    biased = run_previous(model, prompt, previous, Biased(0.0, 0.0, model.end_tokens), limit)
    assert biased == run_previous(model, prompt, previous, Exact(), limit)


@pytest.mark.parametrize("shown", [0, 2, 4])
def test_requests_carry_bias_towards_each_token(shown: int) -> None:
    model, rule = RandomModel(1, end_bias=-100), Biased(0.3, 0.0, frozenset({END}), 0.1)
    asking = decode(
        Prompt((1,)), PreviousOutput(), rule, previous=(2, 3, 4, 5), shown=shown, end_tokens=frozenset(), limit=4
    )
    run(asking, model, 0)
    first, *others = model.requests
    assert first.biases == ((0.3,) * shown + (0.1,) * 4)[:3] and first.draft == Draft.previous((2, 3, 4), shown)
    assert {each.biases for each in others} <= {()}
    run(decode(Prompt((1,)), Nothing(), Rollback(2.0, Sampler()), end_tokens=frozenset(), limit=1), model, 0)
    assert model.requests[-1].biases is None


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_truncating_tree_keeps_its_shape(depth: int) -> None:
    tree = Draft((5, 6, 7, 8), (-1, 0, -1, 1), (Provenance.PROMPT,) * 4)
    kept = tree.truncated(depth)
    assert kept.depth == depth
    assert kept.tokens == {0: (), 1: (5, 7), 2: (5, 6, 7), 3: (5, 6, 7, 8)}[depth]


@given(seeds, prompts, st.lists(st.integers(0, 11), max_size=12).map(tuple), limits)
def test_settled_draft_needs_no_pass(seed: int, prompt: tuple[int, ...], previous: tuple[int, ...], limit: int) -> None:
    model, verified = RandomModel(seed), RandomModel(seed)

    def output(of: RandomModel, *, settled: bool) -> Output:
        parts = PreviousOutput(settled=settled), Everything()
        return run(decode(Prompt(prompt), *parts, previous=previous, end_tokens=of.end_tokens, limit=limit), of, 0)

    found, expected = output(model, settled=True), output(verified, settled=False)
    counts = [(each.tokens, each.finished, each.drafted, each.accepted) for each in (found, expected)]
    assert counts[0] == counts[1]
    assert all(not score.draft for score in model.requests)
    # The pass that verifies a draft yields the token behind it, so only a draft with an end saves one.
    assert found.passes == expected.passes - (END in previous[: max(0, limit - 1)])
