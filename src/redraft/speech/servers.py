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
from typing import Any

import numpy as np

from redraft import deadlines
from redraft.captions.events import Failure, Update
from redraft.captions.formats.read import Item
from redraft.deadlines import Backoff
from redraft.errors import InputError, MissingExtra
from redraft.proxies import is_local, needs_package, through
from redraft.speech.audio import BLOCK_SECONDS, RATE, Samples, library
from redraft.speech.buffer import AGAIN, AudioBuffer
from redraft.speech.dialect import Dialect, find_dialect
from redraft.speech.recogniser import Hypothesis, Recognised, Transcript, reason

#: Delays and time limit for reconnecting.
PATIENCE = Backoff(0.2, 5.0, 60.0)
#: Seconds after which a receiver that waits for a message checks whether it is to end.
_ASKED = 0.5
#: The library logs a traceback for each connection that misses pings.
_SILENT = logging.Logger(__name__, logging.CRITICAL + 1)


class Server:
    """A connection to a server, reopened when it is lost.

    Args:
        spec: ``NAME:ws://HOST:PORT``.
        patience: delays before reconnecting.
        news: called with one sentence when the server stays away after the connection was lost, and when it is back.

    Attributes:
        url: the server's URL.
        hurried: whether the end of the input was asked for, so that nothing is waited for any more.
        dialect: the protocol, with the state of the current connection.
        ending: whether the audio has ended; messages then no longer reset the limit of ``patience``.
        origin: time in the stream at which the connection began.
        closed: exception raised when the connection is lost.
        closed_well: exception raised when the server has closed the connection normally.

    Raises:
        OptionError: the protocol is unknown, or the address is invalid.
        InputError: the server cannot be reached.
        MissingExtra: the extra ``listen`` is not installed.
    """

    def __init__(self, spec: str, patience: Backoff = PATIENCE, news: Callable[[str], object] = str) -> None:
        library("websockets")
        from websockets.exceptions import ConnectionClosed, ConnectionClosedOK, WebSocketException

        self._module, self.url = find_dialect(spec)
        self._patience, self._waits, self._news = patience, patience.waits(), news
        self.hurried = threading.Event()
        self._problem: InputError | None = None
        self.closed, self.closed_well = ConnectionClosed, ConnectionClosedOK
        self._errors = OSError, WebSocketException, TimeoutError
        self.ending = False
        self._began, self.origin = time.monotonic(), 0.0
        self._stack = ExitStack()
        self._socket = self._connected()

    def _connected(self) -> Any:
        from websockets.sync.client import connect

        self.close()
        self.dialect: Dialect = self._module.dialect()
        try:
            # The queue is unbounded: a full queue would stop reading while `send` blocks.
            made = connect(
                self.url,
                max_queue=None,
                open_timeout=deadlines.OPENED,
                close_timeout=deadlines.GOODBYE,
                ping_interval=deadlines.RECOGNISER_PING,
                ping_timeout=deadlines.RECOGNISER_PONG,
                logger=_SILENT,
                proxy=None if is_local(self.url) else True,
            )
            socket = self._stack.enter_context(made)
            if self.dialect.greeting:
                socket.send(self.dialect.greeting)
        except self._errors as error:
            self.close()
            way = through(self.url)
            raise InputError(f"the recogniser at {self.url} cannot be reached{way}: {error}") from error
        except ImportError as error:
            raise MissingExtra(needs_package(self.url, "python-socks")) from error
        return socket

    def again(self) -> None:
        """Reconnect, within the limits of ``patience``, and without waiting once the end was asked for.

        Raises:
            InputError: the server stayed unreachable.
        """
        away = False
        for wait in self._waits:
            if self.hurried.wait(wait):
                break
            try:
                self._socket = self._connected()
            except InputError as error:
                self._problem = error
                if not away:
                    self._news(f"the connection was lost, and {error}; trying again")
                    away = True
                continue
            if away:
                self._news(f"the recogniser at {self.url} is back")
            return
        still = "is not tried again" if self.hurried.is_set() else "ends every connection at once"
        reason = self._problem or f"{self.url} {still}"
        raise InputError(f"the connection was lost, and {reason}")

    def send(self, message: str | bytes) -> None:
        """Send a message; raises ``closed`` if the connection is lost."""
        self._socket.send(message)

    def ping(self) -> threading.Event:
        """Send a ping, and return what is set when it is answered; raises ``closed`` if the connection is lost."""
        answered: threading.Event = self._socket.ping()
        return answered

    def now(self) -> float:
        """Return the time in the stream in seconds."""
        return time.monotonic() - self._began

    def receive(self, timeout: float) -> Iterator[Recognised]:
        """Yield the hypotheses in the next message, or a failure if it is invalid.

        Each message resets the limit of ``patience``, unless the audio has ended: a server that can only begin an
        utterance would be tried for ever.

        Raises:
            TimeoutError: no message came in time.
        """
        message = self._socket.recv(timeout)
        if not self.ending:
            self._waits, self._problem = self._patience.waits(), None
        try:
            for found in self.dialect.read(message, self.now() - self.origin):
                Update("1", 0, found.text, time=found.end, start=found.start)  # refuses what is no update
                yield found.later(self.origin)
        except Exception as error:
            yield Failure(f"a message of {self.url} cannot be used: {reason(error)}")

    def close(self) -> None:
        """Close the connection."""
        self._stack.close()


class ServerRecogniser(Server):
    """A recogniser that uses a server; see `Server` for arguments and exceptions."""

    def __init__(self, spec: str, patience: Backoff = PATIENCE, news: Callable[[str], object] = str) -> None:
        super().__init__(spec, patience, news)
        #: The audio of the current utterance, in 32-bit floats.
        self._audio = AudioBuffer(width=4)

    def now(self) -> float:
        """Return the end of the audio in seconds."""
        return self._audio.added / RATE

    def __call__(self, blocks: Iterator[Samples]) -> Generator[Recognised, None, None]:
        """Recognise a stream (`redraft.speech.recogniser.Recogniser`)."""
        with closing(self):
            for block in blocks:
                self._audio.add(block.astype("<f4").tobytes())
                yield from self._through(self._arrived)
                self._audio.forget(self._audio.added - round(AGAIN * RATE))
                yield self.now()
            self.ending = True
            yield from self._through(self._rest)

    def _through(self, receive: Callable[[], Iterator[Recognised]]) -> Iterator[Recognised]:
        """Send the audio and yield what is received; if the connection is lost, again with that of the utterance."""
        while True:
            try:
                while piece := self._audio.take(round(BLOCK_SECONDS * RATE)):
                    self.send(self.dialect.audio(np.frombuffer(piece, "<f4")))
                yield from receive()
                return
            except self.closed as error:
                with suppress(self.closed):
                    yield from self._arrived()
                if self.ending and isinstance(error, self.closed_well):
                    return
                self.again()
                self.origin = self._audio.again() / RATE

    def _received(self, timeout: float) -> Iterator[Recognised]:
        for found in self.receive(timeout):
            if isinstance(found, Hypothesis) and found.final:
                self._audio.forget(round(found.end * RATE))
            yield found

    def _arrived(self) -> Iterator[Recognised]:
        with suppress(TimeoutError):
            while True:
                yield from self._received(0)

    def _rest(self) -> Iterator[Recognised]:
        """Yield everything until the server has finished."""
        self.send(self.dialect.goodbye)
        answered, latest = self.ping(), time.monotonic()
        while not self.dialect.over:
            try:
                yield from self._received(_ASKED)
                latest = time.monotonic()
            except TimeoutError:
                away = self.hurried.is_set() and not answered.is_set()
                limit = deadlines.LAST if away else deadlines.RECOGNISER_ANSWERS
                if time.monotonic() - latest > limit:
                    yield Failure(f"{self.url} has not ended the audio's last utterance within {limit:g} s")
                    return


def overhear(
    spec: str,
    patience: Backoff = PATIENCE,
    news: Callable[[str], object] = str,
    when_over: Callable[[Callable[[], object]], object] = bool,
) -> Iterator[Item]:
    """Yield what a server broadcasts to all clients, such as one with its own microphone.

    If the connection is lost, the current utterance ends with its last hypothesis.  If reconnecting fails, the last
    item is a failure.  See `Server` for arguments and exceptions.

    Args:
        when_over: called with what ends the items within half a second, from any thread.
    """
    server = Server(spec, patience, news)
    when_over(server.hurried.set)
    return _overheard(server)


def _overheard(server: Server) -> Iterator[Item]:
    transcript = Transcript()
    with closing(server):
        while not (server.dialect.over or server.hurried.is_set()):
            try:
                yield from transcript.items(server.receive(_ASKED))
            except TimeoutError:
                continue
            except server.closed:
                yield from transcript.finish()
                try:
                    server.again()
                except InputError as error:
                    yield Failure(str(error))
                    return
                server.origin = server.now()
        yield from transcript.finish()
