"""All live sessions: starting, finding and forgetting them."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import cached_property, partial

from redraft import deadlines, protocol
from redraft.engine.engine import LATE, Engine, Engines
from redraft.protocol import Offer, new_token, public_name
from redraft.protocol.codes import CODES, Refused
from redraft.serve.access import ApiKeys, Rate, Rates
from redraft.serve.metrics import Metrics
from redraft.serve.service import DRAINING, STOPPED, Admission, Service, offer_of
from redraft.serve.sessions.broadcast import Outbox
from redraft.serve.sessions.fanout import fanout_class
from redraft.serve.sessions.folder import Folder
from redraft.serve.sessions.live import LiveSession
from redraft.serve.sessions.rooms import PastSessions, Room, Rooms, Session
from redraft.serve.sessions.session_audio import Recognisers
from redraft.serve.settings import ServeSettings

log = logging.getLogger(__name__)

#: Number of sessions that one address may start at once, before its rate limit applies.
_BURST = 50
#: Maximum number of rooms without a session that have viewers.
_WAITING = 2000


class Hub:
    """The sessions of a server.  Use it on the event loop only.

    Args:
        service: the models and the operator's limits; None on a replica that serves only viewers.

    Raises:
        OptionError: the file of API keys is invalid.
    """

    def __init__(self, service: Service | None, engines: Engines, settings: ServeSettings, metrics: Metrics) -> None:
        self.settings, self.metrics = settings, metrics
        #: Identifies this process among servers at the same address.
        self.name = secrets.token_hex(8)
        self.engines = engines
        keys = ApiKeys(settings.key_file) if settings.key_file else None
        self.admission = Admission(service, engines, keys)
        self._starts = Rates(settings.starts_per_second, _BURST)
        #: Limits that connections reach are logged once a minute.
        self.limits_logged = Rate(1 / 60, 1)
        #: Where final captions are stored.
        self.folder = Folder(settings.transcripts)
        unwritten = "Seconds for which captions wait to be written to the folder of transcripts"
        metrics.gauge("redraft_unwritten_seconds", unwritten, lambda: self.folder.late)
        #: Sessions that were forgotten.
        self.past = PastSessions(settings.transcript_seconds)
        self.rooms = Rooms(settings.rooms, _WAITING, self.past.in_room)
        #: By public name.
        self.sessions: dict[str, LiveSession] = {}
        #: Recognisers for audio from sessions.
        self.recognisers = Recognisers(settings, metrics)
        #: Whole transcripts are exported in threads, a few at a time, which need the interpreter's lock like the loop.
        self.exports = asyncio.Semaphore(2)
        #: Other servers, and their sessions.
        self.fanout = fanout_class(settings)(self)
        #: Functions called about every second.
        self.swept = [self._look_at_engines, self.past.sweep, self.fanout.sweep]
        metrics.gauge("redraft_sessions", "Sessions", lambda: len(self.sessions))
        metrics.gauge("redraft_viewers", "Connected viewers", self._viewers)
        metrics.watch(engines)

    def _viewers(self) -> int:
        return self.fanout.viewers + sum(each.broadcast.audience for each in self.sessions.values())

    @cached_property
    def offer(self) -> Offer:
        """What a client may ask for."""
        return offer_of(self.admission.service, key=self.admission.keys is not None)

    async def open(self, begin: protocol.Begin, owner: str, address: str) -> tuple[LiveSession, bool]:
        """Resume the session of a token, or start one; the second value says which.

        If the client was last connected to another server, this server's copy of the session is out of date and is
        replaced, as is one that may be incomplete.

        Args:
            begin: what is asked for; a `Start` if it comes on a connection, where a session can be resumed.
            owner: owner of the API key.

        Raises:
            Refused: there is no capacity, a later attempt to resume has come already, or the request asks for something
                that is not allowed.
        """
        start = begin if isinstance(begin, protocol.Start) else None
        token, connection, last = (start.token, start.connection, start.server) if start else (None, 0, None)
        while token and (known := self.sessions.get(public_name(token))):
            if known.owner != owner:
                raise Refused("key", "the session belongs to another API key", "key")
            await known.opened.wait()
            moved = last is not None and (last != self.name or known.unproven)
            moved = moved or await self.fanout.moved(known)
            if self.sessions.get(known.name) is not known:  # begun again meanwhile, or not admitted
                continue
            # Connections are read at their own pace, so an older one's `start` may come after that of a newer one.
            if connection < known.connection:
                raise Refused("replaced", CODES["replaced"].means)
            if known.left is None and not moved:
                known.connection = connection
                self.metrics.resumed.inc()
                return known, True
            if known.left is not None:  # it takes no more updates, and the client has what is missing in it
                self.forget(known)
            else:
                self.superseded(known)
        self._admit(address)
        again, token = token is not None, token or new_token()
        room_of = self.rooms.taken(begin.room, owner, take_over=begin.take_over) if begin.room else nullcontext()
        with room_of as room:
            async with self.fanout.reserved(begin, public_name(token), owner):
                by_post = start is None
                session = LiveSession(token, owner, begin, self.folder, self.metrics, by_post, address, connection)
                session.unproven = again
                session.rate = Rate(self.settings.updates_per_second, self.settings.updates_per_second)
                await self._begin(session)
            if room is not None:
                room.begin(session)
        self.fanout.publish(session)
        self.metrics.started.inc()
        return session, False

    async def _begin(self, session: LiveSession) -> None:
        if session.name in self.sessions:  # begun in another room while Redis was asked for this one
            raise Refused("capacity", "the session has begun meanwhile: try again")
        # Registered immediately: other sessions are admitted while the engine is asked.
        self.sessions[session.name] = session
        try:
            session.spoken = await self.admission.spoken(session.begin)
            session.engine, session.lanes = await self.admission.lanes(session.begin, session.answered)
        except BaseException:
            self.forget(session, keep=False)  # a transcript from before stays
            raise
        finally:
            session.opened.set()
        self.past.drop(session.name)

    @property
    def _full(self) -> bool:
        return len(self.sessions) >= self.settings.sessions

    def _has(self, address: str) -> int:
        return sum(each.address == address for each in self.sessions.values())

    def _admit(self, address: str) -> None:
        settings = self.settings
        self.admission.check_working()
        if wait := self._starts.take(address):
            raise Refused("limit", f"too many sessions in a short time: try again in {wait:.1f} seconds")
        if self._full or self._has(address) >= settings.sessions_per_address:
            self._forget_ended(address)
        if self._full:
            raise Refused("capacity", f"all {settings.sessions} sessions are in use: try again later")
        if self._has(address) >= settings.sessions_per_address:
            most = settings.sessions_per_address
            raise Refused("limit", f"all {most} sessions that one address may have are in use")

    def owned(self, token: str) -> LiveSession:
        """Return the session of a token.  Raises `Refused` if the session does not exist."""
        found = self.sessions.get(public_name(token))
        if found is None:
            raise Refused("missing", "no session has this token")
        return found

    # Viewers, of sessions on any replica

    async def session_named(self, name: str) -> Session:
        """Return the session with a public name, which may be over.

        Raises:
            Refused: it does not exist, or that is unknown.
        """
        if name not in self.sessions and (elsewhere := await self.fanout.find(name)):
            return elsewhere
        if found := self.sessions.get(name) or self.past.find(name):
            return found
        raise Refused("missing", "the session does not exist, or has expired")

    async def room_named(self, name: str) -> Room:
        """Return a room, which need not have a session.  Raises `Refused` if the room does not exist."""
        self.rooms.find(name)  # rejects unknown rooms first
        await self.fanout.refresh(name)
        return self.rooms.find(name)

    async def enter(self, name: str, viewer: Outbox, address: str) -> Room:
        """Admit a viewer to a room.  Raises `Refused` if the room does not exist, or is full."""
        await self.room_named(name)
        room = self.rooms.enter(name, viewer, self.settings.viewers, address)
        await self.fanout.follow_room(name)
        return room

    def check_places(self, session: Session) -> None:
        """Raise `Refused` if a session cannot have another viewer here."""
        most = self.settings.viewers
        if session.broadcast.audience >= most:
            raise Refused("limit", f"all {most} places for viewers of this session are taken (setting viewers)")

    def forget(self, session: LiveSession, *, keep: bool = True) -> None:
        """Forget a session, which closes it; with ``keep``, its captions can be read for a while."""
        if self.sessions.get(session.name) is session:  # else its owner has begun it again
            del self.sessions[session.name]
        session.forget()
        self.fanout.forget(session)
        self.rooms.forget(session)
        if keep:
            self.past.keep(session)

    def superseded(self, session: LiveSession) -> None:
        """Give up a session that another replica has taken over."""
        self.fanout.drop(session)
        session.broadcast.replaced("another server has taken over this session")
        self.forget(session, keep=False)

    def _forget_ended(self, address: str) -> None:
        """Make room for a new session by forgetting sessions that have ended."""
        full = self._full
        for session in list(self.sessions.values()):
            ours = full or session.address == address
            if ours and session.done and session.broadcast.owner is None:
                self.forget(session)
                return

    async def sweep(self) -> None:
        """Forget sessions that nobody has resumed, for as long as the server runs."""
        while True:
            await asyncio.sleep(deadlines.LOOK)
            looks: list[Callable[[], None]] = [partial(self._look_after, each) for each in self.sessions.values()]
            for look in [*self.swept, *looks]:
                try:
                    look()
                except Exception:  # otherwise the sweep would stop
                    log.exception("a session could not be looked after")

    def _look_at_engines(self) -> None:
        for engine in filter(Engine.look, self.engines.all):
            log.error("the model does not answer")
            for session in self.sessions.values():
                if session.engine is engine:
                    session.broadcast.send_to_owner(protocol.Error(code="engine", message=LATE))

    def _look_after(self, session: LiveSession) -> None:
        session.send_stats()  # including those of the last captions
        session.check_file()
        if session.audio:
            session.audio.look_after()
        if not self.engines.alive:
            session.fail("engine", STOPPED)
        keep = deadlines.POSTS if session.by_post else self.settings.keep_seconds
        # Without lanes it has only just started.
        if session.engine and session.broadcast.owner is None and time.monotonic() - session.touched > keep:
            session.leave()
            if session.done or session.stuck:
                self.forget(session)

    async def drain(self) -> None:
        """Refuse new sessions, finish captions in progress, then close all connections; clients reconnect elsewhere."""
        self.admission.draining = True
        for session in self.sessions.values():
            if session.audio:
                session.audio.finish()
        until = time.monotonic() + self.settings.drain_seconds
        while time.monotonic() < until and not all(session.quiet for session in self.sessions.values()):
            await asyncio.sleep(0.02)
        log.info("drained; closing %d session%s", len(self.sessions), "" if len(self.sessions) == 1 else "s")
        for session in self.sessions.values():
            session.fail("draining", DRAINING, 1012)
        self.rooms.close(1012, DRAINING)
        self.fanout.drain()
        # The web server is about to cut connections, whatever is queued for them.
        until, sending = time.monotonic() + deadlines.FAREWELL, [each.broadcast for each in self.sessions.values()]
        while time.monotonic() < until and (self.rooms.watched or any(each.owner or each.viewers for each in sending)):
            await asyncio.sleep(0.02)
