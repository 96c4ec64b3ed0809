"""One session on a server: updates in, captions out, whatever happens to the connection in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

from pydantic import ValidationError
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from redraft.backoff import Backoff
from redraft.captions.events import Caption, Event, Failure, Update
from redraft.captions.stabilise import USUAL, Mask
from redraft.captions.style import Style
from redraft.client.control import Control
from redraft.client.options import ServerError, address, reason, viewers_page
from redraft.decoding.method import Value
from redraft.errors import InputError, OptionError
from redraft.serve import protocol
from redraft.serve.messages import caption_of, failure_of

#: Final updates without an answer at which `Client.send` waits.
MOST_OPEN = 64
#: Bytes of one `restore` message; servers take at least as many.
_RESTORE_BYTES = 16_000
#: Captions that may wait for whoever iterates, before no more are read.
_MOST_EVENTS = 1000
#: What a server refuses that may go well a little later.
_PASSING = {"capacity", "draining", "limit", "slow", "engine"}


class Client:
    """One session on a server.

    Attributes:
        session: its public name, once it has begun.
        control: what viewers see: pause captions, hide one, correct one.
        reconnected: how often a connection was replaced by another.

    Args:
        server: its address, such as ``http://127.0.0.1:8765``.
        to: target languages, as BCP 47 tags or English names.
        method, options: decoding method and its options, by name; None leaves it to the server.
        mask: what is hidden of partial captions.
        style: how prompts are made; the server chooses the template.
        max_tokens: the most tokens of one translation; None leaves it to the server.
        key: API key, where the server wants one.
        room: name of a room, whose viewers see this session and the next one that begins there.
        take_over: whether to end the session that the room may have now.
        backoff: how long is waited before connecting again.

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
        mask: Mask = USUAL,
        style: Style = Style(),
        max_tokens: int | None = None,
        key: str | None = None,
        room: str | None = None,
        take_over: bool = False,
        backoff: Backoff = Backoff(),
    ) -> None:
        self.session = ""
        self.reconnected = 0
        self._address, self._key, self._backoff = address(server), key, backoff
        try:
            self._start = protocol.Start(
                targets=tuple(to),
                room=room,
                take_over=take_over,
                method=method,
                options=dict(options or {}),
                max_tokens=max_tokens,
                **_of_mask(mask),
                **_of_style(style),
            )
        except ValidationError as error:
            raise OptionError(protocol.sentence(error, protocol.Start)) from None
        self._targets = self._start.targets
        self.control = Control(self._targets, self._asked)
        #: By utterance, the newest update that is still to be answered, and those of them that are still to be sent.
        self._open: dict[str, protocol.Update] = {}
        self._unsent: dict[str, protocol.Update] = {}
        self._begun: dict[str, float | None] = {}
        #: By utterance and language, what ended it: the final caption, or None where there is none.
        self._ends: dict[tuple[str, str], protocol.Final | None] = {}
        self._ending = self._done = self._over = False
        self._events: asyncio.Queue[Event | BaseException | None] = asyncio.Queue(_MOST_EVENTS)
        self._news, self._room = asyncio.Event(), asyncio.Event()
        self._room.set()
        self._started: asyncio.Future[None] | None = None
        self._runner: asyncio.Task[None] | None = None

    @property
    def viewers_page(self) -> str:
        """Where others read the captions in a browser, once the session has begun; the same after a drop."""
        return viewers_page(self._address, self.session, self._start.room)

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

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Leave at once, whatever is still under way; iterating ends."""
        if self._runner:
            self._runner.cancel()
            with suppress(asyncio.CancelledError):
                await self._runner
        while not self._events.empty():
            self._events.get_nowait()
        self._over = True
        self._room.set()
        self._events.put_nowait(None)

    async def send(self, update: Update) -> None:
        """Send an update; waits while too many final ones are unanswered.

        Somebody must iterate meanwhile: what waits to be fetched holds back what is sent.

        Raises:
            InputError: it is longer than servers take.
            ServerError: the session is over.
        """
        message = _message(update)
        await self._room.wait()
        self._check()
        self._begun.setdefault(update.utterance, update.time)
        for waiting in (self._open, self._unsent):
            waiting[update.utterance] = message
        self._count()
        self._news.set()

    async def end(self) -> None:
        """No more updates will come; iterating ends when all is translated."""
        self._ending = True
        self._news.set()

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Captions and failures as they come, until everything is translated.

        Raises:
            ServerError: the session is over before that.
        """
        while isinstance(event := await self._events.get(), Caption | Failure):
            yield event
        self._events.put_nowait(event)  # whoever iterates again comes to the same end
        if event is not None:
            raise event

    def _asked(self) -> None:
        """Something about captions that viewers see is to be sent."""
        self._check()
        self._news.set()

    def _check(self) -> None:
        if self._over:
            raise ServerError("connection", "the session is over")

    def _count(self) -> None:
        """Let `send` wait while too much is open.  Of utterances that never end only the latest matter."""
        partial = [name for name, update in self._open.items() if not update.final]
        for name in partial[:-MOST_OPEN]:
            del self._open[name]
        full = len(self._open) - len(partial) >= MOST_OPEN
        (self._room.clear if full else self._room.set)()

    # The connection

    async def _run(self) -> None:
        try:
            await self._stay_connected()
        except Exception as error:
            if self._started and not self._started.done():
                self._started.set_exception(error)
            else:
                self._over = True
                self._room.set()
                await self._events.put(error)
        else:
            self._over = True
            await self._events.put(None)

    async def _stay_connected(self) -> None:
        waits = self._backoff.waits()
        while not self._done:
            problem: Exception
            try:
                async with connect(self._address, compression=None, max_size=1 << 24) as socket:
                    await self._begin(socket)
                    waits = self._backoff.waits()
                    await self._talk(socket)
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
                wait = next(waits, None)
                if wait is None:
                    raise ServerError("connection", f"the connection was lost and is not to be had again: {problem}")
                await asyncio.sleep(wait)

    async def _begin(self, socket: ClientConnection) -> None:
        """Begin the session, or go on with it."""
        await socket.send(self._start.model_copy(update={"key": self._key}).wire())
        started = _heard(await socket.recv())
        if isinstance(started, protocol.Error):
            raise ServerError(started.code, started.message)
        if not isinstance(started, protocol.Started):
            raise ServerError("protocol", f"the server speaks another protocol: it began with {started.type!r}")
        if self.session:
            self.reconnected += 1
            await self._go_on(socket, forgotten=not started.resumed)
        self.session, self._targets = started.session, started.targets
        self._start = self._start.model_copy(update={"token": started.token, "take_over": False})
        self._unsent = dict(self._open)
        self._news.set()
        if self._started and not self._started.done():
            self._started.set_result(None)

    async def _go_on(self, socket: ClientConnection, *, forgotten: bool) -> None:
        """Say again, after a drop, what the server may not have had."""
        self.control.again(self._open if forgotten else ())
        if forgotten:
            if self.control.paused:  # before there is anything that viewers could see
                await socket.send(protocol.Pause().wire())
            for message in self._restoring():
                await socket.send(message)

    def _restoring(self) -> Iterator[str]:
        """Messages that tell a server what it has forgotten."""
        held: list[protocol.Final] = []
        size = 0
        for key, final in self._ends.items():
            if final is None:
                continue
            final = final.model_copy(update={"hidden": key in self.control.hidden or None})
            length = len(final.wire().encode())
            if held and size + length > _RESTORE_BYTES:
                yield protocol.Restore(finals=tuple(held)).wire()
                held, size = [], 0
            held.append(final)
            size += length
        if held:
            yield protocol.Restore(finals=tuple(held)).wire()

    async def _talk(self, socket: ClientConnection) -> None:
        """Send and receive until the connection ends."""
        speaking = asyncio.create_task(self._speak(socket))
        try:
            async for text in socket:
                await self._hear(_heard(text), socket)
                if self._done:
                    return
        finally:
            speaking.cancel()
            with suppress(asyncio.CancelledError, WebSocketException):
                await speaking

    async def _speak(self, socket: ClientConnection) -> None:
        ended = False
        while True:
            self._news.clear()
            while self._unsent:
                if pause := self.control.next(pauses=True):
                    await socket.send(pause.wire())
                    continue
                update = self._unsent.pop(next(iter(self._unsent)))
                await socket.send(update.wire())
            while (order := self.control.next()) is not None:
                await socket.send(order.wire())
            if self._ending and not ended:
                ended = True
                await socket.send(protocol.End().wire())
            await self._news.wait()

    async def _hear(self, message: Any, socket: ClientConnection) -> None:
        if isinstance(message, protocol.Partial):
            await self._events.put(caption_of(message))
        elif isinstance(message, protocol.Final):
            await self._concluded(message.utterance, message.language, message, caption_of(message), socket)
        elif isinstance(message, protocol.Error) and message.fatal:
            raise ServerError(message.code, message.message)
        elif isinstance(message, protocol.Error) and message.final:
            await self._concluded(message.utterance or "", message.language or "", None, failure_of(message), socket)
        elif isinstance(message, protocol.Paused | protocol.Hidden):
            self.control.confirmed(message)
        elif isinstance(message, protocol.Error):
            if message.code in ("caption", "limit") and message.language:
                self.control.confirmed(message)
            elif message.code in ("stale", "limit") and message.utterance:  # there will be no other answer
                self._open.pop(message.utterance, None)
                self._count()
            await self._events.put(failure_of(message))
        elif isinstance(message, protocol.Done):
            self._done = True

    async def _concluded(
        self, utterance: str, language: str, final: protocol.Final | None, event: Event, socket: ClientConnection
    ) -> None:
        """An utterance has ended in a language; what comes a second time is passed over."""
        key = utterance, language
        if key not in self._ends:
            begun = self._begun.get(utterance)
            self._ends[key] = final and final.model_copy(update={"begun": begun})
            await self._events.put(event)
        elif final and final.corrected:
            self._ends[key] = final
        if final and final.corrected:
            self.control.confirmed(final)
        if all((utterance, each) in self._ends for each in self._targets):
            for waiting in (self._open, self._unsent, self._begun):
                waiting.pop(utterance, None)  # type: ignore[attr-defined]
            self._count()
        with suppress(WebSocketException):  # closed, but there may be more to read; it will be sent again
            await socket.send(protocol.Ack(utterance=utterance, language=language).wire())


def _of_mask(mask: Mask) -> dict[str, Any]:
    if mask.survival is not None or not mask.display_only:
        raise OptionError("mask: a server hides by k and margin only, so leave survival out and display_only true")
    return {"mask_k": mask.k, "mask_unit": mask.unit, "mask_margin": mask.margin}


def _of_style(style: Style) -> dict[str, Any]:
    if style.template is not None:
        raise OptionError("template is chosen by the server, so leave it out")
    return {"source": style.source, "context": style.context, "glossary": style.glossary}


def _heard(text: str | bytes) -> Any:
    """A message of the server.

    Raises:
        ServerError: it is none of this protocol.
    """
    try:
        return protocol.FROM_SERVER.validate_json(text)
    except ValidationError as error:
        raise ServerError(
            "protocol", f"the server speaks another protocol: {protocol.sentence(error, *protocol.SERVER)}"
        ) from None


def _message(update: Update) -> protocol.Update:
    try:
        return protocol.Update(
            utterance=update.utterance, seq=update.seq, text=update.text, final=update.final, time=update.time
        )
    except ValidationError as error:
        raise InputError(protocol.sentence(error, protocol.Update)) from None
