"""The method `redraft` gives the output of `ssbd`, whatever it guesses and however it cuts its drafts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from redraft.cost import CostCurve
from redraft.decode import decode
from redraft.drive import run
from redraft.method import Setup, Value
from redraft.methods import get_method
from redraft.types import Output
from tests.fakes import RandomModel

FLAT = CostCurve((1, 64), (1.0, 1.001))
STEEP = CostCurve((1, 64), (1.0, 64.0))
STEPS = CostCurve((1, 4, 5, 64), (1.0, 1.01, 3.0, 20.0))

ids = st.lists(st.integers(1, 5), min_size=1, max_size=10).map(tuple)
betas = st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.45, 0.5, 1.0])
curves = st.sampled_from([None, FLAT, STEEP, STEPS])


def stream(
    name: str,
    options: dict[str, Value],
    model: RandomModel,
    sources: list[tuple[int, ...]],
    limit: int,
    curve: CostCurve | None = None,
) -> list[Output]:
    """The outputs for sources that replace one another, each with the one before it as the previous output."""
    method = get_method(name)
    memory: dict[type, object] = {}
    previous: tuple[int, ...] = ()
    found: list[Output] = []
    for source in sources:
        setup = Setup(method.check(options), model.end_tokens, model.pad_token, memory, curve)
        drafter, rule = method.build(setup)
        asking = decode(
            source, drafter, rule, previous=previous, source=source, end_tokens=model.end_tokens, limit=limit
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
def test_the_output_is_that_of_ssbd(
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
    bias: dict[str, Value] = {"beta": beta, "floor": floor}
    expected = stream("ssbd", bias, model, sources, limit)
    shape: dict[str, Value] = {"branches": branches} if branches > 1 else {}
    name = "redraft-tree" if shape else "redraft"
    found = stream(name, {**bias, **shape, "length": length}, model, sources, limit, curve)
    assert [each.tokens for each in found] == [each.tokens for each in expected]
    assert [each.finished for each in found] == [each.finished for each in expected]


@given(st.integers(0, 10_000), st.lists(ids, min_size=1, max_size=4), st.integers(1, 25), betas, st.integers(2, 6))
def test_it_never_needs_more_passes_where_passes_cost_the_same(
    seed: int, sources: list[tuple[int, ...]], limit: int, beta: float, branches: int
) -> None:
    model = RandomModel(seed, vocabulary=6)
    expected = stream("ssbd", {"beta": beta}, model, sources, limit)
    found = stream("redraft-tree", {"beta": beta, "branches": branches}, model, sources, limit)
    assert all(mine.passes <= theirs.passes for mine, theirs in zip(found, expected, strict=True))


def test_where_a_token_costs_as_much_as_a_pass_little_is_drafted() -> None:
    drafted = {}
    for name, curve in (("steep", STEEP), ("flat", FLAT)):
        outputs = [
            output
            for seed in range(10)
            for output in stream(
                "redraft",
                {"beta": 0.1},
                RandomModel(seed, vocabulary=6, end_bias=-4),
                [(1, 2), (1, 3), (2, 3)],
                20,
                curve,
            )
        ]
        drafted[name] = sum(output.drafted for output in outputs)
    assert drafted["steep"] < drafted["flat"] / 2


def test_each_kind_of_guess_saves_passes() -> None:
    def passes(**options: Value) -> int:
        off: dict[str, Value] = {"recycle": "off", "lookup": "off"}
        return sum(
            output.passes
            for seed in range(20)
            for output in stream(
                "redraft-tree",
                {"beta": 0.0, **off, **options},
                RandomModel(seed, vocabulary=6, end_bias=-3),
                [(1, 2, 3), (1, 2, 4), (1, 2, 5, 3)],
                20,
            )
        )

    nothing = passes()
    assert passes(recycle="on") < nothing
    assert passes(lookup="on") < nothing
    assert passes(recycle="on", lookup="on", branches=6) < passes(recycle="on")
