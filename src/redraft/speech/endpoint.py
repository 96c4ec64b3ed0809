"""Where an utterance begins and ends, by voice activity: recognisers without endpoints of their own share this.

A pause ends an utterance, a shorter one if the utterance has grown long, and no utterance grows without end: a
translation of more than a sentence or two comes late and flickers more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from redraft.speech.audio import RATE, Samples

#: Seconds of one decision of the detector.
FRAME_SECONDS = 0.03
#: Seconds of silence that end an utterance.
PAUSE = 0.5
#: An utterance of so many seconds ends at half a pause.
LONG = 8.0
#: An utterance of so many seconds ends wherever it is.
LONGEST = 20.0

_FRAME = round(RATE * FRAME_SECONDS)
#: Frames kept from before the beginning, since speech is noticed late, and how many of the last of them must be speech.
_BEFORE, _WINDOW, _SPEECH = 14, 8, 6


@dataclass(frozen=True, slots=True)
class Stretch:
    """Audio of an utterance that has not been heard before.

    Attributes:
        pcm: signed 16-bit samples, 16 kHz.
        begins, ends: whether it is the first or the last of its utterance; it can be both.
        start: when the utterance began, in seconds from the start of the audio.
        end: when the last speech of it was heard.
    """

    pcm: bytes
    begins: bool
    ends: bool
    start: float
    end: float


class Endpointer:
    """Cuts audio into utterances; silence between them is dropped.

    Args:
        is_speech: whether a frame of 30 ms of signed 16-bit samples is speech.
        pause: seconds of silence that end an utterance.
    """

    def __init__(self, is_speech: Callable[[bytes], bool], pause: float = PAUSE) -> None:
        self._is_speech, self._pause = is_speech, pause
        self._rest = np.zeros(0, np.float32)
        self._frames = 0
        self._before: deque[tuple[bytes, bool]] = deque(maxlen=_BEFORE)
        self._start: float | None = None
        self._silent = 0

    def hear(self, samples: Samples) -> Iterator[Stretch]:
        """What a block of audio adds to utterances."""
        audio = np.concatenate((self._rest, samples))
        count = len(audio) // _FRAME
        self._rest = audio[count * _FRAME :]
        pcm = (np.clip(audio[: count * _FRAME], -1, 1) * 32767).astype("<i2")
        new: list[bytes] = []
        begins = False
        for frame in pcm.reshape(count, _FRAME):
            self._frames += 1
            data = frame.tobytes()
            speech = bool(self._is_speech(data))
            if self._start is None:
                if not self._wakes(data, speech):
                    continue
                begins, new = True, [kept for kept, _ in self._before]
                self._start = max(0.0, self._now - len(new) * FRAME_SECONDS)
                self._before.clear()
                continue
            new.append(data)
            self._silent = 0 if speech else self._silent + 1
            if self._is_over():
                yield self._stretch(new, begins, ends=True)
                new, begins = [], False
        if new:
            yield self._stretch(new, begins, ends=False)

    def finish(self) -> Iterator[Stretch]:
        """The end of the utterance that the end of the audio has cut off, if there is one."""
        if self._start is not None:
            yield self._stretch([], begins=False, ends=True)

    @property
    def _now(self) -> float:
        return self._frames * FRAME_SECONDS

    def _wakes(self, frame: bytes, speech: bool) -> bool:
        """Whether an utterance begins with a frame: one loud moment is not speech."""
        self._before.append((frame, speech))
        return speech and sum(heard for _, heard in list(self._before)[-_WINDOW:]) >= _SPEECH

    def _is_over(self) -> bool:
        length = self._now - (self._start or 0.0)
        pause = self._pause / 2 if length >= LONG else self._pause
        return self._silent * FRAME_SECONDS >= pause or length >= LONGEST

    def _stretch(self, frames: list[bytes], begins: bool, ends: bool) -> Stretch:
        start = self._start or 0.0
        made = Stretch(b"".join(frames), begins, ends, start, self._now - self._silent * FRAME_SECONDS)
        if ends:
            self._start, self._silent = None, 0
        return made
