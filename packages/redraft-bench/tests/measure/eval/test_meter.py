"""The meter: passes of the output that was kept, and those of other decodings of the same text."""

from __future__ import annotations

import pytest

from redraft.decoding.decode import decode
from redraft.decoding.drafters import Nothing
from redraft.decoding.drive import run_together
from redraft.decoding.method import Setup, Value
from redraft.decoding.methods import get_method
from redraft.decoding.types import DRAFT_MODEL, TARGET, Draft, Output, Prompt, Provenance, Score, Verdict
from redraft_bench.eval.contender import Contender
from redraft_bench.eval.figures import Row, TableLine, rows
from redraft_bench.eval.meter import Meter
from redraft_bench.eval.record import Record, Step
from redraft_bench.viz import DraftRow, Trace, traced
from tests.fakes import RandomModel

PROMPT = (1, 2, 3)


def decoding(meter: Meter, output: tuple[int, ...]) -> None:
    """One pass for each token, and one for the end."""
    meter.begin(Nothing())
    for length in range(len(output) + 1):
        meter([(0, Score(PROMPT + output[:length])), (1, Score((9,)))], 0.5)


@pytest.mark.parametrize(
    ("outputs", "kept", "passes", "second"),
    [
        ([(7, 8)], (7, 8), 3, 0),
        ([(7, 8), (7, 8, 6)], (7, 8, 6), 4, 3),  # decoded again, and better
        ([(7, 8), (7, 9, 6)], (7, 8), 3, 4),  # decoded again in vain
        ([(7,), (7,)], (7,), 2, 2),
        ([(), (5, 6)], (5, 6), 3, 1),
        ([], (), 0, 0),
    ],
)
def test_second_decodings(outputs: list[tuple[int, ...]], kept: tuple[int, ...], passes: int, second: int) -> None:
    meter = Meter()
    for output in outputs:
        decoding(meter, output)
    taken = meter.take(len(PROMPT), kept, True)
    assert (len(taken.passes), taken.second) == (passes, second)
    assert taken.seconds == 0.5 * (passes + second)
    assert sum(each.accepted + 1 for each in taken.passes) == (len(kept) + 1 if passes else 0)
    assert meter.take(len(PROMPT), (), True).seconds == 0


@pytest.mark.parametrize(
    ("accepted", "finished", "counted", "end_drafted"),
    [(2, True, 2, False), (3, True, 3, True), (1, False, 1, False), (3, False, 2, False)],
)
def test_accepted_tokens_of_last_pass(accepted: int, finished: bool, counted: int, end_drafted: bool) -> None:
    meter, draft = Meter(), Draft.chain((5, 6, 7), Provenance.PREVIOUS)
    drafter = meter.begin(Nothing())
    meter([(0, Score(PROMPT, draft))], 0.1)
    drafter.observe(draft, None, Verdict(tuple(range(accepted)), 9))  # type: ignore[arg-type]
    taken = meter.take(len(PROMPT), (5, 6), finished)
    assert [(each.depth, each.accepted) for each in taken.passes] == [(3, counted)]
    assert (taken.settled, taken.end_drafted) == (0, end_drafted)


def test_hypotheses_of_a_search_are_no_draft() -> None:
    meter = Meter()
    meter.begin(Nothing())
    meter([(0, Score(PROMPT, Draft.chain((5, 6, 7), Provenance.MODEL)))], 0.1)
    taken = meter.take(len(PROMPT), (5, 6), True)
    assert [(each.nodes, each.depth, each.accepted) for each in taken.passes] == [(3, 0, 0)]
    assert (taken.settled, taken.end_drafted) == (0, False)


def measured(name: str, seed: int, small_seed: int, **options: Value) -> tuple[Output, Step, Trace]:
    """A text by a method with a small model: what the loop, the meter and the draft view count."""
    target, small = RandomModel(seed, end_bias=-0.5), RandomModel(small_seed, end_bias=-0.5)
    meter, traces = Meter(), list[Trace]()
    method = traced(meter.watched(get_method(name)), traces)
    drafter, rule = method.build(Setup(method.check(options), target.end_tokens))
    asking = decode(Prompt(PROMPT), drafter, rule, end_tokens=target.end_tokens, limit=30)
    lanes, models = [(asking, {TARGET: 0, DRAFT_MODEL: 0})], {TARGET: target, DRAFT_MODEL: small}
    (output,) = run_together(lanes, models, meter)
    taken = meter.take(len(PROMPT), output.tokens, output.finished)
    head = 0, "s", True, None, len(PROMPT), output.tokens, "t", "", output.finished, 1.0, 0.5
    more = output.draft_passes, (0, 0), (1, 1), 0.0, 0, taken.settled, taken.end_drafted
    return output, Step(*head, taken.passes, *more), traces[-1]


def figures_of(steps: list[Step]) -> Row:
    records = [Record(place, "u", "c", (step,)) for place, step in enumerate(steps)]
    return rows([TableLine(Contender("bild", "de"), records)])[0]


#: Methods with a small model and their options.
SMALL: list[tuple[str, dict[str, Value]]] = [
    ("bild", {"fallback": 0}),
    ("bild", {"fallback": 0.3, "rollback": 1, "window": 3}),
    ("bild", {"end": "verified", "fallback": 0, "window": 4}),
    ("speculative-sampling", {"temperature": 0}),
]


@pytest.mark.parametrize(("name", "options"), SMALL)
def test_loop_records_and_view_count_the_same(name: str, options: dict[str, Value]) -> None:
    ends = 0
    for seed in range(40):
        for small_seed in (seed, seed + 1000):
            output, step, trace = measured(name, seed, small_seed, **options)
            loop = output.passes, output.drafted, output.accepted
            assert (len(step.passes), step.drafted, step.accepted) == loop
            assert (trace.passes, trace.drafted, DraftRow(None, trace).accepted) == loop
            assert step.end_drafted == output.end_drafted
            ends += output.end_drafted
    assert ends > 10


@pytest.mark.parametrize(("name", "options"), SMALL)
def test_large_model_as_its_own_small_model(name: str, options: dict[str, Value]) -> None:
    steps = [
        measured(name, seed, seed, **{**options, "rollback": 100} if name == "bild" else options)[1]
        for seed in range(60)
    ]
    assert any(step.end_drafted for step in steps)
    row = figures_of(steps)
    assert (row["draft_acceptance"], row["rollback_share"]) == (1.0, 0.0)


def test_texts_of_the_small_model_alone_count_too() -> None:
    steps = [measured("bild", seed, seed + 1000, fallback=0)[1] for seed in range(60)]
    alone = [step for step in steps if not step.passes]
    assert alone and all(step.accepted == step.drafted == len(step.tokens) + 1 for step in alone)
    row = figures_of(steps)
    assert row["output_tokens"] == sum(len(step.tokens) for step in steps) and row["updates"] == len(steps)


def test_share_of_the_output_leaves_its_end_out() -> None:
    steps = [measured("bild", seed, seed, window=4, fallback=0, rollback=100, end="verified")[1] for seed in range(60)]
    step = next(each for each in steps if each.end_drafted and len(each.tokens) < 4)
    assert (step.drafted, step.accepted) == (len(step.tokens) + 1,) * 2
    assert figures_of([step])["output_acceptance"] == 1.0
