"""The websockets of a session's owner and of viewers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from pydantic import ValidationError
from starlette.websockets import WebSocket, WebSocketDisconnect

from redraft import deadlines, protocol
from redraft.protocol.codes import CODES, Refused, describe
from redraft.serve.access import Rate
from redraft.serve.http.endpoints import address_of, bearer, wanted_languages
from redraft.serve.sessions.broadcast import Outbox, close_reason
from redraft.serve.sessions.hub import Hub
from redraft.serve.sessions.live import LiveSession
from redraft.serve.sessions.session_audio import Recognisers

T = TypeVar("T")

log = logging.getLogger(__name__)

#: Number of invalid messages in a row after which a connection is closed.
_MOST_WRONG = 20
#: Maximum size in bytes, and number, of the messages of a connection that wait.
_MOST_BYTES, _MOST_WAITING = 1 << 20, 1000


async def live(websocket: WebSocket) -> None:
    """Serve the owner of a session: `start`, then updates in and captions out."""
    hub: Hub = websocket.app.state.hub
    await websocket.accept()
    try:
        session, resumed = await _started(websocket, hub)
    except Refused as refusal:
        await _refuse(websocket, refusal)
        return
    except WebSocketDisconnect:
        return
    outbox = Outbox()
    outbox.put(session.started(hub.name, hub.settings.message_bytes, resumed=resumed).frame)
    session.attach(outbox)
    log.info("connected", extra={"session": session.name, "resumed": resumed})
    try:
        incoming = Incoming(session, outbox, hub)
        await until_one_ends(_send(websocket, outbox, hub), _beat(outbox), incoming.read(websocket), incoming.work())
    finally:
        session.detach(outbox)
        hub.fanout.left(session)
        if outbox.slow:
            session.broadcast.notice = "the last connection was dropped, since its messages were not read in time"
        log.info("disconnected", extra={"session": session.name})


async def watch(websocket: WebSocket) -> None:
    """Serve a viewer of a session: the captions so far, then new ones; nothing is read."""
    await _view(websocket)


async def watch_room(websocket: WebSocket) -> None:
    """Serve a viewer of a room: its sessions, one after the other; nothing is read."""
    await _view(websocket)


async def _view(websocket: WebSocket) -> None:
    """Send a viewer of a session, or of the room in its address, its messages until it has gone."""
    hub: Hub = websocket.app.state.hub
    where = websocket.path_params
    leave: Callable[[], None]

    async def ignore() -> None:
        while True:
            await next_frame(websocket)

    await websocket.accept()
    try:
        outbox = Outbox(stays="room" in where, languages=wanted_languages(websocket.query_params))
        outbox.put(_alive())
        if "room" in where:
            leave = partial(hub.rooms.leave, await hub.enter(where["room"], outbox, address_of(websocket)), outbox)
        else:
            session = await hub.session_named(where["session"])
            hub.check_places(session)
            session.broadcast.watch(outbox)
            leave = partial(session.broadcast.detach, outbox)
    except Refused as refusal:
        await _refuse(websocket, refusal)
        return
    try:
        await until_one_ends(_send(websocket, outbox, hub), _beat(outbox), ignore())
    finally:
        leave()


async def _started(websocket: WebSocket, hub: Hub) -> tuple[LiveSession, bool]:
    """Start or resume the session that the first message asks for.  Raises `Refused` if the request is refused."""
    start = _parse(await first_message(next_frame(websocket), "start"), hub.settings.message_bytes)
    if not isinstance(start, protocol.Start):
        raise Refused("protocol", f"the first message must be `start`, not `{start.type}`")
    if start.protocol != protocol.VERSION:
        raise Refused("version", f"protocol must be {protocol.VERSION}, not {start.protocol}", "protocol")
    if start.token and not start.connection:
        raise Refused("protocol", "with a token, connection must number the attempt to resume, from 1 on", "connection")
    owner = hub.admission.owner(start.key or bearer(websocket))
    return await hub.open(start, owner, address_of(websocket))


async def first_message(message: Awaitable[T], name: str) -> T:
    """Return the first message of a client.  Raises `Refused`, with its ``name``, if it does not come in time."""
    try:
        async with asyncio.timeout(deadlines.FIRST_MESSAGE):
            return await message
    except TimeoutError:
        raise Refused("protocol", f"`{name}` must come within {deadlines.FIRST_MESSAGE:g} seconds") from None


async def next_frame(websocket: WebSocket) -> str | bytes:
    """Return the next frame.  Raises `WebSocketDisconnect` if the client has disconnected."""
    message = await websocket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1005))
    text: str | None = message.get("text")
    return message["bytes"] if text is None else text


def _parse(frame: str | bytes, most: int) -> protocol.FromClient:
    """Parse a client's message.  Raises `Refused` if it is longer than ``most`` bytes, or invalid."""
    if isinstance(frame, bytes):
        raise Refused("protocol", "the message must be a JSON object in a text frame, not in a binary one")
    if len(frame.encode()) > most:
        raise Refused("limit", f"the message must have at most {most} bytes")
    try:
        return protocol.FROM_CLIENT.validate_json(frame)
    except ValidationError as error:
        raise Refused.of("protocol", describe(error, *protocol.CLIENT)) from None


def _error(hub: Hub, refused: Refused, **more: Any) -> protocol.Error:
    hub.metrics.count_refusal(refused.code)
    return protocol.Error(code=refused.code, message=refused.sentence, field=refused.field, **more)


async def _refuse(websocket: WebSocket, refusal: Refused) -> None:
    hub: Hub = websocket.app.state.hub
    if refusal.code == "limit" and not hub.limits_logged.take():
        log.warning("a connection was refused: %s", refusal.sentence)
    with suppress(WebSocketDisconnect, RuntimeError):
        await websocket.send_text(_error(hub, refusal, fatal=True).wire())
        await websocket.close(CODES[refusal.code].close, close_reason(refusal.sentence))


async def until_one_ends(*works: Coroutine[Any, Any, None], expected: tuple[type[Exception], ...] = ()) -> None:
    """Run the parts of a connection until one of them ends; log what fails, except disconnections and ``expected``."""
    tasks = [asyncio.create_task(each) for each in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, Exception) and not isinstance(result, (WebSocketDisconnect, *expected)):
                log.error("a connection failed", exc_info=result)


async def _send(websocket: WebSocket, outbox: Outbox, hub: Hub) -> None:
    """Send the outbox; drop a reader that is too slow."""
    try:
        now = asyncio.get_running_loop().time
        async with asyncio.timeout(None) as slow:  # one for all messages, since they are many
            while (message := await outbox.get()) is not None:
                slow.reschedule(now() + deadlines.SLOW_READER)
                await websocket.send_text(message.text)
                slow.reschedule(None)
    except TimeoutError:
        outbox.slow = True
    if outbox.slow:
        hub.metrics.slow.inc()
        log.warning("a slow reader was dropped")
        outbox.close(1013, "messages were not read in time")
    if outbox.closing:
        with suppress(TimeoutError):
            async with asyncio.timeout(deadlines.GOODBYE):
                await websocket.close(*outbox.closing)


def _alive() -> protocol.Frame:
    return protocol.Alive(heartbeat=deadlines.HEARTBEAT).frame


async def _beat(outbox: Outbox) -> None:
    """Let the client hear something at least every `deadlines.HEARTBEAT` seconds."""
    while True:
        sent = outbox.sent
        await asyncio.sleep(deadlines.HEARTBEAT / 2)
        if outbox.sent == sent:
            outbox.put(_alive(), "alive")


class Incoming:
    """What an owner's connection sends.  Updates, audio and the rest wait for their turn, braked by what they cost.

    Decisions about viewers' captions do not wait: a pause holds back the captions of all updates that wait, too.
    """

    def __init__(self, session: LiveSession, outbox: Outbox, hub: Hub) -> None:
        self._session, self._outbox, self._hub = session, outbox, hub
        #: What waits, each message with its size.
        self._waiting: asyncio.Queue[tuple[protocol.FromClient | bytes, int]] = asyncio.Queue(_MOST_WAITING)
        self._bytes, self._space = 0, asyncio.Event()
        #: Number of invalid messages in a row.
        self._wrong = 0

    async def read(self, websocket: WebSocket) -> None:
        """Read messages, and execute those that do not wait."""
        rate = Rate(self._hub.settings.updates_per_second, self._hub.settings.updates_per_second)
        while self._wrong < _MOST_WRONG:
            frame = await next_frame(websocket)
            if self._hub.admission.draining:  # unanswered updates will be sent again to another server
                continue
            try:
                message = frame if isinstance(frame, bytes) else _parse(frame, self._hub.settings.message_bytes)
            except Refused as refused:
                self._refuse(refused, None)
                await rate.turn()
                continue
            if isinstance(message, bytes) or not self._at_once(message):
                await self._put(message, len(frame))
                continue
            self._execute(message)
            if not isinstance(message, protocol.Ack):
                await rate.turn()
        await asyncio.Event().wait()  # the queue still has to be sent

    async def work(self) -> None:
        """Execute what waits, no faster than the rate limit, the translation and the sending of captions allow."""
        while True:
            message, size = await self._waiting.get()
            self._bytes -= size
            self._space.set()
            if self._hub.admission.draining:
                continue
            self._execute(message)
            await self._session.rate.turn()
            await self._session.room()
            await self._outbox.room()

    def _at_once(self, message: protocol.FromClient) -> bool:
        if isinstance(message, protocol.Hide | protocol.Correct):  # else its utterance may be among those that wait
            return message.decision is not None or message.utterance in self._session.transcript.utterances
        return isinstance(message, protocol.Ack | protocol.Declare | protocol.Pause | protocol.NameSpeaker)

    async def _put(self, message: protocol.FromClient | bytes, size: int) -> None:
        """Let a message wait; too many of them brake the connection."""
        self._bytes += size
        await self._waiting.put((message, size))
        while self._bytes > _MOST_BYTES:
            self._space.clear()
            await self._space.wait()

    def _execute(self, message: protocol.FromClient | bytes) -> None:
        try:
            if not isinstance(message, bytes):
                _execute(message, self._session, self._hub.recognisers)
            elif self._session.broadcast.owner is self._outbox:  # a replaced connection does not know its position
                self._session.listen(self._hub.recognisers).take(message)
            self._wrong = 0
        except Refused as refused:
            self._refuse(refused, None if isinstance(message, bytes) else message)

    def _refuse(self, refused: Refused, message: protocol.FromClient | None) -> None:
        """Send the error; too many in a row close the connection."""
        self._wrong += 1
        # `utterance` of audio is a number, not a name.
        about = None if isinstance(message, protocol.Audio) else message
        subject = {name: getattr(about, name, None) for name in ("utterance", "seq", "language")}
        fatal = self._wrong >= _MOST_WRONG
        request = message and message.type
        self._outbox.put(_error(self._hub, refused, request=request, fatal=fatal, **subject).frame)
        if fatal:
            self._outbox.close(1002, "too many invalid messages")


def _execute(message: protocol.FromClient, session: LiveSession, recognisers: Recognisers) -> None:
    """Execute a message.  Raises `Refused` if it asks for something that is not possible."""
    if isinstance(message, protocol.UpdateMessage):
        session.check_room()
        session.accept(message)
    elif isinstance(message, protocol.Ack):
        session.acknowledged(message)
    elif isinstance(message, protocol.Audio):
        session.listen(recognisers).begin(message)
    elif isinstance(message, protocol.AudioEnd):
        if session.audio:
            session.audio.finish()
    elif isinstance(message, protocol.Restore):
        session.restore(message.finals)
    elif isinstance(message, protocol.End):
        session.end()
    elif isinstance(message, protocol.Start):
        raise Refused("protocol", "the session has begun already: `start` comes once")
    else:
        session.control(message)
