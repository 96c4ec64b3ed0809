"""Several engines: sessions are spread over them, and they do not affect each other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from redraft.backends.llamacpp import LlamaCpp
from redraft.captions.events import Caption, Update
from redraft.decoding.types import DRAFT_MODEL, TARGET
from redraft.errors import OptionError
from redraft.protocol import Start
from redraft.protocol.codes import Refused
from redraft.serve.app import make_hub, open_backends
from redraft.serve.service import Service
from redraft.serve.settings import ServeSettings
from redraft.translator import Translator
from tests.serve.fakes import CachedModel, alone
from tests.serve.servers import Running, Socket, running


@pytest.fixture
def two() -> Iterator[Running]:
    with running(CachedModel(1), CachedModel(1)) as server:
        yield server


def shares(server: Running) -> list[int]:
    return [engine.scheduler.lanes for engine in server.hub.engines.all]


def test_fewest_lanes(two: Running) -> None:
    with ExitStack() as stack:
        sockets = [stack.enter_context(two.socket()) for _ in range(4)]
        for socket, targets, expected in zip(
            sockets, [("de", "ja", "zh"), ("de",), ("ja",), ("de",)], [[3, 0], [3, 1], [3, 2], [3, 3]], strict=True
        ):
            socket.start(*targets)
            assert shares(two) == expected
        sockets[0].say("end")
        sockets[0].until("done")
        with two.socket() as late:
            late.start("de", "ja")
            assert shares(two) == [2, 3]


def test_concurrent_starts(two: Running) -> None:
    async def begin() -> None:
        await asyncio.gather(*(two.hub.open(Start(targets=("de",)), "", "here") for _ in range(20)))

    asyncio.run_coroutine_threadsafe(begin(), two.loop).result(20)
    # One that has just been admitted counts twice for a moment.
    assert sum(shares(two)) == 20 and min(shares(two)) >= 7


def say(socket: Socket, updates: list[Update]) -> None:
    for each in updates:
        socket.say("update", utterance=each.utterance, seq=each.seq, text=each.text, final=each.final)


def test_same_captions(two: Running) -> None:
    updates = [Update(f"{number}", 0, text, final=True) for number, text in enumerate(("we saw", "the cat", "we"))]
    with ExitStack() as stack:
        sockets = [stack.enter_context(two.socket()) for _ in range(6)]
        for socket in sockets:
            socket.start("de", method="ar")
            say(socket, updates)
        expected = [caption.text for caption in alone(1, updates)]
        for socket in sockets:
            socket.say("end")
            heard = socket.until("done")
            assert [each["text"] for each in heard if each["type"] == "final"] == expected
    models = [engine.scheduler._backends[TARGET] for engine in two.hub.engines.all]
    assert all(isinstance(model, CachedModel) and model.new for model in models)


def test_limit_holds_for_concurrent_starts() -> None:
    with running(CachedModel(1), CachedModel(1), languages=3) as server:

        async def begin() -> list[object]:
            wishes = [server.hub.open(Start(targets=("de",)), "", "here") for _ in range(10)]
            return await asyncio.gather(*wishes, return_exceptions=True)

        found = asyncio.run_coroutine_threadsafe(begin(), server.loop).result(20)
        assert sum(isinstance(each, Refused) for each in found) == 7
        assert sum(shares(server)) == 3


def test_more_languages_than_a_server_has() -> None:
    """Waiting would not help, so this is not a lack of capacity."""
    with running(CachedModel(1), languages=2) as server:
        begin = Start(targets=("de", "ja", "zh"))
        with pytest.raises(Refused, match="targets must have at most 2 languages, not 3") as refused:
            asyncio.run_coroutine_threadsafe(server.hub.open(begin, "", "here"), server.loop).result(20)
        assert refused.value.code == "option"


def test_one_engine_stopped(two: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    with two.socket() as first, two.socket() as second:
        first.start("de")
        second.start("de")
        monkeypatch.setattr(two.hub.engines.all[1].scheduler, "step", None)
        say(second, [Update("1", 0, "we saw", final=True)])
        for socket in (first, second):
            assert socket.until("error")[-1]["code"] == "engine"
    assert not two.hub.engines.alive


def test_fault_on_one() -> None:
    with (
        running(CachedModel(1), CachedModel(1, broken=lambda _: True)) as server,
        server.socket() as well,
        server.socket() as ill,
    ):
        for socket in (well, ill):
            socket.start("de", method="ar")
            say(socket, [Update("1", 0, "we saw", final=True)])
        assert ill.until("error", "final")[-1]["type"] == "error"
        assert well.until("error", "final")[-1]["type"] == "final"
        assert "redraft_failed_updates 1.0" in server.ask("/metrics").text


def test_number_of_engines() -> None:
    given: dict[str, Any] = {"model": "demo-tiny", "engine": {"context_length": 64, "threads": 1}, "methods": ("ar",)}
    settings = ServeSettings(**given, slots=3, engines=2)
    engines = open_backends(settings)
    hub = make_hub(settings, Service(engines[0], settings), engines)
    assert [engine.scheduler.pool.size for engine in hub.engines.all] == [2, 2]
    first, second = (each[TARGET] for each in engines)
    assert isinstance(first, LlamaCpp) and isinstance(second, LlamaCpp) and first.model is second.model
    second.close()
    first.close()
    with pytest.raises(OptionError, match="engines must be at most 1"):
        open_backends(ServeSettings(**given, slots=1, engines=2))


def test_small_models() -> None:
    settings = ServeSettings(model="demo-tiny", draft_model="demo-tiny", methods=("bild",), slots=2, engines=2)
    engines = open_backends(settings)
    assert [sorted(each) for each in engines] == [sorted((TARGET, DRAFT_MODEL))] * 2
    assert len({id(backend) for each in engines for backend in each.values()}) == 4
    for each in reversed(engines):
        for backend in each.values():
            backend.close()


def test_transformers() -> None:
    with pytest.raises(OptionError, match="engines must be at most 1"):
        open_backends(ServeSettings(model="hf:x", engines=2))


def test_slots_for_trees() -> None:
    given: dict[str, Any] = {
        "model": "demo-tiny",
        "engine": {"context_length": 64},
        "engines": 2,
        "methods": ("ar", "aasd"),
    }
    with pytest.raises(OptionError, match="slots must be at most 32"):
        open_backends(ServeSettings(**given, slots=33))
    for each in reversed(open_backends(ServeSettings(**given, slots=32))):
        each[TARGET].close()


def test_search() -> None:
    """The finals of two sessions at once are those that a translator finds, searches included."""
    given: dict[str, Any] = {"engine": {"context_length": 256, "threads": 1}, "slots": 2, "methods": ("redraft",)}
    options = {"search": 10_000, "doubt": 0}
    [engine] = open_backends(ServeSettings(model="demo-tiny", engines=1, **given))
    texts = "I have a dog and two cats.", "We live in a small house by the sea."
    model: Any = engine[TARGET]
    with running(model, **given) as server, server.socket() as first, server.socket() as second:
        for socket, text in zip((first, second), texts, strict=True):
            socket.start("de", options=options)
            socket.say("update", utterance="1", seq=0, text=text[:12])
            socket.say("update", utterance="1", seq=1, text=text, final=True)
        found = [socket.until("final")[-1]["text"] for socket in (first, second)]
    engine[TARGET].close()
    again = 0
    for text, caption in zip(texts, found, strict=True):
        engine_options = {"context_length": 256, "threads": 1}
        with Translator.open("demo-tiny", to=["de"], options=options, engine=engine_options) as translator:
            translator.translate(Update("1", 0, text[:12]))
            (event,) = translator.translate(Update("1", 1, text, True))
            again += translator.state("de").tally.reopened
        assert isinstance(event, Caption) and event.text == caption
    assert again
