"""Captions of a session on their way to its owner, who gets all of them, and to viewers, who get what they may see.

What identifies a final caption is its utterance and its language, so sending one twice does no harm: the owner is sent
again what it did not acknowledge, and passes over what it has.  The owner may pause the captions that viewers see, hide
one, or correct one.
"""

from __future__ import annotations

from collections.abc import Iterator

from redraft.captions.events import Caption
from redraft.serve import protocol
from redraft.serve.messages import final_of, partial_of
from redraft.serve.outbox import Outbox
from redraft.serve.transcript import Key, Transcript

#: Partial captions that are kept, over all languages; more are of utterances that never came to an end.
MOST_PARTIALS = 64


class Delivery:
    """Who is connected to a session, and what they are sent.

    Args:
        transcript: the session's final captions.
    """

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.owner: Outbox | None = None
        self.viewers: set[Outbox] = set()
        #: All viewers on other replicas, as one (`redraft.serve.fanout`).
        self.feed: Outbox | None = None
        #: Why the owner's last connection was dropped, for the next one to be told.
        self.notice = ""
        self.paused = False
        #: What the owner did not acknowledge yet.
        self._unacknowledged: dict[Key, str] = {}
        self._partials: dict[Key, str] = {}

    # Captions

    def partial(self, caption: Caption, lag_ms: float) -> None:
        """Send a caption that may still change; the next one of the same utterance takes its place."""
        key, message = _key_of(caption), partial_of(caption, lag_ms).wire()
        self._partials[key] = message
        if len(self._partials) > MOST_PARTIALS:
            self._partials.pop(next(iter(self._partials)))
        for outbox in self._outboxes(viewers=self._open(key)):
            outbox.put(message, self._place(key))

    def final(self, caption: Caption, lag_ms: float) -> None:
        """Add a final caption to the transcript and send it."""
        key = _key_of(caption)
        self.transcript.add(key, caption, held=self.paused)
        self._conclude(key, self._final(caption, lag_ms))

    def restored(self, caption: Caption) -> None:
        """Take over a final caption that the owner has already."""
        key = _key_of(caption)
        self.transcript.add(key, caption, held=self.paused)
        if self.transcript.shows(key):
            for viewer in self._viewers():
                viewer.fill([self._final(caption)])

    def failed(self, key: Key, error: protocol.Error) -> None:
        """Note that an utterance has no final caption in a language, and send the error in its place."""
        self.transcript.add(key, None)
        self._conclude(key, error.wire())

    def _conclude(self, key: Key, message: str) -> None:
        """Send what ends an utterance in a language."""
        self._partials.pop(key, None)
        self._unacknowledged[key] = message
        for outbox in self._outboxes():
            outbox.drop(self._place(key))
        for outbox in self._outboxes(viewers=self._open(key)):
            outbox.put(message)

    def acknowledged(self, key: Key) -> None:
        """The owner has an utterance's end in a language."""
        self._unacknowledged.pop(key, None)

    def _final(self, caption: Caption, lag_ms: float = 0.0, *, corrected: bool = False) -> str:
        message = final_of(caption, self.transcript.begun(caption.utterance), lag_ms)
        return message.model_copy(update={"corrected": corrected or None}).wire()

    # What the owner decides

    def pause(self, paused: bool) -> None:
        """Hold captions back from viewers, or let them see what was held back and what comes."""
        if paused == self.paused:
            return
        self.paused = paused
        self.tell(protocol.Paused(paused=paused).wire(), "paused")
        if not paused:
            for key in self.transcript.release():
                self._reveal(key)
            for key in self._partials:
                self._reveal(key)

    def hide(self, key: Key, hidden: bool) -> None:
        """Take a caption away from viewers, or show it again; it need not be final."""
        message = protocol.Hidden(utterance=key[0], language=key[1], hidden=hidden).wire()
        if self.owner:
            self.owner.put(message)
        if hidden == (key in self.transcript.hidden):
            return
        self.transcript.hide(key, hidden=hidden)
        if not hidden:
            self._reveal(key)
            return
        for viewer in self._viewers():
            viewer.drop(self._place(key))
            viewer.put(message)

    def correct(self, caption: Caption) -> None:
        """Put a caption in the place of the final one of the same utterance and language."""
        key, message = _key_of(caption), self._final(caption, corrected=True)
        self.transcript.replace(caption)
        self._unacknowledged[key] = message
        for outbox in self._outboxes(viewers=self.transcript.shows(key)):
            outbox.put(message)

    def _open(self, key: Key) -> bool:
        """Whether viewers are sent a caption now."""
        return not self.paused and self.transcript.shows(key)

    def _reveal(self, key: Key) -> None:
        """Send viewers the caption that there is, if they may see it."""
        caption = self.transcript.get(key)
        for viewer in self._viewers():
            if caption is not None and self.transcript.shows(key):
                viewer.fill([self._final(caption)])
            elif key in self._partials and self._open(key):
                viewer.put(self._partials[key], self._place(key))

    # Connections

    def attach(self, outbox: Outbox) -> None:
        """Send to this connection of the owner from now on, first what was not acknowledged; an older one is closed."""
        if self.owner:
            self.replaced("another connection goes on with this session")
        self.owner = outbox
        if self.notice:
            outbox.put(protocol.Error(code="slow", message=self.notice).wire())
            self.notice = ""
        if self.paused:
            outbox.put(protocol.Paused(paused=True).wire())
        outbox.fill(self._unacknowledged.values())
        for key, message in self._partials.items():
            outbox.put(message, self._place(key))
        outbox.fill(self._hidden())

    def _hidden(self) -> Iterator[str]:
        for utterance, language in self.transcript.hidden:
            yield protocol.Hidden(utterance=utterance, language=language, hidden=True).wire()

    def replaced(self, sentence: str) -> None:
        """Close the owner's connection, since another one takes its place."""
        if self.owner:
            self.owner.put(protocol.Error(code="replaced", message=sentence, fatal=True).wire())
            self.owner.close(1008, sentence)

    def watch(self, viewer: Outbox) -> None:
        """Send to a viewer from now on, first what there is already."""
        self.viewers.add(viewer)
        self._catch_up(viewer)

    def publish(self, feed: Outbox) -> None:
        """Send to viewers on other replicas from now on, first all that they may see and what they may not."""
        self.feed = feed
        feed.put(protocol.Paused(paused=False).wire())
        feed.fill(self._hidden())
        self._catch_up(feed)

    def _catch_up(self, viewer: Outbox) -> None:
        viewer.fill(map(self._final, self.transcript.finals))
        if self.paused:
            viewer.put(protocol.Paused(paused=True).wire())
        for key, message in self._partials.items():
            if self._open(key):
                viewer.put(message, self._place(key))

    def detach(self, outbox: Outbox) -> None:
        """A connection has ended."""
        self.viewers.discard(outbox)
        if self.owner is outbox:
            self.owner = None

    def tell(self, message: str, key: object = None) -> None:
        """Send a message to everybody; one with the same key that still waits is dropped."""
        for outbox in self._outboxes():
            outbox.put(message, key and self._place(key))

    def done(self) -> None:
        """Say that nothing more comes; viewers of a room stay for its next session."""
        for outbox in self._outboxes():
            self.say_done(outbox)

    def say_done(self, outbox: Outbox) -> None:
        """Say it to one of them."""
        if not outbox.stays:
            outbox.put(protocol.Done().wire())
            outbox.close(1000, "done")

    def close(self, code: int, reason: str, error: protocol.Error | None = None) -> None:
        """Close all connections, with an error as the last message if there is one."""
        for outbox in self._outboxes():
            if error is not None:
                outbox.put(error.wire())
            if error is not None or not outbox.stays:
                outbox.close(code, reason)

    def _outboxes(self, *, viewers: bool = True) -> Iterator[Outbox]:
        if self.owner:
            yield self.owner
        if viewers:
            yield from self._viewers()

    def _viewers(self) -> list[Outbox]:
        return [*self.viewers, self.feed] if self.feed else list(self.viewers)

    def _place(self, key: object) -> tuple[int, object]:
        """What replaces what in an outbox: a viewer of a room may still wait for messages of an earlier session."""
        return id(self), key


def _key_of(caption: Caption) -> Key:
    return caption.utterance, caption.language
