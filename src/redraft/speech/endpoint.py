"""Detect utterances by voice activity, for recognisers without endpoint detection.

A pause ends an utterance; a long utterance ends at a shorter pause, and its length is limited: translations of more
than one or two sentences are late and flicker more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from redraft.speech.audio import RATE, Samples

#: Samples in a frame of the detector: 32 ms.
FRAME = 512
#: Default pause that ends an utterance, in seconds.
PAUSE = 0.5
#: Seconds after which half a pause ends an utterance.
LONG = 8.0
#: Maximum length of an utterance in seconds.
LONGEST = 20.0

_FRAME_SECONDS = FRAME / RATE
#: Frames kept from before the start, since speech is detected late; then the window of frames, and how many of them
#: must be speech.
_BEFORE, _WINDOW, _SPEECH = 14, 8, 6


@dataclass(frozen=True, slots=True)
class Stretch:
    """New audio of an utterance.

    Attributes:
        samples: the audio.
        begins: whether the utterance starts with it.
        ends: whether the utterance ends with it.
        start: start of the utterance in seconds from the start of the audio.
        end: end of the last speech in it, as ``start``.
    """

    samples: Samples
    begins: bool
    ends: bool
    start: float
    end: float


class Endpointer:
    """Splits audio into utterances; silence between them is dropped.

    Args:
        is_speech: returns whether the next frame, `FRAME` samples, is speech.
        pause: seconds of silence that end an utterance.
    """

    def __init__(self, is_speech: Callable[[Samples], bool], pause: float = PAUSE) -> None:
        self._is_speech, self._pause = is_speech, pause
        self._rest = np.zeros(0, np.float32)
        self._frames = 0
        self._before: deque[tuple[Samples, bool]] = deque(maxlen=_BEFORE)
        self._start: float | None = None
        self._silent = 0

    def hear(self, samples: Samples) -> Iterator[Stretch]:
        """Yield what a block of audio adds to utterances."""
        audio = np.concatenate((self._rest, samples))
        count = len(audio) // FRAME
        self._rest = audio[count * FRAME :]
        new: list[Samples] = []
        begins = False
        for frame in audio[: count * FRAME].clip(-1, 1).reshape(count, FRAME):
            self._frames += 1
            speech = bool(self._is_speech(frame))
            if self._start is None:
                if not self._wakes(frame, speech):
                    continue
                begins, new = True, [kept for kept, _ in self._before]
                self._start = max(0.0, self._now - len(new) * _FRAME_SECONDS)
                self._before.clear()
                continue
            new.append(frame)
            self._silent = 0 if speech else self._silent + 1
            if self._is_over():
                yield self._stretch(new, begins, ends=True)
                new, begins = [], False
        if new:
            yield self._stretch(new, begins, ends=False)

    def finish(self) -> Iterator[Stretch]:
        """Yield the end of the utterance that is still open, if any."""
        if self._start is not None:
            yield self._stretch([], begins=False, ends=True)

    @property
    def _now(self) -> float:
        return self._frames * _FRAME_SECONDS

    def _wakes(self, frame: Samples, speech: bool) -> bool:
        """Whether an utterance starts with a frame; a single loud frame does not count."""
        self._before.append((frame, speech))
        return speech and sum(loud for _, loud in list(self._before)[-_WINDOW:]) >= _SPEECH

    def _is_over(self) -> bool:
        length = self._now - (self._start or 0.0)
        pause = self._pause / 2 if length >= LONG else self._pause
        return self._silent * _FRAME_SECONDS >= pause or length >= LONGEST

    def _stretch(self, frames: list[Samples], begins: bool, ends: bool) -> Stretch:
        start, none = self._start or 0.0, np.zeros(0, np.float32)
        made = Stretch(np.concatenate((none, *frames)), begins, ends, start, self._now - self._silent * _FRAME_SECONDS)
        if ends:
            self._start, self._silent = None, 0
        return made
