"""Streaming recognisers of sherpa-onnx: accurate, fast on a CPU, one model a language.

A model is one that `redraft models get` has fetched, or the folder of a transducer: files whose names begin with
``encoder``, ``decoder`` and ``joiner`` and end with ``.onnx``, and ``tokens.txt``.  Of several, those of 8-bit integers
are taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from redraft.errors import ModelError, OptionError, first_sentence
from redraft.models.hub import SPEECH, speech_folder
from redraft.speech.audio import RATE, Samples, library
from redraft.speech.endpoint import LONGEST
from redraft.speech.recogniser import Hypothesis
from redraft.speech.registry import RecogniserOptions

SUMMARY = "streaming recognisers of sherpa-onnx: the best on a CPU; also takes the folder of a transducer"
MODELS = {name: model.note for name, model in SPEECH.items()}

#: Seconds of silence at the end, since the model hears the last word only with what follows.
_TAIL = 0.8
#: Seconds of silence without a word after which the model's memory is cleared.
_IDLE = 5.0


def recogniser(wanted: RecogniserOptions) -> Sherpa:
    """A recogniser with the model that is wanted, or with the one that was fetched for the language.

    Raises:
        OptionError: there is no such model, or it is one of another language.
        ModelError: the model has not been fetched, or its folder is not one.
        MissingExtra: the extra ``listen-sherpa`` is not installed.
    """
    sherpa = library("sherpa_onnx", "listen-sherpa")
    name = wanted.model or next((name for name, model in SPEECH.items() if model.language == wanted.language), "")
    if not name:
        known = sorted({model.language for model in SPEECH.values()})
        raise OptionError(f"sherpa has models for {', '.join(known)}, not {wanted.language!r}: name a model's folder")
    if name in SPEECH:
        wanted.check_language(f"sherpa:{name}", (SPEECH[name].language,))
    files = model_files(speech_folder(name) or Path(name))
    try:
        made = sherpa.OnlineRecognizer.from_transducer(
            **files,
            num_threads=1,
            sample_rate=RATE,
            enable_endpoint_detection=True,
            rule1_min_trailing_silence=_IDLE,
            rule2_min_trailing_silence=wanted.pause,
            rule3_min_utterance_length=LONGEST,
        )
    except Exception as error:
        raise ModelError(f"model {name!r} cannot be used by sherpa-onnx: {first_sentence(error)}") from error
    return Sherpa(made)


def model_files(folder: Path) -> dict[str, str]:
    """The files of a transducer in a folder, by what they are.

    Raises:
        OptionError: the folder does not exist.
        ModelError: a file is missing.
    """
    if not folder.is_dir():
        raise OptionError(f"sherpa has no model {str(folder)!r}: name one of {', '.join(SPEECH)}, or a folder")
    found = {"tokens": str(folder / "tokens.txt")}
    for part in ("encoder", "decoder", "joiner"):
        files = sorted(folder.glob(f"{part}*.onnx"), key=lambda file: (".int8." not in file.name, file.name))
        if not files:
            raise ModelError(f"folder {str(folder)!r} holds no model of sherpa-onnx: {part}*.onnx is missing")
        found[part] = str(files[0])
    if not Path(found["tokens"]).exists():
        raise ModelError(f"folder {str(folder)!r} holds no model of sherpa-onnx: tokens.txt is missing")
    return found


class Sherpa:
    """Recognises with a streaming model.

    Args:
        model: a ``sherpa_onnx.OnlineRecognizer`` with endpoints.
    """

    def __init__(self, model: Any) -> None:
        self._model, self._stream = model, model.create_stream()
        self._samples = 0
        self._last, self._start, self._ended = "", 0.0, 0.0

    def hear(self, samples: Samples) -> Iterator[Hypothesis]:
        """What a block of audio adds."""
        self._samples += len(samples)
        self._stream.accept_waveform(RATE, samples)
        yield from self._decode()

    def finish(self) -> Iterator[Hypothesis]:
        """The utterance that is still open, ended."""
        import numpy as np

        self._stream.accept_waveform(RATE, np.zeros(round(RATE * _TAIL), np.float32))
        self._stream.input_finished()
        yield from self._decode()
        if self._last:
            yield Hypothesis(self._last, self._start, self._samples / RATE, final=True)

    def close(self) -> None:
        """Nothing is held open."""

    def _decode(self) -> Iterator[Hypothesis]:
        while self._model.is_ready(self._stream):
            self._model.decode_stream(self._stream)
        text, now = _cased(self._model.get_result(self._stream)), self._samples / RATE
        if text and not self._last:
            self._start = self._begun(now)
        final = self._model.is_endpoint(self._stream)
        if text and (final or text != self._last):
            yield Hypothesis(text, self._start, now, final)
        self._last = text
        if final:
            self._model.reset(self._stream)
            self._last, self._ended = "", now

    def _begun(self, now: float) -> float:
        """When the first word was spoken, by the model's own times where it has some."""
        times = self._model.timestamps(self._stream)
        begun = self._model.start_time(self._stream) + times[0] if times else now
        return max(self._ended, min(now, float(begun)))


def _cased(text: str) -> str:
    """A text in the usual letters: some models write capitals only."""
    if not text.isupper():
        return text
    return " ".join("I" + word[1:] if word.split("'")[0] == "i" else word for word in text.lower().split(" "))
