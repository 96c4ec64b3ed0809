"""Many clients that speak at once, to servers that start and stop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

from websockets.asyncio.client import ClientConnection

from redraft.captions.events import Caption, Event, Failure, Update
from redraft.captions.talk import load_talk
from redraft.client import Client, ServerError


class Timed(Client):
    """A client that notes each time why its connection ended, and for how many seconds it had none."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.away: list[float] = []
        self.reasons: list[str] = []
        self._lost: float | None = None

    async def _exchange(self, socket: ClientConnection) -> None:
        reason = "connection"
        try:
            await super()._exchange(socket)
        except ServerError as error:
            reason = error.code
            raise
        finally:
            if not self._done:
                self._lost = time.monotonic()
                self.reasons.append(reason)

    async def _begin(self, socket: ClientConnection) -> None:
        await super()._begin(socket)
        if self._lost is not None:
            self.away.append(time.monotonic() - self._lost)


class Speaker:
    """A client that says one utterance after the other until it is told to stop, and keeps what it receives.

    Args:
        server: address.
        to: target languages.
        pause: seconds between updates.
    """

    def __init__(self, server: str, to: Sequence[str], pause: float) -> None:
        self.client = Timed(server, to, method="ar")
        self.to, self.events, self.said = tuple(to), list[Event](), 0
        self._pause, self._stopping = pause, asyncio.Event()

    @property
    def finals(self) -> list[tuple[str, str, str]]:
        """Utterance, language and text of every final caption, as they came."""
        return [(e.utterance, e.language, e.text) for e in self.events if isinstance(e, Caption) and e.final]

    @property
    def stopped(self) -> bool:
        return self._stopping.is_set()

    def stop(self) -> None:
        self._stopping.set()

    async def speak(self) -> None:
        async with self.client:
            listening = asyncio.create_task(self._listen())
            try:
                await self._say()
                await self.client.end()
                await listening
            finally:
                listening.cancel()

    async def _say(self) -> None:
        sentences = [update.text for update in load_talk() if update.final]
        while not self._stopping.is_set():
            words = sentences[self.said % len(sentences)].split()[:12]
            self.said += 1
            for seq, length in enumerate((len(words) // 3, 2 * len(words) // 3, len(words))):
                update = Update(str(self.said), seq, " ".join(words[:length]), final=seq == 2, time=time.monotonic())
                await self.client.send(update)
                await asyncio.sleep(self._pause)

    async def _listen(self) -> None:
        async for event in self.client:
            self.events.append(event)

    def check(self) -> None:
        """Every utterance has ended once in every language, in order, without a failure."""
        assert not [event for event in self.events if isinstance(event, Failure)]
        for language in self.to:
            names = [utterance for utterance, each, _ in self.finals if each == language]
            assert names == [str(number) for number in range(1, self.said + 1)]


class Crowd:
    """Speakers while the block lasts.

    Args:
        speakers: all of them; each connects a moment after the one before.
    """

    def __init__(self, speakers: Sequence[Speaker]) -> None:
        self.speakers = speakers
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Crowd:
        async with AsyncExitStack() as stack:
            stack.push_async_exit(self.__aexit__)
            for speaker in self.speakers:
                self._tasks.append(asyncio.create_task(speaker.speak()))
                await asyncio.sleep(0.02)
            await self.until(lambda speaker: len(speaker.finals) > 0)
            stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def until(self, reached, seconds: float = 120) -> None:
        """Wait until all speakers have reached something; raises what any of them has failed with."""
        async with asyncio.timeout(seconds):
            while not all(reached(speaker) for speaker in self.speakers):
                for task in self._tasks:
                    if task.done():
                        task.result()
                await asyncio.sleep(0.02)

    async def progress(self, utterances: int = 2, seconds: float = 120) -> None:
        """Wait until everybody who still speaks has received some more utterances."""
        wanted = {speaker: str(speaker.said + utterances) for speaker in self.speakers if not speaker.stopped}
        await self.until(lambda each: each not in wanted or wanted[each] in (name for name, *_ in each.finals), seconds)

    def away(self, reason: str) -> list[float]:
        """For how many seconds speakers were without a connection, each time since this was last asked, in order.

        Args:
            reason: why all these connections must have ended: ``connection``, or what the server said.
        """
        clients = [speaker.client for speaker in self.speakers]
        found = sorted(seconds for client in clients for seconds in client.away)
        assert {each for client in clients for each in client.reasons} <= {reason}
        for client in clients:
            client.away.clear()
            client.reasons.clear()
        return found

    async def finish(self, seconds: float = 120) -> None:
        """Stop all clients, let them receive the rest, and check it."""
        for speaker in self.speakers:
            speaker.stop()
        async with asyncio.timeout(seconds):
            await asyncio.gather(*self._tasks)
        for speaker in self.speakers:
            speaker.check()
