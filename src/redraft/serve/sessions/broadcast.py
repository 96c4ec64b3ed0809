"""Delivers a session's captions: all of them to its owner, the visible ones to viewers, by a bounded queue for each.

A final caption is identified by utterance and language, so sending it twice does no harm: unacknowledged captions are
sent to the owner again, who ignores duplicates.  The owner can pause captions for viewers, hide one, or correct one.

A message about a caption goes to the viewers that want its language, any other message to all.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Hashable, Iterator, Sequence
from functools import partial
from itertools import chain

from redraft import protocol
from redraft.captions.events import Caption
from redraft.captions.languages import canonical_tag
from redraft.protocol import Frame
from redraft.serve.sessions.cells import Cell, History, Key, counted, key_of
from redraft.serve.sessions.transcript import Transcript

#: Maximum number of messages queued for a connection.
MOST_MESSAGES = 256


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
        #: The latest history that was queued.
        self.history: History | None = None
        #: Whether messages were lost because the reader was too slow.
        self.slow = False
        #: Number of messages that were taken from the queue.
        self.sent = 0
        self._most = most
        #: Messages, and those that are made when their turn comes.
        self._waiting: OrderedDict[Hashable, Frame | Iterator[Frame]] = OrderedDict()
        self._news, self._space = asyncio.Event(), asyncio.Event()
        self._space.set()

    def wants(self, language: str | None) -> bool:
        """Whether its reader wants messages about a language; everybody wants those about none in particular."""
        return language is None or not self.languages or canonical_tag(language) in self.languages

    def put(self, message: Frame | Iterator[Frame], key: Hashable | None = None, *, counts: bool = True) -> None:
        """Queue a message, or messages each of which is made when it is sent: a history must not hold up others.

        It replaces a queued message with the same ``key``.

        The replacement keeps its place in the queue: at the end, a message that is replaced often would never be sent
        to a slow reader.

        Args:
            counts: whether it counts towards ``most``.
        """
        self._most += not counts
        if isinstance(message, History):
            self.history = message
        if self.closing or self.slow:  # after a gap, more messages would look complete
            return
        self._waiting[object() if key is None else key] = message
        if len(self._waiting) > self._most:
            self.slow = True
            self._waiting.clear()
        if 2 * len(self._waiting) > self._most:
            self._space.clear()
        self._news.set()

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
        self.sent += 1
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


#: Maximum number of partial captions kept over all languages; more belong to utterances that never ended.
MOST_PARTIALS = 64


class Broadcast:
    """What a session of this replica, or the mirror of another one's, sends: its transcript, and its connections."""

    def __init__(self, targets: Sequence[str], source: str = "") -> None:
        self.transcript = Transcript(targets, source)
        self.owner: Outbox | None = None
        self.viewers: set[Outbox] = set()
        #: Number of readers of the growing transcript.
        self.readers = 0
        #: One outbox for all viewers on other replicas (`redraft.serve.sessions.fanout`).
        self.feed: Outbox | None = None
        #: Why the owner's last connection was dropped; sent on the next one.
        self.notice = ""
        #: How all connections are closed: code, reason, last message, and whether those of a room are, too; see `end`.
        self._ending: tuple[int, str, Frame | None, bool] | None = None

    # Captions

    def caption(
        self,
        caption: Caption,
        lag_ms: float,
        made: float | None = None,
        corrected: int = 0,
        *,
        known: bool = False,
        held: bool | None = None,
    ) -> None:
        """Send a caption; a final one is added to the transcript, a partial one is replaced by the next.

        Args:
            made: when it was made, in seconds since 1970; None for now.
            corrected: how often it was corrected.
            known: whether the owner has it already.
            held: whether viewers get it only once captions are released; None while they are paused.
        """
        key, cell = key_of(caption), self.transcript.cell(key_of(caption))
        cell.lag_ms, cell.made = lag_ms, time.time() if made is None else made
        if caption.final:
            self._end(key, caption, corrected, known=known, held=held)
        else:
            self.transcript.partial(key, caption, MOST_PARTIALS)
            self._show(key, owner=not known)

    def failed(self, key: Key, error: protocol.Error, *, held: bool | None = None) -> None:
        """Record that an utterance has no final caption in a language, and send the error instead; see `caption`."""
        self._end(key, error, held=held)

    def _end(
        self, key: Key, end: Caption | protocol.Error, corrected: int = 0, *, known: bool = False, held: bool | None
    ) -> None:
        cell = self.transcript.end(key, end, corrected, held=self.transcript.paused if held is None else held)
        cell.unacknowledged = not known
        for outbox in self._outboxes(key[1]):
            outbox.drop(self._place(key))
        self._show(key, owner=not known)

    def _show(self, key: Key, *, owner: bool = True, counts: bool = True) -> None:
        """Send the newest caption of a cell to the owner, and to viewers if they may see it; see `Outbox.put`."""
        cell = self.transcript.cell(key)
        frame = cell.frame()
        if frame is None:
            return
        place = self._place(key, ended=cell.ended)
        if owner and self.owner:
            self.owner.put(frame, place)
        if self._seen(cell):
            for viewer in self._unaware(key):
                viewer.put(frame, place, counts=counts)

    def _reveal(self, key: Key) -> None:
        """Send viewers a caption if they may see it; many may be revealed at once."""
        self._show(key, owner=False, counts=not self.transcript.cell(key).ended)

    def _seen(self, cell: Cell) -> bool:
        return cell.visible if cell.ended else not cell.hidden and not self.transcript.paused

    def acknowledged(self, key: Key, corrected: int) -> None:
        """Record that the owner has received an utterance's end in a language, after so many corrections."""
        cell = self.transcript.find(key)
        if cell is not None and corrected >= cell.corrected:
            cell.unacknowledged = False

    # What the owner decides

    def pause(self, paused: bool, decision: int | None = None) -> None:
        """Hold captions back from viewers, or release them.

        Args:
            decision: number of the decision; the highest one counts.  None for the next one.
        """
        found = self.transcript
        if not (number := counted(decision, found.decided, wins=paused and not found.paused)):
            return
        changed = found.paused != paused
        found.paused, found.decided = paused, number
        message = self._paused()
        if not changed:
            self.send_to_owner(message)
            return
        self.send(message.frame, "pause")
        if not paused:
            for key in [*found.release(), *found.partials]:
                self._reveal(key)

    def hide(self, key: Key, hidden: bool, decision: int | None = None) -> None:
        """Hide a caption from viewers, or show it again; it need not have arrived.  See `pause`.

        What was spoken is hidden as long as all of its translations are, unless the owner decides about it.
        """
        cell = self.transcript.cell(key)
        if not (number := counted(decision, cell.decided, wins=hidden and not cell.hidden)):
            return
        cell.decided = number
        if cell.hidden == hidden:
            if self.owner:
                self.owner.put(cell.decision(key))
            return
        self._set_hidden(key, cell, hidden)
        if self.transcript.languages == self.transcript.targets:
            return
        spoken = key[0], self.transcript.source
        translations = [self.transcript.find((key[0], each)) for each in self.transcript.targets]
        silent = all(each is not None and each.hidden for each in translations)
        source = self.transcript.cell(spoken)
        if not source.decided and source.hidden != silent:
            self._set_hidden(spoken, source, silent)

    def _set_hidden(self, key: Key, cell: Cell, hidden: bool) -> None:
        cell.hidden = hidden
        message = cell.decision(key)
        if self.owner:
            self.owner.put(message)
        self.transcript.edited(key)
        if not hidden:
            self._reveal(key)
            return
        for viewer in self._unaware(key):
            for ended in (False, True):
                viewer.drop(self._place(key, ended=ended))
            viewer.put(message)

    def correct(self, key: Key, text: str, decision: int | None = None) -> None:
        """Replace the text of a final caption, which need not have arrived.  See `pause`."""
        cell = self.transcript.cell(key)
        if not (number := counted(decision, cell.corrected, wins=text != cell.correction)):
            return
        cell.correction, cell.corrected = text, number
        self.transcript.count(key[0])
        if cell.final is not None:
            cell.unacknowledged = True
            self.transcript.edited(key)
            self._show(key)

    def name(self, speaker: str, name: str, decision: int | None = None) -> None:
        """Name a speaker in all captions from now on, and in the transcript.  See `pause`."""
        names = self.transcript.names
        before, latest = names.get(speaker, (speaker, 0))
        if not (number := counted(decision, latest, wins=name != before)):
            return
        names[speaker] = name, number
        self.transcript.edited(None)
        for outbox in filter(None, (self.owner, self.feed)):
            outbox.put(self._name(speaker))

    def _name(self, speaker: str) -> Frame:
        name, decision = self.transcript.names[speaker]
        return protocol.NameSpeaker(speaker=speaker, name=name, decision=decision).frame

    def _paused(self) -> protocol.Pause:
        return protocol.Pause(paused=self.transcript.paused, decision=self.transcript.decided or None)

    # Connections

    def attach(self, outbox: Outbox) -> None:
        """Make this the owner's connection, and send what was not acknowledged; an older connection is closed."""
        if self.owner:
            self.replaced("another connection has taken over this session")
        self.owner = outbox
        if self.notice:
            outbox.put(protocol.Error(code="slow", message=self.notice).frame)
            self.notice = ""
        outbox.put(self._for_owner(), counts=False)
        for key, cell in self.transcript.partials.items():
            if key[1] in self.transcript.targets and (frame := cell.frame()) is not None:
                outbox.put(frame, self._place(key))
        self._close_if_ended(outbox)

    def _for_owner(self) -> Iterator[Frame]:
        """Return what the owner may not know: unacknowledged ends, and decisions, which others may have made.

        Messages are made when they are sent, but chosen now: what ends or is decided later is sent as it happens.
        """
        cells = [keyed for each in self.transcript.utterances.values() for keyed in each.keyed()]
        ends = [cell for _, cell in cells if cell.unacknowledged]
        decided = [(key, cell) for key, cell in cells if cell.decided]
        return chain(
            (frame for cell in ends if cell.unacknowledged and (frame := cell.frame())),
            map(self._name, list(self.transcript.names)),
            [self._paused().frame] if self.transcript.decided else (),
            (cell.decision(key) for key, cell in decided),
        )

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
        viewer.put(self._history(viewer), counts=False)
        self._catch_up(viewer)
        self._close_if_ended(viewer)

    def publish(self, feed: Outbox) -> None:
        """Add the feed to other replicas, and send all captions with their visibility."""
        self.feed = feed
        feed.put(protocol.Pause(paused=False).frame)
        for message in self._history(feed):
            feed.put(message, counts=False)
        self._catch_up(feed)
        self._close_if_ended(feed)

    def _history(self, viewer: Outbox) -> History:
        # Looking for a language that the session does not have would hold up others.
        wants = partial(self._wants, viewer)
        return History(self.transcript.ended if any(map(wants, self.transcript.languages)) else (), wants)

    def _wants(self, viewer: Outbox, language: str | None) -> bool:
        """Whether a viewer wants messages about a language; what is spoken comes only to those who ask for it."""
        if language is not None and language not in self.transcript.targets and viewer is not self.feed:
            return bool(viewer.languages) and viewer.wants(language)
        return viewer.wants(language)

    def _catch_up(self, viewer: Outbox) -> None:
        if self.transcript.paused:
            viewer.put(self._paused().frame)
        for name, utterance in self.transcript.unended.items():  # the history has the others
            for language, cell in utterance.cells.items():
                if cell.hidden and self._wants(viewer, language):
                    viewer.put(cell.decision((name, language)), counts=False)
        for key, cell in self.transcript.partials.items():
            if self._seen(cell) and self._wants(viewer, key[1]) and (frame := cell.frame(aged=True)) is not None:
                viewer.put(frame, self._place(key))

    def detach(self, outbox: Outbox) -> None:
        """Remove a connection that has ended."""
        self.viewers.discard(outbox)
        if self.owner is outbox:
            self.owner = None

    def send(self, message: Frame, key: object) -> None:
        """Send a message to everyone; see `Outbox.put` for the key."""
        for outbox in self._outboxes():
            outbox.put(message, self._place(key))

    def end(self, code: int, reason: str, last: protocol.Message | None = None, *, staying: bool = False) -> None:
        """Close all connections, now and later, after a last message.

        Args:
            staying: whether to close viewers of a room, too; otherwise they stay for its next session.
        """
        self._ending = code, reason, None if last is None else last.frame, staying
        for outbox in self._outboxes():
            self._close_if_ended(outbox)

    def _close_if_ended(self, outbox: Outbox) -> None:
        if self._ending is None:
            return
        code, reason, last, staying = self._ending
        if outbox.stays and not staying:
            return
        if last is not None:
            outbox.put(last)
        outbox.close(code, reason)

    def _outboxes(self, language: str | None = None) -> Iterator[Outbox]:
        if self.owner:
            yield self.owner
        yield from self._viewers(language)

    def _viewers(self, language: str | None = None) -> list[Outbox]:
        """Return the viewers that want a language, or all of them, and the feed."""
        found = [each for each in self.viewers if self._wants(each, language)]
        return [*found, self.feed] if self.feed else found

    def _unaware(self, key: Key) -> list[Outbox]:
        """Return the viewers that want news of a caption, unless their history will have it."""
        utterance = self.transcript.utterances[key[0]]
        viewers = self._viewers(key[1])
        return [each for each in viewers if each.history is None or not each.history.covers(utterance, key[1])]

    def _place(self, key: object, *, ended: bool = False) -> tuple[int, object, bool]:
        """Return the key for replacing messages, which distinguishes the sessions of a room."""
        return id(self), key, ended
