"""A client session that survives dropped connections."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any, TypeVar

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosedOK, WebSocketException

from redraft import deadlines, protocol
from redraft.captions.events import Caption, Event, Failure, Update
from redraft.captions.style import Style
from redraft.client.control import Control, Key
from redraft.client.wire import (
    ServerError,
    address,
    failure_of,
    http_address,
    message_of,
    parse,
    parse_started,
    pieces,
    reason,
    start_of,
    viewers_page,
)
from redraft.deadlines import Backoff
from redraft.decoding.method import Value
from redraft.errors import InputError, MissingExtra
from redraft.proxies import is_local, needs_package
from redraft.tasks import beside

T = TypeVar("T")

#: Number of unanswered final updates at which `send` waits.
MOST_OPEN = 64
#: Maximum number of unread events; beyond that the client stops receiving.
_MOST_EVENTS = 1000
#: Error codes of temporary problems.
_PASSING = {"capacity", "draining", "limit", "slow", "engine"}


class Client:
    """One session on a server.

    Attributes:
        session: its public name, once it has started.
        control: pauses, hides and corrects what viewers see.
        reconnected: number of reconnections.
        news: called with one sentence when the server stays away after the connection was lost, or has been silent for
            long, and when it is back.
        able: what the server's model can do, if it does not keep up with all languages; else empty.

    Args:
        server: its URL, such as ``http://127.0.0.1:8765``.
        to: target languages, as BCP 47 tags or English names.
        method: name of the decoding method; None leaves it to the server.
        options: options of the method by name.
        style: prompt style, except for template and prompt, which the server chooses.
        key: API key, if the server needs one.
        room: name of a room, whose link stays the same from session to session.
        take_over: replace the session that is running in the room.
        backoff: delays before reconnecting.

    Raises:
        OptionError: the address is invalid, or an option is out of range or not for servers.
    """

    def __init__(
        self,
        server: str,
        to: Sequence[str],
        *,
        method: str | None = None,
        options: Mapping[str, Value] | None = None,
        style: Style = Style(),
        key: str | None = None,
        room: str | None = None,
        take_over: bool = False,
        backoff: Backoff = Backoff(),
    ) -> None:
        self.session = self.able = self._server = ""
        #: Maximum length of a message to the server, in bytes.
        self._most = 0
        #: Seconds without a message after which a connection is lost.
        self._silence = math.inf
        #: Whether captions that were not known before have come on this connection.
        self._progress = False
        self.reconnected = 0
        self.news: Callable[[str], object] = str
        #: Whether the server is away and this was said, and until when it is tried again at most.
        self._away, self._latest = False, math.inf
        #: When the current connection was made.
        self._since: float | None = None
        self._hurried = asyncio.Event()
        self._address, self._key, self._backoff = address(server), key, backoff
        asked: dict[str, object] = {"room": room, "take_over": take_over, "method": method}
        self._start = start_of(to, style, options=dict(options or {}), **asked)
        self._targets = self._start.targets
        #: Utterance -> its newest unanswered update, and those of them that have not been sent on this connection.
        self._open: dict[str, protocol.UpdateMessage] = {}
        self._unsent: dict[str, protocol.UpdateMessage] = {}
        #: What ended each utterance in a language: its final caption, or None if that failed.
        self._ends: dict[Key, protocol.Final | None] = {}
        self.control = Control(self._targets, self._wake, lambda key: self._ends.get(key) is not None)
        self._ending = self._done = self._over = False
        #: Why it is over, unless everything is translated.
        self._end: Exception | None = None
        self._events: asyncio.Queue[Event | BaseException | None] = asyncio.Queue(_MOST_EVENTS)
        self._news, self._room = asyncio.Event(), asyncio.Event()
        self._room.set()
        self._started: asyncio.Future[None] | None = None
        self._runner: asyncio.Task[None] | None = None

    @property
    def viewers_page(self) -> str:
        """URL of the captions in a browser, once the session has started; it does not change after a drop."""
        return viewers_page(self._address, self.session, self._start.room)

    @property
    def control_address(self) -> str:
        """URL to which other programs POST decisions about what viewers see; keep it secret."""
        return f"{http_address(self._address)}/v1/control/{self._start.token}"

    async def __aenter__(self) -> Client:
        """Connect.

        Raises:
            ServerError: the server cannot be reached, or refuses.
        """
        self._started = asyncio.get_running_loop().create_future()
        self._runner = asyncio.create_task(self._run())
        try:
            await self._started
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Disconnect immediately, without waiting for captions; iterating ends."""
        if self._runner:
            self._runner.cancel()
            await asyncio.wait([self._runner])
        while not self._events.empty():
            self._events.get_nowait()
        self._over = True
        self._room.set()
        self._events.put_nowait(None)

    async def send(self, update: Update) -> None:
        """Send an update; waits while too many final updates are unanswered.

        Iterate over the client concurrently: captions that are not fetched hold back updates.

        Raises:
            InputError: the update is longer than the server accepts.
            ServerError: the session is over.
        """
        message = message_of(update)
        if len(message.wire().encode()) > self._most:
            raise InputError(self._too_long("update"))
        await self._room.wait()
        self._wake()
        # The server may never get the first update, since only the newest is sent again after a drop.
        before = self._open.get(message.utterance, message)
        message = replace(message, start=message.begun if before.begun is None else before.begun)
        self._open[message.utterance] = self._unsent[message.utterance] = message
        partial = [name for name, each in self._open.items() if not each.final]
        for name in partial[:-MOST_OPEN]:  # of utterances without a final update, only the most recent are kept
            del self._open[name]
        self._count()

    async def end(self) -> None:
        """Send no more updates; iterating ends when everything is translated."""
        self._ending = True
        self._news.set()

    def hurry(self) -> None:
        """Wait for a server that is away or does not answer for three more seconds only, as the end was asked for."""
        self._latest = time.monotonic() + deadlines.LAST
        self._hurried.set()

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Yield captions and failures until everything is translated.

        Raises:
            ServerError: the session ended before that.
        """
        while isinstance(event := await self._events.get(), Caption | Failure):
            yield event
        self._events.put_nowait(event)  # so that iterating again ends too
        if event is not None:
            raise event

    def _too_long(self, what: str) -> str:
        return f"{what} must have at most {self._most} bytes as a message, which this server accepts"

    def _wake(self) -> None:
        """Let the sender look for something to send; raises `ServerError` if the session is over."""
        if self._over:
            raise ServerError("connection", f"the session is over: {self._end}" if self._end else "the session is over")
        self._news.set()

    def _count(self) -> None:
        full = sum(each.final for each in self._open.values()) >= MOST_OPEN
        (self._room.clear if full else self._room.set)()

    async def _run(self) -> None:
        try:
            await self._stay_connected()
        except Exception as error:
            if self._started and not self._started.done():
                self._started.set_exception(error)
                return
            self._end = error
        self._over = True
        self._room.set()
        await self._events.put(self._end)

    async def _stay_connected(self) -> None:
        waits = self._backoff.waits()
        while not self._done:
            self._since, self._progress = None, False
            problem: Exception
            try:
                await self._connection()
                problem = ServerError("connection", "the server has closed the connection")
            except ServerError as error:
                if not self.session or error.code not in _PASSING:
                    raise
                problem = error
            except (OSError, WebSocketException, TimeoutError) as error:
                if not self.session:
                    raise ServerError("connection", reason(self._address, error)) from None
                problem = error
            if not self._done:
                # A connection may fail again at once, for what is sent on it.
                lasted = 0.0 if self._since is None else time.monotonic() - self._since
                if self._progress or lasted > self._backoff.longest:
                    waits = self._backoff.waits()
                await self._pause(next(waits, None), problem)

    async def _connection(self) -> None:
        proxy = None if is_local(self._address) else True
        connecting = connect(
            self._address,
            compression=None,
            max_size=1 << 24,
            proxy=proxy,
            ping_interval=None,  # the server sends something all the time
            open_timeout=deadlines.OPENED,
            close_timeout=deadlines.GOODBYE,
        )
        try:
            async with connecting as socket:
                self._since = time.monotonic()
                try:
                    try:
                        async with asyncio.timeout(deadlines.STARTED):
                            await self._begin(socket)
                    except TimeoutError:
                        late = f"it did not answer `start` within {deadlines.STARTED:g} seconds"
                        raise TimeoutError(late) from None
                    await self._exchange(socket)
                finally:  # closing waits for what is still to be sent, and nobody may read it
                    asyncio.get_running_loop().call_later(deadlines.GOODBYE, socket.transport.abort)
        except ImportError as error:
            raise MissingExtra(needs_package(self._address, "python-socks[asyncio]")) from error

    async def _pause(self, wait: float | None, problem: Exception) -> None:
        """Wait before another attempt; raises `ServerError` if there is none."""
        if wait is None or time.monotonic() > self._latest:
            raise ServerError("connection", f"the connection was lost and could not be restored: {problem}")
        if not self._away and (self._since is None or isinstance(problem, TimeoutError)):
            self._away = True
            self.news(f"the connection to {self._address} was lost: {reason(self._address, problem)}")
        if self._hurried.is_set():  # the end was asked for
            await asyncio.sleep(min(wait, deadlines.LAST / 6))
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self._hurried.wait()

    async def _begin(self, socket: ClientConnection) -> None:
        if self._start.token:
            self._start = self._start.model_copy(update={"connection": self._start.connection + 1})
        await socket.send(self._start.model_copy(update={"key": self._key}).wire())
        started = parse_started(await socket.recv())
        self._most, self._silence = started.message_bytes, 2 * started.heartbeat
        forgotten = bool(self.session) and not started.resumed
        if self.session:
            self.reconnected += 1
        await self._declare(socket, forgotten=forgotten)
        self.session, self._targets = started.session, started.targets
        self._start = self._start.model_copy(update={"token": started.token, "take_over": False})
        self._server = started.server
        if not forgotten:
            self._restored()
        self._unsent = dict(self._open)
        self._news.set()
        if self._away:
            self._away = False
            self.news(f"the connection to {self._address} is back")
        if self._started and not self._started.done():
            self._started.set_result(None)

    def _restored(self) -> None:
        """Record that the server has the complete session, so that it can be resumed there."""
        if self._start.server != self._server:
            self._start = self._start.model_copy(update={"server": self._server})

    async def _declare(self, socket: ClientConnection, *, forgotten: bool) -> None:
        """Send what viewers may see and, to a server that does not have them, the captions."""
        finals = [(each.wire(), each) for each in self._ends.values() if each and forgotten]
        captions = pieces("restore", "finals", finals, self._most)
        for message in chain(self.control.declaration(self._most), captions):
            if isinstance(message, str):
                await socket.send(message)
            elif isinstance(message, protocol.Final):
                sentence = f"a caption could not be restored: {self._too_long('it')}"
                await self._events.put(Failure(sentence, None, message.utterance, message.seq, message.language))
            else:
                await self._say(message, socket)

    async def _exchange(self, socket: ClientConnection) -> None:
        """Send and receive until the connection closes, or is silent."""
        try:
            async with asyncio.timeout(None) as limit, beside(self._send_queued(socket), self._check(socket, limit)):
                with suppress(ConnectionClosedOK):
                    while not self._done:
                        await self._receive(parse(await self._in_time(socket.recv(), "sent")), socket)
        except TimeoutError as silence:
            late = f"it did not answer a ping within {deadlines.LAST:g} seconds"
            raise TimeoutError(late if limit.expired() else str(silence)) from None

    async def _in_time(self, work: Awaitable[T], does: str) -> T:
        """Wait for the server, which lets something be heard all the time, and reads."""
        try:
            async with asyncio.timeout(self._silence):
                return await work
        except TimeoutError:
            raise TimeoutError(f"it {does} nothing for {self._silence:g} seconds") from None

    async def _check(self, socket: ClientConnection, limit: asyncio.Timeout) -> None:
        await self._hurried.wait()
        try:
            async with asyncio.timeout(deadlines.LAST):
                await (await socket.ping())
        except TimeoutError:
            limit.reschedule(asyncio.get_running_loop().time())

    async def _send_queued(self, socket: ClientConnection) -> None:
        ended = False
        while True:
            self._news.clear()
            # What viewers may see goes first, whatever waits.
            while (message := self.control.next() or self._next()) is not None:
                await self._say(message, socket)
            if self._ending and not ended:
                ended = True
                await socket.send(protocol.End().wire())
            await self._news.wait()

    def _next(self) -> protocol.UpdateMessage | None:
        return self._unsent.pop(next(iter(self._unsent))) if self._unsent else None

    async def _say(self, message: protocol.UpdateMessage | protocol.Control, socket: ClientConnection) -> None:
        """Send a message; one that is too long for a server reached after a drop is refused here."""
        if len((wire := message.wire()).encode()) <= self._most:
            await socket.send(wire)
            return
        subject = {name: getattr(message, name, None) for name in ("utterance", "seq", "language")}
        sentence = self._too_long(message.type)
        await self._refused(protocol.Error(code="limit", message=sentence, request=message.type, **subject))

    async def _receive(self, message: Any, socket: ClientConnection) -> None:
        if isinstance(message, protocol.Partial):
            self._restored()  # since a later update is answered
            await self._events.put(protocol.caption_of(message))
        elif isinstance(message, protocol.Final):
            self._restored()
            await self._concluded(message.utterance, message.language, message, protocol.caption_of(message), socket)
        elif isinstance(message, protocol.Error) and message.fatal:
            raise ServerError(message.code, message.message)
        elif isinstance(message, protocol.Error) and message.final:
            await self._concluded(message.utterance or "", message.language or "", None, failure_of(message), socket)
        elif isinstance(message, protocol.Pause | protocol.Hide | protocol.NameSpeaker):
            self.control.reported(message)
        elif isinstance(message, protocol.Error):
            await self._refused(message)
        elif isinstance(message, protocol.Stats):
            self.able = message.able or ""
        elif isinstance(message, protocol.Done):
            self._done = True

    async def _refused(self, error: protocol.Error) -> None:
        """Handle an error about one message, or about an update in one language."""
        if error.request == "update" and error.utterance:  # no other answer will come
            self._open.pop(error.utterance, None)
            self._count()
        await self._events.put(failure_of(error))

    async def _concluded(
        self, utterance: str, language: str, final: protocol.Final | None, event: Event, socket: ClientConnection
    ) -> None:
        """Handle the end of an utterance in a language; duplicates are ignored."""
        key, corrected = (utterance, language), (final and final.corrected) or 0
        news, known = key not in self._ends, self._ends.get(key)
        if news or corrected > ((known and known.corrected) or 0):
            self._ends[key] = final
        if all((utterance, each) in self._ends for each in self._targets):
            self._open.pop(utterance, None)
            self._unsent.pop(utterance, None)
        if news:
            self._progress = True
            await self._events.put(event)
        if final and corrected:
            about = {"utterance": utterance, "language": language, "text": final.text}
            self.control.reported(protocol.Correct(**about, decision=corrected))
        self._count()
        # the connection is closed, but may have unread messages; the acknowledgement is sent again
        with suppress(WebSocketException):
            ack = protocol.Ack(utterance=utterance, language=language, corrected=corrected)
            await self._in_time(socket.send(ack.wire()), "read")
