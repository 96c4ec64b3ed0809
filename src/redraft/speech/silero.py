"""Silero's voice activity detector, whose network is in the wheel of faster-whisper; it runs frame by frame."""

from __future__ import annotations

import numpy as np

from redraft.speech.audio import Samples, library
from redraft.speech.endpoint import Endpointer

#: Samples before a frame that the network sees again.
_CONTEXT = 64
#: Probability from which a frame is speech, in silence and in speech; Silero's own thresholds.
_STARTS, _CONTINUES = 0.5, 0.35


def endpointer(pause: float) -> Endpointer:
    """Return a detector of utterances.

    Args:
        pause: seconds of silence that end an utterance.

    Raises:
        MissingExtra: the extra ``listen-whisper`` is not installed.
    """
    return Endpointer(SpeechDetector(), pause)


class SpeechDetector:
    """Detects speech in one stream; the network's state is carried from frame to frame.

    Raises:
        MissingExtra: the extra ``listen-whisper`` is not installed.
    """

    def __init__(self) -> None:
        self._run = library("faster_whisper.vad", "listen-whisper").get_vad_model().session.run
        self._state: list[Samples] = [np.zeros((1, 1, 128), np.float32)] * 2
        self._context = np.zeros(_CONTEXT, np.float32)
        self._speaking = False

    def __call__(self, frame: bytes) -> bool:
        """Return whether the next frame is speech: `redraft.speech.endpoint.FRAME` signed 16-bit samples."""
        samples: Samples = np.frombuffer(frame, "<i2").astype(np.float32) / np.float32(32768)
        given = np.concatenate((self._context, samples))[None]
        hidden, cell = self._state
        probability, *self._state = self._run(None, {"input": given, "h": hidden, "c": cell})
        self._context = samples[-_CONTEXT:]
        self._speaking = bool(probability.item() >= (_CONTINUES if self._speaking else _STARTS))
        return self._speaking
