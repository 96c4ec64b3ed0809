"""The asynchronous front door, on a table model whose passes can be slow, fail or wait."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace

import pytest

from redraft import AsyncTranslator, Caption, Failure, Style, Translator, Update, deadlines
from redraft.captions.events import Event
from redraft.decoding.types import Rows, Score
from redraft.engine import stream
from redraft.engine.engine import Stopped
from redraft.engine.scheduler import Scheduler
from redraft.errors import InputError, ModelError
from tests.fakes import RandomModel

WORDS = "we saw her duck under the table and left the house before it rained".split()


class Slow(RandomModel):
    """A model that does something before every pass."""

    def __init__(self, before: Callable[[], object] = lambda: None) -> None:
        super().__init__(end_bias=1.0)
        self.before = before

    def score(self, requests: Sequence[tuple[int, Score]]) -> list[Rows]:
        self.before()
        return super().score(requests)


def opened(model: RandomModel, to: Sequence[str] = ("de",), method: str = "redraft") -> Translator:
    return Translator(model, to, method=method, style=Style(template="tower"), options={"max_tokens": 60})


def growing(utterance: str = "1") -> list[Update]:
    """An utterance, word by word; the last update is final."""
    count = len(WORDS)
    return [Update(utterance, seq, " ".join(WORDS[: seq + 1]), final=seq + 1 == count) for seq in range(count)]


async def spoken(updates: Sequence[Update]) -> AsyncIterator[Update]:
    for update in updates:
        yield update


async def translated(translator: AsyncTranslator, updates: AsyncIterator[Update]) -> list[Event]:
    async with translator:
        return [event async for event in translator.translate(updates)]


def events_of(model: RandomModel, updates: Sequence[Update], to: Sequence[str] = ("de",)) -> list[Event]:
    return asyncio.run(translated(AsyncTranslator(opened(model, to)), spoken(updates)))


EARLIER: set[threading.Thread] = set()


@pytest.fixture(autouse=True)
def earlier() -> None:
    """Threads that tests of other files have left do not count."""
    EARLIER.update(threading.enumerate())


def threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each not in EARLIER and each.name.startswith("redraft")]


def test_captions_are_those_of_a_translator() -> None:
    async def one_by_one() -> list[Event]:
        found = []
        async with AsyncTranslator(opened(Slow(), ["de", "ja"])) as translator:
            events = aiter(translator)
            for update in growing():
                await translator.send(update)
                left = {*translator.languages}
                while left:
                    found.append(event := await anext(events))
                    left -= {event.language} if isinstance(event, Caption) else set()
        return in_order(found)

    with opened(Slow(), ["de", "ja"]) as translator:
        expected = [event for update in growing() for event in translator.translate(update)]
    assert asyncio.run(one_by_one()) == in_order(expected)


def in_order(events: Sequence[Event]) -> list[Event]:
    return sorted(events, key=lambda event: (event.seq or 0, event.language or ""))


def test_stale_updates_are_skipped_and_finals_are_not() -> None:
    updates = [update for number in range(4) for update in growing(str(number))]
    found = events_of(Slow(lambda: time.sleep(0.002)), updates, ["de", "ja"])
    for language in ("de", "ja"):
        captions = [event for event in found if isinstance(event, Caption) and event.language == language]
        assert [each.utterance for each in captions if each.final] == ["0", "1", "2", "3"]
        assert len(captions) < len(updates)
        places = [(each.utterance, each.seq) for each in captions]
        assert places == sorted(set(places))


def test_each_language_skips_for_itself() -> None:
    sent, passed, updates = threading.Semaphore(0), threading.Semaphore(0), growing()

    class Uneven(Slow):
        """Ends the output of the first language at once; there is one update for each pass."""

        def score(self, requests: Sequence[tuple[int, Score]]) -> list[Rows]:
            sent.acquire(timeout=5)
            answers = []
            for slot, score in requests:
                self.end_bias = -99.0 if slot else 99.0
                answers.append(self._answer(score))
            passed.release()
            return answers

    async def paced() -> AsyncIterator[Update]:
        for update in updates:
            yield update
            sent.release()
            await asyncio.to_thread(passed.acquire, timeout=5)
        sent.release(1000)

    found = asyncio.run(translated(AsyncTranslator(opened(Uneven(), ["de", "ja"], "ar")), paced()))
    captions = [event for event in found if isinstance(event, Caption)]
    count = {each: sum(caption.language == each for caption in captions) for each in ("de", "ja")}
    assert count["ja"] < count["de"] / 2


@pytest.mark.parametrize("ends", [True, False])
def test_hidden_end(ends: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "LONG_PAUSE", 1000 if ends else 0.05)
    update = Update("1", 0, "we saw her duck")

    async def heard() -> list[Event]:
        async with AsyncTranslator(opened(Slow())) as translator:
            await translator.send(update)
            if ends:
                await translator.end()
            events = aiter(translator)
            return [await anext(events) for _ in range(2)]

    with opened(Slow()) as translator:
        expected = [*translator.translate(update), *translator.rest()]
    assert len(expected) == 2
    assert asyncio.run(heard()) == expected


def test_problems_are_events() -> None:
    failing = iter([True])

    def before() -> None:
        if next(failing, False) or broken:
            broken.add(1)
            raise ModelError("the model is away")

    broken = set[int]()
    model = Slow(before)

    async def heard() -> list[Event]:
        async with AsyncTranslator(opened(model)) as translator:
            events = aiter(translator)
            await translator.send(Update("1", 5, "we saw"))
            found = [await anext(events)]
            broken.clear()
            await translator.send(Update("1", 4, "we saw her"))
            await translator.send(Update("1", 6, "we saw her", final=True))
            await translator.end()
            return found + [event async for event in translator]

    away, stale, caption = asyncio.run(heard())
    assert isinstance(away, Failure) and "the model is away" in away.message
    assert (away.utterance, away.seq, away.language) == ("1", 5, "de")
    assert isinstance(stale, Failure) and (stale.utterance, stale.seq, stale.language) == ("1", 4, None)
    assert isinstance(caption, Caption) and caption.final


def test_cancelled_while_translating() -> None:
    def before() -> None:
        passing.set()
        time.sleep(0.05)

    passing, model = threading.Event(), Slow(before)

    async def cancelled() -> None:
        running = asyncio.create_task(translated(AsyncTranslator(opened(model)), endless()))
        await asyncio.to_thread(passing.wait, 5)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not model._slots and not threads()

    async def endless() -> AsyncIterator[Update]:
        yield Update("1", 0, "we saw her duck", final=True)
        await asyncio.Event().wait()

    asyncio.run(cancelled())


def test_cancelled_while_opening() -> None:
    opening, model = threading.Event(), Slow()

    def slowly() -> Translator:
        opening.set()
        time.sleep(0.1)
        return opened(model)

    async def cancelled() -> None:
        running = asyncio.create_task(translated(AsyncTranslator(slowly), spoken([])))
        await asyncio.to_thread(opening.wait, 5)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not model._slots and not threads()

    asyncio.run(cancelled())


def test_leaving_early() -> None:
    async def first() -> Event:
        async with AsyncTranslator(opened(model)) as translator:
            async for event in translator.translate(spoken(growing())):
                return event
        raise AssertionError

    model = Slow(lambda: time.sleep(0.002))
    assert isinstance(asyncio.run(first()), Caption)
    assert not model._slots and not threads()


def test_updates_that_fail() -> None:
    async def failing() -> AsyncIterator[Update]:
        yield Update("1", 0, "we saw her duck", final=True)
        raise ZeroDivisionError

    async def heard() -> None:
        async with AsyncTranslator(opened(Slow())) as translator:
            async for event in translator.translate(failing()):
                found.append(event)

    found = list[Event]()
    with pytest.raises(ZeroDivisionError):
        asyncio.run(heard())
    assert [event.utterance for event in found] == ["1"]


def test_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scheduler, "step", lambda self: 1 // 0)
    with pytest.raises(Stopped):
        events_of(Slow(), growing())


@pytest.mark.parametrize("ahead", [0, 4])
def test_model_that_hangs(ahead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sending and iterating raise; the block ends without the pass, and leaves the model to it."""
    for name, seconds in (("LOOK", 0.02), ("PASS", 0.1), ("FIRST_PASS", 0.1), ("HUNG", 0.2)):
        monkeypatch.setattr(deadlines, name, seconds)
    go_on = threading.Event()
    model = Slow(lambda: go_on.wait(60))

    async def send_all(translator: AsyncTranslator) -> None:
        for update in growing():
            await translator.send(replace(update, utterance=str(update.seq)))

    async def heard(translator: AsyncTranslator) -> None:
        async with asyncio.timeout(20):
            async with translator:
                with pytest.raises(Stopped, match="the model does not answer"):
                    await send_all(translator)
                with pytest.raises(Stopped):
                    await translator.send(Update("later", 0, "we saw"))
                for _ in range(2):
                    with pytest.raises(Stopped):
                        await anext(aiter(translator))

    try:
        with opened(model) as translator:
            asyncio.run(heard(AsyncTranslator(translator, ahead=ahead)))
        assert model._slots and threads()
    finally:
        go_on.set()
    for thread in threads():
        thread.join(20)
        assert not thread.is_alive()


def test_misuse() -> None:
    async def misused() -> None:
        translator = AsyncTranslator(opened(Slow()))
        with pytest.raises(InputError, match="in the block"):
            await translator.send(growing()[0])
        async with translator:
            with pytest.raises(InputError, match="takes an Update"):
                await translator.send("we saw")  # type: ignore[arg-type]
            await translator.end()
            with pytest.raises(InputError, match="before `end`"):
                await translator.send(growing()[0])
            assert [event async for event in translator] == []
        with pytest.raises(InputError, match="used once"):
            async with translator:
                pass
        closed = opened(Slow())
        closed.close()
        with pytest.raises(InputError, match="is closed"):
            async with AsyncTranslator(closed):
                pass
        with pytest.raises(ModelError, match="nowhere"):
            async with AsyncTranslator.open("nowhere.gguf", to=["de"]):
                pass

    asyncio.run(misused())
    assert not threads()


def test_needs_no_extra() -> None:
    missing = "; ".join(f"sys.modules[{name!r}] = None" for name in ("pydantic", "starlette", "uvicorn", "websockets"))
    code = f"import sys; {missing}; from redraft import AsyncTranslator"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=200)
