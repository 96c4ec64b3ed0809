"""How many concurrent requests a server batches well."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import Any

import pytest

from redraft.backends import load
from redraft.backends.load import batched
from tests.backends.remote.servers import FakeVllm, Table, connected


class Slow(Table):
    """A table model whose outputs do not end."""

    end_tokens = frozenset({0})

    def logits(self, ids: Any) -> Any:
        logits = super().logits(ids)
        logits[0] = -1e9
        return logits


class Clock:
    """The time of a server that answers so many requests together, a second for each such group."""

    def __init__(self, limit: int) -> None:
        self._limit, self._seconds, self._requests = limit, 0.0, 0
        self._lock = threading.Lock()

    def perf_counter(self) -> float:
        self._requests = 0
        return self._seconds

    def count(self) -> None:
        with self._lock:
            self._seconds += self._requests % self._limit == 0
            self._requests += 1


@pytest.mark.parametrize("limit", [1, 4])
def test_as_many_requests_as_server_batches(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    server, clock = FakeVllm(Slow()), Clock(limit)
    answer = server.answer

    def counted(*request: Any) -> Any:
        clock.count()
        return answer(*request)

    monkeypatch.setattr(server, "answer", counted)
    monkeypatch.setattr(load, "time", clock)
    with closing(connected(server, slots=8, ahead=17)) as backend:
        assert batched(backend) == limit
    with closing(connected(server, slots=2, ahead=17)) as backend:
        assert batched(backend) == min(2, limit)
