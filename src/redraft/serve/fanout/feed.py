"""The captions of a session on their way to viewers on other replicas."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from redraft.backoff import Backoff
from redraft.serve import protocol
from redraft.serve.fanout.store import TROUBLE, Entry, Position, Store, Superseded
from redraft.serve.live import LiveSession
from redraft.serve.outbox import Outbox

log = logging.getLogger(__name__)

#: Seconds between two looks at whether the log is still there, and between attempts to write it.
BEAT = 5.0
RETRIES = Backoff(0.2, 5.0, float("inf"))
#: Entries beyond those of the transcript, such as corrections, after which a log is written again without them.
MOST_EDITS = 10_000
#: What goes by and is not kept: the next one takes its place.
_PASSING = frozenset({"partial", "stats"})


class Feed(Outbox):
    """The outbox of all viewers elsewhere.  They outlive this replica, and the end of a session may be corrected."""

    def close(self, code: int, reason: str) -> None:
        """The session has ended, or its connections are closed: viewers elsewhere are not."""

    def end(self) -> None:
        """Nothing more comes."""
        super().close(1000, "")


class Publisher:
    """Publishes a session for as long as it is kept.

    While Redis cannot be used, nothing is collected for it: the log is written again from the transcript afterwards.

    Args:
        session: what is published.
        store: where to.
        most: messages that may wait for Redis.
        alive: called at every beat, and whenever the log has been written from its beginning (true).
        lost: called when another replica has taken over the session.
    """

    def __init__(
        self,
        session: LiveSession,
        store: Store,
        most: int,
        alive: Callable[[LiveSession, bool], Awaitable[None]],
        lost: Callable[[LiveSession], None],
    ) -> None:
        self.session, self._store, self._most = session, store, most
        self._alive, self._lost = alive, lost
        self._feed: Feed | None = None
        self._writing = False
        self.forgotten = False
        #: Where the log ends.
        self.position = Position(0, 0)
        self.task = asyncio.create_task(self._run())

    @property
    def quiet(self) -> bool:
        """Whether everything is written, as far as it can be."""
        return self._feed is None or (self._feed.empty and not self._writing)

    def forget(self) -> None:
        """The session is kept no longer: viewers elsewhere are told, after all that still waits."""
        self.forgotten = True
        if self._feed is None:
            self.task.cancel()
        else:
            self._feed.end()

    async def _run(self) -> None:
        waits = RETRIES.waits()
        while not self.forgotten:
            try:
                await self._epoch()
                waits = RETRIES.waits()
            except Superseded:
                self._lost(self.session)
                return
            except TROUBLE as error:
                self._store.failed(error)
                await asyncio.sleep(next(waits))
            except Exception:  # else nobody elsewhere would see this session any more
                log.exception("captions could not be published")
                await asyncio.sleep(next(waits))
            finally:
                self._feed = self.session.delivery.feed = None

    async def _epoch(self) -> None:
        """Write the log from its beginning, then what comes, until it has to be written again."""
        name, store = self.session.name, self._store
        first = self.position = await store.begin(name, _about(self.session))
        store.worked()
        feed = self._feed = Feed(self._most)
        self.session.publish(feed)
        await self._write(await _waiting(feed), tell=False)
        await store.conclude(name, first, self.position)
        await self._alive(self.session, True)
        whole, beat = self.position, time.monotonic() + BEAT
        while self.position.number - whole.number < MOST_EDITS and not feed.slow:
            messages = await _waiting(feed, beat)
            if messages:
                await self._write(messages)
                if self.session.ended:  # its room may be had by others
                    await self._alive(self.session, False)
            elif feed.closing:
                await store.forget(name, self.position)
                return
            if time.monotonic() >= beat:
                beat = time.monotonic() + BEAT
                if not await store.keep(name, self.position):  # Redis has lost it
                    return
                await self._alive(self.session, False)

    async def beat(self) -> None:
        """Do at once what is done at every beat."""
        with suppress(*TROUBLE):
            await self._alive(self.session, False)

    async def _write(self, messages: Sequence[str], *, tell: bool = True) -> None:
        entries = []
        for message in messages:
            kept = json.loads(message)["type"] not in _PASSING
            self.position = self.position.next if kept else self.position
            entries.append(Entry(self.position, message, kept))
        self._writing = True
        try:
            await self._store.append(self.session.name, entries, tell=tell)
        finally:
            self._writing = False


async def _waiting(feed: Feed, until: float | None = None) -> list[str]:
    """All that waits, as soon as there is anything; nothing at the end, or if nothing comes in time."""
    try:
        async with asyncio.timeout(None if until is None else max(0.0, until - time.monotonic())):
            found = [await feed.get()]
    except TimeoutError:
        return []
    while not feed.empty:
        found.append(await feed.get())
    return [message for message in found if message is not None]


def _about(session: LiveSession) -> str:
    """What viewers may know of a session, as JSON."""
    begin = session.begin
    return protocol.Begin(targets=session.targets, source=begin.source, room=begin.room).wire()
