"""Clients that all speak at once to servers that come and go."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack

from redraft.captions.events import Caption, Event, Failure, Update
from redraft.captions.talk import load_talk
from redraft.client import Backoff, Client

#: Quick to come back, patient with servers that start.
PATIENT = Backoff(0.1, 2.0, 300.0)


class Speaker:
    """A client that says one utterance after the other until it is told to stop, and keeps what it receives.

    Args:
        server: address.
        to: target languages.
        pause: seconds between updates.
    """

    def __init__(self, server: str, to: Sequence[str], pause: float) -> None:
        self.client = Client(server, to, method="ar", backoff=PATIENT)
        self.to, self.events, self.said = tuple(to), list[Event](), 0
        self._pause, self._stopping = pause, asyncio.Event()

    @property
    def finals(self) -> list[tuple[str, str, str]]:
        """Utterance, language and text of every final caption, as they came."""
        return [(e.utterance, e.language, e.text) for e in self.events if isinstance(e, Caption) and e.final]

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
        """Every utterance has ended once in every language, in the order in which it was said, and nothing failed."""
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
        """Wait until every speaker has received some more utterances."""
        wanted = {speaker: speaker.said + utterances for speaker in self.speakers}
        await self.until(lambda speaker: any(name == str(wanted[speaker]) for name, *_ in speaker.finals), seconds)

    async def returns(self, seconds: float = 60) -> list[float]:
        """Watch for so long, or until all are back, how many seconds it takes speakers to have another connection."""
        before = {speaker: speaker.client.reconnected for speaker in self.speakers}
        begun, found = time.monotonic(), dict[Speaker, float]()
        while (now := time.monotonic() - begun) < seconds and len(found) < len(self.speakers):
            for speaker in self.speakers:
                if speaker.client.reconnected > before[speaker]:
                    found.setdefault(speaker, now)
            await asyncio.sleep(0.005)
        return sorted(found.values())

    async def finish(self, seconds: float = 120) -> None:
        """Have everybody stop and receive what is left, and check what everybody has."""
        for speaker in self.speakers:
            speaker.stop()
        async with asyncio.timeout(seconds):
            await asyncio.gather(*self._tasks)
        for speaker in self.speakers:
            speaker.check()
