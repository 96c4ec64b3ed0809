"""Traces agree with the loop's own counts, whatever the method, and change nothing."""

from __future__ import annotations

import math

import pytest

from measure.viz.traces import decoded, step
from redraft.decoding.cost import FLAT
from redraft.decoding.decode import decode
from redraft.decoding.drive import run
from redraft.decoding.method import Setup
from redraft.decoding.methods import all_methods, get_method
from redraft.decoding.types import Provenance
from redraft_bench.viz.trace import Given, Trace
from tests.fakes import END, RandomModel, greedy

METHODS = [name for name, method in all_methods().items() if not method.draft_model]


def probability(model: RandomModel, ids: list[int], token: int) -> float:
    logits = model.logits(ids)
    return math.exp(logits[token]) / sum(math.exp(each) for each in logits)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(2))
def test_trace_holds_output_and_its_counts(method: str, seed: int) -> None:
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
    drafter, rule = chosen.build(Setup(chosen.check({}), plain.end_tokens, plain.pad_token, curve=FLAT))
    prompt = (1, 2, 3, 4)
    asking = decode(prompt, drafter, rule, previous=previous, source_ids=prompt, end_tokens=plain.end_tokens, limit=20)
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
