"""One live session: updates in, captions out.

It runs on the server's event loop; `LiveSession.answered` receives the engine's answers.  A session outlives its
connections, which `redraft.serve.sessions.broadcast` manages.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial

from redraft import deadlines, protocol
from redraft.captions import events
from redraft.captions.formats.read import finished, printable
from redraft.captions.languages import same_of
from redraft.captions.spoken import Spoken
from redraft.engine.engine import Engine
from redraft.engine.lanes import Answer, Lane
from redraft.engine.stream import Stream
from redraft.errors import InputError
from redraft.protocol import public_name
from redraft.protocol.codes import Refused
from redraft.serve.access import Rate
from redraft.serve.metrics import Metrics, SessionCounts
from redraft.serve.sessions.broadcast import Broadcast, Outbox
from redraft.serve.sessions.cells import key_of
from redraft.serve.sessions.folder import Folder, SessionFile
from redraft.serve.sessions.posts import Posts
from redraft.serve.sessions.session_audio import Recognisers, SessionAudio
from redraft.serve.sessions.transcript import Transcript

#: Maximum number of characters that a session keeps, and the share of them at which its owner is told.
MOST_CHARACTERS, NEARLY = 10_000_000, 0.9
FULL = "the session has as long a transcript as is allowed here: acknowledge its captions, or begin another one"
NEARLY_FULL = (
    "the transcript will soon be longer than the server keeps: download it, since its oldest captions will be missing "
    "in later downloads and for later viewers"
)
_UNWRITTEN = (
    "captions are not being written to the server's folder of transcripts: tell its operator, or save them here"
)
#: Maximum number of languages in the name of a file.
_NAMED = 8


@dataclass(slots=True, eq=False)
class LiveSession:
    """A session on the server.

    Attributes:
        token: the owner's secret name of it.
        owner: owner of the API key that started it; empty if no key is needed.
        folder: where final captions that are not hidden are stored.
        by_post: whether its captions come by POST or by another protocol, so that it never has a connection.
        address: its client's address, by which sessions are counted.
        connection: number of its client's latest attempt to resume it; a lower one never wins, here or elsewhere.
        engine: runs its lanes, once admitted and until it is forgotten.
        spoken: finds the languages of its updates, once admitted.
        audio: its audio, once there is any.
        opened: set once it has its lanes, or cannot get any.
        left: when it ended because its client did not come back, in seconds of the monotonic clock.
        over: called when it has ended.
        touched: time of its last use, in seconds of the monotonic clock.
        posts: its captions that came by POST.
        rate: limits what comes by POST.
        heard: also called with each answer to its updates.
        unproven: whether it began with a token of its client and has got neither updates nor an end yet, so that not
            all captions that the client restores may have arrived.
    """

    token: str
    owner: str
    begin: protocol.Begin
    folder: Folder
    metrics: Metrics
    by_post: bool = False
    address: str = ""
    connection: int = 0
    engine: Engine | None = None
    lanes: Mapping[str, Lane] = field(default_factory=dict)
    spoken: Spoken | None = None
    audio: SessionAudio | None = None
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    over: Callable[[], None] | None = None
    touched: float = field(default_factory=time.monotonic)
    left: float | None = None
    posts: Posts = field(default_factory=Posts)
    rate: Rate = field(init=False)
    heard: Callable[[Answer], object] | None = None
    unproven: bool = False
    name: str = field(init=False)
    stream: Stream = field(init=False)
    transcript: Transcript = field(init=False)
    broadcast: Broadcast = field(init=False)
    file: SessionFile = field(init=False)
    _counts: SessionCounts = field(init=False)
    #: Whether its owner was told that captions are not being written.
    _unwritten: bool = False
    #: Whether its owner was told that old captions will be dropped.
    _nearly_full: bool = False

    def __post_init__(self) -> None:
        self.name = public_name(self.token)
        self.broadcast = Broadcast(self.begin.targets, self.begin.original)
        self.transcript = self.broadcast.transcript
        self._counts = SessionCounts(self.targets)
        self.stream = Stream(partial(self._submit, rest=True))
        about = [date.today().isoformat(), *filter(None, [self.begin.room]), *self.targets[:_NAMED], ""]
        self.file = SessionFile(self.name, self.transcript, "-".join(about))
        self.transcript.changes = partial(self.folder.add, self.file)

    @property
    def targets(self) -> tuple[str, ...]:
        """The target languages."""
        return self.transcript.targets

    def started(self, server: str, message_bytes: int, *, resumed: bool = False) -> protocol.Started:
        """Return the message that announces its start to the owner."""
        return protocol.Started(
            session=self.name,
            token=self.token,
            targets=self.targets,
            room=self.begin.room,
            resumed=resumed,
            server=server,
            message_bytes=message_bytes,
            heartbeat=deadlines.HEARTBEAT,
        )

    # From the client

    def accept(self, update: events.Update, since: float | None = None) -> None:
        """Accept an update, and have it translated.

        Duplicates are ignored, since after a drop a client may send updates again.

        Args:
            since: when its words were spoken, in seconds of the monotonic clock; None for now.

        Raises:
            Refused: the session has ended, or the update is out of order.
        """
        self.touched = time.monotonic()
        if self.stream.repeats(update):
            return
        self._check_open()
        self.unproven = False  # since what the client has restored came before
        # The client already has restored captions.
        missing = [each for each in self.targets if (update.utterance, each) not in self.transcript]
        new = update.utterance not in self.stream
        if new and not missing:
            return
        try:
            update = self.spoken.named(update) if self.spoken else update
        except InputError as error:
            raise Refused("option", str(error), "language") from None
        try:
            update = self.stream.accept(update)
        except InputError as error:
            raise Refused("stale", str(error)) from None
        self.stream.add(update, missing)
        self.transcript.utterance(update.utterance)
        self._show_source(update, update.text)
        self.metrics.updates.inc()
        self._submit(update, missing, since)
        shown = self.heard is None or self.begin.room is not None
        self.stream.follow(update, missing if self.engine and shown else ())

    def _show_source(self, spoken: events.Update | events.Caption, text: str, made: float | None = None) -> None:
        """Show viewers what was spoken in an update, or in that of a caption; the owner knows it."""
        language = self.transcript.source
        if self.transcript.languages == self.targets or (spoken.utterance, language) in self.transcript:
            return
        caption = events.Caption.of(spoken, language, text)
        self.broadcast.caption(caption, 0.0, made, known=True)

    def _submit(
        self, update: events.Update, languages: Iterable[str], since: float | None = None, *, rest: bool = False
    ) -> None:
        if self.engine:
            self.engine.submit([self.lanes[language] for language in languages], update, since, rest=rest)

    def _check_open(self) -> None:
        if self.ended:
            raise Refused("stale", "the session has ended: it takes no more updates")

    async def room(self) -> None:
        """Wait until more updates can be accepted; if it is full, some seconds for captions that can be dropped."""
        await self.stream.room()
        until = time.monotonic() + deadlines.ROOM
        while not self._made_room() and time.monotonic() < until:
            await asyncio.sleep(0.05)

    def check_room(self) -> None:
        """Check that the session may grow.  Raises `Refused` if it is full."""
        if not self._made_room():
            raise Refused("limit", FULL)

    def _made_room(self) -> bool:
        """Drop the oldest captions if it is full; return whether it may grow."""
        if self.transcript.size >= NEARLY * MOST_CHARACTERS and not self._nearly_full:
            self._nearly_full = True
            self.broadcast.send_to_owner(protocol.Error(code="limit", message=NEARLY_FULL))
        while (full := self.transcript.size >= MOST_CHARACTERS) and self.transcript.drop_oldest(
            acknowledged=not self.by_post
        ):
            pass
        return not full

    def posted(self, number: int, body: str, *, final: bool, speaker: str | None = None) -> None:
        """Accept a caption by POST, where a final one ends the utterance.  Raises `Refused` as for `accept`."""
        self.check_room()
        self._check_open()
        for update in self.posts.updates(number, body, final=final, speaker=speaker):
            self.accept(update)

    def restore(self, finals: Iterable[protocol.Final]) -> None:
        """Restore captions that the client has from elsewhere.  Raises `Refused` if the session is full."""
        for final in finals:
            self.check_room()
            key = final.utterance, same_of(final.language, self.transcript.languages) or final.language
            if key[1] in self.transcript.languages and key not in self.transcript:
                caption = protocol.caption_of(final)
                text, source = printable(caption.text), printable(caption.source)
                caption = replace(caption, language=key[1], text=text, source=source)
                known = self.transcript.cell(key).corrected <= (final.corrected or 0)
                made = final.made or 0.0
                self.broadcast.caption(caption, 0.0, made, final.corrected or 0, known=known)
                if caption.source:
                    self._show_source(caption, caption.source, made)
                    if self.engine:  # the context of later prompts
                        lane, pair = self.lanes[caption.language], (caption.source, caption.text)
                        self.engine.post(partial(lane.remember, *pair, caption.source_language))

    def acknowledged(self, ack: protocol.Ack) -> None:
        """Record that the owner has received an utterance's end in a language."""
        language = same_of(ack.language, self.transcript.languages) or ack.language
        self.broadcast.acknowledged((ack.utterance, language), ack.corrected)

    def control(self, message: protocol.Control | protocol.Declare) -> None:
        """Pause captions for viewers, hide one, correct one, or name a speaker.

        A decision with a number may be about a caption that has not come: its client repeats it on every connection.

        Raises:
            Refused: a decision without a number is about a caption that the session does not have, or it is full.
        """
        if isinstance(message, protocol.Declare):
            for decision in newest_decisions(message.decisions):
                self.control(decision)
        elif isinstance(message, protocol.Pause):
            self.broadcast.pause(message.paused, message.decision)
        elif isinstance(message, protocol.NameSpeaker):
            if message.speaker not in self.transcript.names:
                self.check_room()
            self.broadcast.name(message.speaker, message.name, message.decision)
        else:
            self._decide(message)

    def _decide(self, message: protocol.Hide | protocol.Correct) -> None:
        utterance, counted = message.utterance, message.decision is not None
        known = self.transcript.languages
        if message.language is not None:
            languages: tuple[str | None, ...] = (same_of(message.language, known),)
        else:  # what was spoken follows its translations, unless there was a decision about it
            source = self.transcript.find((utterance, self.transcript.source))
            languages = known if source is not None and source.decided else self.targets
        if None in languages:
            if counted:  # the session began with other languages
                return
            raise Refused("caption", f"language must be one of {', '.join(known)}", "language")
        if utterance not in self.transcript.utterances:
            if not counted:
                raise Refused("caption", "utterance must be one that the session has received", "utterance")
            self.check_room()
        for language in filter(None, languages):
            if isinstance(message, protocol.Correct):
                self._correct(utterance, language, message)
            else:
                self.broadcast.hide((utterance, language), message.hidden, message.decision)

    def _correct(self, utterance: str, language: str, message: protocol.Correct) -> None:
        self.check_room()
        cell = self.transcript.find((utterance, language))
        if message.decision is None and (cell is None or cell.final is None):
            raise Refused(
                "caption", "only a final caption can be corrected, and the utterance has none in this language"
            )
        self.broadcast.correct((utterance, language), message.text, message.decision)

    def end(self) -> None:
        """End the session and its utterances: no more updates will come, except from audio that is being recognised."""
        if self.audio and self.audio.running:
            self.audio.finish(then=self.end)
            return
        self.unproven = False
        self.end_open()
        self.stream.end()
        self._finish()

    def end_open(self) -> None:
        """End the utterances that have not ended."""
        for update in list(self.stream.open.values()):
            self.accept(finished(update))

    def leave(self) -> None:
        """End the session, since its client has not come back."""
        if self.left is None:
            self.left = time.monotonic()
            self.end()

    @property
    def stuck(self) -> bool:
        """Whether its client has left, and nothing has happened since for a while."""
        if self.audio and self.audio.running:  # it has a limit of its own
            return False
        worked = [lane.worked for lane in self.lanes.values() if lane.worked is not None]
        return self.left is not None and time.monotonic() - max(self.left, *worked, 0.0) > deadlines.STUCK

    def listen(self, recognisers: Recognisers) -> SessionAudio:
        """Return its audio, whose recognisers come from ``recognisers``."""
        self.audio = self.audio or SessionAudio(
            self.name, self.begin, recognisers, self._recognised, self.broadcast.send_to_owner, self.stream.room
        )
        return self.audio

    def _recognised(self, update: events.Update, since: float | None) -> None:
        """Accept recognised text; the end of an utterance that a full session still accepts has no ``since``."""
        if since is not None:
            self.check_room()
        self.accept(update, since=since)

    # From the engine

    def answered(self, answer: Answer) -> None:
        """Send the result of an update."""
        self.stream.answered(answer)
        if self.heard:
            self.heard(answer)
        if not answer.events:  # everything was shown
            self._finish()
            return
        update, lag_ms = answer.update, round(answer.lag * 1000, 1)
        captions = [event for event in answer.events if isinstance(event, events.Caption)]
        # Captions and failures may also be of the utterance before, with the rest of its translation.
        ends = update.final and all(caption.utterance != update.utterance for caption in captions)
        for event in answer.events:
            if isinstance(event, events.Failure):
                self._publish_failure(event, answer.language, final=ends and event.utterance == update.utterance)
        for caption in captions:
            if key_of(caption) not in self.transcript:  # else restored: the client already has it
                self.broadcast.caption(caption, lag_ms)
        self._counts.add(answer.language, answer.tally, captions, answer.lag)
        self.send_stats()
        self._finish()

    def _publish_failure(self, failure: events.Failure, target: str, *, final: bool) -> None:
        key = failure.utterance or "", target
        error = protocol.Error(
            code="translation",
            message=failure.message,
            utterance=failure.utterance,
            seq=failure.seq,
            language=target,
            final=final or None,
        )
        if final and key not in self.transcript:
            self.broadcast.failed(key, error)
        else:  # to viewers it says nothing, and its caption may be hidden or held back
            self.broadcast.send_to_owner(error)

    def send_stats(self, *, last: bool = False) -> None:
        """Send statistics if they are due, or the last ones."""
        if last or self._counts.due():
            able = self.engine.scheduler.able() if self.engine else ""
            self.broadcast.send(self._counts.message(self.lanes, able).frame, "stats")

    @property
    def done(self) -> bool:
        """Whether it has ended and everything is translated."""
        return self.stream.over

    @property
    def ended(self) -> bool:
        """Whether it takes no more updates."""
        return self.stream.ended

    @property
    def quiet(self) -> bool:
        """Whether nothing is being recognised or translated, or can be, and nothing waits to be sent to its owner."""
        if self.engine and self.engine.late:
            return True
        if self.audio and self.audio.running:  # one that hangs is given up
            return False
        return not self.stream.waits and (self.broadcast.owner is None or self.broadcast.owner.empty)

    @property
    def in_use(self) -> bool:
        """Whether more captions may come: it is connected, or captions come by POST."""
        return not self.ended and (self.by_post or self.broadcast.owner is not None)

    def _finish(self) -> None:
        if self.done and not self.transcript.closed:
            self.transcript.close()
            self.release()
            self.send_stats(last=True)
            self.check_file()
            self.broadcast.end(1000, "done", protocol.Done())
            if self.over:
                self.over()

    def fail(self, code: str, sentence: str, close: int = 1011) -> None:
        """Close all connections with an error, and end the session without translating the rest."""
        self._drop_work()
        self.transcript.close()
        self.broadcast.feed = None  # viewers elsewhere stay, since another replica may continue the session
        error = protocol.Error(code=code, message=sentence, fatal=True)
        self.broadcast.end(close, sentence, error, staying=True)

    def forget(self) -> None:
        """Close everything: the session has been forgotten, and only its captions are kept."""
        self._drop_work()
        self.release()
        self.engine, self.lanes, self.heard, self.spoken = None, {}, None, None
        self.stream.close()
        if not self.transcript.closed:
            self.transcript.close()
            if self.over:
                self.over()
        self.broadcast.end(1000, "the session is over")

    def _drop_work(self) -> None:
        if self.audio:
            self.audio.close()
        self.stream.clear()

    def check_file(self) -> None:
        """Tell the owner, once, that captions are not being written."""
        late = self.file.failing or self.file.late > deadlines.DISK
        if late and not self._unwritten:
            self.broadcast.send_to_owner(protocol.Error(code="transcript", message=_UNWRITTEN))
        self._unwritten = late

    def release(self) -> None:
        """Release the lanes."""
        if self.engine:
            self.engine.remove(self.lanes.values())

    # Connections

    def attach(self, outbox: Outbox) -> None:
        """Make this the owner's connection; see `Broadcast.attach`."""
        self.touched = time.monotonic()
        self.broadcast.attach(outbox)

    def detach(self, outbox: Outbox) -> None:
        """Remove the owner's connection, which has ended."""
        if self.broadcast.owner is outbox:
            self.touched = time.monotonic()
        self.broadcast.detach(outbox)


def newest_decisions(decisions: Iterable[protocol.Control]) -> Iterable[protocol.Control]:
    """Return those of many decisions that count: the newest on each subject, since executing one may take a while."""
    found: dict[tuple[str, ...], protocol.Control] = {}
    for each in decisions:
        subject = protocol.subject_of(each)
        known = found.get(subject)
        if known is None or each.decision is None or each.decision >= (known.decision or 0):
            found.pop(subject, None)
            found[subject] = each
    return found.values()
