"""Traces agree with the loop's own counts, whatever the method, and change nothing."""

from __future__ import annotations

import math

import pytest

from redraft.decoding.decode import decode
from redraft.decoding.drive import run
from redraft.decoding.method import Setup
from redraft.decoding.methods import all_methods, get_method
from redraft.decoding.types import Draft, Provenance, Verdict
from redraft_bench.viz.trace import Given, Trace, TracedPass
from tests.fakes import END, RandomModel, greedy
from tests.measure.viz.traces import decoded, step

METHODS = [name for name, method in all_methods().items() if not method.draft_model]


def probability(model: RandomModel, ids: list[int], token: int) -> float:
    logits = model.logits(ids)
    return math.exp(logits[token]) / sum(math.exp(each) for each in logits)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(8))
def test_a_trace_holds_the_output_and_its_counts(method: str, seed: int) -> None:
    model, prompt = RandomModel(seed, vocabulary=5, end_bias=-1.0), (1, 2, 3, 1, 2)
    previous = tuple(greedy(model, (1, 2, 3, 1), 12))
    output, trace = decoded(model, method, prompt=prompt, previous=previous)
    ids = [token.id for token in trace.tokens]
    assert ids == [*output.tokens, *([END] if output.finished else [])]
    assert (len(trace.steps), trace.drafted, trace.accepted) == (output.passes, output.drafted, output.accepted)
    for place, token in enumerate(trace.tokens):
        assert token.probability == pytest.approx(probability(model, [*prompt, *ids[:place]], token.id), rel=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_tracing_changes_nothing(method: str) -> None:
    plain, watched = RandomModel(3, vocabulary=6), RandomModel(3, vocabulary=6)
    previous = tuple(greedy(plain, (1, 2, 3), 12))
    output, _ = decoded(watched, method, previous=previous)
    chosen = get_method(method)
    drafter, rule = chosen.build(Setup(chosen.check({}), plain.end_tokens, plain.pad_token))
    prompt = (1, 2, 3, 4)
    asking = decode(prompt, drafter, rule, previous=previous, source=prompt, end_tokens=plain.end_tokens, limit=20)
    assert run(asking, plain, plain.open_slot()) == output
    assert plain.requests == watched.requests


def test_tokens_know_where_they_came_from() -> None:
    trace = Trace(
        frozenset({END}),
        [step(0, [5, 6, 7], [5, 6, 8, 9], 2, 8), step(3, [4], [4, 3], 1, 3), step(5, [], [2], 0, 2)],
    )
    assert [(token.id, token.number, token.origin) for token in trace.tokens] == [
        (5, 1, Provenance.ITERATION),
        (6, 1, Provenance.ITERATION),
        (8, 1, Given.CORRECTION),
        (4, 2, Provenance.ITERATION),
        (3, 2, Given.BONUS),
        (2, 3, Given.ALONE),
    ]
    assert [token.refused for token in trace.tokens] == [(), (), ((7, 0.5),), (), (), ()]


def test_all_branches_at_the_divergence_were_refused() -> None:
    #      4 - 5
    # root    `6      after 4 the target wanted 7
    draft = Draft((4, 5, 6), (-1, 0, 0), (Provenance.PROMPT,) * 3)
    best = ((4, 0.9), (7, 0.8), (1, 0.1), (1, 0.1))
    trace = Trace(frozenset({END}), [TracedPass(0, draft, (0.9, 0.05, 0.1), best, Verdict((0,), 7), 0.8)])
    assert trace.tokens[1].refused == ((5, 0.05), (6, 0.1))
    assert (trace.drafted, trace.accepted) == (2, 1)


def test_an_end_token_inside_a_draft_ends_the_output() -> None:
    trace = Trace(frozenset({END}), [step(0, [5, END, 6], [5, END, 6, 7], 3, 7)])
    assert [token.id for token in trace.tokens] == [5, END]
    assert trace.accepted == 1


def test_a_rule_that_holds_back_settles_nothing() -> None:
    trace = Trace(frozenset({END}), [step(0, [5, 5], [6, 6, 6], 0, None), step(0, [6, 6], [6, 6, 6], 2, 6)])
    assert [(token.id, token.number) for token in trace.tokens] == [(6, 2), (6, 2), (6, 2)]
