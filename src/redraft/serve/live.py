"""One live session: updates in, captions out, and what must not be lost when a connection is.

Runs on the server's event loop; the engine's answers come in by `LiveSession.answered`.  A session outlives its
connections.  What identifies a final caption is its utterance and its language, so sending one twice does no harm: the
server sends what was not acknowledged again, and the client passes over what it has.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from redraft import events
from redraft.serve import protocol
from redraft.serve.lanes import Answer, Lane
from redraft.serve.messages import caption_of, error_of, final_of, partial_of
from redraft.serve.names import public_name
from redraft.serve.outbox import Outbox
from redraft.serve.stats import TargetCounts, quantile
from redraft.serve.transcript import Transcript
from redraft.streams.read import printable
from redraft.types import Tally

#: Updates that may wait to be translated, over all languages; more are not read from the connection.
MOST_PENDING = 64
#: Seconds between two messages of counts.
STATS_EVERY = 2.0
#: Captions over which the lag is summed up.
_LAGS = 200
#: What an utterance takes beside its texts, in characters.
_UTTERANCE = 100
FULL = "the session has as long a transcript as is allowed here: begin another one"


@dataclass(slots=True)
class _Heard:
    """The newest update of an utterance."""

    seq: int
    final: bool


@dataclass(slots=True, eq=False)
class LiveSession:
    """A session on the server.

    Attributes:
        token: names it to its owner.
        owner: whose API key began it; empty where none is needed.
        targets: its languages.
        forward: hands an update to the lanes.
        remember: takes a sentence that was translated before into the prompts of a language: target, source, text.
        record: told of every final caption.
        release: gives the lanes back, when nothing is left to translate.
        source: the language spoken.
        by_post: whether its captions come by POST, so that it never has a connection.
        touched: when it was last of use to anybody, in seconds of the monotonic clock.
    """

    token: str
    owner: str
    targets: tuple[str, ...]
    forward: Callable[[events.Update], None]
    remember: Callable[[str, str, str], None]
    record: Callable[[events.Caption], None]
    release: Callable[[], None]
    source: str = "en"
    by_post: bool = False
    #: The most characters that are kept of it, and how many are.
    longest: int = 10_000_000
    kept: int = 0
    #: How many read the transcript while it grows.
    readers: int = 0
    lanes: dict[str, Lane] = field(default_factory=dict)
    touched: float = field(default_factory=time.monotonic)
    ended: bool = False
    #: Set as soon as it has its lanes, or is known to get none.
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    #: Why the last connection was dropped, for the next one to be told.
    notice: str = ""
    connection: Outbox | None = None
    viewers: set[Outbox] = field(default_factory=set)
    name: str = ""
    #: ``seq`` of the newest caption that came by POST, and how many of them were final.
    last_post: int = -1
    _posted: int = 0
    transcript: Transcript = field(init=False)
    _counts: dict[str, TargetCounts] = field(init=False)
    _heard: dict[str, _Heard] = field(default_factory=dict)
    #: (utterance, target) -> seq of the newest update that is still to be answered.
    _pending: dict[tuple[str, str], int] = field(default_factory=dict)
    #: (utterance, target) -> the message that was not acknowledged yet.
    _unacknowledged: dict[tuple[str, str], str] = field(default_factory=dict)
    _partials: dict[tuple[str, str], str] = field(default_factory=dict)
    _lags: deque[float] = field(default_factory=lambda: deque(maxlen=_LAGS))
    _room: asyncio.Event = field(default_factory=asyncio.Event)
    _stats_sent: float = 0.0
    #: Whether anything was counted since then.
    _counted: bool = False

    def __post_init__(self) -> None:
        self.name = public_name(self.token)
        self.transcript = Transcript(self.targets)
        self._counts = {target: TargetCounts() for target in self.targets}
        self._room.set()

    # From the client

    def update(self, update: events.Update) -> str:
        """Take an update; what is wrong with it, or nothing.

        One that came before is passed over, so that after a drop a client may send again what it is not sure of.
        """
        self.touched = time.monotonic()
        heard = self._heard.get(update.utterance)
        if heard and (update.seq, update.final) == (heard.seq, heard.final):
            return ""
        if self.ended:
            return "the session has ended: no more updates are taken"
        if heard and heard.final:
            return "the utterance is final already: a new one needs a new name"
        if heard and update.seq <= heard.seq:
            return f"seq must be greater than that of the utterance's last update, {heard.seq}, not {update.seq}"
        if self.transcript.ended(update.utterance):  # restored: the client has its captions already
            return ""
        if heard is None:
            self.kept += _UTTERANCE + len(update.utterance)
        self._heard[update.utterance] = _Heard(update.seq, update.final)
        self.transcript.begin(update.utterance, update.time)
        for target in self.targets:
            self._pending[update.utterance, target] = update.seq
        self.forward(update)
        self._check_room()
        return ""

    @property
    def full(self) -> bool:
        """Whether as much of it is kept as may be, so that nothing more is taken."""
        return self.kept >= self.longest

    async def room(self) -> None:
        """Wait until updates may be taken again."""
        await self._room.wait()

    def _check_room(self) -> None:
        (self._room.clear if len(self._pending) > MOST_PENDING else self._room.set)()

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

    def acknowledge(self, utterance: str, target: str) -> None:
        """The client has an utterance's end in a language."""
        self._unacknowledged.pop((utterance, target), None)

    def restore(self, finals: Iterable[protocol.Final]) -> None:
        """Take over what the client has from a server that has forgotten it."""
        for final in finals:
            if final.target in self.targets and (final.utterance, final.target) not in self.transcript:
                caption = caption_of(final)
                caption = replace(caption, text=printable(caption.text), source=printable(caption.source))
                self.transcript.begin(final.utterance, final.begun)
                self._keep((final.utterance, final.target), caption)
                self.remember(final.target, caption.source, caption.text)

    def _keep(self, key: tuple[str, str], caption: events.Caption) -> None:
        self.transcript.add(*key, caption)
        self.kept += _UTTERANCE + len(caption.text) + len(caption.source)

    def end(self) -> None:
        """No more updates will come."""
        self.ended = True
        self._finish()

    # From the engine

    def answered(self, target: str, answer: Answer, tally: Tally) -> None:
        """Send what came of an update."""
        update, key = answer.update, (answer.update.utterance, target)
        if self._pending.get(key, update.seq) <= update.seq:
            self._pending.pop(key, None)
        self._check_room()
        self._counts[target].tally = tally
        captions = [event for event in answer.events if isinstance(event, events.Caption)]
        for event in answer.events:
            if isinstance(event, events.Failure):
                self._publish_failure(event, target, final=update.final and not captions)
        for caption in captions:
            self._lags.append(answer.lag * 1000)
            self._counts[target].show(caption)
            self._publish_caption(caption, target, answer.lag)
        self._counted = True
        self.send_stats()
        self._finish()

    def _publish_caption(self, caption: events.Caption, target: str, lag: float) -> None:
        key, lag_ms = (caption.utterance, target), round(lag * 1000, 1)
        if key in self.transcript:  # restored: the client has its end already
            return
        if not caption.final:
            partial = partial_of(caption, lag_ms)
            self._partials[key] = partial.wire()
            if len(self._partials) > MOST_PENDING:  # of utterances that never came to an end
                self._partials.pop(next(iter(self._partials)))
            self._broadcast(partial.wire(), key)
        else:
            self._keep(key, caption)
            self.record(caption)
            self._conclude(key, final_of(caption, self.transcript.begun(caption.utterance), lag_ms).wire())

    def _publish_failure(self, failure: events.Failure, target: str, *, final: bool) -> None:
        key = failure.utterance or "", target
        message = error_of(failure, target, final=final).wire()
        if final and key not in self.transcript:
            self.transcript.add(*key, None)
            self._conclude(key, message)
        else:
            self._broadcast(message)

    def _conclude(self, key: tuple[str, str], message: str) -> None:
        """Send what ends an utterance in a language."""
        self._partials.pop(key, None)
        self._unacknowledged[key] = message
        for outbox in self._outboxes():
            outbox.drop(key)
            outbox.put(message)

    def send_stats(self) -> None:
        """Tell of new counts, if the last ones were told of long enough ago."""
        now = time.monotonic()
        if self._counted and now - self._stats_sent >= STATS_EVERY:
            self._stats_sent, self._counted = now, False
            self._broadcast(self.stats().wire(), "stats")

    def stats(self) -> protocol.Stats:
        """Counts of the session so far."""
        return protocol.Stats(
            targets={target: self._counts[target].message(self.lanes[target]) for target in self.targets if self.lanes},
            lag_ms=quantile(self._lags, 0.5),
            lag_p95_ms=quantile(self._lags, 0.95),
        )

    @property
    def done(self) -> bool:
        """Whether it has ended and everything is translated."""
        return self.ended and not self._pending

    @property
    def quiet(self) -> bool:
        """Whether nothing is being translated, and nothing waits to be sent to its owner."""
        return not self._pending and (self.connection is None or self.connection.empty)

    def _finish(self) -> None:
        if self.done and not self.transcript.closed:
            self.transcript.close()
            self.release()
            self._broadcast(self.stats().wire(), "stats")
            for outbox in self._outboxes():
                self._say_done(outbox)

    def _say_done(self, outbox: Outbox) -> None:
        outbox.put(protocol.Done().wire())
        outbox.close(1000, "done")

    def fail(self, code: str, sentence: str, close: int = 1011) -> None:
        """End all connections with an error; the session is over, whatever was still to be translated."""
        self._pending.clear()
        self._check_room()
        self.transcript.close()
        for outbox in self._outboxes():
            outbox.put(protocol.Error(code=code, sentence=sentence, fatal=True).wire())
            outbox.close(close, sentence)

    def forget(self) -> None:
        """Nobody will come back to it: nothing more is taken, and whoever waits is let go."""
        self.ended = True
        self._pending.clear()
        self._check_room()
        self.transcript.close()
        for outbox in self._outboxes():
            outbox.close(1000, "the session is over")

    # Connections

    def attach(self, outbox: Outbox) -> None:
        """Send to this connection from now on, first what was not acknowledged; an older connection is closed."""
        if self.connection:
            sentence = "another connection goes on with this session"
            self.connection.put(protocol.Error(code="replaced", sentence=sentence, fatal=True).wire())
            self.connection.close(1008, sentence)
        self.connection, self.touched = outbox, time.monotonic()
        if self.notice:
            outbox.put(protocol.Error(code="slow", sentence=self.notice).wire())
            self.notice = ""
        self._catch_up(outbox, self._unacknowledged.values())

    def watch(self, outbox: Outbox) -> None:
        """Send to a viewer from now on, first what there is already."""
        self.viewers.add(outbox)
        self._catch_up(outbox, [final_of(caption, begun, 0).wire() for caption, begun in self.transcript.finals])

    def _catch_up(self, outbox: Outbox, ends: Iterable[str]) -> None:
        outbox.fill(ends)
        for key, message in self._partials.items():
            outbox.put(message, key)
        if self.done:
            self._say_done(outbox)

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
        self.viewers.discard(outbox)
        if self.connection is outbox:
            self.connection, self.touched = None, time.monotonic()

    def _outboxes(self) -> list[Outbox]:
        return [*([self.connection] if self.connection else []), *self.viewers]

    def _broadcast(self, message: str, key: object = None) -> None:
        for outbox in self._outboxes():
            outbox.put(message, key)
