"""Audio of a session: its streams, from its client to a recogniser, with updates and errors back.

Positions are numbers of samples since the stream's beginning, also of those that were lost or dropped on the way.

A stream outlives connections: a returning client continues at the server's position.  Audio is never stored on disk;
only the part waiting to be recognised is in memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import asdict, dataclass, field, replace
from time import monotonic

from redraft import deadlines, protocol
from redraft.captions.events import LONGEST_TEXT, Failure, Update
from redraft.captions.formats.read import finished
from redraft.protocol import BACKLOG_SECONDS
from redraft.protocol.codes import Refused
from redraft.serve.sessions.audio.recognisers import Recognisers
from redraft.speech.audio import RATE, container
from redraft.speech.buffer import AudioBuffer
from redraft.speech.process import RecogniserProcess
from redraft.speech.recogniser import Transcript
from redraft.speech.sentences import SentenceCutter
from redraft.speech.worker import Progress

#: Number of recognised utterances kept for clients that have missed them.
_KEPT = 200


@dataclass(slots=True)
class AudioStream:
    """A stream with its recogniser, or one that waits for the stream before it to end.

    Attributes:
        wanted: what its client has asked for.
        process: its recogniser, in which its audio waits from the beginning.
        time: time of the stream's first sample in seconds of the session.
        first: position of the recogniser's first sample.
        before: number of utterances before this recogniser's.
        begun: when it was asked for, in seconds of the monotonic clock.
        ended: whether no more audio follows.
        dropped: dropped samples not reported yet; while there are any, more are dropped.
        numbers: name of each of this recogniser's utterances -> its number.
        newest: utterance number -> its newest update, for recent utterances.
    """

    wanted: protocol.Audio
    process: RecogniserProcess
    time: float = field(init=False)
    first: int = field(init=False)
    before: int = field(init=False)
    begun: float = field(default_factory=monotonic)
    ended: bool = False
    dropped: int = 0
    numbers: dict[str, int] = field(default_factory=dict)
    newest: dict[int, protocol.Recognised] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.time, self.first, self.before = self.wanted.time, self.wanted.samples, self.wanted.utterance - 1

    @property
    def name(self) -> str:
        """Prefix of its utterances' names."""
        return self.wanted.stream

    @property
    def audio(self) -> AudioBuffer:
        """The audio for the recogniser."""
        return self.process.audio

    @property
    def received(self) -> int:
        """Position behind all that was received or is known to be lost."""
        return self.position(self.audio.added) + self.dropped

    def position(self, place: int, *, end: bool = False) -> int:
        """Return the position of a place in the recogniser's audio (`AudioBuffer.original`)."""
        return self.first + self.audio.original(place, end=end)

    def follow(self, other: AudioStream) -> int:
        """Continue a stream of this name whose recogniser has ended; return how many samples are missing between."""
        missing = max(0, self.wanted.samples - other.received)
        self.time, self.first = other.time, other.received + missing
        self.newest, self.before = other.newest, max(other.newest, default=other.before)
        return missing

    def takes(self, frame: bytes, behind: float, most: float, full: str) -> bool:
        """Return whether new samples are for the recogniser; others are dropped.

        Args:
            behind: seconds of audio that are not recognised yet.
            most: maximum of that, and maximum seconds that the client may be ahead of real time.  While samples are
                being dropped, half of it applies, so that the loss is one piece.
            full: the sentence for samples that are dropped since too much is not recognised.

        Raises:
            Refused: they are the first ones that are dropped.
        """
        samples = len(frame) // self.audio.width
        ahead = self.audio.added / RATE - (monotonic() - self.begun)
        if max(behind, ahead) + samples / RATE <= (most / 2 if self.dropped else most):
            return True
        self.dropped += samples
        if self.dropped > samples:
            return False
        if ahead > behind:
            full = f"audio comes too fast, {most:g} seconds ahead of speech: it is dropped until that is {most / 2:g}"
        raise Refused("audio", full)

    def arrival(self, item: Update, recognised: int) -> float:
        """Return when the newest words of the recogniser's update arrived, in seconds of the monotonic clock.

        It is the current time if the update has no new words.
        """
        last = self.newest.get(self._number(item))
        if last is not None and _words(last.text) == _words(item.text):
            return monotonic()  # an update without new words, such as a final one after a pause
        return self.audio.arrival(recognised if item.time is None else round(item.time * RATE))

    @property
    def behind(self) -> float:
        """How many seconds of the received audio are not recognised yet."""
        return (self.audio.added - self.process.recognised) / RATE

    def named(self, item: Update) -> Update:
        """Return the recogniser's update with its name and time in the session."""
        start, time = (
            round(self.time + self.position(round((each or 0.0) * RATE), end=end) / RATE, 3)
            for each, end in ((item.begun, False), (item.time, True))
        )
        return replace(item, utterance=f"{self.name}.{self._number(item)}", time=max(start, time), start=start)

    def _number(self, item: Update) -> int:
        return self.numbers.setdefault(item.utterance, self.before + len(self.numbers) + 1)

    def remember(self, update: Update, recognised: int) -> protocol.Recognised:
        """Return the message for an update, and keep it in case the client misses it."""
        about = asdict(update)  # of which the message has some
        message = protocol.Recognised(stream=self.name, recognised=self.position(recognised), **about)
        self.newest[int(update.utterance.rpartition(".")[2])] = message
        if len(self.newest) > _KEPT:
            self.newest.pop(next(iter(self.newest)))
        return message

    @property
    def open(self) -> Update | None:
        """The newest update of an unfinished utterance; None if there is none."""
        last = next(reversed(self.newest.values()), None)
        if last is None or last.final:
            return None
        return Update(**last.model_dump(exclude={"type", "stream", "recognised"}))


def _words(text: str) -> str:
    """Return a text without case and punctuation."""
    return "".join(filter(str.isalnum, text)).casefold()


log = logging.getLogger(__name__)

#: Seconds of audio without text beyond which the position is sent even if the recogniser makes no progress.
BEHIND_SECONDS = 5.0
#: Seconds by which a word may be spoken before the update that has it first.
_BEFORE = 1.0
#: Maximum bytes of a frame: two seconds.
_LONGEST_FRAME = 1 << 16
#: Maximum number of streams that wait for the one before to end.
_MOST_WAITING = 8

NO_RECOGNISER = (
    "this server does not recognise speech: send text in `update` messages, in text frames, or ask the operator to "
    "start the server with --recogniser"
)
NO_STREAM = "a binary frame is audio and must come after a message `audio`; messages are sent in text frames"
ODD = "a binary frame of audio must have an even number of bytes, two per sample"
TOO_LARGE = f"a binary frame of audio must have at most {_LONGEST_FRAME} bytes"
IDLE = f"no audio came for {deadlines.AUDIO:g} seconds, so the server has stopped listening"
FAILED = "speech recognition has failed, see the server's log"
BEHIND = f"the recogniser is {BACKLOG_SECONDS:g} seconds behind: audio is dropped until it has caught up"
WAITING_FULL = (
    f"at most {BACKLOG_SECONDS:g} seconds of audio may wait for the stream before to end: more is dropped until it has"
)
TOO_LONG = f"an utterance may have {LONGEST_TEXT} characters, and the recogniser has not ended this one by then"


class SessionAudio:
    """The audio of a session.

    Args:
        accept: accepts recognised text, with when its words arrived, in seconds of the monotonic clock; None for the
            end of an utterance after its recogniser has stopped.
        send: sends a message to the client.
        room: waits until the session can accept more updates.
    """

    def __init__(
        self,
        name: str,
        begin: protocol.Begin,
        recognisers: Recognisers,
        accept: Callable[[Update, float | None], None],
        send: Callable[[protocol.Message], None],
        room: Callable[[], Awaitable[None]],
    ) -> None:
        self._name, self._begin, self._recognisers = name, begin, recognisers
        self._accept, self._send, self._room = accept, send, room
        #: The stream at the recogniser, and the last one that was.
        self._current: AudioStream | None = None
        self._stream: AudioStream | None = None
        #: Name the recogniser's utterances, and cut its text.
        self._names, self._sentences = Transcript(), SentenceCutter()
        #: Recognises one stream after the other.
        self._task: asyncio.Task[None] | None = None
        #: The recogniser's last progress, and the position last sent to the client.
        self._last, self._sent_position = Progress(), 0
        self._closed = False
        self._first = True  # whether the next frame is the first after an `audio` message
        self._touched = monotonic()
        self._reported: set[str] = set()
        #: Streams that begin when the one before has ended, and the function to call after the last.
        self._waiting: deque[AudioStream] = deque()
        self._then: Callable[[], object] | None = None

    @property
    def running(self) -> bool:
        """Whether a recogniser is running."""
        return self._current is not None

    @property
    def hangs(self) -> bool:
        """Whether the recogniser has made no progress for a while, although it has something to do."""
        return self._current is not None and self._current.process.silent > deadlines.RECOGNISER_SILENT

    @property
    def _latest(self) -> AudioStream | None:
        """The stream of the frames that come, unless it has ended: the last that waits, or that at the recogniser."""
        return self._waiting[-1] if self._waiting else self._current

    # From the client

    def begin(self, wanted: protocol.Audio) -> None:
        """Start or resume a stream, which ends any other.  Raises `Refused` if no recogniser is free."""
        try:
            if not self._recognisers.offered:
                raise Refused("audio", NO_RECOGNISER)
            self._touched, self._first = monotonic(), True
            current, spoken = self._current, ",".join((self._begin.source_language, *self._begin.also_spoken))
            if current is not None and current.name != wanted.stream:
                self._end(current)  # its `audio_end` was lost with a connection
            if current is None:
                stream = AudioStream(wanted, self._recognisers.open(spoken))
                self._task = self._recognisers.run(self._run(stream))
                self._start(stream)
            elif current.ended:
                self._wait(AudioStream(wanted, self._recognisers.open(spoken)))
            else:
                if (lost := wanted.samples - current.received) > 0:
                    self._skip(current, lost)
                self._begun(current, wanted, lost)
        except Refused:  # the client need not wait for anything more
            self._send(protocol.Listening(stream=wanted.stream, listening=False, received=0, recognised=0))
            raise

    def _wait(self, stream: AudioStream) -> None:
        """Let a stream wait for its turn.  Raises `Refused` if too many wait."""
        last = self._waiting[-1] if self._waiting else None
        if last is not None and not last.ended and last.name == stream.name:
            self._waiting.pop()  # its client, which has reconnected, sends the audio again
        elif len(self._waiting) >= _MOST_WAITING:
            raise Refused("audio", f"at most {_MOST_WAITING} streams may wait for the one before to end")
        elif last is not None:
            self._end(last)
        self._waiting.append(stream)

    def _begun(self, stream: AudioStream, wanted: protocol.Audio, lost: int) -> None:
        """Tell the client where its stream continues, and what it may have missed."""
        self._reported.clear()
        if lost > 0:
            self._send(_error("audio", f"{lost / RATE:.1f} seconds of audio were lost on the way"))
        for number, recognised in stream.newest.items():
            if number >= wanted.utterance:
                self._send(recognised)
        self._send_position()

    def take(self, frame: bytes) -> None:
        """Accept samples.  Raises `Refused` if they cannot be used; without a stream for them, only the first time."""
        stream = self._latest
        if not self._recognisers.offered:
            self._refuse_once(NO_RECOGNISER)
        elif stream is None or stream.ended:
            self._refuse_once(NO_STREAM)
        elif len(frame) % 2 or len(frame) > _LONGEST_FRAME:
            raise Refused("audio", ODD if len(frame) % 2 else TOO_LARGE)
        elif self._first and (kind := container(frame)):
            raise Refused("audio", f"audio must be raw 16-bit samples, not a file in {kind} format")
        else:
            self._touched, self._first = monotonic(), False
            self._recognisers.metrics.audio.inc(len(frame) / 2 / RATE)
            behind = sum(each.behind for each in self._waiting or (stream,))
            if stream.takes(frame, behind, BACKLOG_SECONDS, WAITING_FULL if self._waiting else BEHIND):
                self._caught_up(stream)
                stream.process.feed(frame)

    def _caught_up(self, stream: AudioStream) -> None:
        """Report what was dropped."""
        if stream.dropped:
            dropped, stream.dropped = stream.dropped, 0
            self._skip(stream, dropped)
            self._send(_error("audio", f"{dropped / RATE:.1f} seconds of audio were dropped"))

    def _skip(self, stream: AudioStream, samples: int) -> None:
        """Continue after missing samples."""
        self._recognisers.metrics.lost_audio.inc(samples / RATE)
        stream.process.skip(samples)

    def _refuse_once(self, sentence: str) -> None:
        """Raise `Refused` only for the first of many frames."""
        if sentence not in self._reported:
            self._reported.add(sentence)
            raise Refused("audio", sentence)

    def finish(self, then: Callable[[], object] | None = None) -> None:
        """End the latest stream: finish its last utterance, then call ``then``."""
        self._then = then or self._then
        if self._latest is not None:
            self._end(self._latest)

    def _end(self, stream: AudioStream) -> None:
        """Take no more audio for a stream, and have its last utterance finished."""
        if not stream.ended:
            self._caught_up(stream)
            stream.ended = True
            stream.process.finish()

    def look_after(self) -> None:
        """End a stream that gets no more audio; report the position of a slow recogniser."""
        if self._current and self._current.behind > BEHIND_SECONDS:
            self._send_position()
        if (latest := self._latest) and not latest.ended and monotonic() - self._touched > deadlines.AUDIO:
            self._send(_error("audio", IDLE))
            self._reported.add(NO_STREAM)  # frames still in flight are no error
            self._end(latest)

    def close(self) -> None:
        """End everything immediately, because the session is over."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()

    # From the recogniser

    def _start(self, stream: AudioStream) -> None:
        """Start with a stream, which may continue the one before."""
        before, self._stream, self._current = self._stream, stream, stream
        cut = self._recognisers.settings.sentences if self._begin.sentences is None else self._begin.sentences
        self._names, self._sentences = Transcript(), SentenceCutter(whole=not cut)
        lost = stream.follow(before) if before and before.name == stream.name else 0
        self._recognisers.metrics.lost_audio.inc(lost / RATE)
        self._last, self._sent_position = Progress(), stream.first
        log.info("listening", extra={"session": self._name})
        self._begun(stream, stream.wanted, lost)

    async def _run(self, stream: AudioStream) -> None:
        """Recognise a stream, and then those that wait for it to end."""
        while True:
            try:
                async with aclosing(stream.process.progress()) as messages:  # kills the process
                    async for progress in messages:
                        await self._room()
                        if not stream.process.killed:
                            self._progressed(progress, stream)
            except Exception:
                log.exception("a recogniser failed")
                self._send(_error("audio", FAILED))
            finally:
                self._over(stream)
            if self._closed or not self._waiting:
                break
            self._start(stream := self._waiting.popleft())
        if self._then is not None and not self._closed:
            self._then()

    def _progressed(self, progress: Progress, stream: AudioStream) -> None:
        self._recognisers.metrics.recogniser_cpu.inc(max(0.0, progress.cpu - self._last.cpu))
        self._last = progress
        if isinstance(progress.item, Failure):
            sentence = progress.item.message
            log.warning(
                "a recogniser reports a problem",
                extra={"sentence": sentence} if self._recognisers.settings.log_text else {},
            )
            self._send(_error("audio", self._recognisers.public(sentence)))
        else:
            items = self._names.items([] if progress.item is None else [progress.item])
            for item in [*self._sentences.items(items), *self._sentences.passed(progress.samples / RATE)]:
                if isinstance(item, Update):
                    self._accept_update(stream.named(item), stream, stream.arrival(item, progress.samples))
        if stream.position(progress.samples) - self._sent_position >= RATE:
            self._send_position()

    def _accept_update(self, update: Update, stream: AudioStream, since: float) -> None:
        """Pass a recognised update to the session; its words arrived at ``since``."""
        try:
            if len(update.text) > LONGEST_TEXT:
                raise Refused("limit", TOO_LONG)
            self._accept(update, since)
        except Refused as refused:
            self._send(_error(refused.code, refused.sentence))
            stream.process.kill()
        else:
            self._send(stream.remember(update, self._recognised()))

    def _recognised(self) -> int:
        """Return the number of samples before the words that are in no finished sentence yet."""
        since = self._sentences.since
        return self._last.samples if since is None else min(self._last.samples, round(max(0.0, since - _BEFORE) * RATE))

    def _over(self, stream: AudioStream) -> None:
        """Clean up after the recogniser has ended for any reason."""
        self._current = None
        if not stream.ended:
            self._reported.add(NO_STREAM)  # frames still in flight are no error
        if self._closed:
            return
        self._caught_up(stream)
        if stream.open is not None:
            left = finished(stream.open)
            with suppress(Refused):
                self._accept(left, None)
                self._send(stream.remember(left, self._last.samples))
        self._send_position()

    # To the client

    def _send_position(self) -> None:
        if self._stream is None:
            return
        self._sent_position = self._stream.position(self._last.samples)
        self._send(
            protocol.Listening(
                stream=self._stream.name,
                listening=self.running,
                received=self._stream.received,
                recognised=self._sent_position,
            )
        )


def _error(code: str, sentence: str) -> protocol.Error:
    return protocol.Error(code=code, message=sentence)
