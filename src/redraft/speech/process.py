"""A recogniser in a process of its own, so that a crash or a hang of its library ends neither the program nor the talk.

`RecogniserProcess` is for programs with an event loop, `IsolatedRecogniser` for others.

A process that dies, or does nothing for a while, is started again and gets the audio of the current utterance once
more, so nothing that was spoken is lost.  Only if it soon fails again does recognition end.
"""

from __future__ import annotations

import asyncio
import math
import os
import queue
import signal
import threading
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Sequence
from contextlib import aclosing, closing, suppress
from dataclasses import replace
from itertools import chain
from time import monotonic

from redraft import deadlines, errors, interrupt
from redraft.captions.events import Failure
from redraft.errors import InputError, ModelError, RedraftError
from redraft.speech.audio import RATE, Samples
from redraft.speech.buffer import AGAIN, AudioBuffer
from redraft.speech.dialect import pcm
from redraft.speech.recogniser import Hypothesis, Recognised, Recogniser
from redraft.speech.worker import Progress, command, ended

#: Maximum length in bytes of a message.
_LONGEST_LINE = 1 << 20
#: Seconds of audio that a process may have before it, since it reports its progress every half second.
BEHIND = 1.0
#: Seconds of audio within which a second failure ends the recognition.
_SOON = 10.0


class _Died(Exception):
    """A process has ended or hangs; the message says how."""


class RecogniserProcess:
    """Recognises one stream of audio; iterating over `progress` starts it.  Use it on one event loop.

    Times count from the stream's beginning, whichever process recognised an utterance.

    Attributes:
        audio: the audio so far, which waits until it is recognised; it may be fed before the process is started.
        recognised: number of samples recognised so far.
        killed: whether it was killed; its later output is to be ignored.

    Args:
        command: command line of the process, see `redraft.speech.worker`.
        opens: seconds within which the process must open the recogniser.
        stalled: seconds without progress after which the process is started again.
        details: whether to pass on its standard error, which may contain transcript text.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        opens: float = math.inf,
        stalled: float = deadlines.STALLED,
        details: bool = True,
    ) -> None:
        self._command, self.opens, self._stalled, self._details = command, opens, stalled, details
        self.audio, self.recognised = AudioBuffer(), 0
        self.killed = False
        self._process: Process | None = None
        #: When the process was started, or sent its last message; and when the audio was ended.
        self._since, self._finished = 0.0, 0.0
        self._news = asyncio.Event()

    def feed(self, samples: bytes) -> None:
        """Send samples: signed 16-bit little-endian, mono, at 16 kHz."""
        self.audio.add(samples)
        self._news.set()

    def skip(self, samples: int) -> None:
        """Continue after missing samples (`AudioBuffer.skip`)."""
        self.audio.skip(samples)
        self._news.set()

    def finish(self) -> None:
        """End the audio: the current utterance is finished, then the process ends."""
        self._finished = monotonic()
        self._news.set()

    def kill(self) -> None:
        """Kill the process; iterating ends."""
        self.killed = True
        self._kill()

    def _kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(OSError):  # it has just ended
                if os.name != "posix":
                    self._process.kill()
                else:  # with what it has started, which may have its pipes: `Process.wait` waits until they are closed
                    os.killpg(self._process.pid, signal.SIGKILL)

    async def progress(self) -> AsyncGenerator[Progress, None]:
        """Yield messages until everything is recognised; closing the generator kills the process.

        After a message with a ``kind`` none follows.
        """
        failed = -math.inf  # after so many samples
        try:
            while not self.killed:
                try:
                    async with aclosing(self._one_process()) as messages:
                        async for each in messages:
                            yield each
                    return
                except _Died as death:
                    sentence = f"{death}; it was started again, and no audio is lost"
                    if soon := self.audio.added - failed < _SOON * RATE:
                        sentence = f"{death}, twice within {_SOON:g} s of audio"
                    if not self.killed:
                        yield Progress(self.recognised, 0.0, Failure(sentence), InputError.__name__ if soon else None)
                    if soon:
                        return
                    failed = self.audio.added
        except ModelError as error:
            yield Progress(self.recognised, 0.0, Failure(str(error)), ModelError.__name__)
        finally:
            self.audio.clear()

    async def _one_process(self) -> AsyncGenerator[Progress, None]:
        origin, opening = self.audio.again(), True
        try:
            # In a separate session, so that after Ctrl-C in a terminal it can recognise the rest.
            self._process = process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=None if self._details else DEVNULL,
                limit=_LONGEST_LINE,
                start_new_session=True,
            )
        except OSError as error:
            raise ModelError(f"the recogniser cannot be started: {error.strerror}") from error
        self._since = monotonic()
        writing = asyncio.create_task(self._write(process))
        try:
            if self.killed:
                self._kill()
            while (message := await self._read(process, opening=opening)) is not None:
                if message.kind is not None and not opening and isinstance(message.item, Failure):
                    raise _Died(message.item.message)
                yield self._placed(message, origin)
                if message.kind is not None:
                    return
                opening = False
            status = await self._status(process)
            if opening:
                raise ModelError(f"the recogniser cannot be started: its process {ended(status)}")
            if status or not self._finished:
                raise _Died(f"the recogniser's process {ended(status)}")
        finally:
            writing.cancel()
            self._kill()
            await process.wait()
            if process.stdin is not None:
                # Its error counts as seen, which Python 3.11.2, for example, logs otherwise.
                with suppress(OSError, TimeoutError):
                    async with asyncio.timeout(deadlines.GOODBYE):
                        await process.stdin.wait_closed()

    def _placed(self, message: Progress, origin: int) -> Progress:
        """Return a process's message with places and times in the stream."""
        self.recognised, item = max(self.recognised, origin + message.samples), message.item
        if isinstance(item, Hypothesis):
            item = item.later(origin / RATE)
            if item.final:
                self.audio.forget(round(item.end * RATE))
        return replace(message, samples=self.recognised, item=item)

    async def _read(self, process: Process, *, opening: bool = False) -> Progress | None:
        """Return the next message; None at the end, and after an invalid one.  Raises `_Died` if none comes in time."""
        assert process.stdout is not None  # noqa: S101  # for the type checker
        seconds = self.opens if opening else self._stalled
        while True:
            try:
                async with asyncio.timeout(min(deadlines.LOOK, seconds)):
                    line = await process.stdout.readline()
                self._since = monotonic()
                return Progress.read(line) if line else None
            except TimeoutError:
                # What it has not recognised must have waited for so long.
                waits = 0.0 if opening else self._finished or self.audio.arrival(self.recognised + round(BEHIND * RATE))
                if monotonic() - max(self._since, waits) > seconds:
                    raise _Died(f"the recogniser did nothing for {seconds:g} s") from None
            except ValueError:  # too long, or invalid
                self._kill()
                return None

    async def _status(self, process: Process) -> int:
        """Return the exit status after the last message; a process that has more to do than to end is killed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(deadlines.PROCESS_ENDS):
                return await process.wait()
        self._kill()
        return await process.wait()

    async def _write(self, process: Process) -> None:
        """Send the audio as fast as it is read; an error means that the process has ended, as its reader notices."""
        assert process.stdin is not None  # noqa: S101  # for the type checker
        with suppress(OSError):
            while True:
                self._news.clear()
                if piece := self.audio.take(RATE):
                    process.stdin.write(piece)
                    self.audio.forget(self.recognised - round(AGAIN * RATE))
                    await process.stdin.drain()
                elif self._finished:
                    break
                else:
                    await self._news.wait()
            process.stdin.close()


def isolated(spec: str, language: str, pause: float, punctuation: str | None) -> Recogniser:
    """Open a recogniser in a process; args and exceptions are those of `redraft.speech.registry.open_recogniser`."""
    return IsolatedRecogniser(RecogniserProcess(command(spec, language, pause, punctuation)))


#: What the thread of a recogniser puts behind the messages of its process.
_END = Progress(item=Failure("the recogniser has ended"), kind=ModelError.__name__)


class IsolatedRecogniser:
    """Recognises in a process; a thread exchanges audio and messages with it.

    Args:
        process: recognises; it is started here.

    Raises:
        RedraftError: the recogniser cannot be opened.
    """

    def __init__(self, process: RecogniserProcess) -> None:
        self._process = process
        self._messages: queue.SimpleQueue[Progress] = queue.SimpleQueue()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        try:
            with interrupt.raised():
                if _checked(self._messages.get()).item is not None:  # it was started again
                    raise ModelError(f"the recogniser cannot be started: it did not answer for {process.opens:g} s")
        except BaseException:  # Ctrl-C: the process would go on, for example with a download
            self.close()
            raise

    def __call__(self, blocks: Iterator[Samples]) -> Generator[Recognised, None, None]:
        """Recognise a stream (`redraft.speech.recogniser.Recogniser`), at most `BEHIND` seconds behind its blocks."""
        fed = recognised = 0
        with closing(self):
            for block in chain(blocks, [None]):
                if block is None:
                    self._call(self._process.finish)
                else:
                    self._call(self._process.feed, pcm(block))
                    fed += len(block)
                while block is None or self._messages.qsize() or fed - recognised > BEHIND * RATE:
                    message = self._messages.get()
                    if block is None and message is _END:
                        return
                    recognised = _checked(message).samples
                    yield from message.recognised

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
            self._messages.put(_END)


def _checked(message: Progress) -> Progress:
    """Return a message.  Raises `RedraftError` if it ends the recognition."""
    if message.kind is not None and isinstance(message.item, Failure):
        kind = getattr(errors, message.kind, ModelError)
        raise (kind if issubclass(kind, RedraftError) else ModelError)(message.item.message)
    return message
