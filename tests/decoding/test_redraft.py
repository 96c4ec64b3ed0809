"""With one bias for all, `redraft` gives the output of `ssbd` in one pass fewer for every accepted guess."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from redraft.decoding.cost import FLAT, CostCurve
from redraft.decoding.decode import decode
from redraft.decoding.drafters.previous import PreviousOutput
from redraft.decoding.drive import run
from redraft.decoding.method import Setup, Value
from redraft.decoding.methods import get_method
from redraft.decoding.rules.biased import Biased
from redraft.decoding.types import Output, Provenance
from tests.fakes import RandomModel

STEEP = CostCurve((1, 64), (1.0, 64.0))
#: A shape of 0.6B parameters in Q8_0, one thread of a processor with AMX: two tokens are dear, sixteen are cheap.
AMX = CostCurve((1, 2, 4, 8, 16, 32, 64), (1.0, 1.44, 1.49, 1.89, 2.12, 3.66, 6.91))
STEPS = CostCurve((1, 4, 5, 64), (1.0, 1.01, 3.0, 20.0))

ids = st.lists(st.integers(1, 5), min_size=1, max_size=10).map(tuple)
betas = st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.45, 0.5, 1.0])
curves = st.sampled_from([None, FLAT, STEEP, STEPS, AMX])


def same(beta: float) -> dict[str, Value]:
    """Equal biases towards shown and hidden words, so that the display does not matter."""
    return {"beta": beta, "hidden_beta": beta}


def stream(
    name: str,
    options: dict[str, Value],
    model: RandomModel,
    sources: list[tuple[int, ...]],
    limit: int,
    curve: CostCurve | None = None,
    trees: bool = False,
) -> list[Output]:
    """The outputs for sources that replace one another, each with the one before it as the previous output."""
    method = get_method(name)
    memory: dict[type, object] = {}
    previous: tuple[int, ...] = ()
    found: list[Output] = []
    for source in sources:
        setup = Setup(method.check(options), model.end_tokens, model.pad_token, memory, curve, trees)
        drafter, rule = method.build(setup)
        asking = decode(
            source,
            drafter,
            rule,
            previous=previous,
            shown=len(previous) // 2,
            source_ids=source,
            end_tokens=model.end_tokens,
            limit=limit,
        )
        found.append(run(asking, model, 0))
        previous = found[-1].tokens
    return found


@given(
    st.integers(0, 10_000),
    st.lists(ids, min_size=1, max_size=4),
    st.integers(1, 25),
    betas,
    st.sampled_from([0.0, 0.15]),
    curves,
    st.integers(1, 6),
    st.integers(1, 5),
)
def test_output_is_that_of_ssbd(
    seed: int,
    sources: list[tuple[int, ...]],
    limit: int,
    beta: float,
    floor: float,
    curve: CostCurve | None,
    branches: int,
    length: int,
) -> None:
    model = RandomModel(seed, vocabulary=6)
    expected = stream("ssbd", {"beta": beta, "floor": floor}, model, sources, limit)
    shape: dict[str, Value] = {"branches": branches} if branches > 1 else {}
    name = "redraft-tree" if shape else "redraft"
    found = stream(name, {**same(beta), "floor": floor, **shape, "length": length}, model, sources, limit, curve)
    assert [each.tokens for each in found] == [each.tokens for each in expected]
    assert [each.finished for each in found] == [each.finished for each in expected]


@given(
    st.integers(0, 10_000),
    ids,
    ids,
    st.integers(0, 10),
    betas,
    betas,
    st.sampled_from([0.0, 0.15]),
    curves,
    st.integers(1, 6),
)
def test_guesses_change_nothing_with_two_biases(
    seed: int,
    source: tuple[int, ...],
    previous: tuple[int, ...],
    shown: int,
    beta: float,
    hidden: float,
    floor: float,
    curve: CostCurve | None,
    branches: int,
) -> None:
    model, method = RandomModel(seed, vocabulary=6), get_method("redraft-tree" if branches > 1 else "redraft")
    options: dict[str, Value] = {"beta": beta, "hidden_beta": hidden, "floor": floor}
    options |= {"branches": branches} if branches > 1 else {}
    memory: dict[type, object] = {}
    for _ in range(3):  # it learns to guess
        built = method.build(Setup(method.check(options), model.end_tokens, model.pad_token, memory, curve))
        plain = PreviousOutput(), Biased(beta, floor, model.end_tokens, hidden)
        mine, theirs = (
            run(
                decode(
                    source,
                    drafter,
                    rule,
                    previous=previous,
                    shown=min(shown, len(previous)),
                    source_ids=source,
                    end_tokens=model.end_tokens,
                    limit=20,
                ),
                model,
                0,
            )
            for drafter, rule in (built, plain)
        )
        assert (mine.tokens, mine.finished) == (theirs.tokens, theirs.finished)
        assert mine.passes <= theirs.passes


@given(
    st.integers(0, 10_000),
    st.lists(ids, min_size=1, max_size=8),
    st.integers(1, 25),
    betas,
    curves,
    st.integers(1, 6),
    st.sampled_from([-4.0, 0.0]),
)
def test_passes_and_guesses(
    seed: int,
    sources: list[tuple[int, ...]],
    limit: int,
    beta: float,
    curve: CostCurve | None,
    branches: int,
    end_bias: float,
) -> None:
    model = RandomModel(seed, vocabulary=6, end_bias=end_bias)
    shape: dict[str, Value] = {"branches": branches} if branches > 1 else {}
    name = "redraft-tree" if shape else "redraft"
    expected = stream("ssbd", {"beta": beta}, model, sources, limit)
    found = stream(name, {**same(beta), **shape}, model, sources, limit, curve)
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.passes <= theirs.passes
        assert mine.passes + mine.accepted == theirs.passes + theirs.accepted
        assert mine.accepted >= theirs.accepted


def test_revisions_where_passes_are_slow() -> None:
    rng = random.Random(16)
    talk = tuple(rng.randint(1, 11) for _ in range(30))
    sources, heard = [], 3
    for _ in range(25):  # more than half of the updates rewrite the newest ids, or lack some
        revised = rng.random() < 0.55
        heard = max(3, min(len(talk), heard + (rng.randint(-4, 2) if revised else 3)))
        newest = [rng.randint(1, 11) if revised and rng.random() < 0.3 else each for each in talk[heard - 3 : heard]]
        sources.append((*talk[: heard - 3], *newest))
    for curve in (FLAT, STEEP, STEPS, AMX):
        model = RandomModel(7, vocabulary=12, end_bias=-2)
        for beta in (0.0, 0.2):
            theirs = [each.passes for each in stream("ssbd", {"beta": beta}, model, sources, 40)]
            mine = [each.passes for each in stream("redraft", same(beta), model, sources, 40, curve)]
            assert all(few <= many for few, many in zip(mine, theirs, strict=True))


def test_unknown_cost_is_ssbd() -> None:
    model = RandomModel(3, vocabulary=6, end_bias=-4)
    sources: list[tuple[int, ...]] = [(1, 2), (1, 3), (2, 3)]
    for name in ("redraft", "redraft-tree"):
        assert stream(name, {"beta": 0.2}, model, sources, 20) == stream("ssbd", {"beta": 0.2}, model, sources, 20)


def test_flat_costs_draft_little() -> None:
    drafted = {}
    for name, curve in (("steep", STEEP), ("flat", FLAT)):
        outputs = [
            output
            for seed in range(10)
            for output in stream(
                "redraft",
                same(0.1),
                RandomModel(seed, vocabulary=6, end_bias=-4),
                [(1, 2), (1, 3), (2, 3)],
                20,
                curve,
            )
        ]
        drafted[name] = sum(output.drafted for output in outputs)
    assert drafted["steep"] < drafted["flat"] / 2


def test_trees_where_they_are_cheap() -> None:
    def drafts_a_tree(curve: CostCurve | None, trees: bool = True, **options: Value) -> bool:
        model = RandomModel(3, vocabulary=6, end_bias=-4)
        stream("redraft", {**same(0.0), **options}, model, [(1, 2), (1, 3), (2, 3)], 20, curve, trees)
        return any(not request.draft.is_chain for request in model.requests)

    assert drafts_a_tree(FLAT) and drafts_a_tree(None, cost="flat") and drafts_a_tree(AMX, cost="flat")
    assert not (drafts_a_tree(FLAT, trees=False) or drafts_a_tree(FLAT, branches=1))
    assert not (drafts_a_tree(AMX) or drafts_a_tree(STEEP) or drafts_a_tree(None))


def test_no_guesses_where_passes_cost_a_request_little() -> None:
    def guesses(curve: CostCurve | None, **options: Value) -> int:
        model = RandomModel(3, vocabulary=6, end_bias=-4)
        stream("redraft", {**same(0.0), **options}, model, [(1, 2), (1, 3), (2, 3)], 20, curve)
        return sum(Provenance.RECYCLED in request.draft.provenance for request in model.requests)

    dear, cheap = CostCurve((1, 2), (0.02, 0.02)), CostCurve((1, 2), (0.001, 0.001))
    shared = replace(dear, requests=16)
    assert guesses(dear) and guesses(cheap, cost="flat")
    assert not (guesses(None) or guesses(cheap) or guesses(shared))


def test_each_kind_of_guess_saves_passes() -> None:
    def passes(**options: Value) -> int:
        off: dict[str, Value] = {"recycle": "off", "lookup": "off"}
        return sum(
            output.passes
            for seed in range(20)
            for output in stream(
                "redraft-tree",
                {**same(0.0), **off, **options},
                RandomModel(seed, vocabulary=6, end_bias=-3),
                [(1, 2, 3), (1, 2, 4), (1, 2, 5, 3)],
                20,
                FLAT,
            )
        )

    nothing = passes()
    assert passes(recycle="on") < nothing
    assert passes(lookup="on") < nothing
    assert passes(recycle="on", lookup="on", branches=6) < passes(recycle="on")
