"""A stream of a session's audio: what a recogniser makes of it, and where that is in the stream.

Positions are numbers of samples since the stream's beginning, also of those that were lost or dropped on the way.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from time import monotonic

from redraft import protocol
from redraft.captions.events import Update
from redraft.protocol.codes import Refused
from redraft.speech.audio import RATE
from redraft.speech.buffer import AudioBuffer
from redraft.speech.process import RecogniserProcess

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
