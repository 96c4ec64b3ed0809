"""Streaming recognisers of sherpa-onnx: accurate, fast on a CPU, one model per language.

A model is one downloaded with `redraft models get`, or the folder of a transducer: files whose names start with
``encoder``, ``decoder`` and ``joiner`` and end with ``.onnx``, and ``tokens.txt``.  8-bit versions are preferred.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from redraft.errors import ModelError, OptionError, first_sentence
from redraft.models.hub import SPEECH, cached_path
from redraft.speech.audio import RATE, Samples, library
from redraft.speech.endpoint import LONGEST
from redraft.speech.recogniser import Hypothesis, Recognised
from redraft.speech.registry import AUTO, RecogniserOptions

SUMMARY = "streaming recognisers of sherpa-onnx, for CPUs; also takes the folder of a transducer, such as Nemotron 3.5"
PACKAGE = "sherpa_onnx"
MODELS = {name: model.note for name, model in SPEECH.items()}

#: Files of a transducer by role.
_FILES = {"encoder": "encoder*.onnx", "decoder": "decoder*.onnx", "joiner": "joiner*.onnx", "tokens": "tokens.txt"}
#: Seconds of silence added at the end; the model needs audio after the last word to recognise it.
_TAIL = 0.8
#: Seconds without words after which the model's state is reset.
_IDLE = 5.0


def place(_language: str) -> float:
    """Return the place in the order in which ``auto`` tries recognisers (`redraft.speech.registry`)."""
    return 20


def default_model(language: str) -> str:
    """Return the name of the downloaded model for a language.

    Raises:
        OptionError: there is none for this language.
        ModelError: it has not been downloaded.
        MissingExtra: the extra ``listen-sherpa`` is not installed.
    """
    library("sherpa_onnx", "listen-sherpa")
    name = next((name for name, model in SPEECH.items() if model.language == language), None)
    if name is None:
        known = sorted({model.language for model in SPEECH.values()})
        raise OptionError(f"sherpa has models for {', '.join(known)}, not {language!r}: name a model's folder")
    cached_path(name, SPEECH)
    return name


def recogniser(wanted: RecogniserOptions) -> Sherpa:
    """Return a recogniser with the given model, or with the downloaded one for the language.

    Raises:
        OptionError: the model is unknown, or is for another language.
        ModelError: the model has not been downloaded, or its folder is incomplete.
        MissingExtra: the extra ``listen-sherpa`` is not installed.
    """
    sherpa = library("sherpa_onnx", "listen-sherpa")
    name = wanted.model or default_model(wanted.language)
    if name in SPEECH:
        wanted.check_language(f"sherpa:{name}", (SPEECH[name].language,))
    files = model_files(cached_path(name, SPEECH) or Path(name))
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
    return Sherpa(made, wanted.language)


def model_files(folder: Path) -> dict[str, str]:
    """Return the files of a transducer in a folder, by role.

    Raises:
        OptionError: the folder does not exist.
        ModelError: a file is missing.
    """
    if not folder.is_dir():
        raise OptionError(f"sherpa has no model {str(folder)!r}: name one of {', '.join(SPEECH)}, or a folder")
    found = {}
    for part, pattern in _FILES.items():
        files = sorted(folder.glob(pattern), key=lambda file: (".int8." not in file.name, file.name))
        if not files:
            raise ModelError(f"folder {str(folder)!r} is not a sherpa-onnx model: {pattern} is missing")
        found[part] = str(files[0])
    return found


class Sherpa:
    """Recognises with a streaming model.

    Args:
        model: a ``sherpa_onnx.OnlineRecognizer`` with endpoint detection.
        language: code of the spoken language, or ``auto``, for models of several.
    """

    def __init__(self, model: Any, language: str = AUTO) -> None:
        self._model, self._stream = model, model.create_stream()
        if hasattr(self._stream, "set_option"):  # older versions have no models of several
            self._stream.set_option("language", language)

    def __call__(self, blocks: Iterator[Samples]) -> Generator[Recognised, None, None]:
        """Recognise a stream (`redraft.speech.recogniser.Recogniser`)."""
        model, stream, samples = self._model, self._stream, 0
        last, start, ended, now = "", 0.0, 0.0, 0.0
        for block in chain(blocks, [None]):
            if block is None:
                stream.accept_waveform(RATE, np.zeros(round(RATE * _TAIL), np.float32))
                stream.input_finished()
            else:
                stream.accept_waveform(RATE, block)
                samples += len(block)
                now = samples / RATE
            while model.is_ready(stream):
                model.decode_stream(stream)
            text, final = model.get_result(stream), model.is_endpoint(stream)
            if text and not last:  # the start of the first word, from the model's timestamps if it has any
                times = model.timestamps(stream)
                start = max(ended, min(now, float(model.start_time(stream) + times[0]))) if times else now
            if text and (final or text != last):
                yield Hypothesis(text, start, now, final)
            last = text
            if final:
                model.reset(stream)
                last, ended = "", now
            yield now
        if last:
            yield Hypothesis(last, start, now, final=True)
