"""Talks against a server on a table model: all is counted, refusals have their reason, nothing is left over."""

from __future__ import annotations

import asyncio
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from redraft.client import ServerError
from redraft_bench.loadtest.crowd import Outcome, Plan, hold
from redraft_bench.loadtest.script import Script, open_script
from tests.serve.fakes import CachedModel
from tests.serve.servers import running


@pytest.fixture(scope="module")
def script() -> Script:
    return open_script("talk", "de", 25.0)


def held(script: Script, plan: Plan, model: CachedModel | None = None, **settings: Any) -> Outcome:
    with running(model, **{"keep_seconds": 0.1, "methods": ("redraft",), **settings}) as server:
        return asyncio.run(asyncio.wait_for(hold(server.url, script, plan), 60))


def test_two_talks_for_two_seconds(script: Script) -> None:
    done = held(script, Plan(2, 2.0, ("de", "ja"), stagger=0.2, warm_up=0.0))
    assert [len(hearing.lags) > 10 for hearing in done.hearings] == [True, True]
    for hearing in done.hearings:
        assert hearing.captions + hearing.passed_over == hearing.updates and hearing.unanswered == 0
    assert not done.refused and not done.broken and not any(done.left.values())
    assert done.samples[0].held["sessions"] <= 2
    assert len(done.late) == sum(hearing.updates for hearing in done.hearings)


def test_who_is_refused_is_counted_with_reason(script: Script) -> None:
    done = held(script, Plan(3, 1.0, stagger=0.0, warm_up=0.0), sessions=1)
    assert [error.code for error in done.refused] == ["capacity"] * 2
    assert "all 1 sessions are in use" in str(done.refused[0])
    assert not done.broken and len(done.hearings) == 3


def test_talks_come_and_go(script: Script) -> None:
    done = held(script, Plan(2, 2.0, stagger=0.0, warm_up=0.0, talk_seconds=0.5))
    assert 6 <= len(done.hearings) <= 10
    assert not done.broken and not any(done.left.values())


def test_what_is_left_over_is_seen(script: Script) -> None:
    plan = Plan(1, 0.5, stagger=0.0, warm_up=0.0)
    with running(keep_seconds=60, methods=("redraft",)) as server:
        done = asyncio.run(hold(server.url, script, plan, settle=0.3))
    assert done.left == {"sessions": 1, "lanes": 0, "slots": 0}


def test_updates_that_fail_are_failures_and_without_answer(script: Script) -> None:
    # raw, since a first word that is held back needs no pass
    model = CachedModel(1, broken=lambda _: True)
    done = held(script, Plan(1, 0.5, stagger=0.0, warm_up=0.0), model)
    (hearing,) = done.hearings
    assert hearing.failures > 0 and hearing.captions == 0 and hearing.unanswered == hearing.updates > 0


def test_server_that_is_not_there_is_named(script: Script) -> None:
    with pytest.raises(ServerError, match="http://127.0.0.1:1 cannot be reached"):
        asyncio.run(hold("http://127.0.0.1:1", script, Plan(1, 1.0)))


def test_server_of_something_else_is_refused(script: Script) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Metrics) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            with pytest.raises(ServerError, match=r"http://127.0.0.1.* is not a Redraft server"):
                asyncio.run(hold(f"http://127.0.0.1:{server.server_port}", script, Plan(1, 1.0)))
        finally:
            server.shutdown()
            thread.join(60)


class _Metrics(BaseHTTPRequestHandler):
    """Tells of something that Redraft does not know."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"up 1\n")

    def log_message(self, *_: object) -> None:
        pass
