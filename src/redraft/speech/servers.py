"""Recognition servers: audio is sent over a websocket, hypotheses come back.

A lost connection is reopened and the audio of the current utterance is sent again, so nothing that the server had
finished is lost, and nothing that was spoken.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing, suppress

import numpy as np

from redraft import deadlines
from redraft.captions.events import Failure, Update
from redraft.captions.formats.read import Item
from redraft.deadlines import Backoff
from redraft.errors import InputError, MissingExtra, from_extra
from redraft.proxies import is_local, needs_package, through
from redraft.speech.audio import BLOCK_SECONDS, RATE, Samples
from redraft.speech.buffer import AGAIN, AudioBuffer
from redraft.speech.dialect import Dialect, find_dialect
from redraft.speech.recogniser import Recognised, Transcript, reason

with from_extra("listen"):
    from websockets.exceptions import ConnectionClosed, ConnectionClosedOK, WebSocketException
    from websockets.sync.client import connect

#: Delays and time limit for reconnecting.
PATIENCE = Backoff(0.2, 5.0, 60.0)
#: Seconds after which a receiver that waits for a message checks whether it is to end.
_ASKED = 0.5
#: The library logs a traceback for each connection that misses pings.
_SILENT = logging.Logger(__name__, logging.CRITICAL + 1)


class ServerRecogniser:
    """A recogniser that uses a server; the connection is reopened when it is lost.

    Args:
        spec: ``NAME:ws://HOST:PORT``.
        patience: delays before reconnecting.
        news: called with one sentence when the server stays away after the connection was lost, and when it is back.

    Attributes:
        hurried: set this once the end of the input was asked for, so that nothing is waited for any more.

    Raises:
        OptionError: the protocol is unknown, or the address is invalid.
        InputError: the server cannot be reached.
        MissingExtra: the environment's proxy needs a package that is not installed.
    """

    def __init__(self, spec: str, patience: Backoff = PATIENCE, news: Callable[[str], object] = str) -> None:
        self._module, self._url = find_dialect(spec)
        self._patience, self._waits, self._news = patience, patience.waits(), news
        self.hurried = threading.Event()
        self._problem: InputError | None = None
        #: Whether the audio has ended; messages then no longer reset the limit of ``patience``.
        self._ending = False
        #: The audio of the current utterance, in 32-bit floats.
        self._audio = AudioBuffer(width=4)
        #: Returns the time in the stream in seconds; and that at which the connection began.
        self._now: Callable[[], float] = lambda: self._audio.added / RATE
        self._began, self._origin = time.monotonic(), 0.0
        self._stack = ExitStack()
        self._connect()

    def __call__(self, blocks: Iterator[Samples]) -> Generator[Recognised, None, None]:
        """Recognise a stream (`redraft.speech.recogniser.Recogniser`)."""
        with closing(self):
            for block in blocks:
                self._audio.add(block.astype("<f4").tobytes())
                yield from self._through(self._arrived)
                self._audio.forget(self._audio.added - round(AGAIN * RATE))
                yield self._now()
            self._ending = True
            yield from self._through(self._rest)

    def overhear(self) -> Iterator[Item]:
        """Yield what the server broadcasts to all clients, such as one with its own microphone.

        If the connection is lost, the current utterance ends with its last hypothesis.  If reconnecting fails, the last
        item is a failure.  Once `hurried` is set, the items end within half a second.
        """
        transcript, self._now = Transcript(), lambda: time.monotonic() - self._began
        with closing(self):
            while not (self._dialect.over or self.hurried.is_set()):
                try:
                    yield from transcript.items(self._received(_ASKED))
                except TimeoutError:
                    continue
                except ConnectionClosed:
                    yield from transcript.finish()
                    try:
                        self._reconnect()
                    except InputError as error:
                        yield Failure(str(error))
                        return
                    self._origin = self._now()
            yield from transcript.finish()

    def close(self) -> None:
        """Close the connection."""
        self._stack.close()

    def _connect(self) -> None:
        self.close()
        self._dialect: Dialect = self._module.dialect()
        try:
            # The queue is unbounded: a full queue would stop reading while `send` blocks.
            made = connect(
                self._url,
                max_queue=None,
                open_timeout=deadlines.OPENED,
                close_timeout=deadlines.GOODBYE,
                ping_interval=deadlines.RECOGNISER_PING,
                ping_timeout=deadlines.RECOGNISER_PONG,
                logger=_SILENT,
                proxy=None if is_local(self._url) else True,
            )
            self._socket = self._stack.enter_context(made)
            if self._dialect.greeting:
                self._socket.send(self._dialect.greeting)
        except (OSError, WebSocketException) as error:
            self.close()
            way = through(self._url)
            raise InputError(f"the recogniser at {self._url} cannot be reached{way}: {error}") from error
        except ImportError as error:
            raise MissingExtra(needs_package(self._url, "python-socks")) from error

    def _reconnect(self) -> None:
        """Connect again, within the limits of ``patience``, and without waiting once the end was asked for.

        Raises:
            InputError: the server stayed unreachable.
        """
        away = False
        for wait in self._waits:
            if self.hurried.wait(wait):
                break
            try:
                self._connect()
            except InputError as error:
                self._problem = error
                if not away:
                    self._news(f"the connection was lost, and {error}; trying again")
                    away = True
                continue
            if away:
                self._news(f"the recogniser at {self._url} is back")
            return
        raise InputError(f"the connection was lost, and {self._problem or f'{self._url} is tried no longer'}")

    def _through(self, receive: Callable[[], Iterator[Recognised]]) -> Iterator[Recognised]:
        """Send the audio and yield what is received; if the connection is lost, again with that of the utterance."""
        while True:
            try:
                while piece := self._audio.take(round(BLOCK_SECONDS * RATE)):
                    self._socket.send(self._dialect.audio(np.frombuffer(piece, "<f4")))
                yield from receive()
                return
            except ConnectionClosed as error:
                with suppress(ConnectionClosed):
                    yield from self._arrived()
                if self._ending and isinstance(error, ConnectionClosedOK):
                    return
                self._reconnect()
                self._origin = self._audio.again() / RATE

    def _received(self, timeout: float) -> Iterator[Recognised]:
        """Yield the hypotheses in the next message, or a failure if it is invalid.

        Each message resets the limit of ``patience``, unless the audio has ended: a server that can only begin an
        utterance would be tried for ever.

        Raises:
            TimeoutError: no message came in time.
        """
        message = self._socket.recv(timeout)
        if not self._ending:
            self._waits, self._problem = self._patience.waits(), None
        try:
            for found in self._dialect.read(message, self._now() - self._origin):
                Update("1", 0, found.text, time=found.end, start=found.start)  # refuses what is no update
                found = found.later(self._origin)
                if found.final:
                    self._audio.forget(round(found.end * RATE))
                yield found
        except Exception as error:
            yield Failure(f"a message of {self._url} cannot be used: {reason(error)}")

    def _arrived(self) -> Iterator[Recognised]:
        with suppress(TimeoutError):
            while True:
                yield from self._received(0)

    def _rest(self) -> Iterator[Recognised]:
        self._socket.send(self._dialect.goodbye)
        answered, latest = self._socket.ping(), time.monotonic()
        while not self._dialect.over:
            try:
                yield from self._received(_ASKED)
                latest = time.monotonic()
            except TimeoutError:
                away = self.hurried.is_set() and not answered.is_set()
                limit = deadlines.LAST if away else deadlines.RECOGNISER_ANSWERS
                if time.monotonic() - latest > limit:
                    yield Failure(f"{self._url} has not ended the audio's last utterance within {limit:g} s")
                    return
