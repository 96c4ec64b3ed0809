"""Random drops, silences, moves, kills, stops, decisions: nothing hidden is sent, no final caption is lost or doubled.

``REDRAFT_STRESS`` is the number of steps of each run, 120 if it is not set.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from typing import Any
from unittest import mock

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from redraft import deadlines
from redraft.captions.events import Caption, Update
from redraft.client import Backoff, Client
from tests.client.lines import EXACT, Line, line
from tests.serve.servers import Running, running

STEPS = int(os.environ.get("REDRAFT_STRESS", "120"))
SECONDS = 60.0 + STEPS
TO = ("de", "ja")
WORDS = "we saw her duck it was".split()
Key = tuple[str, str]


class Place:
    """A server on a port, which it comes back to after its end."""

    def __init__(self, stack: ExitStack, **settings: Any) -> None:
        self._stack, self._settings = stack, {"busy": 1000, "updates_per_second": 500, "drain_seconds": 2, **settings}
        self.port = 0
        self.start()

    def start(self) -> None:
        self._running = ExitStack()
        self.server: Running = self._running.enter_context(running(**self._settings, port=self.port))
        self.port = self.server.port
        self._stack.callback(self._running.close)

    def stop(self) -> None:
        """Drain, then end."""
        self._running.close()

    def kill(self) -> None:
        """End at once, and store and send nothing more."""
        self.server.kill()
        self._running.close()


class Run:
    """A talk under stress, and what must be true of it."""

    def __init__(self, seed: int, client: Client, cable: Line, servers: list[Place], others: list[Place]) -> None:
        self.drawn, self.client, self.cable = random.Random(seed), client, cable
        self.servers, self.others = servers, others
        #: What may end and come back, and the one that is away.
        self.mortal = [*servers, *others]
        self.away: asyncio.Task[None] | None = None
        self.healing: asyncio.Task[None] | None = None
        #: Set once all captions have come.
        self.heard = asyncio.Event()
        self.finals: dict[Key, str] = {}
        self.twice: list[Key] = []
        self.hidden, self.corrected = set[Key](), dict[Key, str]()
        #: Utterances that began during a pause, and those of them that were hidden before captions were released.
        self.during, self.never = list[str](), set[str]()
        self.paused, self.number = False, 0
        self.growing: tuple[str, int, list[str]] | None = None
        #: What viewers were sent.
        self.seen: list[tuple[str, Key, str]] = []

    async def read(self) -> None:
        async for event in self.client:
            if isinstance(event, Caption) and event.final:
                key = event.utterance, event.language
                if key in self.finals:
                    self.twice.append(key)
                self.finals[key] = event.text
        self.heard.set()

    async def watch(self) -> None:
        """Watch on one server after the other."""
        while True:
            server = self.drawn.choice([*self.servers, *self.others])
            with suppress(OSError, WebSocketException, TimeoutError):
                async with connect(f"ws://127.0.0.1:{server.port}/v1/rooms/hall/watch", max_queue=None) as viewer:
                    async with asyncio.timeout(self.drawn.uniform(0.3, 3)):
                        async for text in viewer:
                            self._saw(json.loads(text))
            await asyncio.sleep(0.05)

    def _saw(self, message: dict[str, Any]) -> None:
        if message["type"] in ("partial", "final"):
            self.seen.append((message["type"], (message["utterance"], message["language"]), message["text"]))

    async def update(self, *, end: bool = False) -> None:
        if self.growing is None:
            self.number += 1
            self.growing = str(self.number), 0, [str(self.number)]
            if self.paused:
                self.during.append(str(self.number))
        name, seq, words = self.growing
        words += self.drawn.choices(WORDS, k=self.drawn.randint(1, 3))
        final = end or self.drawn.random() < 0.5
        self.growing = None if final else (name, seq + 1, words)
        await self.client.send(Update(name, seq, " ".join(words), final))

    async def pause(self) -> None:
        if self.paused:
            for name in self.during:
                if self.drawn.random() < 0.5:
                    self.client.control.hide(name)
                    self.never.add(name)
                    self.hidden |= {(name, language) for language in TO}
        self.during.clear()
        self.paused = not self.paused
        self.client.control.pause(self.paused)

    async def hide(self) -> None:
        if self.number:
            key = str(self.drawn.randint(1, self.number)), self.drawn.choice(TO)
            self.client.control.hide(*key)
            self.hidden.add(key)

    async def show(self) -> None:
        for key in sorted(self.hidden)[:1]:
            if key[0] not in self.never:
                self.client.control.hide(*key, hidden=False)
                self.hidden.discard(key)

    async def correct(self) -> None:
        if self.finals:
            key = self.drawn.choice(sorted(self.finals))
            self.corrected[key] = f"corrected {self.drawn.randrange(999)}"
            self.client.control.correct(*key, self.corrected[key])

    async def cut(self) -> None:
        self.cable.cut()

    async def swallow(self) -> None:
        """Lose what is sent in both directions, without a word, and close the connection later if nobody else has."""
        self.cable.hangs = True

        async def heal() -> None:
            await asyncio.sleep(self.drawn.uniform(0, 2))
            self.cable.hangs = False
            self.cable.cut()

        self.healing = asyncio.create_task(heal())

    async def move(self) -> None:
        self.cable.to = self.drawn.choice(self.servers).port
        self.cable.cut()

    async def kill(self) -> None:
        self._end("kill")

    async def stop(self) -> None:
        self._end("stop")

    def _end(self, how: str) -> None:
        """Let a server, or what it needs, end, unless one is away, and come back a while later."""
        place, seconds = self.drawn.choice(self.mortal), self.drawn.uniform(0, 1)

        async def work() -> None:
            await asyncio.to_thread(getattr(place, how))
            await asyncio.sleep(seconds)
            await asyncio.to_thread(place.start)

        if self.away is None or self.away.done():
            self.away = asyncio.create_task(work())

    async def wait(self) -> None:
        await asyncio.sleep(self.drawn.uniform(0, 0.2))

    async def work(self) -> None:
        does: list[Callable[[], Any]] = [
            *[self.update] * 10,
            *[self.wait] * 4,
            *(self.pause, self.hide, self.show, self.correct, self.cut, self.move, self.kill, self.stop, self.swallow),
        ]
        for _ in range(STEPS):
            await self.drawn.choice(does)()
        if self.away:
            await self.away
        if self.paused:
            await self.pause()
        if self.growing:
            await self.update(end=True)
        if self.healing:
            await self.healing
        await self.client.end()  # `done` must not come before the last final, whatever drops
        async with asyncio.timeout(SECONDS):
            while not self.client._done:
                await self.drawn.choice([self.cut, self.move, self.wait, self.wait])()
        await until(self.heard.is_set)
        assert self.finals.keys() == {(str(n), language) for n in range(1, self.number + 1) for language in TO}

    @property
    def shown(self) -> dict[Key, str]:
        return {key: self.corrected.get(key, text) for key, text in self.finals.items() if key not in self.hidden}

    async def page(self, server: Place) -> dict[Key, str]:
        """What a new viewer's page shows in the end."""
        found: dict[Key, str] = {}
        async with connect(f"ws://127.0.0.1:{server.port}/v1/watch/{self.client.session}") as viewer:
            with suppress(TimeoutError, WebSocketException):  # its server may not have the session again yet
                while True:
                    message = json.loads(await asyncio.wait_for(viewer.recv(), 0.5))
                    key = message.get("utterance", ""), message.get("language", "")
                    if message["type"] == "final":
                        found[key] = message["text"]
                    elif message["type"] == "hide":
                        found.pop(key, None)
        return found

    async def transcript(self, place: Place) -> dict[Key, str]:
        path = f"/v1/sessions/{self.client.session}/transcript?format=jsonl"
        found = await asyncio.to_thread(place.server.ask, path)
        rows = map(json.loads, found.text.splitlines() if found.status == 200 else ())
        return {(row["utterance"], row["language"]): row["text"] for row in rows}


async def until(check: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not check():
            await asyncio.sleep(0.02)


@asynccontextmanager
async def background(*work: Any) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(each) for each in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        problems = [each for each in results if isinstance(each, Exception)]
        assert not problems, problems


async def stress(seed: int, servers: list[Place], others: list[Place], *mortal: Any) -> None:
    async with AsyncExitStack() as stack:
        stack.enter_context(mock.patch.object(deadlines, "HEARTBEAT", 0.5))
        cable = await stack.enter_async_context(line(servers[0].port))
        address, backoff = f"http://127.0.0.1:{cable.port}", Backoff(0.01, 0.2, SECONDS)
        client = await stack.enter_async_context(Client(address, TO, method=EXACT, room="hall", backoff=backoff))
        run = Run(seed, client, cable, servers, others)
        run.mortal += mortal
        await stack.enter_async_context(background(run.read(), *(run.watch() for _ in range(3))))
        await run.work()
        assert not run.twice
        assert not [each for each in run.seen if each[1][0] in run.never]
        # The talk may have ended just before the last move.
        here = next(each for each in servers if each.server.hub.name == client._server)
        for server in [here, *others]:
            async with asyncio.timeout(SECONDS):
                while not await run.page(server) == await run.transcript(server) == run.shown:
                    await asyncio.sleep(0.2)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("number", [1, 2])
def test_stress(number: int, seed: int) -> None:
    with ExitStack() as stack:
        asyncio.run(stress(seed, [Place(stack) for _ in range(number)], []))
