"""Utterances of concurrent callers: none gets another's translation, and line breaks are kept."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from redraft.serve.http.compat.callers import Newest
from tests.serve.fakes import CachedModel
from tests.serve.http.compat.conftest import COMPAT
from tests.serve.servers import SECONDS, Running, running
from tests.serve.talking import expected

TALKS = (
    ["we", "we all", "we all looked", "we all looked at our", "We all looked at our phones.", "and", "and nobody"],
    ["then", "then a", "then a young", "then a young men", "Then a young man came.", "he", "he said"],
)


def ask(server: Running, text: str, agent: str = "tool") -> str:
    answer = server.ask("/v2/translate", {"text": [text], "target_lang": "DE"}, headers={"user-agent": agent})
    assert answer.status == 200, answer.text
    return str(answer.json["translations"][0]["text"])


def fresh(**settings: Any) -> Any:
    return running(compat=COMPAT, busy=1000, updates_per_second=1000, **settings)


@pytest.fixture(scope="module")
def by_itself() -> list[list[str]]:
    """What each talk gets from a server where nobody else is."""
    found = []
    for talk in TALKS:
        with fresh() as server:
            found.append([ask(server, text) for text in talk])
    return found


def test_same_as_session(by_itself: list[list[str]]) -> None:
    texts, found = TALKS[0][:5], []
    with fresh() as server, server.socket() as socket:
        socket.start("de")
        for seq, text in enumerate(texts):
            socket.say("update", utterance="1", seq=seq, text=text)
            partial = socket.until("partial")[-1]
            found.append(partial["text"] + partial["unstable"])
    assert by_itself[0][:5] == found
    assert by_itself[0][:5] != [expected(text) for text in texts]  # from scratch it would be otherwise


@pytest.mark.parametrize("agents", [("one", "two"), ("same", "same")])
def test_two_callers(agents: tuple[str, str], by_itself: list[list[str]]) -> None:
    with fresh() as server:
        found: list[list[str]] = [[], []]
        for texts in zip(*TALKS, strict=True):
            for number, text in enumerate(texts):
                found[number].append(ask(server, text, agents[number]))
    assert found == by_itself


def test_concurrent_callers(by_itself: list[list[str]]) -> None:
    with fresh() as server, ThreadPoolExecutor(8) as threads:

        def talk(number: int) -> list[str]:
            return [ask(server, text, f"tool {number}") for text in TALKS[number % 2]]

        found = list(threads.map(talk, range(8)))
    assert found == by_itself * 4


def test_repeated_text() -> None:
    with fresh() as server:
        first = ask(server, "We all looked at our phones.")
        before = len(server.model.new)
        assert [ask(server, "We all looked at our phones.") for _ in range(3)] == [first] * 3
        assert len(server.model.new) == before


def test_lanes_expire() -> None:
    with fresh(keep_seconds=0.2, sessions_per_address=2) as server:
        free = server.engine.scheduler.lanes
        ask(server, "we saw")
        ask(server, "it rained")
        assert ask(server, "but then") == expected("but then")  # on a line that there is
        sent = {"text": ["but then"], "target_lang": "DE"}
        refused = server.ask("/v2/translate", sent, headers={"user-agent": "another"})
        assert (refused.status, "may have are in use" in refused.json["message"]) == (429, True)
        assert server.engine.scheduler.lanes == free + 2
        waited = threading.Event()
        for _ in range(SECONDS * 10):
            if server.engine.scheduler.lanes == free:
                break
            waited.wait(0.1)
        assert server.engine.scheduler.lanes == free
        assert ask(server, "we saw") == expected("we saw")


def test_failing_model() -> None:
    broken = CachedModel(1, broken=lambda _: True)
    with running(broken, compat=COMPAT, busy=1000) as server:
        answer = server.ask("/translate", {"q": "we saw", "source": "en", "target": "de"})
    assert (answer.status, list(answer.json)) == (400, ["error"])
    assert "could not be translated" in answer.json["error"]


def test_lock_order() -> None:
    order: list[int] = []

    async def one(lock: Newest, number: int) -> None:
        async with lock:
            await asyncio.sleep(0)
            order.append(number)

    async def all_of_them() -> None:
        lock = Newest()
        tasks = [asyncio.create_task(one(lock, number)) for number in range(5)]
        await asyncio.sleep(0)
        tasks[3].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert not lock._held

    asyncio.run(all_of_them())
    assert order == [0, 4, 2, 1]


def test_lock_cancelled() -> None:
    async def hold(lock: Newest) -> None:
        async with lock:
            pass

    async def check() -> None:
        lock = Newest()
        await lock.__aenter__()
        tasks = [asyncio.create_task(hold(lock)) for _ in range(2)]
        await asyncio.sleep(0)
        await lock.__aexit__()
        tasks[1].cancel()  # it has the lock, and has not run since
        await asyncio.wait(tasks)
        assert not lock._held

    asyncio.run(check())
