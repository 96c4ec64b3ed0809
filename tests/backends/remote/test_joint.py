"""Drafts and their continuations in one request or in two: fewer requests where they are expensive, the same ids."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import Any

import pytest

pytest.importorskip("httpx2", reason="needs the extra remote")

from redraft.backends.remote.backend import RemoteBackend
from redraft.backends.remote.joint import REMEMBERED, JointRequests, Outcome
from redraft.backends.remote.price import REQUESTS
from redraft.decoding.cost import CostCurve
from redraft.decoding.types import ROOT, Draft, Provenance, Score
from redraft.errors import ModelError
from tests.backends.remote.servers import Decided, FakeServer, FakeSglang, FakeVllm, Table, connected
from tests.backends.remote.test_decoding import outputs, same
from tests.fakes import greedy

EXPENSIVE, CHEAP = (CostCurve((1, 2), (1.0, seconds)) for seconds in (30.0, 1.5))
STOCK = pytest.mark.parametrize("kind", [FakeVllm, FakeSglang])


def decided(curve: CostCurve, outcomes: Sequence[Outcome], most: int = 63) -> int:
    joint = JointRequests()
    joint.curve = curve
    for outcome in outcomes:
        joint.note(outcome)
    return joint.further(most)


def test_the_expected_gain_decides() -> None:
    rejected, ended, longer = Outcome(0), Outcome(0, generated=0), Outcome(5)
    assert decided(EXPENSIVE, []) == decided(EXPENSIVE, [rejected]) == decided(EXPENSIVE, [ended] * 9) == 0
    assert decided(EXPENSIVE, [longer]) == 5
    assert decided(CHEAP, [longer]) == 0, "one success is no proof"
    assert decided(CHEAP, [longer] * 20) == 5
    assert decided(CHEAP, [longer] * 20 + [rejected] * 5) == 0
    # 2 * 29 tokens are saved, and (rejected + 1) * 5 are computed in vain.
    assert [decided(EXPENSIVE, [longer] * 2 + [rejected] * count) for count in (10, 11)] == [5, 0]
    assert decided(EXPENSIVE, [longer] * 2 + [Outcome(0, generated=1)] * 40) == 5, "what ends at once costs little"


def test_the_number_of_tokens_is_the_one_with_the_greatest_gain() -> None:
    outcomes = [Outcome(3)] * 4 + [Outcome(60)] + [Outcome(0)] * 4
    assert decided(EXPENSIVE, outcomes) == 3, "the longest output is not worth waiting for"
    assert decided(EXPENSIVE, [Outcome(3)] * 4 + [Outcome(60)] * 30) == 60
    assert decided(EXPENSIVE, [Outcome(3)] * 4 + [Outcome(60)] * 30, most=59) == 3
    assert decided(EXPENSIVE, [Outcome(3)] * 4, most=2) == decided(EXPENSIVE, [Outcome(3)] * 4, most=0) == 0


def test_old_outcomes_are_forgotten() -> None:
    assert decided(CHEAP, [Outcome(5)] * 100 + [Outcome(0)] * REMEMBERED) == 0


def test_without_costs_there_are_two_requests() -> None:
    joint = JointRequests()
    joint.note(Outcome(5))
    assert joint.further(63) == 0


def translated(
    server: FakeServer, curve: CostCurve | None = None, decision: Callable[[int], int] | None = None, **settings: Any
) -> tuple[list[tuple[int, ...]], int]:
    """Ids of two streams, and the number of requests."""
    server.bodies.clear()
    with closing(connected(server)) as backend:
        backend.joint.curve = curve
        if decision:
            backend.joint = Decided(decision)
        found = [ids for seed in range(2) for ids in outputs(backend, seed, **settings)]
        assert backend.fallbacks == 0
        return found, len(server.bodies)


METHODS: list[dict[str, Any]] = [
    {"options": {"beta": 0.0}},
    {"options": {"beta": 0.2}},
    {"options": {"beta": 0.5}},
    {"method": "cd"},
    {"method": "ssbd-pld"},
    {"method": "jacobi"},
]


@pytest.mark.slow
@pytest.mark.parametrize("settings", METHODS, ids=str)
@STOCK
def test_the_ids_are_the_same_whatever_is_decided(kind: type[FakeServer], settings: dict[str, Any]) -> None:
    server = kind(Table())
    wanted, requests = translated(server, **settings)
    assert wanted == [ids for seed in range(2) for ids in outputs(Table(), seed, **settings)]
    for seed in range(3):
        found, fewer = translated(server, decision=partial(random.Random(seed).randint, 0), **settings)
        assert found == wanted and fewer <= requests
    found, least = translated(server, decision=lambda most: most, **settings)
    assert found == wanted and least <= fewer


@STOCK
def test_requests_fall_where_they_are_expensive_and_only_there(kind: type[FakeServer]) -> None:
    server = kind(Table())
    wanted, requests = translated(server)
    found, fewer = translated(server, EXPENSIVE)
    assert found == wanted and fewer < 0.85 * requests
    assert fewer >= translated(server, decision=lambda most: most)[1]
    rejecting: dict[str, Any] = {"options": {"beta": 0.0}}
    assert translated(server, CHEAP, **rejecting) == translated(server, **rejecting)


def asked(backend: RemoteBackend, slot: int, prefix: tuple[int, ...], *draft: int) -> Any:
    (rows,) = backend.score([(slot, Score(prefix, Draft.chain(draft, Provenance.PREVIOUS)))])
    return rows


def continuing(table: Table) -> tuple[tuple[int, ...], list[int]]:
    """A prefix whose output has eight tokens at least."""
    prefix = next((3, 4, token) for token in range(1, 29) if len(greedy(table, (3, 4, token), 12)) == 12)
    return prefix, greedy(table, prefix, 12)


@STOCK
def test_one_response_has_the_rows_of_the_draft_and_of_its_continuation(kind: type[FakeServer]) -> None:
    server = kind(Table())
    prefix, line = continuing(server.table)  # type: ignore[arg-type]
    with closing(connected(server)) as backend:
        backend.joint = Decided(lambda most: 3)
        slot, scores = backend.open_slot(), []
        for count in range(4):
            draft = Draft.chain(line[:4] if not count else (), Provenance.PREVIOUS)
            scores.append(Score((*prefix, *line[: 4 + count]) if count else prefix, draft))
        rows = [backend.score([(slot, score)])[0] for score in scores]
        assert [each.argmax(3 if not number else ROOT) for number, each in enumerate(rows)] == line[4:8]
        (body,) = server.bodies
        sampling = body.get("sampling_params", body)
        assert sampling["stop_token_ids"] == [0] and not body.get("stream")
        assert sampling.get("max_new_tokens") == 4 or body["max_tokens"] == 4
        for own, score in zip(rows, scores, strict=True):
            same([own], server.table.score([(0, score)]), [score])
        asked(backend, slot, (*prefix, *line[:8]))
        assert server.bodies[-1].get("prompt_logprobs") is None


@STOCK
def test_what_became_of_a_draft_is_observed(kind: type[FakeServer]) -> None:
    server = kind(Table())
    prefix, line = continuing(server.table)  # type: ignore[arg-type]
    with closing(connected(server)) as backend:
        backend.joint = Decided(lambda most: 0)
        noted, slot = backend.joint.noted, backend.open_slot()
        asked(backend, slot, prefix, *line[:3])
        for count in (4, 5, 6):
            asked(backend, slot, (*prefix, *line[:count]))
        assert noted == []
        asked(backend, slot, prefix, line[0], 29)
        assert noted == [Outcome(used=3)]
        asked(backend, slot, (*prefix, *line[:2]))
        assert noted[1].used == 0
        asked(backend, slot, (8, 9), 29, 29)
        assert len(noted) == 2
        backend.close_slot(slot)
        assert len(noted) == 3 and noted[2].used == 0


@STOCK
def test_no_more_is_requested_than_fits(kind: type[FakeServer]) -> None:
    server = kind(Table())
    with closing(connected(server, ahead=8)) as backend:
        backend.joint = Decided(lambda most: most)
        for length, draft, count in ((500, 4, 8), (500, 10, 3), (500, 12, 1)):
            asked(backend, backend.open_slot(), tuple(1 + place % 28 for place in range(length)), *[5] * draft)
            body = server.bodies[-1]
            assert body.get("max_tokens", body.get("sampling_params", {}).get("max_new_tokens")) == count


@STOCK
def test_malformed_rows_of_a_continuation_are_made_up_for(kind: type[FakeServer]) -> None:
    server = kind(Table())
    wanted, _ = translated(server, options={"beta": 0.0})

    def spoil(answer: dict[str, Any]) -> dict[str, Any]:
        if server.engine == "vllm":
            (choice,) = answer["choices"]
            if choice["prompt_logprobs"]:
                choice["logprobs"]["top_logprobs"].pop()
        elif len(answer["meta_info"]["input_token_logprobs"]) > 1:
            answer["meta_info"]["output_top_logprobs"].pop()
        return answer

    server.spoil = spoil
    with closing(connected(server)) as backend:
        backend.joint = Decided(lambda most: min(9, most))
        assert [ids for seed in range(2) for ids in outputs(backend, seed, options={"beta": 0.0})] == wanted
        assert backend.fallbacks > 10


@STOCK
def test_costs_are_measured_once_second_requests_have_cost_as_much(kind: type[FakeServer]) -> None:
    server = kind(Table())
    with closing(connected(server)) as backend:
        wanted = outputs(Table(), options={"beta": 0.2})
        assert outputs(backend, options={"beta": 0.2}) == wanted and backend.joint.curve is None
        alone = len(server.bodies)
        for _ in range(REQUESTS):
            backend.joint.note(Outcome(4))
        ours = [outputs(backend, options={"beta": 0.2}) for _ in range(3)]
        assert ours == [wanted] * 3 and backend.joint.curve is not None
        assert len(server.bodies) <= 4 * alone + REQUESTS
        known = backend.joint.curve
        assert backend.curve() == known, "it is not measured again"


def test_a_measurement_that_fails_is_no_failure_of_the_update(caplog: pytest.LogCaptureFixture) -> None:
    def failing() -> Any:
        raise ModelError("the server is busy")
        yield

    joint, begun = JointRequests(), 0

    def begin() -> Any:
        nonlocal begun
        begun += 1
        return failing()

    joint.approach(begin, 1)
    assert begun == 0
    joint.note(Outcome(2))
    for _ in range(3):
        joint.approach(begin, 1)
    assert begun == 1 and joint.curve is None and "could not be measured: the server is busy" in caplog.text
