"""Publish the captions of a session for viewers on other replicas."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from redraft.backoff import Backoff
from redraft.serve import protocol
from redraft.serve.delivery import Outbox
from redraft.serve.fanout.store import TROUBLE, Entry, Position, Store, Superseded
from redraft.serve.live import LiveSession

log = logging.getLogger(__name__)

#: Seconds between two checks that the log exists, and between attempts to write it.
BEAT = 5.0
RETRIES = Backoff(0.2, 5.0, float("inf"))
#: Number of entries beyond the transcript, such as corrections, after which a log is rewritten without them.
MOST_EDITS = 10_000
#: Messages that are published but not stored, since the next one replaces them, begin with one of these.
_PASSING = ('{"type":"partial"', '{"type":"stats"')


class FeedOutbox(Outbox):
    """The outbox for all viewers on other replicas.

    It outlives this replica, and even finished sessions may be corrected.
    """

    def close(self, code: int, reason: str) -> None:
        """Do nothing: viewers elsewhere stay connected when the session's connections are closed."""

    def end(self) -> None:
        """End the feed."""
        super().close(1000, "")


class Publisher:
    """Publishes a session for as long as it is kept.

    While Redis is unavailable, nothing is queued for it; afterwards the log is rewritten from the transcript.

    Args:
        session: the session.
        store: where to publish.
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
        self.forgotten = False
        #: End of the log.
        self.position = Position(0, 0)
        #: When the session's owner last connected here: of two replicas with the session, the later one has it.
        self.since = time.time()
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
        waits = RETRIES.waits()
        while not self.forgotten:
            try:
                if not await self._epoch():
                    self._lost(self.session)
                    return
                waits = RETRIES.waits()
            except Superseded:  # by the owner's new replica, or by an old one that was cut off from Redis
                continue
            except TROUBLE as error:
                self._store.failed(error)
                await asyncio.sleep(next(waits))
            except Exception:  # otherwise no viewer elsewhere would see this session any more
                log.exception("captions could not be published")
                await asyncio.sleep(next(waits))
            finally:
                self._feed = self.session.delivery.feed = None

    async def _epoch(self) -> bool:
        """Write the log from its start, then new messages, until it must be rewritten.

        Returns:
            False if the session's owner has connected to another replica.
        """
        name, store = self.session.name, self._store
        first = await store.begin(name, _about(self.session), self.since)
        store.worked()
        if first is None:
            return False
        self.position = first
        feed = self._feed = FeedOutbox()
        self.session.delivery.publish(feed)
        await self._write(await _waiting(feed), tell=False)
        await store.conclude(name, first, self.position)
        await self._alive(self.session, True)
        whole, beat = self.position, time.monotonic() + BEAT
        while self.position.number - whole.number < MOST_EDITS and not feed.slow:
            messages = await _waiting(feed, beat)
            if messages:
                await self._write(messages)
                if self.session.ended:  # others may have its room
                    await self._alive(self.session, False)
            elif feed.closing:
                await store.forget(name, self.position)
                return True
            if time.monotonic() >= beat:
                beat = time.monotonic() + BEAT
                if not await store.keep(name, self.position):  # Redis has lost the log
                    return True
                await self._alive(self.session, False)
        return True

    async def beat(self) -> None:
        """Do a beat immediately."""
        with suppress(*TROUBLE):
            await self._alive(self.session, False)

    async def _write(self, messages: Sequence[str], *, tell: bool = True) -> None:
        entries = []
        for message in messages:
            kept = not message.startswith(_PASSING)
            self.position = self.position.next if kept else self.position
            entries.append(Entry(self.position, message, kept))
        self._writing = True
        try:
            await self._store.append(self.session.name, entries, tell=tell)
        finally:
            self._writing = False


async def _waiting(feed: FeedOutbox, until: float | None = None) -> list[str]:
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
    begin = session.begin
    return protocol.Begin(targets=session.targets, source=begin.source, room=begin.room).wire()
