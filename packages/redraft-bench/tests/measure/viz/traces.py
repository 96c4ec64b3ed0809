"""Traces written by hand and traces of the table model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from redraft.decoding.cost import FLAT
from redraft.decoding.decode import decode
from redraft.decoding.drive import run
from redraft.decoding.method import Setup, Value
from redraft.decoding.methods import get_method
from redraft.decoding.types import Draft, Output, Provenance, Verdict
from redraft_bench.viz.trace import Trace, TracedPass, traced
from tests.fakes import END, RandomModel


def step(start: int, drafted: Sequence[int], best: Sequence[int], accepted: int, token: int | None) -> TracedPass:
    """A pass over a chain: its k-th row has a best token of probability 0.1 k."""
    assert len(best) == len(drafted) + 1
    return TracedPass(
        start,
        Draft.chain(drafted, Provenance.ITERATION),
        (0.5,) * len(drafted),
        tuple((each, place / 10) for place, each in enumerate(best, 1)),
        Verdict(tuple(range(accepted)), token),
        0.25,
    )


def iterations(*guesses: Sequence[int]) -> Trace:
    """Jacobi decoding of one block in the paper's mode: the first guess, then what each pass predicts."""
    steps = [step(0, read[:-1], predicted, 0, None) for read, predicted in pairwise(guesses)]
    last = guesses[-1]
    steps.append(step(0, last[:-1], last, len(last) - 1, last[-1]))
    return Trace(frozenset({END}), steps)


def decoded(
    model: RandomModel,
    method: str,
    *,
    prompt: tuple[int, ...] = (1, 2, 3, 4),
    previous: tuple[int, ...] = (),
    options: Mapping[str, Value] | None = None,
    limit: int = 20,
) -> tuple[Output, Trace]:
    """What a method makes of a prompt, and the trace it leaves."""
    traces: list[Trace] = []
    chosen = traced(get_method(method), traces)
    drafter, rule = chosen.build(Setup(chosen.check(options or {}), model.end_tokens, model.pad_token, curve=FLAT))
    asking = decode(
        prompt, drafter, rule, previous=previous, source_ids=prompt, end_tokens=model.end_tokens, limit=limit
    )
    output = run(asking, model, model.open_slot())
    (trace,) = traces
    return output, trace
