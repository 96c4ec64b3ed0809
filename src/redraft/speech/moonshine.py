"""Moonshine: a fast recogniser for CPUs that writes punctuation; the package contains a model for English.

The package finds utterances, which it calls lines, with a voice activity detector and recognises the growing one again
and again.  Its other models are downloaded when they are first used.  A model may also be a folder whose path contains
its size: tiny, base, small or medium.

The package has one voice activity detector per process, which keeps a state, so two streams in a process change each
other's utterances.  Every session therefore has a process of its own (`redraft.speech.worker`).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from itertools import chain
from math import inf
from pathlib import Path
from typing import Any

from redraft.errors import MissingExtra, ModelError, OptionError, first_sentence
from redraft.models.hub import models_folder
from redraft.speech.audio import RATE, Samples, library
from redraft.speech.recogniser import Hypothesis, Recognised
from redraft.speech.registry import RecogniserOptions

SUMMARY = "the default: fast on a CPU, with punctuation; its English model needs no download; also takes a folder"
PACKAGE = "moonshine_voice"

_FREE = "MIT licence"
_OTHER = "Moonshine Community License, for non-commercial use"
MODELS = {
    "tiny-en": f"English, 26 million parameters, installed with the package; {_FREE}",
    "base-en": f"English, 58 million parameters; {_FREE}",
    "tiny-streaming-en": f"English, 34 million parameters, for live speech; {_FREE}",
    "small-streaming-en": f"English, 123 million parameters, for live speech; {_FREE}",
    "medium-streaming-en": f"English, 245 million parameters, for live speech; {_FREE}",
    "base-ar": f"Arabic; {_OTHER}",
    "base-es": f"Spanish; {_OTHER}",
    "base-ja": f"Japanese; {_OTHER}",
    "tiny-ja": f"Japanese, smaller; {_OTHER}",
    "tiny-ko": f"Korean; {_OTHER}",
    "base-uk": f"Ukrainian; {_OTHER}",
    "base-vi": f"Vietnamese; {_OTHER}",
    "base-zh": f"Chinese; {_OTHER}",
}
#: The model in the package.
_INSTALLED = "tiny-en"
#: Languages with few tokens per second.
_LATIN = ("en", "es")

#: Minimum seconds of new audio between two passes over an utterance.
STEP = 0.5
#: After a pass, this many times its duration in new audio is waited for, so that recognition keeps up with speech.
_SLACK = 1.5
#: Seconds of speech that begin an utterance.
_BEGINS = 0.25
#: Maximum length of an utterance in seconds.
_LONGEST = 15.0


def place(language: str) -> float:
    """Return the place in the order in which ``auto`` tries recognisers (`redraft.speech.registry`)."""
    return 10 if language == "en" else 40  # most of its other models must not be used commercially


def default_model(language: str) -> str:
    """Return the name of the model for a language.

    Raises:
        OptionError: there is none.
    """
    known = {name.rpartition("-")[2]: name for name in reversed(MODELS)}  # the first one of each language
    if language not in known:
        raise OptionError(f"moonshine recognises {', '.join(sorted(known))}, not {language!r}")
    return known[language]


def recogniser(wanted: RecogniserOptions) -> Moonshine:
    """Return a recogniser with the given model, or with the one for the language.

    Raises:
        OptionError: the model is unknown, or is for another language.
        ModelError: the model cannot be downloaded or opened.
        MissingExtra: the package is not installed, or cannot be used on this machine.
    """
    package = _package()
    name = wanted.model or default_model(wanted.language)
    if name in MODELS:
        wanted.check_language(f"moonshine:{name}", (name.rpartition("-")[2],))
    folder = Path(package.get_model_path(name)) if name == _INSTALLED else _folder(name)
    # The detector's mean over a window exceeds the threshold after `_BEGINS` of speech, and falls below it after a
    # pause.  It ends an utterance at two thirds of the maximum.
    window = wanted.pause + _BEGINS
    options: dict[str, object] = {
        "vad_window_duration": window,
        "vad_threshold": _BEGINS / window,
        "vad_max_segment_duration": _LONGEST * 1.5,
        "return_audio_data": "false",  # otherwise it keeps all audio, and every pass copies it
    }
    if wanted.language not in _LATIN:
        options["max_tokens_per_second"] = 13  # the default of 6.5 would cut texts short
    try:
        return Moonshine(package.Transcriber(folder, _architecture(folder, package), options=options), wanted.pause)
    except package.MoonshineError as error:
        raise ModelError(f"model {name!r} cannot be used by moonshine: {first_sentence(error)}") from error


def _package() -> Any:
    try:
        return library("moonshine_voice")
    except MissingExtra as error:
        raise MissingExtra(f"{error}; where it has no package, choose --recogniser sherpa or whisper") from error
    except OSError as error:
        raise MissingExtra(f"moonshine cannot be used on this machine: {first_sentence(error)}") from error


def _folder(name: str) -> Path:
    """Return the folder of a model, which is downloaded if it is named."""
    if name not in MODELS:
        if not Path(name).is_dir():
            raise OptionError(f"moonshine has no model {name!r}: name one of {', '.join(MODELS)}, or a folder")
        return Path(name)
    download, language = library("moonshine_voice.download"), name.rpartition("-")[2]
    known = download.MODEL_INFO[language]["models"]
    if not (found := [info for info in known if f"/model/{name}/" in info["download_url"]]):
        raise ModelError(f"the installed moonshine-voice has no model {name!r}")
    print(f"redraft: moonshine:{name} ({MODELS[name]})", file=sys.stderr)
    try:
        folder, _ = download.download_model_from_info(
            {**found[0], "language": language}, cache_root=models_folder() / "moonshine"
        )
    except OSError as error:  # also of its library for HTTP
        raise ModelError(
            f"model {name!r} could not be downloaded: {first_sentence(error)}; a folder with its files works too, as "
            f"in moonshine:models/{name}"
        ) from error
    return Path(folder)


def _architecture(folder: Path, package: Any) -> Any:
    """Return the architecture of the model in a folder, from its path and files."""
    parts = folder.resolve().parts[-3:]
    found = [size for part in reversed(parts) for size in ("tiny", "base", "small", "medium") if size in part.lower()]
    if not found:
        raise ModelError(f"folder {str(folder)!r} must be named after its model, such as tiny-streaming-en")
    streaming = "_STREAMING" if (folder / "streaming_config.json").exists() else ""
    try:
        return package.ModelArch[found[0].upper() + streaming]
    except KeyError:
        raise ModelError(f"folder {str(folder)!r} is not a moonshine model: streaming_config.json is missing") from None


class Moonshine:
    """Recognises utterances.

    Args:
        model: a ``moonshine_voice.Transcriber``.
        pause: seconds of silence that end an utterance.
        clock: returns the time in seconds; slow passes are made less often, to keep up with
            live speech.
    """

    def __init__(self, model: Any, pause: float, clock: Callable[[], float] = time.perf_counter) -> None:
        self._model, self._pause, self._clock = model, pause, clock

    def __call__(self, blocks: Iterator[Samples]) -> Generator[Recognised, None, None]:
        """Recognise a stream (`redraft.speech.recogniser.Recogniser`)."""
        samples, ended, new, step = 0, 0, 0.0, STEP
        with closing(self._model), closing(self._model.create_stream(update_interval=inf)) as stream:
            stream.start()  # passes are made here
            for block in chain(blocks, [None]):
                if block is None:
                    # Silence ends the utterance.  The package's own end of a stream would leave out audio after the
                    # last pass.
                    stream.add_audio([0.0] * round(RATE * (self._pause + 1)), RATE)
                else:
                    stream.add_audio(block.clip(-1, 1).tolist(), RATE)
                    samples, new = samples + len(block), new + len(block) / RATE
                if block is None or new >= step:
                    began = self._clock()
                    lines = stream.update_transcription(self._model.MOONSHINE_FLAG_FORCE_UPDATE).lines
                    new, step = 0.0, max(STEP, _SLACK * (self._clock() - began))
                    for line in lines[ended:]:
                        end = min(line.start_time + line.duration, samples / RATE)
                        if line.is_complete:
                            ended += 1
                            end = max(line.start_time, end - self._pause)
                        yield Hypothesis(line.text, min(line.start_time, end), end, line.is_complete)
                yield samples / RATE
