"""A recogniser in a process of its own, so that a crash of its library ends neither the program nor the talk.

A process that dies is started again and gets the audio of the current utterance once more, so nothing that was spoken
is lost.  Only if it soon dies again does recognition end.
"""

from __future__ import annotations

import queue
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from redraft import errors
from redraft.captions.events import Failure
from redraft.captions.formats.read import Item
from redraft.errors import InputError, ModelError, RedraftError
from redraft.speech.audio import RATE, Samples
from redraft.speech.dialect import pcm
from redraft.speech.recogniser import Hypothesis, Kept, Recognised, Recogniser
from redraft.speech.registry import open_recogniser
from redraft.speech.worker import Progress, command, ended

#: Seconds without progress, with audio waiting, after which a recogniser is considered stalled.
STALLED = 60.0
#: Seconds of audio that may wait for the process, which reports its progress every half second.
_WAITING = 1.0
#: Seconds of audio within which a second death ends the recognition.
_SOON = 10.0
#: Seconds in which a process ends after its last message.
_ENDING = 30.0


def isolated(
    spec: str, language: str, pause: float, punctuation: str | None, news: Callable[[str], object] = str
) -> Recogniser:
    """Open a recogniser in a process; one that is reached over the network stays in this process.

    Args and exceptions are those of `redraft.speech.registry.open_recogniser`.
    """
    if "://" in spec:
        return open_recogniser(spec, language, pause, punctuation, news)
    return IsolatedRecogniser(command(spec, language, pause, punctuation))


class _Died(Exception):
    """A process has ended; the message says how."""


class IsolatedRecogniser:
    """Recognises in a process.

    Args:
        command: command line of the process, see `redraft.speech.worker`.
        stalled: seconds without progress after which the process is killed and started again.

    Raises:
        RedraftError: the recogniser cannot be opened.
    """

    def __init__(self, command: Sequence[str], stalled: float = STALLED) -> None:
        self._command, self._stalled, self._kept = command, stalled, Kept()
        self._died: int | None = None  # after so many samples
        self._process = _Process(command, stalled)

    @property
    def recognised(self) -> float:
        """Seconds of audio recognised so far; the process may be seconds behind the audio that it was given."""
        return (self._kept.origin + self._process.recognised) / RATE

    def hear(self, samples: Samples) -> Iterator[Recognised]:
        """Yield what has been recognised meanwhile."""
        self._kept.add(samples)
        try:
            self._process.feed(samples)
            yield from self._recognised(self._process.messages())
        except _Died as death:
            yield from self._again(death)

    def finish(self) -> Iterator[Recognised]:
        """Yield the rest."""
        while True:
            try:
                yield from self._recognised(self._process.rest())
                return
            except _Died as death:
                yield from self._again(death)

    def close(self) -> None:
        """End the process."""
        self._process.close()

    def _recognised(self, updates: Iterator[Item]) -> Iterator[Recognised]:
        """Yield updates as hypotheses, with times from the start of the audio."""
        for update in updates:
            if isinstance(update, Failure):
                raise _Died(update.message)
            when = self._kept.origin / RATE + (update.time or 0.0)
            if update.final:
                self._kept.forget(when)
            about = update.speaker, update.committed, update.language
            yield Hypothesis(update.text, when, when, update.final, *about)

    def _again(self, death: _Died) -> Iterator[Recognised]:
        """Start the process again with the audio of the current utterance.

        Raises:
            InputError: it has died shortly before.
        """
        self._process.close()
        if self._died is not None and self._kept.samples - self._died < _SOON * RATE:
            raise InputError(f"{death}, twice within {_SOON:g} s of audio")
        self._died = self._kept.samples
        yield Failure(f"{death}; it was started again, and no audio is lost")
        try:
            self._process = _Process(self._command, self._stalled)
            for samples in self._kept.again():
                self._process.feed(samples)
        except _Died as error:
            raise InputError(f"{error}, twice within {_SOON:g} s of audio") from None


class _Process:
    """A process that recognises; threads write the audio and read the messages."""

    def __init__(self, command: Sequence[str], stalled: float) -> None:
        # In a separate session, so that after Ctrl-C in a terminal it can recognise the rest.
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        self._stalled, self._sent = stalled, 0
        #: Samples recognised so far.
        self.recognised = 0
        self._audio: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        assert self._process.stdin is not None and self._process.stdout is not None  # noqa: S101  # for the type checker
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        #: None is the end.
        self._messages: queue.SimpleQueue[Progress | None] = queue.SimpleQueue()
        self._finishing = self._finished = False
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._write, self._read)]
        for thread in self._threads:
            thread.start()
        try:
            first = self._messages.get()
        except BaseException:  # Ctrl-C: the process would go on, for example with a download
            self.close()
            raise
        self._progress = time.monotonic()
        if first is None:
            status = self._status()
            self.close()
            raise ModelError(f"the recogniser cannot be started: its process {ended(status)}")
        if isinstance(first.item, Failure):
            self.close()
            kind = getattr(errors, first.kind or "", ModelError)
            raise (kind if issubclass(kind, RedraftError) else ModelError)(first.item.message)

    def feed(self, samples: Samples) -> None:
        """Send samples."""
        if not self._is_behind():
            self._progress = time.monotonic()
        self._sent += len(samples)
        self._audio.put(pcm(samples))

    def messages(self) -> Iterator[Item]:
        """Yield what has been recognised; waits only while more than `_WAITING` seconds are waiting.

        Raises:
            _Died: the process has stalled or ended.
        """
        while self._messages.qsize() or self._is_behind():
            yield from self._next()

    def rest(self) -> Iterator[Item]:
        """End the audio and yield everything that is recognised until the end.

        Raises:
            _Died: the process has stalled or failed.
        """
        self._audio.put(None)
        self._finishing = True
        while not self._finished:
            yield from self._next()

    def close(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.wait()
        self._audio.put(None)
        for thread in self._threads:
            thread.join(5)

    def _is_behind(self) -> bool:
        return self._sent - self.recognised > _WAITING * RATE

    def _next(self) -> Iterator[Item]:
        """Yield what is in the next message, if one comes within a tenth of a second."""
        try:
            message = self._messages.get(timeout=0.1)
        except queue.Empty:
            if time.monotonic() - self._progress > self._stalled:
                raise _Died(f"the recogniser did nothing for {self._stalled:g} s") from None
            return
        if message is None:
            status = self._status()
            self._finished = self._finishing and not status
            if not self._finished:
                raise _Died(f"the recogniser's process {ended(status)}")
            return
        self._progress, self.recognised = time.monotonic(), message.samples
        if message.item is not None:
            yield message.item

    def _status(self) -> int:
        """Return the exit status after the last message; a process that has more to do than to end is killed."""
        try:
            return self._process.wait(_ENDING)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def _write(self) -> None:
        # An error means that the process has ended, which the reader reports.
        with suppress(OSError), self._stdin as pipe:
            while (data := self._audio.get()) is not None:
                pipe.write(data)
                pipe.flush()

    def _read(self) -> None:
        try:
            with self._stdout as pipe, suppress(ValueError):  # a line that was cut off
                for line in pipe:
                    self._messages.put(Progress.read(line))
        finally:
            self._messages.put(None)
