"""PocketSphinx: small, old, and always at hand, since its wheel carries an English model.

It needs no download and a fraction of a core, and it misunderstands many words: docs/listen.md has what was measured.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from redraft.errors import OptionError
from redraft.speech.audio import RATE, Samples, library
from redraft.speech.endpoint import FRAME_SECONDS, Endpointer, Stretch
from redraft.speech.recogniser import Hypothesis
from redraft.speech.registry import RecogniserOptions

SUMMARY = "small English recogniser that needs no download; misunderstands many words"
MODELS: dict[str, str] = {}
LANGUAGES = ("en",)
#: How strictly the detector tells speech from noise, from 0 to 3.
_STRICTNESS = 3
_I = re.compile(r"\bi\b")


def recogniser(wanted: RecogniserOptions) -> PocketSphinx:
    """A recogniser of English.

    Raises:
        OptionError: a model is named, or another language is spoken.
        MissingExtra: the extra ``listen`` is not installed.
    """
    if wanted.model:
        raise OptionError(f"pocketsphinx has one model, so leave {wanted.model!r} out")
    wanted.check_language("pocketsphinx", LANGUAGES)
    return PocketSphinx(wanted.pause)


def endpointer(pause: float) -> Endpointer:
    """Finds utterances with the WebRTC detector that comes with PocketSphinx."""
    vad = library("pocketsphinx").Vad(_STRICTNESS, RATE, FRAME_SECONDS)
    return Endpointer(vad.is_speech, pause)


class PocketSphinx:
    """Recognises English speech with the model of the wheel.

    Args:
        pause: seconds of silence that end an utterance.
    """

    def __init__(self, pause: float) -> None:
        self._endpointer = endpointer(pause)
        self._decoder = library("pocketsphinx").Decoder(samprate=RATE, loglevel="FATAL")

    def hear(self, samples: Samples) -> Iterator[Hypothesis]:
        """What a block of audio adds."""
        for stretch in self._endpointer.hear(samples):
            yield self._decode(stretch)

    def finish(self) -> Iterator[Hypothesis]:
        """The utterance that is still open, ended."""
        for stretch in self._endpointer.finish():
            yield self._decode(stretch)

    def close(self) -> None:
        """Nothing is held open."""

    def _decode(self, stretch: Stretch) -> Hypothesis:
        if stretch.begins:
            self._decoder.start_utt()
        if stretch.pcm:
            self._decoder.process_raw(stretch.pcm)
        if stretch.ends:
            self._decoder.end_utt()
        found = self._decoder.hyp()
        text = _I.sub("I", found.hypstr) if found else ""  # the model writes no capitals
        return Hypothesis(text, stretch.start, stretch.end, stretch.ends)
