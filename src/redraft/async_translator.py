"""Translate a stream in asyncio.

Examples:
    >>> from redraft import AsyncTranslator
    >>> async with AsyncTranslator.open("demo", to=["de", "ja"]) as translator:
    ...     async for event in translator.translate(updates):
    ...         print(event)

It runs on an engine (`redraft.engine`), as the server does: a thread of its own, and a queue for each language.
"""

from __future__ import annotations

import asyncio
import os
import reprlib
from collections.abc import AsyncIterable, AsyncIterator, Callable, Sequence
from concurrent.futures import Future
from functools import partial
from threading import Thread
from typing import Any, TypeVar

from redraft import deadlines
from redraft.backends.costs import pace
from redraft.captions.events import Event, Failure, Update
from redraft.engine.engine import Engine, Stopped
from redraft.engine.lanes import Answer, Lane
from redraft.engine.scheduler import UNLIMITED, Scheduler
from redraft.engine.stream import MOST_PENDING, Stream
from redraft.errors import InputError
from redraft.tasks import beside, on_thread
from redraft.translator import Translator

T = TypeVar("T")


class AsyncTranslator:
    """Translates one stream into one or several languages without blocking the event loop.

    Use it as an asynchronous context manager: the block has a model and a thread, and leaves neither behind, even if it
    is cancelled. Either iterate over `translate`, which takes the updates of an asynchronous iterator, or call `send`
    for each update and `end` after the last one, and iterate over the translator itself.

    If updates come faster than they are translated, each language skips those that a newer one of the same utterance
    has overtaken, and may abandon one that is being translated; final updates are never skipped. The
    rest of a translation is shown when no update has come for two seconds, and at the end.

    It has the methods with which `redraft.client.Client` sends updates and yields events, so that programs can
    translate here or on a server.

    Problems with an update, or of the model with it, are events (`Failure`), and the stream continues.

    Args:
        translator: translates and is closed at the end; do not use it meanwhile. If it is a function, it is called on a
            thread when the block begins, and what it raises is raised there.
        ahead: number of unanswered updates, over all languages, with which `send` returns. With 0, it waits for the
            answers of all languages: no update is skipped, and events come in the order of the languages.
    """

    def __init__(self, translator: Translator | Callable[[], Translator], *, ahead: int = MOST_PENDING) -> None:
        self._made, self._ahead = translator, ahead
        self._translator: Translator | None = None
        self._engine: Engine | None = None
        self._lanes: dict[str, Lane] = {}
        self._stream = Stream(self._rest, ahead)
        #: Events of an update that other languages have not answered yet.
        self._held: list[Event] = []
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        #: Why the engine has stopped; empty while it works.
        self._stopped = ""

    @classmethod
    def open(cls, model: str | os.PathLike[str] = "demo", *, to: Sequence[str], **options: Any) -> AsyncTranslator:
        """Load a model by name or path when the block begins; arguments as for `Translator.open`."""
        return cls(partial(Translator.open, model, to=to, **options))

    @property
    def languages(self) -> tuple[str, ...]:
        """The target languages, as captions name them; empty before the block begins."""
        return tuple(self._lanes)

    @property
    def able(self) -> str:
        """What the model can do here, in a sentence; empty before enough passes have run."""
        if self._translator is None or (curve := self._translator.backend.curve()) is None:
            return ""
        return pace(curve, len(self._lanes), drafts=self._translator.method.bias is not None)

    async def __aenter__(self) -> AsyncTranslator:
        """Load the model.

        Raises:
            RedraftError: as for `Translator.open`, or this translator was used before.
        """
        if self._translator is not None or self._stream.ended:
            raise InputError("an AsyncTranslator can be used once: open another one for the next stream")
        try:
            await _finished(*on_thread(self._open))
            self._start()
        except BaseException:
            await self.close()
            raise
        return self

    def _open(self) -> None:
        self._translator = self._made if isinstance(self._made, Translator) else self._made()

    def _start(self) -> None:
        if (translator := self._translator) is None or not translator.slots:
            raise InputError("the translator is closed")
        # Prompts are read at once: nobody else waits, and captions are those of a Translator.
        scheduler = Scheduler(translator.backends, translator.slots, budget=UNLIMITED)
        engine = Engine(scheduler)
        answer = engine.answers_to(self._answered)
        self._lanes = {
            language: Lane(each, answer, translator.states[language])
            for language, each in translator.translations.items()
        }
        for lane in self._lanes.values():
            scheduler.add(lane)
        loop = asyncio.get_running_loop()
        engine.stopped.add_done_callback(lambda done: loop.call_soon_threadsafe(self._stop, done.result()))
        engine.start()
        self._engine = engine
        self._look(engine)

    def _look(self, engine: Engine) -> None:
        engine.look()
        if not self._stream.over:
            asyncio.get_running_loop().call_later(deadlines.LOOK, self._look, engine)

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop after the current pass without waiting for captions, and free the model; iterating ends."""
        self._stream.close()
        while not self._events.empty():
            self._events.get_nowait()
        self._events.put_nowait(None)
        await _finished(*on_thread(self._shut))

    def _shut(self) -> None:
        if self._engine is not None:
            self._engine.stop()
        if self._translator is not None:
            if self._engine is not None and self._engine.running:  # its model hangs
                self._translator.abandon()
            self._translator.close()

    # Updates

    async def translate(self, updates: AsyncIterable[Update]) -> AsyncIterator[Event]:
        """Translate all updates, and yield captions and failures until everything is translated.

        What the updates raise is raised after the events of those before.

        Raises:
            InputError: one is not an `Update`, or the translator has ended.
            Stopped: as for iterating.
        """
        async with beside(self._send_all(updates)) as (sending,):
            async for event in self:
                yield event
            await sending

    async def _send_all(self, updates: AsyncIterable[Update]) -> None:
        try:
            async for update in updates:
                await self.send(update)
        finally:
            await self.end()

    async def send(self, update: Update) -> None:
        """Have an update translated; waits while more than ``ahead`` are unanswered.

        One that is not newer than the last one of its utterance, or follows its final one, becomes a `Failure`.

        Raises:
            InputError: it is not an `Update`, or the translator has ended.
            Stopped: as for iterating.
        """
        self._check_engine()
        if not isinstance(update, Update):
            raise InputError(f"send takes an Update, not {reprlib.repr(update)}")
        if self._translator is None or self._engine is None or self._stream.ended:
            raise InputError("send updates in the block, and before `end`")
        try:
            update = self._stream.accept(self._translator.spoken.named(update))
        except InputError as error:
            self._events.put_nowait(Failure(str(error), None, update.utterance, update.seq))
            return
        self._stream.add(update, self.languages)
        self._engine.submit([*self._lanes.values()], update)
        await self._stream.room()
        self._check_engine()
        if not self._ahead:
            await asyncio.sleep(0)  # events are taken before the next update is sent
        if not self._stream.ended:
            self._stream.follow(update, self.languages)

    async def end(self) -> None:
        """Send no more updates; iterating ends when everything is translated."""
        self._stream.end()
        self._finish()

    def _rest(self, update: Update, languages: Sequence[str]) -> None:
        if self._engine is not None:
            self._engine.submit([*self._lanes.values()], update, rest=True)

    # Events

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Yield captions and failures until everything is translated.

        Raises:
            Stopped: the engine has crashed, as the log says, or the model does not answer.
        """
        while (event := await self._events.get()) is not None:
            yield event
        self._events.put_nowait(None)  # so that iterating again ends too
        self._check_engine()

    def _check_engine(self) -> None:
        if self._stopped:
            raise Stopped(self._stopped)

    def _answered(self, answer: Answer) -> None:
        if self._stream.over:
            return
        self._stream.answered(answer)
        self._held += answer.events
        if self._ahead or not self._stream.waits:
            places = {language: place for place, language in enumerate(self._lanes)}
            for event in sorted(self._held, key=lambda event: places.get(event.language or "", 0)):
                self._events.put_nowait(event)
            self._held.clear()
        self._finish()

    def _finish(self) -> None:
        if self._stream.over:
            self._events.put_nowait(None)

    def _stop(self, why: str) -> None:
        """End the stream, because the engine has stopped."""
        if not self._stream.over:
            self._stopped = why
            self._stream.close()
            self._finish()


async def _finished(work: Future[T], thread: Thread) -> T:
    """Wait for the end of work on a thread, even if cancelled: it cannot be interrupted."""
    waiting, cancelled = asyncio.wrap_future(work), None
    while not waiting.done():
        try:
            await asyncio.wait([waiting])
        except asyncio.CancelledError as error:
            cancelled = error
    thread.join()
    if cancelled is not None:
        waiting.exception()  # so that it counts as seen
        raise cancelled
    return waiting.result()
