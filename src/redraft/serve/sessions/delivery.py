"""Delivers a session's captions: all of them to its owner, and the visible ones to viewers.

A final caption is identified by utterance and language, so sending it twice does no harm: unacknowledged captions are
sent to the owner again, who ignores duplicates.  The owner can pause captions for viewers, hide one, or correct one.

A message about a caption goes to the viewers that want its language (`Outbox.wants`), any other message to all.
Every connection has an `Outbox`: a bounded queue, in which a newer message replaces the one it supersedes.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Hashable, Iterable, Iterator, Sequence

from redraft import protocol
from redraft.captions.events import Caption
from redraft.captions.languages import canonical_tag
from redraft.protocol import Frame
from redraft.serve.sessions.transcript import Key, Transcript, key_of

#: Maximum number of messages queued for a connection.
MOST_MESSAGES = 256
#: Maximum number of partial captions kept over all languages; more belong to utterances that never ended.
MOST_PARTIALS = 64


def close_reason(sentence: str) -> str:
    """Shorten a sentence to fit into a close frame: 125 bytes, of which the code takes two."""
    return sentence.encode()[:123].decode(errors="ignore")


class Outbox:
    """Messages of one connection, in order.

    Args:
        most: maximum number of queued messages; beyond that the reader is too slow and is disconnected.
        stays: whether the connection outlives a session, as for viewers of a room.
        languages: canonical tags of the languages whose captions its reader wants; empty for all.
    """

    def __init__(
        self, most: int = MOST_MESSAGES, *, stays: bool = False, languages: frozenset[str] = frozenset()
    ) -> None:
        self.stays, self.languages = stays, languages
        #: How the connection is closed: a close code (RFC 6455) and a reason.
        self.closing: tuple[int, str] | None = None
        #: Whether messages were lost because the reader was too slow.
        self.slow = False
        self._most = most
        #: Messages, and histories of messages that are made when their turn comes.
        self._waiting: OrderedDict[Hashable, Frame | Iterator[Frame]] = OrderedDict()
        self._news, self._space = asyncio.Event(), asyncio.Event()
        self._space.set()

    def wants(self, language: str | None) -> bool:
        """Whether its reader wants messages about a language; everybody wants those about none in particular."""
        return language is None or not self.languages or canonical_tag(language) in self.languages

    def put(self, message: Frame, key: Hashable | None = None) -> None:
        """Queue a message.  It replaces a queued message with the same ``key``.

        The replacement keeps its place in the queue: at the end, a message that is replaced often would never be sent
        to a slow reader.
        """
        self._put(message, object() if key is None else key)

    def _put(self, message: Frame | Iterator[Frame], key: Hashable) -> None:
        if self.closing or self.slow:  # after a gap, more messages would look complete
            return
        self._waiting[key] = message
        if len(self._waiting) > self._most:
            self.slow = True
            self._waiting.clear()
        if 2 * len(self._waiting) > self._most:
            self._space.clear()
        self._news.set()

    def fill(self, messages: Iterable[Frame]) -> None:
        """Queue many messages, such as those a resuming client has missed; they do not count towards ``most``."""
        for message in messages:
            self._most += 1
            self.put(message)

    def recount(self, history: Iterator[Frame]) -> None:
        """Queue a history, each message of which is made when it is sent: a long one must not hold up others."""
        self._most += 1
        self._put(history, object())

    def drop(self, key: Hashable) -> None:
        """Drop a queued message that is out of date."""
        self._waiting.pop(key, None)

    def close(self, code: int, reason: str) -> None:
        """Close the connection once the queue is sent; only the first call has an effect."""
        self.closing = self.closing or (code, close_reason(reason))
        self._news.set()

    @property
    def empty(self) -> bool:
        """Whether the queue is empty."""
        return not self._waiting

    async def get(self) -> Frame | None:
        """Wait for the next message; None after the last one."""
        if self._waiting and not isinstance(next(iter(self._waiting.values())), Frame):
            await asyncio.sleep(0)  # sending need not let others have a turn
        while (message := self._next()) is None:
            if self.closing or self.slow:
                return None
            self._news.clear()
            await self._news.wait()
        if 2 * len(self._waiting) <= self._most:
            self._space.set()
        return message

    def _next(self) -> Frame | None:
        """Take the next message from the queue, or from the history at its front; None if there is none."""
        while self._waiting:
            key, first = next(iter(self._waiting.items()))
            message = first if isinstance(first, Frame) else next(first, None)
            if isinstance(first, Frame) or message is None:
                del self._waiting[key]
            if message is not None:
                return message
        return None

    async def room(self) -> None:
        """Wait until the queue is at most half full."""
        await self._space.wait()


class Delivery:
    """The connections of a session, and the messages they are sent."""

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.owner: Outbox | None = None
        self.viewers: set[Outbox] = set()
        #: Number of readers of the growing transcript.
        self.readers = 0
        #: One outbox for all viewers on other replicas (`redraft.serve.fanout`).
        self.feed: Outbox | None = None
        #: Why the owner's last connection was dropped; sent on the next one.
        self.notice = ""
        #: How connections are closed once the session has failed: close code, reason and last message.
        self._end: tuple[int, str, Frame] | None = None
        self._done = False
        self.paused = False
        #: Messages that the owner has not acknowledged yet.
        self._unacknowledged: dict[Key, Frame] = {}
        #: The newest partial captions: caption, ``lag_ms``, and when it was made, in seconds since 1970.
        self._partials: dict[Key, tuple[Caption, float, float]] = {}
        #: The owner's latest decisions by subject.  They are confirmed on every connection, since another program may
        #: have made them while the owner was away.
        self._decisions: dict[Hashable, Frame] = {}

    # Captions

    def partial(self, caption: Caption, lag_ms: float) -> None:
        """Send a partial caption; the next one of the same utterance replaces it."""
        key, message = key_of(caption), protocol.frame_of(caption, lag_ms=lag_ms)
        self._partials[key] = caption, lag_ms, time.time()
        if len(self._partials) > MOST_PARTIALS:
            self._partials.pop(next(iter(self._partials)))
        for outbox in self._outboxes(key[1], viewers=self._open(key)):
            outbox.put(message, self._place(key))

    def final(self, caption: Caption, lag_ms: float, made: float | None = None, corrected: int = 0) -> None:
        """Add a final caption to the transcript and send it.

        Args:
            made: when it was made, in seconds since 1970; None for now.
            corrected: how often it was corrected.
        """
        key = key_of(caption)
        self.transcript.made[key] = time.time() if made is None else made
        self.transcript.add(key, caption, held=self.paused, corrected=corrected)
        self._conclude(key, self._final(caption, lag_ms))

    def restored(self, caption: Caption, made: float | None = None, corrected: int = 0) -> None:
        """Restore a final caption that the owner already has; see `final`, but without a time it counts as old."""
        key = key_of(caption)
        self.transcript.made[key] = made or 0.0
        self.transcript.add(key, caption, held=self.paused, corrected=corrected)
        if self.transcript.shows(key):
            self._fill(caption)

    def failed(self, key: Key, error: protocol.Error) -> None:
        """Record that an utterance has no final caption in a language, and send the error instead."""
        self.transcript.add(key, None)
        self._conclude(key, error.frame)

    def _conclude(self, key: Key, message: Frame) -> None:
        """Send the message that ends an utterance in a language."""
        self._partials.pop(key, None)
        self._unacknowledged[key] = message
        for outbox in self._outboxes(key[1]):
            outbox.drop(self._place(key))
        for outbox in self._outboxes(key[1], viewers=self._open(key)):
            outbox.put(message)

    def acknowledged(self, key: Key, corrected: int) -> None:
        """Record that the owner has received an utterance's end in a language, after so many corrections."""
        if corrected >= self.transcript.corrected(key):
            self._unacknowledged.pop(key, None)

    def _final(self, caption: Caption, lag_ms: float = 0.0, age_ms: float | None = None) -> Frame:
        key = key_of(caption)
        begun, made = self.transcript.begun(caption.utterance), self.transcript.made.get(key)
        corrected = self.transcript.corrected(key) or None
        return protocol.frame_of(caption, begun=begun, lag_ms=lag_ms, made=made, age_ms=age_ms, corrected=corrected)

    def _partial(self, key: Key, *, aged: bool = False) -> Frame:
        caption, lag_ms, made = self._partials[key]
        return protocol.frame_of(caption, lag_ms=lag_ms, age_ms=_age(made) if aged else None)

    # What the owner decides

    def pause(self, paused: bool) -> None:
        """Hold captions back from viewers, or release them."""
        if paused == self.paused:
            return
        self.paused = paused
        message = self._decisions["paused"] = protocol.Paused(paused=paused).frame
        self.send(message, "paused")
        if not paused:
            for key in self.transcript.release():
                self._reveal(key)
            for key in self._partials:
                self._reveal(key)

    def hide(self, key: Key, hidden: bool) -> None:
        """Hide a caption from viewers, or show it again; it need not be final."""
        message = protocol.Hidden(utterance=key[0], language=key[1], hidden=hidden)
        self.send_to_owner(message)
        self._decisions[key] = message.frame
        if hidden == (key in self.transcript.hidden):
            return
        self.transcript.hide(key, hidden=hidden)
        if not hidden:
            self._reveal(key)
            return
        for viewer in self._viewers(key[1]):
            viewer.drop(self._place(key))
            viewer.put(message.frame)

    def correct(self, caption: Caption) -> None:
        """Replace the final caption of the same utterance and language."""
        key = key_of(caption)
        self.transcript.replace(caption)
        message = self._unacknowledged[key] = self._final(caption)
        for outbox in self._outboxes(key[1], viewers=self.transcript.shows(key)):
            outbox.put(message)

    def _open(self, key: Key) -> bool:
        """Whether viewers are sent a caption at present."""
        return not self.paused and self.transcript.shows(key)

    def _reveal(self, key: Key) -> None:
        """Send viewers a caption if they may see it."""
        caption = self.transcript.get(key)
        if caption is not None and self.transcript.shows(key):
            self._fill(caption)
        elif key in self._partials and self._open(key):
            for viewer in self._viewers(key[1]):
                viewer.put(self._partial(key), self._place(key))

    def _fill(self, caption: Caption) -> None:
        """Send viewers a final caption that was made before."""
        message = self._final(caption)
        for viewer in self._viewers(caption.language):
            viewer.fill([message])

    # Connections

    def attach(self, outbox: Outbox) -> None:
        """Make this the owner's connection, and send what was not acknowledged; an older connection is closed."""
        if self.owner:
            self.replaced("another connection has taken over this session")
        self.owner = outbox
        if self.notice:
            outbox.put(protocol.Error(code="slow", message=self.notice).frame)
            self.notice = ""
        outbox.fill(self._unacknowledged.values())
        for key in self._partials:
            outbox.put(self._partial(key), self._place(key))
        outbox.fill(self._decisions.values())
        self._close_late(outbox)

    def _hidden(self) -> Iterator[Frame]:
        for utterance, language in self.transcript.hidden:
            yield protocol.Hidden(utterance=utterance, language=language, hidden=True).frame

    def replaced(self, sentence: str) -> None:
        """Close the owner's connection, because another one has replaced it."""
        if self.owner:
            self.owner.put(protocol.Error(code="replaced", message=sentence, fatal=True).frame)
            self.owner.close(1008, sentence)

    def send_to_owner(self, message: protocol.Message) -> None:
        """Send a message to the owner only."""
        if self.owner:
            self.owner.put(message.frame)

    @property
    def audience(self) -> int:
        """Number of viewers here, readers of the growing transcript included."""
        return len(self.viewers) + self.readers

    async def read(self, form: str, targets: Sequence[str]) -> AsyncIterator[str]:
        """Yield the transcript as it grows, see `Transcript.live`."""
        self.readers += 1
        try:
            async for piece in self.transcript.live(form, targets):
                yield piece
        finally:
            self.readers -= 1

    def watch(self, viewer: Outbox) -> None:
        """Add a viewer, and send the captions so far."""
        self.viewers.add(viewer)
        viewer.recount(self._history(viewer))
        self._catch_up(viewer)
        self._close_late(viewer)

    def publish(self, feed: Outbox) -> None:
        """Add the feed to other replicas, and send all captions with their visibility."""
        self.feed = feed
        feed.put(protocol.Paused(paused=False).frame)
        feed.fill(self._hidden())
        feed.fill(self._history(feed))
        self._catch_up(feed)
        self._say_done(feed)

    def _history(self, viewer: Outbox) -> Iterator[Frame]:
        """Return the messages for the captions that viewers may see now, and when each is made."""
        known = [key_of(caption) for caption in self.transcript.finals if viewer.wants(caption.language)]
        captions = ((key, self.transcript.get(key)) for key in known if self.transcript.shows(key))
        made = self.transcript.made
        return (self._final(each, age_ms=_age(made.get(key, 0.0))) for key, each in captions if each is not None)

    def _catch_up(self, viewer: Outbox) -> None:
        if self.paused:
            viewer.put(protocol.Paused(paused=True).frame)
        for key in self._partials:
            if self._open(key) and viewer.wants(key[1]):
                viewer.put(self._partial(key, aged=True), self._place(key))

    def detach(self, outbox: Outbox) -> None:
        """Remove a connection that has ended."""
        self.viewers.discard(outbox)
        if self.owner is outbox:
            self.owner = None

    def send(self, message: Frame, key: object = None, *, language: str | None = None) -> None:
        """Send a message to everyone, or to those who want ``language``; see `Outbox.put` for the key."""
        for outbox in self._outboxes(language):
            outbox.put(message, key and self._place(key))

    def done(self) -> None:
        """Tell everyone, now and later, that the session is over; viewers of a room stay for its next session."""
        self._done = True
        for outbox in self._outboxes():
            self._say_done(outbox)

    def _say_done(self, outbox: Outbox) -> None:
        if self._done and not outbox.stays:
            outbox.put(protocol.Done().frame)
            outbox.close(1000, "done")

    def close(self, code: int, reason: str, error: protocol.Error | None = None) -> None:
        """Close all connections. If there is an error, send it first, and close later connections in the same way."""
        for outbox in self._outboxes():
            if error is None and not outbox.stays:
                outbox.close(code, reason)
        if error is not None:
            self._end = code, reason, error.frame
            for outbox in self._outboxes():
                self._close_late(outbox)

    def _close_late(self, outbox: Outbox) -> None:
        """Close a connection if the session has failed or is over."""
        if self._end is not None:
            code, reason, error = self._end
            outbox.put(error)
            outbox.close(code, reason)
        self._say_done(outbox)

    def _outboxes(self, language: str | None = None, *, viewers: bool = True) -> Iterator[Outbox]:
        if self.owner:
            yield self.owner
        if viewers:
            yield from self._viewers(language)

    def _viewers(self, language: str | None = None) -> list[Outbox]:
        """Return the viewers that want a language, or all of them, and the feed."""
        found = [each for each in self.viewers if each.wants(language)]
        return [*found, self.feed] if self.feed else found

    def _place(self, key: object) -> tuple[int, object]:
        """Return the key for replacing messages, which distinguishes the sessions of a room."""
        return id(self), key


def _age(made: float) -> float:
    """Return the milliseconds since a time in seconds since 1970."""
    return round(1000 * max(0.0, time.time() - made), 1)
