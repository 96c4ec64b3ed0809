"""Whisper, through faster-whisper: accurate, punctuated, many languages, slow.

Whisper recognises complete recordings.  So the growing audio of an utterance is recognised repeatedly; the prefix on
which two successive passes agree is fixed (LocalAgreement-2, Liu et al. 2020), the rest may change.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import Any

import numpy as np

from redraft.errors import ModelError, OptionError, first_sentence
from redraft.speech.audio import RATE, Samples, library
from redraft.speech.endpoint import Endpointer, Stretch
from redraft.speech.pocketsphinx import endpointer
from redraft.speech.recogniser import Hypothesis
from redraft.speech.registry import RecogniserOptions

SUMMARY = "Whisper of every size, over growing audio; punctuated, 99 languages, best with a GPU"
MODELS = {
    "tiny.en": "75 MB, English",
    "base.en": "145 MB, English; the default for English",
    "small": "480 MB, 99 languages; the default for others",
    "large-v3-turbo": "1.6 GB, 99 languages; needs a GPU",
}

#: Minimum seconds of new audio between two passes.
STEP = 1.0


def recogniser(wanted: RecogniserOptions) -> Whisper:
    """Return a recogniser with a model: a size, a folder, or a repository on the hub, which is downloaded.

    Raises:
        OptionError: the model is unknown.
        ModelError: it cannot be downloaded or opened.
        MissingExtra: the extra ``listen-whisper`` or ``listen`` is not installed.
    """
    whisper = library("faster_whisper", "listen-whisper")
    name = wanted.model or ("base.en" if wanted.language == "en" else "small")
    if name.endswith(".en"):
        wanted.check_language(f"whisper:{name}", ("en",))
    try:
        model = whisper.WhisperModel(name)
    except ValueError as error:
        raise OptionError(f"whisper has no model {name!r}: {first_sentence(error)}") from error
    except Exception as error:
        raise ModelError(f"whisper cannot open model {name!r}: {first_sentence(error)}") from error
    return Whisper(model, wanted.language, endpointer(wanted.pause))


class Whisper:
    """Recognises growing utterances pass by pass.

    Args:
        model: a ``faster_whisper.WhisperModel``.
        language: code of the spoken language.
        endpoints: detects utterances.
        clock: returns the time in seconds; a slow pass makes the next one wait for more audio, to keep up with live
            speech.
    """

    def __init__(
        self, model: Any, language: str, endpoints: Endpointer, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._model, self._language, self._endpoints, self._clock = model, language, endpoints, clock
        self._audio: list[bytes] = []
        self._new, self._step = 0.0, STEP
        self._words: list[str] = []
        self._agreed = 0

    def hear(self, samples: Samples) -> Iterator[Hypothesis]:
        """Yield what a block of audio adds."""
        for stretch in self._endpoints.hear(samples):
            yield from self._add(stretch)

    def finish(self) -> Iterator[Hypothesis]:
        """Yield the utterance that is still open, as final."""
        for stretch in self._endpoints.finish():
            yield from self._add(stretch)

    def close(self) -> None:
        """Do nothing: no resources are held."""

    def _add(self, stretch: Stretch) -> Iterator[Hypothesis]:
        if stretch.begins:
            self._audio, self._new, self._words, self._agreed = [], 0.0, [], 0
        self._audio.append(stretch.pcm)
        self._new += len(stretch.pcm) / 2 / RATE
        if stretch.ends or self._new >= self._step:
            self._new = 0.0
            yield Hypothesis(self._pass(), stretch.start, stretch.end, stretch.ends)

    def _pass(self) -> str:
        """Recognise the whole utterance again."""
        began = self._clock()
        audio = np.frombuffer(b"".join(self._audio), "<i2").astype(np.float32) / 32768
        segments, _ = self._model.transcribe(
            audio,
            language=self._language,
            beam_size=1,
            condition_on_previous_text=False,
            without_timestamps=True,
        )
        words = "".join(segment.text for segment in segments).split()
        self._step = max(STEP, self._clock() - began)
        self._words, self._agreed = agreement(self._words, self._agreed, words)
        return " ".join(self._words)


def agreement(before: Sequence[str], agreed: int, words: Sequence[str]) -> tuple[list[str], int]:
    """LocalAgreement-2: return the words after a pass, and how many of them are fixed.

    Args:
        before: the words after the previous pass.
        agreed: how many of these are fixed.
        words: the words of this pass.
    """
    now = [*before[:agreed], *words[agreed:]]
    same = takewhile(lambda pair: pair[0] == pair[1], zip(before, now, strict=False))
    return now, sum(1 for _ in same)
