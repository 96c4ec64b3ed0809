"""PocketSphinx: small and old, but installed with a model, since its wheel contains one for English.

It needs no download and a fraction of a core, but makes many errors; docs/listen.md has the measurements.
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
#: Aggressiveness of the voice activity detector, from 0 to 3.
_STRICTNESS = 3
_I = re.compile(r"\bi\b")


def recogniser(wanted: RecogniserOptions) -> PocketSphinx:
    """Return an English recogniser.

    Raises:
        OptionError: a model is named, or the language is not English.
        MissingExtra: the extra ``listen`` is not installed.
    """
    if wanted.model:
        raise OptionError(f"pocketsphinx has one model, so leave {wanted.model!r} out")
    wanted.check_language("pocketsphinx", LANGUAGES)
    return PocketSphinx(wanted.pause)


def endpointer(pause: float) -> Endpointer:
    """Return an endpoint detector that uses the WebRTC detector in PocketSphinx."""
    vad = library("pocketsphinx").Vad(_STRICTNESS, RATE, FRAME_SECONDS)
    return Endpointer(vad.is_speech, pause)


class PocketSphinx:
    """Recognises English speech with the model in the wheel.

    Args:
        pause: seconds of silence that end an utterance.
    """

    def __init__(self, pause: float) -> None:
        self._endpointer = endpointer(pause)
        self._decoder = library("pocketsphinx").Decoder(samprate=RATE, loglevel="FATAL")

    def hear(self, samples: Samples) -> Iterator[Hypothesis]:
        """Yield what a block of audio adds."""
        for stretch in self._endpointer.hear(samples):
            yield self._decode(stretch)

    def finish(self) -> Iterator[Hypothesis]:
        """Yield the utterance that is still open, as final."""
        for stretch in self._endpointer.finish():
            yield self._decode(stretch)

    def close(self) -> None:
        """Do nothing: no resources are held."""

    def _decode(self, stretch: Stretch) -> Hypothesis:
        if stretch.begins:
            self._decoder.start_utt()
        if stretch.pcm:
            self._decoder.process_raw(stretch.pcm)
        if stretch.ends:
            self._decoder.end_utt()
        found = self._decoder.hyp()
        text = _I.sub("I", found.hypstr) if found else ""  # the model's words are in lower case
        return Hypothesis(text, stretch.start, stretch.end, stretch.ends)
