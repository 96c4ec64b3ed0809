"""A recogniser in a process for programs without an event loop; see `redraft.speech.process`."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing, suppress

from redraft import deadlines, errors
from redraft.captions.events import Failure
from redraft.errors import ModelError, RedraftError
from redraft.speech.audio import RATE, Samples
from redraft.speech.dialect import pcm
from redraft.speech.process import BEHIND, RecogniserProcess
from redraft.speech.recogniser import Hypothesis, Recognised, Recogniser
from redraft.speech.registry import open_recogniser
from redraft.speech.worker import Progress, command


def isolated(
    spec: str, language: str, pause: float, punctuation: str | None, news: Callable[[str], object] = str
) -> Recogniser:
    """Open a recogniser in a process; one that is reached over the network stays in this process.

    Args and exceptions are those of `redraft.speech.registry.open_recogniser`.
    """
    if "://" in spec:
        return open_recogniser(spec, language, pause, punctuation, news)
    return IsolatedRecogniser(command(spec, language, pause, punctuation))


class IsolatedRecogniser:
    """Recognises in a process; a thread exchanges audio and messages with it.

    Args:
        command: command line of the process, see `redraft.speech.worker`.
        stalled: seconds without progress after which the process is started again.

    Raises:
        RedraftError: the recogniser cannot be opened.
    """

    def __init__(self, command: Sequence[str], stalled: float = deadlines.STALLED) -> None:
        self._process = RecogniserProcess(command, stalled=stalled)
        self._fed, self._samples = 0, 0
        #: What the process has sent; None is the end.
        self._messages: queue.SimpleQueue[Progress | None] = queue.SimpleQueue()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        try:
            list(self._item(self._messages.get()))
        except BaseException:  # Ctrl-C: the process would go on, for example with a download
            self.close()
            raise

    @property
    def recognised(self) -> float:
        """Seconds of audio recognised so far; the process may be seconds behind the audio that it was given."""
        return self._samples / RATE

    def hear(self, samples: Samples) -> Iterator[Recognised]:
        """Yield what has been recognised meanwhile; wait only while more than `BEHIND` seconds of audio wait."""
        self._fed += len(samples)
        self._call(self._process.feed, pcm(samples))
        while self._messages.qsize() or self._fed - self._samples > BEHIND * RATE:
            yield from self._item(self._messages.get())

    def finish(self) -> Iterator[Recognised]:
        """Yield the rest."""
        self._call(self._process.finish)
        while (message := self._messages.get()) is not None:
            yield from self._item(message)

    def close(self) -> None:
        """End the process."""
        self._call(self._process.kill)
        self._thread.join(deadlines.PROCESS_ENDS)

    def _call(self, work: Callable[..., object], *given: bytes) -> None:
        with suppress(RuntimeError):  # the loop is closed: recognition has ended, as the last message says
            self._loop.call_soon_threadsafe(work, *given)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._follow())

    async def _follow(self) -> None:
        try:
            async with aclosing(self._process.progress()) as messages:
                async for each in messages:
                    self._messages.put(each)
        finally:
            self._messages.put(None)

    def _item(self, message: Progress | None) -> Iterator[Recognised]:
        """Yield what is in a message.  Raises `RedraftError` if it ends the recognition."""
        if message is None:
            raise ModelError("the recogniser has ended")
        self._samples, item = message.samples, message.item
        if isinstance(item, Failure):
            if message.kind is not None:
                kind = getattr(errors, message.kind, ModelError)
                raise (kind if issubclass(kind, RedraftError) else ModelError)(item.message)
            yield item
        elif item is not None:
            times = item.start or 0.0, item.time or 0.0
            yield Hypothesis(item.text, *times, item.final, item.speaker, item.committed, item.language)
