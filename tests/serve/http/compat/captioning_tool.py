"""A captioning tool that uses this server as its translation service, as flicker and cost see it.

The tool is LiveCaptions-Translator.  It reads the text of Windows' Live Captions 40 times a second.  It sends the last
sentence when that has ended, after a number of changes, and once more when it has been unchanged for a while.  The
speech is the demo talk.  The same requests are answered twice: as growing utterances, and each from scratch.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from redraft.captions.events import Caption, Update
from redraft.decoding.backend import Backend
from redraft.decoding.types import TARGET, Rows, Score
from redraft.protocol import Wanted
from redraft.serve.app import make_hub, open_backends
from redraft.serve.engine.service import Service
from redraft.serve.http.compat.callers import Caller, Callers
from redraft.serve.sessions.hub import Hub
from redraft.serve.settings import ServeSettings
from redraft_bench.eval.measure import Erasure

POLL = 0.025
WORD = 0.4
GAP = 0.1
SHORTEST = 10  # bytes
ENDS = ".?!"


@dataclass(frozen=True)
class Sent:
    """A request of the tool: its text, the number of its sentence, and its time in seconds."""

    sentence: int
    text: str
    time: float


def live_captions(updates: Iterable[Update]) -> Iterator[tuple[float, str]]:
    """Yield the times and texts of Live Captions: new words one by one, revisions at once, after earlier sentences.

    The recogniser of the talk ends even unfinished texts with a full stop; Live Captions does not.
    """
    said, shown, latest = "", "", 0.0
    for update in updates:
        text = update.text if update.final else update.text.rstrip(ENDS)
        words, old = text.split(), shown.split()
        first = min(len(old) + 1, len(words)) if words[: len(old)] == old else len(words)
        for length in range(first, len(words) + 1):
            latest = max(latest + GAP, (update.time or 0.0) - WORD * (len(words) - length))
            yield latest, f"{said} {' '.join(words[:length])}".strip()
        shown = "" if update.final else text
        said = f"{said} {update.text}"[-400:].strip() if update.final else said


def requests(updates: Iterable[Update], interval: int = 5, idle: int = 20) -> Iterator[Sent]:
    """Yield the tool's requests.

    Args:
        updates: the recogniser's updates.
        interval: changes ignored between two requests.
        idle: polls without a change after which the text is sent once more.
    """
    frames = list(live_captions(updates))
    place, now, before, changes, still, sentence = 0, 0.0, "", 0, 0, 0
    while place < len(frames):
        while place + 1 < len(frames) and frames[place + 1][0] <= now:
            place += 1
        text = _latest_sentence(frames[place][1]) if frames[place][0] <= now else ""
        if text and text != before:
            sentence += not before or before[-1] in ENDS
            before, still = text, 0
            if text[-1] in ENDS:
                changes = 0
                yield Sent(sentence, text, now)
            elif len(text.encode()) >= SHORTEST:
                changes += 1
        else:
            still += 1
        if before and (changes > interval or still == idle):
            changes = 0
            yield Sent(sentence, before, now)
        if place + 1 == len(frames) and still > idle:
            return
        now += POLL


def _latest_sentence(text: str) -> str:
    """Return the text after the last full stop; if it is short, with the sentence before it."""
    last = max(text[:-1].rfind(mark) for mark in ENDS)
    found = text[last + 1 :]
    if last > 0 and len(found.encode()) < SHORTEST:
        last = max(text[:last].rfind(mark) for mark in ENDS)
        found = text[last + 1 :]
        if (end := max(found.rfind(mark) for mark in ENDS)) >= 0:
            found = found[: end + 1]
    return found.strip()


def erasure(shown: Iterable[tuple[Sent, str]]) -> float:
    """Return normalized erasure of what the tool shows, in words (characters in languages without spaces)."""
    count, number = Erasure(), -1
    last: list[int] = []
    for sent, text in shown:
        words = [hash(word) for word in (text.split() if " " in text else text)]
        if sent.sentence == number:
            count.step(last, words)
        else:
            count.final += len(last)
        last, number = words, sent.sentence
    count.final += len(last)
    return count.value


class Counted:
    """Counts the passes of a model.

    Args:
        backend: the model; its `score` is wrapped.
    """

    def __init__(self, backend: Backend) -> None:
        self.passes, self._score = 0, backend.score
        backend.score = self.score  # type: ignore[method-assign, assignment]

    def score(self, requests: Sequence[tuple[int, Score]]) -> Sequence[Rows]:
        """Count and run a pass."""
        self.passes += 1
        return self._score(requests)


@dataclass(frozen=True)
class Measured:
    """Results: passes of the model, normalized erasure in words, and total seconds."""

    passes: int
    erasure: float
    seconds: float


async def _measured(ask: Callable[[Sent], Awaitable[str]], sent: Sequence[Sent], counted: Counted) -> Measured:
    before, began = counted.passes, time.perf_counter()
    shown = [(each, await ask(each)) for each in sent]
    seconds = time.perf_counter() - began
    return Measured(counted.passes - before, erasure(shown), seconds)


async def _compared(hub: Hub, counted: Counted, to: str, sent: Sequence[Sent]) -> tuple[Measured, Measured]:
    now = 0.0
    caller = Caller(("benchmark",), "", to, "en")
    callers = Callers(hub, lambda: now)

    async def stays() -> bool:
        return False

    async def growing(each: Sent) -> str:
        nonlocal now
        now = each.time
        return (await callers.replies(caller, [each.text], stays))[0].text

    async def from_scratch(each: Sent) -> str:
        (answer,) = await hub.exchanges.once(Wanted(targets=(to,), method="ar"), [each.text], "")
        (found,) = answer.values()
        return next((event.text for event in found if isinstance(event, Caption)), "")

    return await _measured(growing, sent, counted), await _measured(from_scratch, sent, counted)


def compare(model: str, to: str, sent: Sequence[Sent]) -> tuple[Measured, Measured]:
    """Answer the same requests as growing utterances, and each from scratch."""
    settings = ServeSettings(model=model, engines=1, busy=1000, starts_per_second=10_000, updates_per_second=10_000)
    engines = open_backends(settings)
    hub = make_hub(settings, Service(engines[0], settings), engines)
    hub.engines.start()
    try:
        return asyncio.run(_compared(hub, Counted(engines[0][TARGET]), to, sent))
    finally:
        hub.engines.stop()
        for backend in engines[0].values():
            backend.close()
