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
        ends: whether the utterance ends with it; the next one then begins another.
        start: start of the utterance in seconds from the start of the audio.
        end: end of the last speech in it, as ``start``.
    """

    samples: Samples
    ends: bool
    start: float
    end: float


def stretches(
    blocks: Iterator[Samples], is_speech: Callable[[Samples], bool], pause: float = PAUSE
) -> Iterator[Stretch | float]:
    """Split audio into utterances: yield what each block adds to them, and how many seconds were heard.

    Silence between them is dropped.

    Args:
        is_speech: returns whether the next frame, `FRAME` samples, is speech.
        pause: seconds of silence that end an utterance.
    """
    rest, frames, silent = np.zeros(0, np.float32), 0, 0
    before: deque[tuple[Samples, bool]] = deque(maxlen=_BEFORE)
    start: float | None = None
    for block in blocks:
        audio = np.concatenate((rest, block))
        count = len(audio) // FRAME
        rest, new = audio[count * FRAME :], list[Samples]()
        for frame in audio[: count * FRAME].clip(-1, 1).reshape(count, FRAME):
            frames += 1
            now, speech = frames * _FRAME_SECONDS, bool(is_speech(frame))
            if start is None:
                before.append((frame, speech))
                if speech and sum(loud for _, loud in list(before)[-_WINDOW:]) >= _SPEECH:  # not a single loud frame
                    new = [kept for kept, _ in before]
                    start, silent = max(0.0, now - len(new) * _FRAME_SECONDS), 0
                    before.clear()
                continue
            new.append(frame)
            silent = 0 if speech else silent + 1
            if silent * _FRAME_SECONDS >= (pause / 2 if now - start >= LONG else pause) or now - start >= LONGEST:
                yield Stretch(np.concatenate(new), True, start, now - silent * _FRAME_SECONDS)
                new, start = [], None
        if new and start is not None:
            yield Stretch(np.concatenate(new), False, start, (frames - silent) * _FRAME_SECONDS)
        yield frames * _FRAME_SECONDS
    if start is not None:
        yield Stretch(np.zeros(0, np.float32), True, start, (frames - silent) * _FRAME_SECONDS)
