"""How many concurrent requests a server batches well."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from typing import Any

import pytest

pytest.importorskip("httpx2", reason="needs the extra remote")

from redraft.backends.remote.batching import batched
from tests.backends.remote.servers import FakeVllm, Table, connected


class Slow(Table):
    """A table model whose outputs do not end."""

    end_tokens = frozenset({0})

    def logits(self, ids: Any) -> Any:
        logits = super().logits(ids)
        logits[0] = -1e9
        return logits


@pytest.mark.parametrize("limit", [1, 4])
def test_as_many_requests_as_server_batches(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    server, places = FakeVllm(Slow()), threading.Semaphore(limit)
    answer = server.answer

    def one_of_few(*request: Any) -> Any:
        with places:
            time.sleep(0.4)  # much longer than all else, also on a busy machine
            return answer(*request)

    monkeypatch.setattr(server, "answer", one_of_few)
    with closing(connected(server, slots=8, ahead=17)) as backend:
        assert batched(backend) == limit
    with closing(connected(server, slots=2, ahead=17)) as backend:
        assert batched(backend) == min(2, limit)
