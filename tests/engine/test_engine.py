"""The engine's thread: it runs posted calls between rounds, and their errors reach the caller."""

from __future__ import annotations

import threading

import pytest

from redraft.captions.events import Update
from redraft.engine.engine import Engine, Stopped
from redraft.engine.lanes import Lane
from redraft.protocol import Wanted
from tests.serve.fakes import CachedModel, Rig


def test_commands_while_translating() -> None:
    rig = Rig(CachedModel(1))
    done = threading.Event()
    (translation,) = rig.service.translations(Wanted(targets=("de",)))
    lane = Lane(translation, lambda answer: done.set() if answer.update.final else None)
    engine = Engine(rig.scheduler)
    assert not engine.alive
    engine.start()
    engine.call(lambda: rig.scheduler.add(lane)).result(10)
    for seq in range(5):
        engine.submit([lane], Update("u", seq, "we saw her"[: 2 + seq], seq == 4))
    assert done.wait(10)
    engine.call(lambda: rig.scheduler.remove(lane)).result(10)
    assert rig.scheduler.pool.lent == 0
    engine.stop()
    assert not engine.alive
    with pytest.raises(Stopped):
        engine.call(lambda: 1).result(10)


def test_failing_command() -> None:
    engine = Engine(Rig(CachedModel(1)).scheduler)
    engine.start()
    with pytest.raises(ZeroDivisionError):
        engine.call(lambda: 1 // 0).result(10)
    engine.post(lambda: 1 // 0)
    assert engine.call(lambda: 7).result(10) == 7
    engine.stop()


def test_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(CachedModel(1))
    (lane,) = rig.lanes()
    monkeypatch.setattr(rig.scheduler, "step", lambda: 1 // 0)
    engine = Engine(rig.scheduler)
    engine.start()
    engine.submit([lane], Update("u", 1, "we saw"))
    engine._thread.join(10)
    assert not engine.alive


def test_calls_after_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(CachedModel(1))
    (lane,) = rig.lanes()
    begun, go_on = threading.Event(), threading.Event()

    def step() -> None:
        begun.set()
        go_on.wait(10)
        raise ZeroDivisionError

    monkeypatch.setattr(rig.scheduler, "step", step)
    engine = Engine(rig.scheduler)
    engine.start()
    engine.submit([lane], Update("u", 1, "we saw"))
    assert begun.wait(10)
    waiting = engine.call(lambda: 1)
    go_on.set()
    with pytest.raises(Stopped):
        waiting.result(10)
    with pytest.raises(Stopped):
        engine.call(lambda: 1).result(10)


def test_cancelled_command() -> None:
    engine, done = Engine(Rig(CachedModel(1)).scheduler), []
    given_up = engine.call(lambda: done.append(1))
    assert given_up.cancel()
    engine.start()
    assert engine.call(lambda: 7).result(10) == 7
    assert not done
    engine.stop()


def test_lag_includes_waiting() -> None:
    rig, busy, go_on = Rig(CachedModel(1)), threading.Event(), threading.Event()
    (lane,) = rig.lanes()
    engine = Engine(rig.scheduler)
    engine.start()

    def work() -> None:
        busy.set()
        go_on.wait(10)

    engine.post(work)
    assert busy.wait(10)
    engine.submit([lane], Update("u", 1, "we saw", final=True))
    rig.clock.now += 5
    go_on.set()
    engine.call(lambda: None).result(10)
    engine.stop()
    rig.run()
    assert [answer.lag for _, answer in rig.answers] == [5]
