"""Speech in sessions: the operator's recogniser, and the streams of audio from a client to it.

Every stream of audio has a recogniser in a separate process.  Some recognisers hold the interpreter lock, which would
block the event loop and the captions of all sessions; streams of others influence each other within a process
(`redraft.speech.moonshine`); and a crash of one must not crash the server.

Positions are numbers of samples since the stream's beginning, also of those that were lost or dropped on the way.

A stream outlives connections: a returning client continues at the server's position.  Audio is never stored on disk;
only the part waiting to be recognised is in memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing, suppress
from dataclasses import asdict, replace
from time import monotonic
from typing import Any

from redraft import deadlines, protocol
from redraft.captions.events import LONGEST_TEXT, Update
from redraft.captions.formats.read import finished
from redraft.captions.languages import parse_language
from redraft.captions.words import bare_words
from redraft.errors import OptionError, RedraftError
from redraft.protocol import BACKLOG_SECONDS
from redraft.protocol.codes import Refused
from redraft.serve.metrics import Metrics
from redraft.serve.settings import ServeSettings
from redraft.speech.audio import RATE, container
from redraft.speech.endpoint import PAUSE
from redraft.speech.process import IsolatedRecogniser, RecogniserProcess
from redraft.speech.recogniser import Transcript
from redraft.speech.registry import check_recogniser
from redraft.speech.sentences import SentenceCutter
from redraft.speech.worker import Progress, command


class Recognisers:
    """Opens recognisers for sessions."""

    def __init__(self, settings: ServeSettings, metrics: Metrics) -> None:
        self.settings, self.metrics = settings, metrics
        #: Returns the command of a recogniser's process for a language.
        self.command: Callable[[str], Sequence[str]] = lambda language: command_of(settings, language)
        self._tasks: set[asyncio.Task[None]] = set()
        metrics.gauge("redraft_listening", "Sessions whose speech is being recognised", lambda: self.taken)

    @property
    def taken(self) -> int:
        """Number of places in use: one for each task of `run`."""
        return sum(not task.done() for task in self._tasks)

    def open(self, language: str) -> RecogniserProcess:
        """Return a recogniser, to be started in a task of `run`."""
        return RecogniserProcess(
            self.command(language),
            opens=deadlines.RECOGNISER_OPENS,
            stalled=deadlines.STALLED_AT_SERVER,
            details=self.settings.log_text,
        )

    def public(self, sentence: str) -> str:
        """Return a recogniser's message for clients, without the operator's paths and addresses."""
        name, _, place = (self.settings.recogniser or "").partition(":")
        for private, word in ((place.rstrip("/"), name), (self.settings.punctuation or "", "punctuation")):
            if private:
                sentence = sentence.replace(f"{private}/ ", f"{word} ").replace(private, word)
        return sentence

    def run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task that takes a place until it ends.

        Raises:
            Refused: all places are taken.
        """
        if self.taken >= self.settings.listeners:
            work.close()
            raise Refused(
                "capacity",
                f"all {self.settings.listeners} places for speech recognition on this server are taken: try again "
                "later, or send text",
            )
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """Stop all recognisers, and wait until their processes have ended."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def command_of(settings: ServeSettings, language: str) -> list[str]:
    """Return the command of a recogniser's process."""
    return command(settings.recogniser or "", language, PAUSE, settings.punctuation)


def check_recognition(settings: ServeSettings) -> None:
    """Raise `OptionError` if no recogniser has this name, or a punctuation model is set without one."""
    if settings.recogniser is not None:
        check_recogniser(settings.recogniser)
    elif settings.punctuation is not None:
        raise OptionError("punctuation is for recognised text, so it needs the setting recogniser")


def try_recogniser(settings: ServeSettings, languages: Sequence[str]) -> None:
    """Open the recogniser once, so that errors appear at start-up.

    Args:
        languages: source languages of the model, if it declares them.

    Raises:
        OptionError: the recogniser cannot be used.
    """
    if settings.recogniser is None:
        return
    language = parse_language(languages[0] if languages else "en").code
    try:
        opens, details = deadlines.RECOGNISER_OPENS, settings.log_text
        IsolatedRecogniser(RecogniserProcess(command_of(settings, language), opens=opens, details=details)).close()
    except RedraftError as error:
        # If the model declares no languages, the recogniser may still support another one.
        if languages or not isinstance(error, OptionError):
            raise OptionError(f"recogniser {settings.recogniser!r} cannot be used: {error}") from None


#: Number of recognised utterances kept for clients that have missed them.
_KEPT = 200


class AudioStream:
    """A stream with its recogniser, or one that waits for the stream before it to end.

    Attributes:
        process: its recogniser, in which its audio waits from the beginning.
        transcript: what is recognised, as updates; its utterances are numbered anew for the client.
        time: time of the stream's first sample in seconds of the session.
        first: position of the recogniser's first sample.
        before: number of utterances before this recogniser's.
        begun: when it was asked for, in seconds of the monotonic clock.
        ended: whether no more audio follows.
        over: whether its recogniser has ended.
        dropped: dropped samples not reported yet; while there are any, more are dropped.
        numbers: name of each of this recogniser's utterances -> its number.
        newest: utterance number -> its newest update, for recent utterances.
        last: the newest of them all.
    """

    def __init__(self, wanted: protocol.Audio, process: RecogniserProcess, *, whole: bool = False) -> None:
        self.wanted, self.name, self.process = wanted, wanted.stream, process
        self.sentences = SentenceCutter(whole=whole)
        self.transcript = Transcript(self.sentences)
        self.time, self.first, self.before = wanted.time, wanted.samples, wanted.utterance - 1
        self.begun, self.ended, self.over, self.dropped = monotonic(), False, False, 0
        self.numbers: dict[str, int] = {}
        self.newest: dict[int, protocol.Recognised] = {}
        self.last: Update | None = None
        self.progress = Progress()

    @property
    def received(self) -> int:
        """Position behind all that was received or is known to be lost."""
        return self.position(self.process.audio.added) + self.dropped

    def position(self, place: int, *, end: bool = False) -> int:
        """Return the position of a place in the recogniser's audio (`AudioBuffer.original`)."""
        return self.first + self.process.audio.original(place, end=end)

    def follow(self, other: AudioStream) -> int:
        """Continue a stream of this name whose recogniser has ended; return how many samples are missing between."""
        missing = max(0, self.wanted.samples - other.received)
        self.time, self.first = other.time, other.received + missing
        self.newest, self.before = other.newest, max(other.newest, default=other.before)
        return missing

    def arrival(self, item: Update, recognised: int) -> float:
        """Return when the newest words of the recogniser's update arrived, in seconds of the monotonic clock.

        It is the current time if the update has no new words.
        """
        last = self.newest.get(self._number(item))
        if last is not None and bare_words(last.text) == bare_words(item.text):
            return monotonic()  # an update without new words, such as a final one after a pause
        return self.process.audio.arrival(recognised if item.time is None else round(item.time * RATE))

    @property
    def behind(self) -> float:
        """How many seconds of the received audio are not recognised yet."""
        return (self.process.audio.added - self.process.recognised) / RATE

    @property
    def recognised(self) -> int:
        """How many samples are before the words that are in no finished sentence yet."""
        samples, since = self.progress.samples, self.sentences.since
        return samples if since is None or self.over else min(samples, round(max(0.0, since - _BEFORE) * RATE))

    def named(self, item: Update) -> Update:
        """Return the recogniser's update with its name and time in the session."""
        start, time = (
            round(self.time + self.position(round((each or 0.0) * RATE), end=end) / RATE, 3)
            for each, end in ((item.begun, False), (item.time, True))
        )
        return replace(item, utterance=f"{self.name}.{self._number(item)}", time=max(start, time), start=start)

    def _number(self, item: Update) -> int:
        return self.numbers.setdefault(item.utterance, self.before + len(self.numbers) + 1)

    def remember(self, update: Update) -> protocol.Recognised:
        """Return the message for an update, and keep it in case the client misses it."""
        about = asdict(update)  # of which the message has some
        message = protocol.Recognised(stream=self.name, recognised=self.position(self.recognised), **about)
        self.newest[int(update.utterance.rpartition(".")[2])], self.last = message, update
        if len(self.newest) > _KEPT:
            self.newest.pop(next(iter(self.newest)))
        return message


log = logging.getLogger(__name__)

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
BAD_FRAME = f"a binary frame of audio must have two bytes per sample, and at most {_LONGEST_FRAME} bytes"
IDLE = f"no audio came for {deadlines.AUDIO:g} seconds, so the server has stopped listening"
FAILED = "speech recognition has failed, see the server's log"
FULL = (
    f"at most {BACKLOG_SECONDS:g} seconds of audio may wait for the recogniser, or be ahead of speech: more is dropped "
    "until only half as many do"
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
        #: The stream at the recogniser, or the last one that was; then those that begin when it has ended.  The client
        #: may send frames of the last one.
        self._streams: list[AudioStream] = []
        #: Recognises one stream after the other; and the function to call after the last.
        self._task: asyncio.Task[None] | None = None
        self._then: Callable[[], object] | None = None
        self._touched = monotonic()
        self._first = True  # whether the next frame is the first after an `audio` message
        self._reported: set[str] = set()

    @property
    def running(self) -> bool:
        """Whether a recogniser is running."""
        return bool(self._streams) and not self._streams[0].over

    # From the client

    def begin(self, wanted: protocol.Audio) -> None:
        """Start or resume a stream, which ends any other.  Raises `Refused` if no recogniser is free."""
        try:
            if self._recognisers.settings.recogniser is None:
                raise Refused("audio", NO_RECOGNISER)
            self._touched, self._first = monotonic(), True
            current = self._streams[0] if self.running else None
            if current is not None and current.name == wanted.stream and not current.ended:
                if (lost := wanted.samples - current.received) > 0:
                    self._skip(current, lost)
                self._begun(current, wanted, lost)
                return
            spoken = ",".join((self._begin.source_language, *self._begin.also_spoken))
            cut = self._recognisers.settings.sentences if self._begin.sentences is None else self._begin.sentences
            stream = AudioStream(wanted, self._recognisers.open(spoken), whole=not cut)
            if current is not None:
                self._wait(stream)
            else:
                self._task = self._recognisers.run(self._run())
                self._streams.append(stream)
                self._start()
        except Refused:  # the client need not wait for anything more
            self._send(protocol.Listening(stream=wanted.stream, listening=False, received=0, recognised=0))
            raise

    def _wait(self, stream: AudioStream) -> None:
        """Let a stream wait for its turn.  Raises `Refused` if too many wait."""
        last = self._streams[-1]
        if not last.ended and last.name == stream.name:
            self._streams.pop()  # its client, which has reconnected, sends the audio again
        elif len(self._streams) > _MOST_WAITING:
            raise Refused("audio", f"at most {_MOST_WAITING} streams may wait for the one before to end")
        else:
            self._end(last)  # its `audio_end` was lost with a connection
        self._streams.append(stream)

    def _begun(self, stream: AudioStream, wanted: protocol.Audio, lost: int) -> None:
        """Tell the client where its stream continues, and what it may have missed."""
        self._reported.clear()
        if lost > 0:
            self._fail(f"{lost / RATE:.1f} seconds of audio were lost on the way")
        for number, recognised in stream.newest.items():
            if number >= wanted.utterance:
                self._send(recognised)
        self._send_position(stream)

    def take(self, frame: bytes) -> None:
        """Accept samples, or drop them if too many wait.

        Raises:
            Refused: they cannot be used; or, only the first time, they are dropped, or there is no stream for them.
        """
        stream = self._streams[-1] if self._streams else None
        if self._recognisers.settings.recogniser is None:
            self._refuse_once(NO_RECOGNISER)
        elif stream is None or stream.ended or stream.over:
            self._refuse_once(NO_STREAM)
        elif len(frame) % 2 or len(frame) > _LONGEST_FRAME:
            raise Refused("audio", BAD_FRAME)
        elif self._first and (kind := container(frame)):
            raise Refused("audio", f"audio must be raw 16-bit samples, not a file in {kind} format")
        else:
            self._touched, self._first = monotonic(), False
            samples = len(frame) // 2
            self._recognisers.metrics.audio.inc(samples / RATE)
            behind = sum(each.behind for each in self._streams[1:] or [stream])
            ahead = stream.process.audio.added / RATE - (monotonic() - stream.begun)
            # While samples are being dropped, half of the limit applies, so that the loss is one piece.
            if max(behind, ahead) + samples / RATE <= (BACKLOG_SECONDS / 2 if stream.dropped else BACKLOG_SECONDS):
                self._caught_up(stream)
                stream.process.feed(frame)
                return
            stream.dropped += samples
            if stream.dropped == samples:
                raise Refused("audio", FULL)

    def _caught_up(self, stream: AudioStream) -> None:
        """Report what was dropped."""
        if stream.dropped:
            dropped, stream.dropped = stream.dropped, 0
            self._skip(stream, dropped)
            self._fail(f"{dropped / RATE:.1f} seconds of audio were dropped")

    def _skip(self, stream: AudioStream, samples: int) -> None:
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
        if self._streams:
            self._end(self._streams[-1])

    def _end(self, stream: AudioStream) -> None:
        """Take no more audio for a stream, and have its last utterance finished."""
        if not (stream.ended or stream.over):
            self._caught_up(stream)
            stream.ended = True
            stream.process.finish()

    def look_after(self) -> None:
        """Report the position, and end a stream that gets no more audio; to be called every second."""
        if not self.running:
            return
        self._send_position(self._streams[0])
        if not self._streams[-1].ended and monotonic() - self._touched > deadlines.AUDIO:
            self._fail(IDLE)
            self._reported.add(NO_STREAM)  # frames still in flight are no error
            self._end(self._streams[-1])

    def close(self) -> None:
        """End everything immediately, because the session is over."""
        if self._task is not None:
            self._task.cancel()
            self._streams[0].over = True
            del self._streams[1:]

    # From the recogniser

    def _start(self) -> None:
        """Start with the next stream, which may continue the one before, if there was one."""
        *before, stream = self._streams[:2]
        del self._streams[: len(before)]
        lost = stream.follow(before[0]) if before and before[0].name == stream.name else 0
        self._recognisers.metrics.lost_audio.inc(lost / RATE)
        log.info("listening", extra={"session": self._name})
        self._begun(stream, stream.wanted, lost)

    async def _run(self) -> None:
        """Recognise a stream, and then those that wait for it to end."""
        while True:
            stream = self._streams[0]
            try:
                async with aclosing(stream.process.progress()) as messages:  # kills the process
                    async for progress in messages:
                        await self._room()
                        if not stream.process.killed:
                            self._progressed(progress, stream)
            except Exception:
                log.exception("a recogniser failed")
                self._fail(FAILED)
            finally:
                self._over(stream)
            if len(self._streams) == 1:
                break
            self._start()
        if self._then is not None:
            self._then()

    def _progressed(self, progress: Progress, stream: AudioStream) -> None:
        self._recognisers.metrics.recogniser_cpu.inc(progress.cpu)
        stream.progress = progress
        for item in [*stream.transcript.items(progress.recognised)]:  # then it is known which sentences go on
            if isinstance(item, Update):
                self._accept_update(stream, stream.named(item), stream.arrival(item, progress.samples))
            else:
                extra = {"sentence": item.message} if self._recognisers.settings.log_text else {}
                log.warning("a recogniser reports a problem", extra=extra)
                self._fail(self._recognisers.public(item.message))

    def _accept_update(self, stream: AudioStream, update: Update, since: float) -> None:
        """Pass a recognised update to the session; its words arrived at ``since``."""
        try:
            if len(update.text) > LONGEST_TEXT:
                raise Refused("limit", TOO_LONG)
            self._accept(update, since)
        except Refused as refused:
            self._fail(refused.sentence, refused.code)
            stream.process.kill()
        else:
            self._send(stream.remember(update))

    def _over(self, stream: AudioStream) -> None:
        """Clean up after the recogniser has ended for any reason."""
        stream.over = True
        if not stream.ended:
            self._reported.add(NO_STREAM)  # frames still in flight are no error
        self._caught_up(stream)
        if stream.last is not None and not stream.last.final:
            left = finished(stream.last)
            with suppress(Refused):
                self._accept(left, None)
                self._send(stream.remember(left))
        self._send_position(stream)

    # To the client

    def _fail(self, sentence: str, code: str = "audio") -> None:
        self._send(protocol.Error(code=code, message=sentence))

    def _send_position(self, stream: AudioStream) -> None:
        recognised = stream.position(stream.progress.samples)
        listening, received = self.running, stream.received
        self._send(
            protocol.Listening(stream=stream.name, listening=listening, received=received, recognised=recognised)
        )
