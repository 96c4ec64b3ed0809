"""Sessions for viewers on other replicas: `Publisher` publishes one of ours, `Mirror` follows one of theirs."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from pydantic import ValidationError

from redraft import protocol
from redraft.deadlines import Backoff
from redraft.protocol import Frame
from redraft.serve.sessions.broadcast import Broadcast, Outbox
from redraft.serve.sessions.cells import Key, key_of
from redraft.serve.sessions.live import LiveSession
from redraft_fanout.store import GONE, TROUBLE, Entry, Outdated, Position, Store, parse_news

log = logging.getLogger(__name__)

#: Seconds between two checks that the log exists, and between attempts to write it.
BEAT = 5.0
RETRIES = Backoff(0.2, 5.0, float("inf"))
#: Number of entries beyond the transcript, such as corrections, after which a log is rewritten without them.
MOST_EDITS = 10_000
#: Types of messages that are published but not stored, since the next one replaces them.
_PASSING = ("partial", "stats")


class FeedOutbox(Outbox):
    """The outbox for viewers on other replicas: it outlives this one, and corrections come after the end."""

    def close(self, code: int, reason: str) -> None:
        """Do nothing: viewers elsewhere stay connected when the session's connections are closed."""

    def end(self) -> None:
        """End the feed."""
        super().close(1000, "")


class Publisher:
    """Publishes a session for as long as it is kept.

    While Redis is unavailable, nothing is queued for it; afterwards the log is rewritten from the transcript.

    Args:
        alive: called at every beat, and with true whenever the log has been rewritten.
        lost: called when another replica has taken over the session.
    """

    def __init__(
        self,
        session: LiveSession,
        store: Store,
        alive: Callable[[LiveSession, bool], Awaitable[None]],
        lost: Callable[[LiveSession], None],
    ) -> None:
        self.session, self._store = session, store
        self._alive, self._lost = alive, lost
        self._feed: FeedOutbox | None = None
        self._writing = False
        self._renewing = asyncio.Lock()
        #: Seconds between attempts to write the log, the shortest again once it is written.
        self._waits = RETRIES.waits()
        self.forgotten = False
        #: End of the log.
        self.position = Position(0, 0)
        self.task = asyncio.create_task(self._run())

    @property
    def quiet(self) -> bool:
        """Whether everything is written, as far as possible."""
        return self._feed is None or (self._feed.empty and not self._writing)

    def forget(self) -> None:
        """Tell viewers elsewhere that the session is forgotten, after everything that is queued."""
        self.forgotten = True
        if self._feed is None:
            self.task.cancel()
        else:
            self._feed.end()

    async def _run(self) -> None:
        while not self.forgotten:
            try:
                if not await self._epoch():
                    self._lost(self.session)
                    return
            except Outdated:
                continue
            except TROUBLE as error:
                self._store.failed(error)
                await asyncio.sleep(next(self._waits))
            except Exception:  # otherwise no viewer elsewhere would see this session any more
                log.exception("captions could not be published")
                await asyncio.sleep(next(self._waits))
            finally:
                self._feed = self.session.broadcast.feed = None

    async def _epoch(self) -> bool:
        """Write the log until it must be rewritten; return False if the owner has gone to another replica."""
        name, store = self.session.name, self._store
        connection = self.session.connection
        first = await store.begin(name, _about(self.session), connection)
        store.worked()
        if first is None:  # another replica has it, but its owner may have come back while Redis was asked
            return self.session.connection > connection
        self.position = first
        feed = self._feed = FeedOutbox()
        self.session.broadcast.publish(feed)
        await self._write(await _waiting(feed), publish=False)
        await store.conclude(name, first, self.position)
        self._waits = RETRIES.waits()
        await self._renew(first=True)
        whole, beat = self.position, time.monotonic() + BEAT
        while self.position.number - whole.number < MOST_EDITS and not feed.slow:
            messages = await _waiting(feed, beat)
            if messages:
                await self._write(messages)
                if self.session.ended:  # others may have its room
                    await self._renew()
            elif feed.closing:
                await store.forget(name, self.position)
                return True
            if time.monotonic() >= beat:
                beat = time.monotonic() + BEAT
                await store.keep(name, self.position)
                await self._renew()
        return True

    async def _renew(self, *, first: bool = False) -> None:
        async with self._renewing:  # or a lease that is on its way would come after its end
            await self._alive(self.session, first)

    async def beat(self) -> None:
        """Do a beat immediately."""
        with suppress(*TROUBLE):
            await self._renew()

    async def _write(self, messages: Sequence[Frame], *, publish: bool = True) -> None:
        entries = []
        for message in messages:
            kept = message.type not in _PASSING
            self.position = self.position.next if kept else self.position
            entries.append(Entry(self.position, message.text, kept))
        self._writing = True
        try:
            await self._store.append(self.session.name, entries, publish=publish)
        finally:
            self._writing = False


async def _waiting(feed: FeedOutbox, until: float | None = None) -> list[Frame]:
    """Wait for queued messages and return them; empty at the end, or at the timeout."""
    try:
        async with asyncio.timeout(None if until is None else max(0.0, until - time.monotonic())):
            found = [await feed.get()]
    except TimeoutError:
        return []
    while not feed.empty:
        found.append(await feed.get())
    return [message for message in found if message is not None]


def _about(session: LiveSession) -> str:
    """Return the session's public description as JSON."""
    source, room = session.transcript.source, session.begin.room
    return protocol.Begin(targets=session.transcript.targets, source_language=source, room=room).wire()


class Mirror:
    """State of a session that another replica translates.

    Attributes:
        broadcast: see `LiveSession`; it has no owner here.
        loaded: set once its log has been read.
        touched: time of the last request for it, or of its last viewer, in seconds of the monotonic clock.
        gone: whether the session has been forgotten.
    """

    #: It cannot be ended here, and does not keep a room from others here.
    ended, in_use = True, False

    def __init__(self, name: str, store: Store) -> None:
        self.name, self._store = name, store
        self.begin = protocol.Begin(targets=("en",))
        self.broadcast = Broadcast(())
        self.transcript = self.broadcast.transcript
        self.loaded = asyncio.Event()
        self.over: Callable[[], None] | None = None
        self.touched = time.monotonic()
        self.gone = False
        self._position = Position(0, 0)

    @property
    def done(self) -> bool:
        """Whether the session has ended and everything is translated."""
        return self.transcript.closed

    def end(self) -> None:
        """Do nothing: its own replica ends it."""

    def forget(self) -> None:
        """Close everything: the session has been forgotten."""
        self.gone = True
        self.transcript.close()
        self.broadcast.end(1000, "the session is over")

    # From the log, and from news

    async def take(self, text: str | None) -> None:
        """Process a published message; missed ones before it, or those before None, are read from the log."""
        if text is None:
            await self._catch_up()
            return
        news = parse_news(text)
        if self.gone:
            return
        if news.position < self._position:  # from a replica that has lost the session, or in another log
            await self._catch_up()
        if news.message == GONE and news.position >= self._position:
            self.forget()
            return
        message = _parse(news.message) if news.message else None
        passing = message is None or isinstance(message, protocol.Partial | protocol.Stats)
        if news.position > (self._position if passing else self._position.next):
            await self._catch_up()
        if message is not None and news.position == (self._position if passing else self._position.next):
            self._position = news.position
            self._apply(message)

    async def _catch_up(self) -> None:
        """Read new entries of the log; all of them if Redis has lost the one that was read so far."""
        last = await self._store.last(self.name)
        if last is not None and last < self._position:  # written again, by a clock that is behind the one before
            self._position = Position(0, 0)
        while entries := await self._store.read(self.name, self._position):
            for entry in entries:
                self._position = entry.position
                if entry.first:
                    self.begin = protocol.Begin.model_validate_json(entry.message)
                    self.transcript.targets, self.transcript.source = self.begin.targets, self.begin.source_language
                elif message := _parse(entry.message):
                    self._apply(message)
        self.loaded.set()

    def _apply(self, message: protocol.FromServer) -> None:
        """Apply an event of the session's own replica."""
        if isinstance(message, protocol.Partial):
            self._partial(message)
        elif isinstance(message, protocol.Final):
            self._final(message)
        elif isinstance(message, protocol.Hide):
            self.broadcast.hide((message.utterance, message.language or ""), message.hidden)
        elif isinstance(message, protocol.NameSpeaker):
            self.broadcast.name(message.speaker, message.name)
        elif isinstance(message, protocol.Pause):
            self.broadcast.pause(message.paused)
        elif isinstance(message, protocol.Stats):
            self.broadcast.send(message.frame, "stats")
        elif isinstance(message, protocol.Error) and message.final:
            self.broadcast.failed((message.utterance or "", message.language or ""), message, held=False)
        elif isinstance(message, protocol.Done) and not self.done:
            self.transcript.close()
            self.broadcast.end(1000, "done", protocol.Done())
            if self.over:
                self.over()

    def _partial(self, message: protocol.Partial) -> None:
        key = message.utterance, message.language
        self._show(key)
        if key not in self.transcript:
            self.broadcast.caption(protocol.caption_of(message), message.lag_ms)

    def _final(self, message: protocol.Final) -> None:
        """Show a final caption once, also after a failure elsewhere; another text than before is a correction."""
        caption = protocol.caption_of(message)
        key = key_of(caption)
        self._show(key)
        if self.transcript.cell(key).final is None:
            made, corrected = message.made or 0.0, message.corrected or 0
            self.broadcast.caption(caption, message.lag_ms, made, corrected, held=False)
        elif self.transcript.cell(key).caption != caption:
            self.broadcast.correct(key, caption.text)

    def _show(self, key: Key) -> None:
        """Unhide a caption, since published captions are visible."""
        if self.transcript.cell(key).hidden:
            self.broadcast.hide(key, False)


def _parse(text: str) -> protocol.FromServer | None:
    """Return the message in an event; None if it is invalid, for example of a later version."""
    try:
        return protocol.FROM_SERVER.validate_json(text, extra="ignore")
    except ValidationError:
        log.warning("an event of another replica was not understood")
        return None
