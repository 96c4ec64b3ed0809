"""The engine's thread: what is asked of it is done between rounds, and what fails there reaches who asked."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path

import pytest

from redraft.backends.llamacpp import LlamaCpp, LlamaOptions
from redraft.captions.events import Caption, Update
from redraft.captions.talk import load_talk
from redraft.decoding.types import TARGET
from redraft.models import shipped_path
from redraft.serve.engine import Engine, Stopped
from redraft.serve.lanes import Answer, Lane, SlotPool
from redraft.serve.protocol import Wanted
from redraft.serve.scheduler import Load, PassReport, Scheduler, budget
from redraft.serve.service import Service
from redraft.serve.settings import ServeSettings
from redraft.translator import Translator
from tests.serve.fakes import CURVE, CachedModel, Rig


def test_commands_while_translating() -> None:
    rig = Rig(CachedModel(1))
    done = threading.Event()
    (lane,) = rig.service.lanes(Wanted(targets=("de",)), lambda _, answer: done.set() if answer.update.final else None)
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


def shown(model: Path, target: str, updates: list[Update]) -> list[tuple[str, str]]:
    """Finals of a stream that has the model to itself."""
    options = LlamaOptions(context_length=256, threads=1, gpu_layers=0, exact=True)
    with Translator.open(str(model), to=[target], method="ar", engine=options) as translator:
        events = [event for update in updates for event in translator.translate(update)]
    return [(event.utterance, event.text) for event in events if isinstance(event, Caption) and event.final]


def keep(found: list[tuple[str, str]], _: Lane, answer: Answer) -> None:
    found += [(event.utterance, event.text) for event in answer.events if isinstance(event, Caption) and event.final]


def test_llama_cpp() -> None:
    talk = [update for update in load_talk() if update.utterance in {"1", "2", "3"}]
    path = shipped_path("demo-tiny")
    options = LlamaOptions(context_length=256, slots=4, threads=1, gpu_layers=0, exact=True)
    model = LlamaCpp(path, options)
    backends = {TARGET: model}
    service = Service(backends, ServeSettings(methods=("ssbd", "ar")), CURVE)
    passes: list[PassReport] = []
    scheduler = Scheduler(backends, SlotPool(backends, 4), Load(1.0, CURVE), budget(CURVE), passes.append)
    finals: dict[Lane, list[tuple[str, str]]] = {}
    lanes: list[tuple[Lane, str]] = []
    for number in range(6):  # more than there are slots
        target, method = ("de", "ja", "zh")[number % 3], ("ssbd", "ar")[number % 2]
        wish = Wanted(targets=(target,), method=method, options={"beta": 0} if method == "ssbd" else {})
        found: list[tuple[str, str]] = []
        (lane,) = service.lanes(wish, partial(keep, found))
        finals[lane] = found
        lanes.append((lane, target))
        scheduler.add(lane)
    for update in talk:
        for lane, _ in lanes:
            scheduler.offer(lane, update, scheduler.clock())
            scheduler.step()
    while scheduler.step():
        pass
    alone = {target: shown(path, target, talk) for target in ("de", "ja", "zh")}
    assert all(finals[lane] == alone[target] for lane, target in lanes)
    assert max(each.requests for each in passes) == 4
    model.close()


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
