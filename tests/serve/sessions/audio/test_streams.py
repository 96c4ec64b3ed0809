"""Streams of audio that follow each other, lose frames and recognisers: every word is there once, at its time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from time import monotonic

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from redraft import protocol
from redraft.captions.events import Update
from redraft.serve.metrics import Metrics
from redraft.serve.sessions.session_audio import Recognisers, SessionAudio
from redraft.serve.settings import ServeSettings
from redraft.speech.audio import RATE
from redraft.speech.process import RecogniserProcess, _Died
from redraft.speech.recogniser import Hypothesis
from redraft.speech.worker import Progress

#: Samples of a word: all have its number.
WORD = RATE // 2
SECONDS = 60.0


class Echo(RecogniserProcess):
    """Says the number of every half second, four in an utterance, and dies once in the middle of one."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__([])
        self.rng, self.lives = rng, rng.randint(0, 20)

    async def _one_process(self) -> AsyncGenerator[Progress, None]:
        origin, heard, words = self.audio.again(), 0, list[str]()
        while True:
            self._news.clear()
            piece = self.audio.take(WORD)
            if not piece and not self._finished:
                await self._news.wait()
                continue
            number = int.from_bytes(piece[:2], "little")
            if words and (not number or len(words) == 4):
                yield self._said(words, heard, origin, final=True)
                words = []
            if not piece:
                return
            self.lives -= 1
            if self.lives == 0:
                raise _Died("it died")
            heard += WORD
            self._placed(Progress(heard), origin)
            if number:
                words.append(str(number))
                yield self._said(words, heard, origin)
            await asyncio.sleep(0)

    def _said(self, words: list[str], heard: int, origin: int, *, final: bool = False) -> Progress:
        start, end = (place / RATE for place in (heard - WORD * len(words), heard))
        return self._placed(Progress(heard, 0.0, Hypothesis(" ".join(words), start, end, final)), origin)


class Talk:
    """A client, and what its session accepts."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        recognisers = Recognisers(ServeSettings(model="demo-tiny", recogniser="moonshine"), Metrics())
        recognisers.open = lambda _language: Echo(self.rng)  # type: ignore[assignment, method-assign]
        begin = protocol.Begin(targets=("de",), sentences=False)
        self.audio = SessionAudio("talk", begin, recognisers, self.accept, lambda _message: None, self.room)
        self.finals: dict[str, list[str]] = {}
        #: When each word is spoken, in seconds of the session, and when it was sent.
        self.spoken: dict[str, float] = {}
        self.sent: dict[str, float] = {}

    async def room(self) -> None:
        for _ in range(self.rng.randint(0, 3)):
            await asyncio.sleep(0)

    def accept(self, update: Update, since: float | None) -> None:
        first, *_, last = [*update.text.split(), update.text.split()[-1]]
        assert (update.start, update.time) == (self.spoken[first], self.spoken[last] + 0.5)
        assert since is None or self.sent[last] - 0.1 <= since <= monotonic()
        if update.final:
            self.finals.setdefault(update.utterance.partition(".")[0], []).extend(update.text.split())

    async def stream(self, name: str) -> list[str]:
        """Send a stream, and return its words."""
        place, words, time = 0, list[str](), float(self.rng.randint(0, 9))
        self.audio.begin(protocol.Audio(stream=name, time=time))
        for _ in range(self.rng.randint(1, 6)):
            # Its connection was lost.
            if self.rng.random() < 0.3 and self.audio.running and len(self.audio._streams) == 1:
                place += WORD * self.rng.randint(0, 6)
                self.audio.begin(protocol.Audio(stream=name, time=time, samples=place))
            for _ in range(self.rng.randint(1, 3)):
                words.append(str(len(self.spoken) + 1))
                self.spoken[words[-1]], self.sent[words[-1]] = time + place / RATE, monotonic()
                self.audio.take(np.full(WORD, int(words[-1]), "<i2").tobytes())
                place += WORD
            await self.room()
        return words

    async def run(self) -> None:
        over, sent = asyncio.Event(), dict[str, list[str]]()
        for number in range(self.rng.randint(1, 3)):
            sent[f"s{number}"] = await self.stream(f"s{number}")
            if self.rng.random() < 0.5:
                self.audio.finish()
        self.audio.finish(then=over.set)
        await asyncio.wait_for(over.wait(), SECONDS)
        assert self.finals == sent
        (last,) = self.audio._streams
        assert not last.process.audio._audio


@given(st.integers(0, 100_000))
def test_no_word_is_lost_or_doubled(seed: int) -> None:
    asyncio.run(Talk(seed).run())
