"""One live session: updates in, captions out.

It runs on the server's event loop; `LiveSession.answered` receives the engine's answers.  A session outlives its
connections, which `redraft.serve.delivery` manages.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from redraft.captions import events
from redraft.captions.formats.read import printable
from redraft.captions.source import LONGEST
from redraft.decoding.tally import Tally
from redraft.serve import protocol
from redraft.serve.admission import Line
from redraft.serve.audio.session import SessionAudio
from redraft.serve.delivery import Delivery, Outbox
from redraft.serve.inbox import Inbox
from redraft.serve.lanes import Answer
from redraft.serve.messages import caption_of, error_of
from redraft.serve.metrics import Metrics, SessionCounts
from redraft.serve.protocol import public_name
from redraft.serve.transcript import Archive, SessionFile, Transcript
from redraft.serve.watched import Watched

#: Overhead of an utterance besides its texts, in characters.
_UTTERANCE = 100


@dataclass(slots=True, eq=False)
class LiveSession(Watched):
    """A session on the server.

    Attributes:
        token: the owner's secret name of it.
        owner: owner of the API key that started it; empty if no key is needed.
        begin: the request that started it.
        archive: stores every final caption that is not hidden.
        metrics: counts updates.
        longest: maximum number of characters to keep.
        by_post: whether its captions come by POST, so that it never has a connection.
        line: its lanes, once admitted.
        audio: its audio, once there is any.
        opened: set once it has its lanes, or cannot get any.
        over: called when it has ended.
        kept: number of characters kept.
        readers: number of readers of the growing transcript.
        touched: time of its last use, in seconds of the monotonic clock.
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
    audio: SessionAudio | None = None
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    over: Callable[[], None] | None = None
    kept: int = 0
    readers: int = 0
    touched: float = field(default_factory=time.monotonic)
    ended: bool = False
    last_post: int = -1
    name: str = field(init=False)
    inbox: Inbox = field(init=False)
    transcript: Transcript = field(init=False)
    delivery: Delivery = field(init=False)
    file: SessionFile = field(init=False)
    _counts: SessionCounts = field(init=False)
    #: Number of final captions that came by POST.
    _posted: int = 0
    #: The newest update, if it is not final, with the languages that it is translated into; and the timer of `_rest`.
    _unfinished: tuple[events.Update, Sequence[str]] | None = None
    _timer: asyncio.TimerHandle | None = None

    def __post_init__(self) -> None:
        self.name = public_name(self.token)
        self.inbox, self.transcript = Inbox(), Transcript(tuple(map(str.strip, self.begin.targets)))
        self.delivery = Delivery(self.transcript)
        self._counts = SessionCounts(self.targets)
        room = f"{self.begin.room}-" if self.begin.room else ""
        self.file = SessionFile(self.archive, room + self.name)

    # From the client

    def update(self, update: events.Update, begun: float | None = None, since: float | None = None) -> str:
        """Accept an update; return an error message, or an empty string.

        Duplicates are ignored, since after a drop a client may send updates again.

        Args:
            update: the update.
            begun: start of its utterance in seconds; None if that is the update's time.
            since: when its words were spoken, in seconds of the monotonic clock; None for now.
        """
        self.touched = time.monotonic()
        if self.inbox.repeats(update):
            return ""
        if self.ended:
            return "the session has ended: no more updates are taken"
        # The client already has restored captions.
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
            self.line.offer(update, missing, since)
        self._wait(update, missing)
        return ""

    def _wait(self, update: events.Update, languages: Sequence[str]) -> None:
        """Translate words of this update that are held back if no other one comes for a while."""
        self._stop_waiting()
        if self.line and not update.final:
            self._unfinished = update, languages
            self._timer = asyncio.get_running_loop().call_later(LONGEST, self._rest)

    def _rest(self) -> None:
        """Translate words that are held back (`redraft.captions.source`)."""
        if self._unfinished is not None and self.line:
            update, languages = self._unfinished
            self.inbox.rest(update, languages)
            self.line.offer(update, languages, rest=True)
        self._stop_waiting()

    def _stop_waiting(self) -> None:
        self._unfinished = None
        if self._timer is not None:
            self._timer.cancel()

    @property
    def full(self) -> bool:
        """Whether its size limit is reached, so that it accepts no more updates."""
        return self.kept >= self.longest

    def posted(self, seq: int, text: str, *, final: bool) -> str:
        """Accept a caption by POST, where a final one ends the utterance; return an error message, or nothing."""
        if seq <= self.last_post:
            return ""
        problem = self.update(events.Update(f"post-{self._posted}", seq, text, final))
        if not problem:
            self.last_post = seq
            self._posted += final
        return problem

    def restore(self, finals: Iterable[protocol.Final]) -> None:
        """Restore captions that the client has from another server, or from before a restart."""
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
        """End the session: no more updates will come, except from audio that is still being recognised."""
        if self.audio and self.audio.running:
            self.audio.finish(then=self.end)
            return
        self._rest()
        self.ended = True
        self._finish()

    # From the engine

    def answered(self, language: str, answer: Answer, tally: Tally) -> None:
        """Send the result of an update."""
        update = answer.update
        self.inbox.answered(update, language, rest=answer.rest)
        if not answer.events:  # no word was held back
            self._finish()
            return
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
        if key in self.transcript:  # restored: the client already has it
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
            self.delivery.tell(error.wire(), language=target)

    def send_stats(self) -> None:
        """Send statistics if they are due."""
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
        if self.audio and self.audio.running:
            return False
        return self.inbox.empty and (self.delivery.owner is None or self.delivery.owner.empty)

    @property
    def in_use(self) -> bool:
        """Whether more captions may come: it is connected, or captions come by POST."""
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
        """Close all connections with an error, and end the session without translating the rest."""
        self._stop_waiting()
        self._close_audio()
        self.inbox.clear()
        self.transcript.close()
        self.delivery.feed = None  # viewers elsewhere stay, since another replica may continue the session
        self.delivery.close(close, sentence, protocol.Error(code=code, message=sentence, fatal=True))

    def forget(self) -> None:
        """Close everything: the session has been forgotten."""
        self._stop_waiting()
        self.ended = True
        self._close_audio()
        self.inbox.clear()
        if not self.transcript.closed:
            self.transcript.close()
            if self.over:
                self.over()
        self.delivery.close(1000, "the session is over")

    def _close_audio(self) -> None:
        if self.audio:
            self.audio.close()

    def release(self) -> None:
        """Release the lanes."""
        if self.line:
            self.line.close()

    def rewrite(self) -> None:
        """Update its file after corrections and hidden captions."""
        self.file.rewrite(self.transcript)

    # Connections

    def attach(self, outbox: Outbox) -> None:
        """Make this the owner's connection; see `Delivery.attach`."""
        self.touched = time.monotonic()
        self.delivery.attach(outbox)
        if self.done:
            self.delivery.say_done(outbox)

    def publish(self, feed: Outbox) -> None:
        """Add the feed to other replicas; see `Delivery.publish`."""
        self.delivery.publish(feed)
        if self.done:
            self.delivery.say_done(feed)

    def detach(self, outbox: Outbox) -> None:
        """Remove a connection that has ended."""
        if self.delivery.owner is outbox:
            self.touched = time.monotonic()
        self.delivery.detach(outbox)
