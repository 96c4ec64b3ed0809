"""Figures computed from records by hand."""

from __future__ import annotations

from typing import Any

import pytest

from redraft.decoding.backend import CostCurve
from redraft_bench.eval.contender import Contender
from redraft_bench.eval.figures import TableLine, rows
from redraft_bench.eval.limit import Oracle, distance, tails
from redraft_bench.eval.record import PassRecord as Pass
from redraft_bench.eval.record import Record, Step

FLAT = CostCurve((1, 100), (1.0, 1.0))
LINE = CostCurve((1, 2), (1.0, 2.0))


def step(seq: int, tokens: int, passes: list[Pass], **more: Any) -> Step:
    fields: dict[str, Any] = {
        "source": "s",
        "final": False,
        "time": None,
        "prompt": 10,
        "text": "t",
        "unstable": "",
        "finished": True,
        "seconds": 1.0,
        "model_seconds": 0.5,
        **more,
    }
    return Step(seq=seq, tokens=tuple(range(tokens)), passes=tuple(passes), **fields)


def record(name: str, steps: list[Step], segment: int = 0) -> Record:
    return Record(segment, str(segment), name, tuple(steps))


AR = Contender("ar", "de")
SSBD = Contender("ssbd", "de")
#: Four tokens and an end, one a pass; then the same with a draft of four of which three are kept.
PLAIN = record(
    AR.name,
    [
        step(0, 4, [Pass(7 + n, 3 if n == 0 else 1, 0, 0, 0) for n in range(5)], length=(4, 4)),
        step(
            1,
            4,
            [Pass(8 + n, 2 if n == 0 else 1, 0, 0, 0) for n in range(5)],
            final=True,
            erased=(2, 1),
            length=(4, 4),
        ),
    ],
)
DRAFTED = record(
    SSBD.name,
    [
        step(0, 4, [Pass(6 + n, 4 if n == 0 else 1, 0, 0, 0) for n in range(5)], length=(4, 4)),
        step(
            1,
            4,
            [Pass(8, 6, 4, 4, 3), Pass(13, 1, 0, 0, 0)],
            final=True,
            seconds=0.5,
            erased=(1, 0),
            length=(4, 4),
        ),
    ],
)


def test_figures_by_hand() -> None:
    plain, drafted = rows([TableLine(AR, [PLAIN]), TableLine(SSBD, [DRAFTED])])
    assert (plain["target_passes"], drafted["target_passes"]) == (10, 7)
    assert (plain["output_tokens"], plain["mean_acceptance_length"]) == (8, 1.0)
    assert drafted["mean_acceptance_length"] == round(10 / 7, 3)
    assert (drafted["draft_acceptance"], drafted["output_acceptance"]) == (0.75, 0.375)
    assert plain["draft_acceptance"] is None
    assert (plain["ne_output"], plain["ne_display"]) == (0.5, 0.25)
    assert (plain["tokens_per_second"], drafted["speedup"]) == (4.0, round(2 / 1.5, 3))
    assert drafted["pass_speedup"] == round(10 / 7, 3)
    assert (plain["positions"], drafted["positions"], drafted["relative_flops"]) == (13, 15, round(15 / 13, 3))
    assert drafted["flops_by_speed"] == round(round(15 / 13, 3) / round(2 / 1.5, 3), 3)


def test_output_cut_as_loop_keeps_no_more_than_it_has() -> None:
    assert step(0, 2, [Pass(9, 10, 9, 9, 9)]).accepted == 2


def test_oracle_of_flat_costs() -> None:
    assert Oracle(FLAT).seconds(3, 7) == 1.0


def test_oracle_cannot_beat_line() -> None:
    assert Oracle(LINE).seconds(3, 7) == 9.0  # three of the prompt, and six tokens that have to be read again


@pytest.mark.parametrize(("tail", "tokens"), [(1, 1), (2, 3), (5, 4)])
def test_oracle_is_best_of_all_ways_to_cut(tail: int, tokens: int) -> None:
    curve = CostCurve((1, 2, 3, 4, 8), (1.0, 1.1, 2.9, 3.0, 9.0))

    def best(left: int) -> float:
        return 0.0 if left == 0 else min(curve(first) + best(left - first) for first in range(1, left + 1))

    expected = min(curve(tail + first - 1) + best(tokens - first) for first in range(1, tokens + 1))
    assert Oracle(curve).seconds(tail, tokens) == pytest.approx(expected)


def test_limit_is_same_for_line_that_caches_less() -> None:
    shortest = tails([PLAIN, DRAFTED])
    assert shortest == {(0, 0): 3, (0, 1): 2}
    both = [distance([each], LINE, shortest) for each in (PLAIN, DRAFTED)]
    least = 3 + 4 + 2 + 4
    assert both == [2.0 / least, 1.5 / least]
