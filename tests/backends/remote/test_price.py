"""What passes cost on a server."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from typing import Any

import pytest

pytest.importorskip("httpx2", reason="needs the extra remote")

from redraft.backends.costs import known_curve
from tests.backends.remote.servers import FakePlugin, FakeSglang, FakeVllm, Table, connected

REQUEST = 0.02


class Slow(Table):
    """A table model whose outputs do not end."""

    end_tokens = frozenset({0})

    def logits(self, ids: Any) -> Any:
        logits = super().logits(ids)
        logits[0] = -1e9
        return logits


@pytest.mark.parametrize("kind", [FakeVllm, FakePlugin, FakeSglang])
def test_token_of_stream_costs_less_than_request(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server = kind(Slow())
    answer = server.answer

    def late(*request: Any) -> Any:
        time.sleep(REQUEST)
        return answer(*request)

    monkeypatch.setattr(server, "answer", late)
    with closing(connected(server, slots=1)) as backend:
        curve = known_curve(backend)
        assert 0 < curve(1) < REQUEST / 2 < REQUEST <= curve(2) <= curve(32) <= curve(96)
        backend.close_slot(backend.open_slot())  # the slot is free again
    verified = sum("prompt_logprobs" in body for body in server.bodies)
    carried = sum("vllm_xargs" in body for body in server.bodies)
    if kind is not FakeSglang:
        assert (verified > 0, carried > 0) == (kind is FakeVllm, kind is FakePlugin)


class Brief(Table):
    """A table model whose outputs end at once."""

    def logits(self, ids: Any) -> Any:
        logits = super().logits(ids)
        logits[0] = 1e9
        return logits


@pytest.mark.parametrize(("model", "tokens"), [(Slow, 1), (Brief, 3)])
def test_token_has_its_price_where_all_tokens_come_at_once(
    model: type[Table], tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = FakeSglang(model())
    generate, token = server.generate, 0.01

    def late(*request: Any) -> Any:
        answer = generate(*request)
        time.sleep(2 * token + token * len(answer["output_ids"]))
        return answer

    monkeypatch.setattr(server, "generate", late)
    with closing(connected(server, slots=1)) as backend:
        # That of an output that ends at once is the whole request.
        assert 0.5 * tokens * token < backend.curve()(1) < 3 * tokens * token


@pytest.mark.parametrize("limit", [1, 4])
def test_as_many_requests_as_server_batches(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    server, places = FakeVllm(Slow()), threading.Semaphore(limit)
    answer = server.answer

    def one_of_few(*request: Any) -> Any:
        with places:
            time.sleep(0.2)
            return answer(*request)

    monkeypatch.setattr(server, "answer", one_of_few)
    with closing(connected(server, slots=8, ahead=17)) as backend:
        assert backend.batched() == limit
    with closing(connected(server, slots=2, ahead=17)) as backend:
        assert backend.batched() == min(2, limit)
