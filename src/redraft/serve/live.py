"""One live session: updates in, captions out.

Runs on the server's event loop; the engine's answers come in by `LiveSession.answered`.  A session outlives its
connections; `redraft.serve.delivery` knows those, and what must not be lost when one is.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from redraft.captions import events
from redraft.captions.formats.read import printable
from redraft.decoding.types import Tally
from redraft.serve import protocol
from redraft.serve.admission import Line
from redraft.serve.archive import Archive, SessionFile
from redraft.serve.delivery import Delivery
from redraft.serve.inbox import Inbox
from redraft.serve.lanes import Answer
from redraft.serve.listening import Listening
from redraft.serve.messages import caption_of, error_of
from redraft.serve.metrics import Metrics
from redraft.serve.names import public_name
from redraft.serve.outbox import Outbox
from redraft.serve.stats import SessionCounts
from redraft.serve.transcript import Transcript

#: What an utterance takes beside its texts, in characters.
_UTTERANCE = 100


@dataclass(slots=True, eq=False)
class LiveSession:
    """A session on the server.

    Attributes:
        token: names it to its owner.
        owner: whose API key began it; empty where none is needed.
        begin: what was asked for at its beginning.
        archive: keeps every final caption that is not hidden.
        metrics: where updates are counted.
        longest: the most characters that are kept of it.
        by_post: whether its captions come by POST, so that it never has a connection.
        line: its lanes, as soon as it has been admitted.
        listening: what it hears, as soon as there was audio.
        opened: set as soon as it has its lanes, or is known to get none.
        over: told when nothing more comes of it.
        kept: how many characters are kept of it.
        readers: how many read the transcript while it grows.
        touched: when it was last of use to anybody, in seconds of the monotonic clock.
        last_post: ``seq`` of the newest caption that came by POST.
    """

    token: str
    owner: str
    begin: protocol.Begin
    archive: Archive
    metrics: Metrics
    longest: int = 10_000_000
    by_post: bool = False
    line: Line | None = None
    listening: Listening | None = None
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    over: Callable[[], None] | None = None
    kept: int = 0
    readers: int = 0
    touched: float = field(default_factory=time.monotonic)
    ended: bool = False
    last_post: int = -1
    name: str = field(init=False)
    targets: tuple[str, ...] = field(init=False)
    inbox: Inbox = field(init=False)
    transcript: Transcript = field(init=False)
    delivery: Delivery = field(init=False)
    file: SessionFile = field(init=False)
    _counts: SessionCounts = field(init=False)
    #: How many captions that came by POST were final.
    _posted: int = 0

    def __post_init__(self) -> None:
        self.name = public_name(self.token)
        self.targets = tuple(map(str.strip, self.begin.targets))
        self.inbox, self.transcript = Inbox(), Transcript(self.targets)
        self.delivery = Delivery(self.transcript)
        self._counts = SessionCounts(self.targets)
        room = f"{self.begin.room}-" if self.begin.room else ""
        self.file = SessionFile(self.archive, room + self.name)

    # From the client

    def update(self, update: events.Update, begun: float | None = None) -> str:
        """Take an update; what is wrong with it, or nothing.

        One that came before is passed over, so that after a drop a client may send again what it is not sure of.

        Args:
            begun: when its utterance began, in seconds; None if that is the time of the update.
        """
        self.touched = time.monotonic()
        if self.inbox.repeats(update):
            return ""
        if self.ended:
            return "the session has ended: no more updates are taken"
        # What was restored the client has already.
        missing = [each for each in self.targets if (update.utterance, each) not in self.transcript]
        new = update.utterance not in self.inbox
        if new and not missing:
            return ""
        if problem := self.inbox.take(update, missing):
            return problem
        if new:
            self.kept += _UTTERANCE + len(update.utterance)
        self.transcript.begin(update.utterance, update.time if begun is None else begun)
        self.metrics.updates.inc()
        if self.line:
            self.line.offer(update, missing)
        return ""

    @property
    def full(self) -> bool:
        """Whether as much of it is kept as may be, so that nothing more is taken."""
        return self.kept >= self.longest

    def posted(self, seq: int, text: str, *, final: bool) -> str:
        """Take a caption that came by POST; what is wrong with it, or nothing.

        Utterances have no names there: one ends with a final caption, and the next one begins.
        """
        if seq <= self.last_post:
            return ""
        problem = self.update(events.Update(f"post-{self._posted}", seq, text, final))
        if not problem:
            self.last_post = seq
            self._posted += final
        return problem

    def restore(self, finals: Iterable[protocol.Final]) -> None:
        """Take over what the client has from another server, or from before a restart."""
        for final in finals:
            if final.language in self.targets and (final.utterance, final.language) not in self.transcript:
                caption = caption_of(final)
                caption = replace(caption, text=printable(caption.text), source=printable(caption.source))
                key = final.utterance, final.language
                self.transcript.begin(final.utterance, final.begun)
                if final.hidden:
                    self.transcript.hide(key, hidden=True)
                self.delivery.restored(caption)
                self._keep(caption)
                self.file.outdated |= bool(final.hidden)
                if self.line:
                    self.line.remember(final.language, caption.source, caption.text)

    def _keep(self, caption: events.Caption) -> None:
        self.kept += _UTTERANCE + len(caption.text) + len(caption.source)
        if (caption.utterance, caption.language) not in self.transcript.hidden:
            self.file.add(caption)

    def end(self) -> None:
        """No more updates will come, but those of audio that is still being recognised."""
        if self.listening and self.listening.running:
            self.listening.finish(then=self.end)
            return
        self.ended = True
        self._finish()

    # From the engine

    def answered(self, language: str, answer: Answer, tally: Tally) -> None:
        """Send what came of an update."""
        update = answer.update
        self.inbox.answered(update, language)
        captions = [event for event in answer.events if isinstance(event, events.Caption)]
        for event in answer.events:
            if isinstance(event, events.Failure):
                self._publish_failure(event, language, final=update.final and not captions)
        for caption in captions:
            self._publish_caption(caption, answer.lag)
        self._counts.add(language, tally, captions, answer.lag)
        self.send_stats()
        self._finish()

    def _publish_caption(self, caption: events.Caption, lag: float) -> None:
        key, lag_ms = (caption.utterance, caption.language), round(lag * 1000, 1)
        if key in self.transcript:  # restored: the client has its end already
            return
        if not caption.final:
            self.delivery.partial(caption, lag_ms)
            return
        self._keep(caption)
        self.delivery.final(caption, lag_ms)

    def _publish_failure(self, failure: events.Failure, target: str, *, final: bool) -> None:
        key, error = (failure.utterance or "", target), error_of(failure, target, final=final)
        if final and key not in self.transcript:
            self.delivery.failed(key, error)
        else:
            self.delivery.tell(error.wire())

    def send_stats(self) -> None:
        """Tell of new counts, if the last ones were told of long enough ago."""
        if self._counts.due():
            self._tell_stats()

    def _tell_stats(self) -> None:
        self.delivery.tell(self._counts.message(self.line.lanes if self.line else {}).wire(), "stats")

    @property
    def done(self) -> bool:
        """Whether it has ended and everything is translated."""
        return self.ended and self.inbox.empty

    @property
    def quiet(self) -> bool:
        """Whether nothing is being recognised or translated, and nothing waits to be sent to its owner."""
        if self.listening and self.listening.running:
            return False
        return self.inbox.empty and (self.delivery.owner is None or self.delivery.owner.empty)

    @property
    def in_use(self) -> bool:
        """Whether captions may still come of it: somebody is connected, or they come by POST."""
        return not self.ended and (self.by_post or self.delivery.owner is not None)

    def _finish(self) -> None:
        if self.done and not self.transcript.closed:
            self.transcript.close()
            self.release()
            self._tell_stats()
            self.delivery.done()
            if self.over:
                self.over()

    def fail(self, code: str, sentence: str, close: int = 1011) -> None:
        """End all connections with an error; the session is over, whatever was still to be translated."""
        self._close_ear()
        self.inbox.clear()
        self.transcript.close()
        self.delivery.feed = None  # viewers elsewhere stay: another replica may go on with it
        self.delivery.close(close, sentence, protocol.Error(code=code, message=sentence, fatal=True))

    def forget(self) -> None:
        """Nobody will come back to it: nothing more is taken, and whoever waits is let go."""
        self.ended = True
        self._close_ear()
        self.inbox.clear()
        if not self.transcript.closed:
            self.transcript.close()
            if self.over:
                self.over()
        self.delivery.close(1000, "the session is over")

    def _close_ear(self) -> None:
        if self.listening:
            self.listening.close()

    def release(self) -> None:
        """Give the lanes back."""
        if self.line:
            self.line.close()

    def rewrite(self) -> None:
        """Take what its owner has corrected or hidden over into its file."""
        self.file.rewrite(self.transcript)

    # Connections

    def attach(self, outbox: Outbox) -> None:
        """Send to this connection of the owner from now on, see `Delivery.attach`."""
        self.touched = time.monotonic()
        self.delivery.attach(outbox)
        if self.done:
            self.delivery.say_done(outbox)

    def watch(self, viewer: Outbox) -> None:
        """Send to a viewer from now on, first what there is already."""
        self.delivery.watch(viewer)
        if self.done:
            self.delivery.say_done(viewer)

    def publish(self, feed: Outbox) -> None:
        """Send to viewers on other replicas from now on, see `Delivery.publish`."""
        self.delivery.publish(feed)
        if self.done:
            self.delivery.say_done(feed)

    async def read(self, form: str, targets: Sequence[str]) -> AsyncIterator[str]:
        """The transcript while it grows, see `Transcript.live`; whoever reads it takes a viewer's place."""
        self.readers += 1
        try:
            async for piece in self.transcript.live(form, targets):
                yield piece
        finally:
            self.readers -= 1

    def detach(self, outbox: Outbox) -> None:
        """A connection has ended."""
        if self.delivery.owner is outbox:
            self.touched = time.monotonic()
        self.delivery.detach(outbox)
