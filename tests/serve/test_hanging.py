"""A model that hangs: the server says so, others go on, and it ends when it is told to."""

from __future__ import annotations

import asyncio
import math
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from websockets.sync.client import connect

from redraft import deadlines
from redraft.captions.events import Update
from redraft.decoding.backend import CostCurve
from redraft.engine.engine import Engine, Engines, Stopped
from redraft.engine.scheduler import UNLIMITED
from redraft.protocol import Begin, Wanted
from redraft.protocol.codes import Refused
from redraft.serve.http.compat.alignatt_mt import Conversation, MtUpdate
from redraft.serve.metrics import Metrics
from redraft.serve.sessions.hub import Hub
from tests.serve.fakes import CURVE, CachedModel, Rig
from tests.serve.servers import SECONDS, Socket, running
from tests.serve.talking import expected, finals, say
from tests.waiting import eventually

#: A server whose passes never return; it prints its port.
PROGRAM = """
import logging, threading
from redraft.decoding.types import TARGET
from redraft.serve import run
from redraft.serve.app import make_hub
from redraft.serve.service import Service
from redraft.serve.settings import ServeSettings
from tests.serve.fakes import CachedModel

settings = ServeSettings(port=0, methods=("ar",))
engines = [{TARGET: CachedModel(1, broken=lambda _: threading.Event().wait())}]
run.open_hub = lambda settings: make_hub(settings, Service(engines[0], settings), engines)
run.log.info = lambda text, *about: print(*about or [text], flush=True)
run.serve(settings)
"""


@pytest.fixture
def hold() -> Iterator[threading.Event]:
    """Lets all passes return."""
    go_on = threading.Event()
    yield go_on
    go_on.set()


def test_looks_not_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "HUNG", 3.0)
    reached, go_on = threading.Event(), threading.Event()

    def hang(_: object) -> bool:
        reached.set()
        return not go_on.wait(SECONDS)

    rig = Rig(CachedModel(1, broken=hang))
    (lane,) = rig.lanes()
    engine = Engine(rig.scheduler)
    assert rig.scheduler.due == math.inf
    engine.start()
    engine.submit([lane], Update("u", 1, "we saw", final=True))
    assert reached.wait(SECONDS)
    assert not engine.look() and not engine.late
    rig.clock.now += 10 * deadlines.FIRST_PASS  # as after a machine was suspended
    assert engine.look() and engine.late and engine.alive
    assert not engine.look() and engine.alive
    go_on.set()
    eventually(lambda: rig.scheduler.due == math.inf)
    engine.look()
    assert engine.alive and not engine.late
    engine.stop()


def test_stops_before_its_thread(monkeypatch: pytest.MonkeyPatch, hold: threading.Event) -> None:
    """Whoever waits for an engine whose model hangs is told; its thread ends if the model answers after all."""
    monkeypatch.setattr(deadlines, "HUNG", 3.0)
    rig = Rig(CachedModel(1, broken=lambda _: not hold.wait()))
    (lane,) = rig.lanes()
    engine = Engine(rig.scheduler)
    engine.start()
    engine.submit([lane], Update("u", 1, "we saw", final=True))
    eventually(lambda: rig.scheduler.due < math.inf and lane.running)
    waiting = engine.call(lambda: 1)
    rig.clock.now += 10 * deadlines.FIRST_PASS
    for _ in range(2):
        engine.look()
    assert engine.alive and not engine.stopped.done() and not waiting.done()
    engine.look()
    assert not engine.alive and engine.running
    assert "the model does not answer" in engine.stopped.result(0)
    for call in (waiting, engine.call(lambda: 1)):
        with pytest.raises(Stopped, match="does not answer"):
            call.result(0)
    engine.stop()  # without waiting for the thread
    assert engine.running
    hold.set()
    eventually(lambda: not engine.running)


def test_cost_sets_deadline() -> None:
    rig = Rig(CachedModel(1))
    for seconds in (0.0, 0.1, 1.0, 60.0):
        rig.scheduler.expect(seconds)
        allowed = rig.scheduler.due - rig.clock()
        assert allowed >= deadlines.PASS and allowed >= deadlines.PASS_FACTOR * seconds
        assert allowed <= max(deadlines.PASS, deadlines.PASS_FACTOR * seconds)


@pytest.mark.parametrize("curve", [CURVE, None])
def test_unlimited_pass(curve: CostCurve | None) -> None:
    """A pass in which prompts are read at once has the deadline of its cost too, unless the model is on a server."""
    allowed = list[float]()

    def watched(_: object) -> bool:
        allowed.append(rig.scheduler.due - rig.clock())
        return False

    rig = Rig(CachedModel(1, broken=watched), budget=UNLIMITED)
    rig.model.curve = lambda: curve  # type: ignore[method-assign]
    (lane,) = rig.lanes(method="redraft")
    for seq in range(20):
        rig.scheduler.offer(lane, Update("u", seq, "we saw her duck"[: seq + 1]), 0.0)
        rig.run()
    longest = deadlines.FIRST_PASS
    assert allowed[0] == longest and allowed[-1] == (longest if curve is None else deadlines.PASS)


def test_one_of_two_hangs(monkeypatch: pytest.MonkeyPatch, hold: threading.Event) -> None:
    """Its talks are told, new ones go to the other engine, and later the server is to be started again."""
    for name, seconds in (("LOOK", 0.05), ("PASS", 0.1), ("FIRST_PASS", 0.1), ("HUNG", 2.0), ("WITHOUT_ENGINE", 1.0)):
        monkeypatch.setattr(deadlines, name, seconds)
    hangs = CachedModel(1, broken=lambda _: not hold.wait())
    with running(hangs, CachedModel(1)) as server:
        with server.socket() as first, server.socket() as second:
            tokens = [each.start()["token"] for each in (first, second)]
            for socket in (first, second):
                say(socket, "we saw")
            talks = [first, second] if server.hub.owned(tokens[0]).engine is server.engine else [second, first]
            late = talks[0].until("error")[-1]
            assert (late["code"], late.get("fatal")) == ("engine", False)
            assert (server.ask("/ready").status, server.ask("/health").status) == (503, 200)
            assert "redraft_late_seconds 0.0\n" not in server.ask("/metrics").text
            assert finals(talks[1].until("final")) == [("1", "de", expected("we saw"))]
            with server.socket() as third:
                assert third.start()["type"] == "started"
                say(third, "her duck")
                assert finals(third.until("final")) == [("1", "de", expected("her duck"))]
            last = talks[0].until("error")[-1]
            assert (last["code"], last["fatal"]) == ("engine", True)
            assert server.ask("/health").status == 503
        eventually(lambda: not server.loop.is_running())
        assert server.server.failed


def test_answers_of_a_model_that_hangs(monkeypatch: pytest.MonkeyPatch, hold: threading.Event) -> None:
    """A text, and an update through another service's protocol, are refused at once when the model is given up."""
    for name, seconds in (("LOOK", 0.1), ("PASS", 1.0), ("FIRST_PASS", 1.0), ("HUNG", 2.0)):
        monkeypatch.setattr(deadlines, name, seconds)

    async def asked(hub: Hub) -> None:
        session, _ = await hub.open(Begin(targets=("de",)), "", "there")
        talk = Conversation(session, "").answer(MtUpdate(type="update", words=[("we",), ("saw",)]))
        text = hub.admission.translate(Wanted(targets=("de",)), ["we saw"], "there")
        work = asyncio.gather(talk, text, return_exceptions=True)
        codes = [each.code for each in await asyncio.wait_for(work, SECONDS) if isinstance(each, Refused)]
        assert codes == ["engine", "engine"]
        assert not server.engine.asked

    with running(CachedModel(1, broken=lambda _: not hold.wait())) as server:
        asyncio.run_coroutine_threadsafe(asked(server.hub), server.loop).result(2 * SECONDS)


def test_command_has_deadline(monkeypatch: pytest.MonkeyPatch, hold: threading.Event) -> None:
    monkeypatch.setattr(deadlines, "COMMAND", 0.3)
    with running(CachedModel(1, broken=lambda _: not hold.wait())) as server, server.socket() as socket:
        socket.start()
        say(socket, "we saw")
        eventually(lambda: server.engine.scheduler.due < math.inf and bool(server.engine.scheduler._busy))
        with server.socket() as other:
            assert other.start()["code"] == "engine"
        answer = server.ask("/v1/translate", {"text": "we saw", "targets": ["de"]})
        assert (answer.status, answer.json["error"]["code"]) == (503, "engine")
        hold.set()
        eventually(lambda: server.engine.scheduler.lanes == 1)


def test_second_signal() -> None:
    """The first, here of a terminal that was closed, drains; the second ends the process, though a pass hangs."""
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip().replace("http", "ws")
        with connect(f"{address}/v1/live", close_timeout=1) as connection:
            socket = Socket(connection)
            socket.start()
            say(socket, "we saw")
            process.send_signal(signal.SIGHUP)
            assert "stopping" in process.stdout.readline()
            time.sleep(2 * deadlines.TOGETHER)
            assert process.poll() is None  # it drains
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            process.wait(SECONDS)
        assert time.monotonic() - began < deadlines.AT_ONCE + 5
    finally:
        process.kill()
        process.wait(SECONDS)
        if process.stdout is not None:
            process.stdout.close()


def test_metrics_without_engines() -> None:
    """A server for viewers only has none."""
    metrics = Metrics()
    metrics.watch(Engines([], 8))
    assert b"redraft_late_seconds 0.0" in metrics.text()
