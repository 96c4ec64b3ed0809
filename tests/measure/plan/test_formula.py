"""The formula against cases worked out by hand."""

from __future__ import annotations

import itertools

import pytest

from redraft.measure.eval.record import PassRecord, Record
from redraft.measure.plan.alone import alone
from redraft.measure.plan.costs import LinearCost
from redraft.measure.plan.formula import ClosedQueue, EngineModel, most_carried
from redraft.measure.plan.trace import Work, shipped_trace
from tests.measure.plan.works import plain, step, trace

#: Five passes an update and, at a word per second, an update every two seconds.
WORK = plain(passes=5)
SHARED, APART = LinearCost(0.1, 0.0, 0.0), LinearCost(0.0, 0.1, 0.0)


def queue(cost: LinearCost, work: Work = WORK, most: int = 32, targets: int = 1) -> ClosedQueue:
    return ClosedQueue(work, trace(work).script(1.0), EngineModel(cost, most), targets)


def test_alone_every_update_takes_its_passes() -> None:
    found = alone(WORK, trace(WORK).script(1.0), 0.1)
    assert (found.updates, found.passes) == (4, 20)
    assert found.lags == pytest.approx([0.5] * 4)
    assert found.idle == pytest.approx(8 - 2)


def test_alone_updates_are_overtaken_where_passes_take_too_long() -> None:
    found = alone(WORK, trace(WORK).script(1.0), 0.9)  # 4.5 s an update
    assert found.updates < 4
    assert found.lags[-1] >= 4.5  # the final one is translated to its end


def test_alone_a_cancelled_update_leaves_its_lag_to_the_newer_one_of_its_utterance() -> None:
    """While the second update is translated, its utterance's final one and the next utterance's first one arrive."""
    one = PassRecord(10, 1, 0, 0, 0)
    lengths = (4, 8, 10), (1, 16)  # in words, half a second each
    passes = (2, 5, 2), (2, 2)
    records = [
        Record(
            number,
            str(number),
            "ar, de",
            tuple(
                step(seq, length, [one] * count, (seq,), final=seq == len(words) - 1)
                for seq, (length, count) in enumerate(zip(words, counts, strict=True))
            ),
        )
        for number, (words, counts) in enumerate(zip(lengths, passes, strict=True))
    ]
    work = Work("ar", tuple(records))
    found = alone(work, trace(work).script(2.0), 1.2)
    # Spoken at 2, 4 (and cancelled), 5.5 and 13 s; answered at 4.4, 8.0, 10.4 and 15.4 s.
    assert found.lags == pytest.approx([2.4, 4.0, 4.9, 2.4])


def test_one_session_is_busy_for_its_passes() -> None:
    found = queue(SHARED).estimate(1)
    assert found.busy == pytest.approx(0.5 / 2, rel=0.02)
    assert found.running == pytest.approx(found.busy)
    assert found.pass_seconds == pytest.approx(0.1, rel=0.01)
    assert found.lag == pytest.approx(0.5 + 0.05, rel=0.01)


def test_where_passes_cost_nothing_more_for_two_they_do_not_meet() -> None:
    found = queue(SHARED).estimate(2)
    assert found.running == pytest.approx(2 * 0.25, rel=0.02)
    assert found.busy == pytest.approx(1 - 0.75**2, rel=0.02)
    assert found.pass_seconds == pytest.approx(0.1, rel=0.01)


def test_where_every_session_pays_its_own_they_hold_each_other_up() -> None:
    found = queue(APART).estimate(2)
    assert found.busy == pytest.approx(2 * 0.25, rel=0.03)  # the work is the same, whenever it is done
    assert found.running > found.busy
    assert 0.1 < found.pass_seconds < 0.2


def test_languages_of_a_session_run_together() -> None:
    assert queue(APART, targets=3).estimate(1).pass_seconds == pytest.approx(0.3, rel=0.02)
    assert queue(SHARED, targets=3).estimate(1).lag == pytest.approx(0.55, rel=0.01)


def test_lanes_without_a_place_in_a_pass_wait() -> None:
    assert queue(SHARED, most=1, targets=3).estimate(1).pass_seconds == pytest.approx(0.3, rel=0.02)


def test_python_beside_a_model_server_is_paid_once_per_pass() -> None:
    assert EngineModel(SHARED, 32, host=0.01).round_seconds(4, 1, 0) == pytest.approx(0.14)
    assert EngineModel(SHARED, 32, host=0.01, in_process=False).round_seconds(4, 1, 0) == pytest.approx(0.11)


@pytest.mark.parametrize("method", ["ar", "ssbd", "redraft"])
def test_more_sessions_never_lag_less(method: str) -> None:
    recorded = shipped_trace()
    found = ClosedQueue(
        recorded.work(method), recorded.script(2.5), EngineModel(LinearCost(1e-4, 1.6e-3, 7e-4), 32, 1e-4)
    )
    lags = [found.lag(sessions) for sessions in (1, 5, 10, 20, 30, 40, 80)]
    assert all(few <= 1.01 * many for few, many in itertools.pairwise(lags))
    assert lags[0] < 0.2 and lags[-1] > 1


@pytest.mark.parametrize("limit", [0, 1, 2, 31, 32, 33, 100])
def test_the_search_finds_the_greatest_number_within_the_deadline(limit: int) -> None:
    assert most_carried(lambda number: float(number), limit + 0.5, 64) == min(limit, 64)
