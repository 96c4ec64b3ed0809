"""Delivers a session's captions: all of them to its owner, and the visible ones to viewers.

A final caption is identified by utterance and language, so sending it twice does no harm: unacknowledged captions are
sent to the owner again, who ignores duplicates.  The owner can pause captions for viewers, hide one, or correct one.

A message about a caption goes to the viewers that want its language (`Outbox.wants`), any other message to all.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Hashable, Iterator, Sequence

from redraft import protocol
from redraft.captions.events import Caption
from redraft.protocol import Frame
from redraft.serve.sessions.outbox import Outbox
from redraft.serve.sessions.transcript import Transcript
from redraft.serve.sessions.visibility import Key, Visibility, key_of

#: Maximum number of partial captions kept over all languages; more belong to utterances that never ended.
MOST_PARTIALS = 64


class Broadcast:
    """What a session of this replica, or the mirror of another one's, sends: its transcript, and its connections.

    Args:
        targets: the target languages.

    Attributes:
        visible: what of it viewers may see.
    """

    def __init__(self, targets: Sequence[str]) -> None:
        self.visible = Visibility()
        self.transcript = Transcript(targets, self.visible)
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
        for outbox in self._outboxes(key[1], viewers=self.visible.sends(key)):
            outbox.put(message, self._place(key))

    def final(self, caption: Caption, lag_ms: float, made: float | None = None, corrected: int = 0) -> None:
        """Add a final caption to the transcript and send it.

        Args:
            made: when it was made, in seconds since 1970; None for now.
            corrected: how often it was corrected.
        """
        key = key_of(caption)
        self.transcript.made[key] = time.time() if made is None else made
        self.transcript.add(key, caption, corrected=corrected)
        self._conclude(key, self._final(caption, lag_ms))

    def restored(self, caption: Caption, made: float | None = None, corrected: int = 0) -> None:
        """Restore a final caption that the owner already has; see `final`, but without a time it counts as old."""
        key = key_of(caption)
        self.transcript.made[key] = made or 0.0
        self.transcript.add(key, caption, corrected=corrected)
        if self.visible.shows(key):
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
        for outbox in self._outboxes(key[1], viewers=self.visible.sends(key)):
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
        if paused == self.visible.paused:
            return
        message = self._decisions["paused"] = protocol.Paused(paused=paused).frame
        self.send(message, "paused")
        if paused:
            self.visible.pause()
            return
        for key in [*self.visible.release(), *self._partials]:
            self._reveal(key)
        self.transcript.changed()

    def hide(self, key: Key, hidden: bool) -> None:
        """Hide a caption from viewers, or show it again; it need not be final."""
        message = protocol.Hidden(utterance=key[0], language=key[1], hidden=hidden)
        self.send_to_owner(message)
        self._decisions[key] = message.frame
        if hidden == (key in self.visible.hidden):
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
        for outbox in self._outboxes(key[1], viewers=self.visible.shows(key)):
            outbox.put(message)

    def _reveal(self, key: Key) -> None:
        """Send viewers a caption if they may see it."""
        caption = self.transcript.get(key)
        if caption is not None and self.visible.shows(key):
            self._fill(caption)
        elif key in self._partials and self.visible.sends(key):
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
        for utterance, language in self.visible.hidden:
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
        captions = ((key, self.transcript.get(key)) for key in known if self.visible.shows(key))
        made = self.transcript.made
        return (self._final(each, age_ms=_age(made.get(key, 0.0))) for key, each in captions if each is not None)

    def _catch_up(self, viewer: Outbox) -> None:
        if self.visible.paused:
            viewer.put(protocol.Paused(paused=True).frame)
        for key in self._partials:
            if self.visible.sends(key) and viewer.wants(key[1]):
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
