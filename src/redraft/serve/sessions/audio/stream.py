"""Streams of a session's audio: positions in one with gaps, what a recogniser was given, and those that wait.

Positions are numbers of samples since the stream's beginning; gaps are samples that were lost or dropped on the way.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from dataclasses import dataclass, field, replace
from time import monotonic

from redraft import protocol
from redraft.captions.events import Update
from redraft.protocol import BACKLOG_SECONDS
from redraft.protocol.codes import Refused
from redraft.speech.audio import RATE

#: Bytes per sample.
WIDTH = 2
#: Minimum seconds between two remembered arrivals, and for how many of them they are remembered.
_ARRIVALS_EVERY, _ARRIVALS_KEPT = 0.05, 120.0
#: Number of recognised utterances kept for clients that have missed them.
_KEPT = 200

WAITING_FULL = (
    f"at most {BACKLOG_SECONDS:g} seconds of audio may wait for the stream before to end: more is dropped until it has"
)


class Gaps:
    """Converts a recogniser's sample counts to positions in a stream with gaps, which begins at ``first``."""

    def __init__(self, first: int) -> None:
        #: Number of samples given to the recogniser.
        self.fed = 0
        #: From each of these sample counts on, the offset to add for the position.
        self._from, self._more = [0], [first]

    def skip(self, samples: int) -> int:
        """Record missing samples; return how many samples of silence the recogniser gets instead.

        It is at most a second, which ends the utterance, since what follows does not belong to it.
        """
        silence = min(samples, RATE)
        self.fed += silence
        self._from.append(self.fed)
        self._more.append(self._more[-1] + samples - silence)
        return silence

    def position(self, fed: int, *, end: bool = False) -> int:
        """Return the position in the stream after ``fed`` samples of the recogniser.

        If samples are missing there, it is the position after them or, with ``end``, before them.
        """
        place = bisect_left(self._from, fed) if end else bisect_right(self._from, fed)
        return fed + self._more[max(0, place - 1)]


@dataclass(slots=True)
class AudioStream:
    """A stream at one recogniser.

    Attributes:
        name: prefix of its utterances' names.
        time: time of its first sample in seconds of the session.
        received: number of samples received or known to be lost.
        gaps: what the recogniser has been given.
        ended: number of utterances before this recogniser's.
        begun: when the recogniser was opened, in seconds of the monotonic clock.
        arrivals: samples given to the recogniser so far, and when the last of them arrived, in order.
        numbers: name of each of this recogniser's utterances -> its number.
        newest: utterance number -> its newest update, for recent utterances.
        dropped: dropped samples not reported yet; while there are any, more are dropped.
    """

    name: str
    time: float
    received: int
    gaps: Gaps
    ended: int
    begun: float = field(default_factory=monotonic)
    arrivals: deque[tuple[int, float]] = field(default_factory=deque)
    numbers: dict[str, int] = field(default_factory=dict)
    newest: dict[int, protocol.Recognised] = field(default_factory=dict)
    dropped: int = 0

    @classmethod
    def wanted(cls, wanted: protocol.Audio) -> AudioStream:
        """Create the stream that a client asks for."""
        return cls(wanted.stream, wanted.time, wanted.samples, Gaps(wanted.samples), wanted.utterance - 1)

    def again(self) -> AudioStream:
        """Return this stream for a new recogniser."""
        ended = max(self.newest, default=self.ended)
        fresh = AudioStream(self.name, self.time, self.received, Gaps(self.received), ended)
        fresh.newest = self.newest
        return fresh

    def receive(self, samples: int, recognised: int, most: float) -> None:
        """Record new samples, which go to the recogniser or are dropped.

        Args:
            most: maximum seconds that the recogniser may be behind, or the client ahead of real time.  While samples
                are being dropped, half of it applies, so that the loss is one piece.

        Raises:
            Refused: they are dropped.
        """
        self.received += samples
        behind = self.behind(recognised) + samples / RATE
        ahead = (self.gaps.fed + samples) / RATE - (monotonic() - self.begun)
        if max(behind, ahead) <= (most / 2 if self.dropped else most):
            return
        self.dropped += samples
        if behind >= ahead:
            why = f"the recogniser is {most:g} seconds behind: audio is dropped until it has caught up"
        else:
            why = f"audio comes too fast, {most:g} seconds ahead of speech: it is dropped until that is {most / 2:g}"
        raise Refused("audio", why)

    def feed(self, samples: int, now: float) -> None:
        """Record that the recogniser is given samples that arrived ``now``, in seconds of the monotonic clock."""
        self.gaps.fed += samples
        known = self.arrivals
        if known and now - known[-1][1] < _ARRIVALS_EVERY:
            known[-1] = self.gaps.fed, known[-1][1]
            return
        known.append((self.gaps.fed, now))
        while now - known[0][1] > _ARRIVALS_KEPT:
            known.popleft()

    def arrival(self, item: Update, recognised: int) -> float:
        """Return when the newest words of the recogniser's update arrived, in seconds of the monotonic clock.

        It is the current time if the update has no new words.
        """
        last = self.newest.get(self._number(item))
        if last is not None and _words(last.text) == _words(item.text):
            return monotonic()  # an update without new words, such as a final one after a pause
        end = recognised if item.time is None else round(item.time * RATE)
        return next((when for fed, when in self.arrivals if fed >= end), monotonic())

    def behind(self, recognised: int) -> float:
        """Return how many seconds of the received audio are not recognised yet."""
        return (self.gaps.fed - recognised) / RATE

    def named(self, item: Update) -> Update:
        """Return the recogniser's update with its name and time in the session."""
        start, time = (
            round(self.time + self.gaps.position(round((each or 0.0) * RATE), end=end) / RATE, 3)
            for each, end in ((item.begun, False), (item.time, True))
        )
        return replace(item, utterance=f"{self.name}.{self._number(item)}", time=max(start, time), start=start)

    def _number(self, item: Update) -> int:
        return self.numbers.setdefault(item.utterance, self.ended + len(self.numbers) + 1)

    def remember(self, update: Update, recognised: int) -> protocol.Recognised:
        """Return the message for an update, and keep it in case the client misses it."""
        message = protocol.Recognised(
            stream=self.name,
            recognised=self.gaps.position(recognised),
            utterance=update.utterance,
            seq=update.seq,
            text=update.text,
            final=update.final,
            time=update.time,
            start=update.start,
            speaker=update.speaker,
            language=update.language,
        )
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
        about = last.speaker, None, False, last.language, last.start
        return Update(last.utterance, last.seq, last.text, False, last.time, *about)


@dataclass(slots=True)
class WaitingStream:
    """A stream that begins when the one before has ended.

    Attributes:
        frames: its audio, each frame with its arrival.
        samples: number of samples in them.
        lost: number of samples after them that were dropped.
        ended: whether no more follow.
        begun: when it was asked for, in seconds of the monotonic clock, like all arrivals.
    """

    wanted: protocol.Audio
    frames: list[tuple[bytes, float]] = field(default_factory=list)
    samples: int = 0
    lost: int = 0
    ended: bool = False
    begun: float = field(default_factory=monotonic)

    def take(self, frame: bytes, *, room: bool) -> None:
        """Keep a frame if there is room.  Raises `Refused` for the first that is dropped."""
        samples = len(frame) // WIDTH
        if room and not self.lost:
            self.frames.append((frame, monotonic()))
            self.samples += samples
            return
        self.lost += samples
        if self.lost == samples:
            raise Refused("audio", WAITING_FULL)


def _words(text: str) -> str:
    """Return a text without case and punctuation."""
    return "".join(filter(str.isalnum, text)).casefold()
