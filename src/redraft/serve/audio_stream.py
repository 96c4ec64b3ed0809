"""A stream of audio: what has come of it, what of that a recogniser gets, and what was recognised.

Positions count samples from the beginning of a stream, which outlives connections and recognisers.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field, replace
from time import monotonic

from redraft.captions.events import Update
from redraft.serve import protocol
from redraft.speech.audio import RATE

#: Bytes of a sample.
WIDTH = 2
#: Recognised utterances that are kept for a client that has missed them.
_KEPT = 200


class Gaps:
    """Turns what a recogniser counts into positions in a stream of which it does not get everything.

    Args:
        first: position of the first sample that it gets.
    """

    def __init__(self, first: int) -> None:
        #: How many samples it was given.
        self.fed = 0
        #: From so many of its samples on, so many more make the position.
        self._from, self._more = [0], [first]

    def skip(self, samples: int) -> int:
        """Note that samples are missing here; how many of silence the recogniser gets in their place.

        It is at most a second, which ends the utterance: what follows does not belong to it.
        """
        silence = min(samples, RATE)
        self.fed += silence
        self._from.append(self.fed)
        self._more.append(self._more[-1] + samples - silence)
        return silence

    def position(self, fed: int, *, end: bool = False) -> int:
        """The position in the stream after so many samples of the recogniser.

        Where samples are missing there, it is the one after them, or with ``end`` the one before.
        """
        place = bisect_left(self._from, fed) if end else bisect_right(self._from, fed)
        return fed + self._more[max(0, place - 1)]


@dataclass(slots=True)
class AudioStream:
    """A stream, at a recogniser.

    Attributes:
        name: what its utterances are named after.
        time: when its first sample was spoken, in seconds of the session.
        received: how many samples have come, or are known to be lost.
        gaps: what the recogniser has been given.
        ended: how many utterances there were before those of this recogniser.
        begun: when that was opened, in seconds of the monotonic clock.
        newest: newest update of the last utterances, by number.
        dropped: samples that were dropped and not told of yet; more are dropped while there are any.
    """

    name: str
    time: float
    received: int
    gaps: Gaps
    ended: int
    begun: float = field(default_factory=monotonic)
    newest: dict[int, protocol.Recognised] = field(default_factory=dict)
    dropped: int = 0

    @classmethod
    def wanted(cls, wanted: protocol.Audio) -> AudioStream:
        """A new one."""
        return cls(wanted.stream, wanted.time, wanted.samples, Gaps(wanted.samples), wanted.utterance - 1)

    def again(self) -> AudioStream:
        """The same one, at another recogniser."""
        ended = max(self.newest, default=self.ended)
        return replace(self, gaps=Gaps(self.received), ended=ended, begun=monotonic(), dropped=0)

    def refusal(self, samples: int, recognised: int, most: float) -> str:
        """Why so many samples more are dropped, in a sentence; empty if they may go to the recogniser.

        Args:
            samples: how many have come now.
            recognised: how many the recogniser has done.
            most: seconds for which the recogniser may be behind, or the client ahead of speech.  Once that is passed,
                half of it counts, so that what is lost is one piece.
        """
        self.received += samples
        behind = (self.gaps.fed + samples - recognised) / RATE
        ahead = (self.gaps.fed + samples) / RATE - (monotonic() - self.begun)
        if max(behind, ahead) <= (most / 2 if self.dropped else most):
            return ""
        self.dropped += samples
        if behind >= ahead:
            return f"the recogniser is {most:g} seconds behind: audio is dropped until it has caught up"
        return f"audio comes too fast, {most:g} seconds ahead of speech: it is dropped until that is {most / 2:g}"

    def skipped(self, samples: int) -> bytes:
        """The silence that stands for samples that are missing."""
        return bytes(WIDTH * self.gaps.skip(samples))

    def heard(self, item: Update) -> Update:
        """What its recogniser says, with name and time as of the session."""
        begins = item.seq == 0 and not item.final  # such an update has the time of the utterance's beginning
        when = self.time + self.gaps.position(round((item.time or 0.0) * RATE), end=not begins) / RATE
        name = f"{self.name}.{self.ended + int(item.utterance)}"
        return replace(item, utterance=name, time=round(when, 3))

    def remember(self, update: Update, recognised: int) -> protocol.Recognised:
        """The message about an update; kept, in case that the client misses it."""
        message = protocol.Recognised(
            stream=self.name,
            recognised=self.gaps.position(recognised),
            utterance=update.utterance,
            seq=update.seq,
            text=update.text,
            final=update.final,
            time=update.time,
        )
        self.newest[int(update.utterance.rpartition(".")[2])] = message
        if len(self.newest) > _KEPT:
            self.newest.pop(next(iter(self.newest)))
        return message

    @property
    def open(self) -> Update | None:
        """The update of an utterance that has not ended."""
        last = next(reversed(self.newest.values()), None)
        if last is None or last.final:
            return None
        return Update(last.utterance, last.seq, last.text, time=last.time)
