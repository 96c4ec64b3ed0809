"""The part of a draft that is worth verifying."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.decoding.cost import CostCurve
from redraft.decoding.drafters.worth import Acceptance, Kind, Throughput, worth_verifying
from redraft.decoding.types import ROOT, Draft, Provenance, Verdict

FLAT = CostCurve((1, 2), (1.0, 1.0))
LINE = CostCurve((1, 2), (1.0, 2.0))


def test_all_of_draft_where_more_tokens_cost_nothing() -> None:
    assert worth_verifying([0.9, 0.5, 0.01], 1, FLAT, 1.0) == [0, 1, 2]


def test_nothing_where_token_costs_as_much_as_pass() -> None:
    assert worth_verifying([0.9, 0.8, 0.99], 1, LINE, 1.0) == []


def test_low_throughput_makes_drafts_cheap() -> None:
    assert worth_verifying([0.5, 0.05], 10, LINE, 0.2) == [0]


def test_throughput_of_passes_so_far() -> None:
    throughput = Throughput()
    assert throughput.per_second(LINE) == 1.0
    throughput.learn(12, 3, LINE)
    assert throughput.per_second(LINE) == 4.0
    for _ in range(5000):
        throughput.learn(1, 1, LINE)
    assert 1.0 < throughput.per_second(LINE) < 1.1


def test_pace_is_that_of_machine_today() -> None:
    throughput, slower = Throughput(), CostCurve((1, 2), (3.0, 6.0))
    throughput.learn(12, 3, LINE)
    assert throughput.per_second(slower) == pytest.approx(throughput.per_second(LINE) / 3)
    then = Throughput()
    then.learn(12, 3, slower)
    assert then.per_second(LINE) == throughput.per_second(LINE)


@given(
    st.lists(st.floats(0, 1), max_size=7),
    st.integers(1, 4),
    st.lists(st.floats(0.1, 3), min_size=12, max_size=12),
    st.floats(0.01, 3),
)
def test_no_other_nodes_give_more(reached: list[float], tail: int, steps: list[float], throughput: float) -> None:
    seconds = [sum(steps[: n + 1]) for n in range(12)]
    curve = CostCurve(tuple(range(1, 13)), tuple(seconds))

    def profit(nodes: tuple[int, ...]) -> float:
        return sum(reached[node] for node in nodes) - throughput * (curve(tail + len(nodes)) - curve(tail))

    every = (nodes for size in range(len(reached) + 1) for nodes in combinations(range(len(reached)), size))
    chosen = worth_verifying(reached, tail, curve, throughput)
    assert profit(tuple(chosen)) >= max(map(profit, every)) - 1e-9
    assert chosen == sorted(chosen)


def test_acceptance_is_learnt() -> None:
    acceptance = Acceptance()
    draft = Draft((1, 2, 3), (ROOT, 0, 1), (Provenance.RECYCLED,) * 3)
    kinds: list[Kind] = [Kind(Provenance.RECYCLED, depth) for depth in range(3)]
    before = acceptance.reached(draft, kinds)
    acceptance.learn(draft, kinds, Verdict((0,), 9))
    after = acceptance.reached(draft, kinds)
    assert before == [0.5, 0.25, 0.125]
    assert after[0] > before[0]
    assert 0.3 < after[1] / after[0] < before[1] / before[0], "one refusal does not settle it"
    assert after[2] / after[1] == pytest.approx(after[1] / after[0]), "nothing is known of what follows a refused token"


def test_latest_observations_count() -> None:
    acceptance, draft = Acceptance(), Draft.chain((1,), Provenance.RECYCLED)
    kinds = [Kind(Provenance.RECYCLED, 0, 1, 2)]
    for _ in range(2000):
        acceptance.learn(draft, kinds, Verdict((0,), 9))
    assert acceptance.reached(draft, kinds)[0] > 0.99
    acceptance.learn(draft, kinds, Verdict((), 9))
    assert acceptance.reached(draft, kinds)[0] > 0.95
    for _ in range(500):
        acceptance.learn(draft, kinds, Verdict((), 9))
    assert acceptance.reached(draft, kinds)[0] < 0.1


def test_previous_output_is_believed_at_first() -> None:
    kinds = [Kind(Provenance.SHOWN, 0), Kind(Provenance.PREVIOUS, 0)]
    assert all(Acceptance().reached(Draft((1,), (ROOT,), (kind.provenance,)), [kind]) > [0.9] for kind in kinds)


def test_depth_never_tried() -> None:
    acceptance = Acceptance()
    draft = Draft((1, 2), (ROOT, 0), (Provenance.PREVIOUS,) * 2)
    kinds: list[Kind] = [Kind(Provenance.PREVIOUS, 0), Kind(Provenance.PREVIOUS, 1)]
    for _ in range(20):
        acceptance.learn(draft.keeping([0]), kinds[:1], Verdict((0,), 9))
    first, second = acceptance.reached(draft, kinds)
    assert second == first * first > 0.8
