"""Whisper, through faster-whisper: accurate, punctuated, many languages.

Whisper recognises complete recordings.  So the growing audio of an utterance is recognised repeatedly; the prefix on
which two successive passes agree is fixed (LocalAgreement-2, Liu et al. 2020), the rest may change.  At the end of the
utterance the last pass alone counts, since it has all of the audio.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from redraft.captions.align import seam
from redraft.captions.words import bare
from redraft.cores import usable_cores
from redraft.errors import ModelError, first_sentence
from redraft.speech.audio import RATE, Samples, library
from redraft.speech.endpoint import PAUSE, stretches
from redraft.speech.recogniser import Hypothesis, Recognised
from redraft.speech.registry import RecogniserOptions

#: Samples before a frame that the network sees again.
_CONTEXT = 64
#: Probability from which a frame is speech, in silence and in speech; Silero's own thresholds.
_STARTS, _CONTINUES = 0.5, 0.35


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

    def __call__(self, frame: Samples) -> bool:
        """Return whether the next frame is speech: `redraft.speech.endpoint.FRAME` samples."""
        given = np.concatenate((self._context, frame))[None]
        hidden, cell = self._state
        probability, *self._state = self._run(None, {"input": given, "h": hidden, "c": cell})
        self._context = frame[-_CONTEXT:]
        self._speaking = bool(probability.item() >= (_CONTINUES if self._speaking else _STARTS))
        return self._speaking


SUMMARY = "Whisper, 99 languages, with punctuation; slower, best on a GPU; also takes the folder of a model"
PACKAGE = "faster_whisper"
MODELS = {
    "tiny.en": "75 MB, English",
    "base.en": "145 MB, English; the default for English",
    "small": "480 MB, 99 languages; the default for others",
    "large-v3-turbo": "1.6 GB, 99 languages; needs a GPU",
}

#: Minimum seconds of new audio between two passes.
STEP = 1.0
#: Weights in memory by device, the best first; a device that supports none of them gets 32-bit floats.
_COMPUTE_TYPES = {"cpu": ("int8_float32",), "cuda": ("float16", "int8_float32")}
#: Whisper is not faster with more threads.
_MOST_THREADS = 4
#: Maximum tokens of a pass over unfinished speech, per second and besides; cut speech can set off endless repetitions.
_TOKENS_PER_SECOND, _MORE_TOKENS = 20, 20
#: Compression ratio above which a text is a repetition; faster-whisper's own threshold.
_REPETITION = 2.4
#: Signs with which Whisper ends a pass though the sentence goes on.
_ENDS = " .…。?？!！—–"


def place(_language: str) -> float:
    """Return the place in the order in which ``auto`` tries recognisers (`redraft.speech.registry`)."""
    return 30


def recogniser(wanted: RecogniserOptions) -> Whisper:
    """Return a recogniser with a model: a size, a folder, or a repository on the hub, which is downloaded.

    Raises:
        OptionError: the model does not recognise the language.
        ModelError: it is unknown, or cannot be downloaded or opened.
        MissingExtra: the extra ``listen-whisper`` is not installed.
    """
    library("faster_whisper", "listen-whisper")
    name = wanted.model or ("base.en" if wanted.language == "en" else "small")
    if name.endswith(".en"):
        wanted.check_language(f"whisper:{name}", ("en",))
    model = open_model(name)
    if not model.model.is_multilingual:
        wanted.check_language(f"whisper:{name}", ("en",))
    return Whisper(model, wanted.languages, SpeechDetector(), wanted.pause)


def open_model(name: str) -> Any:
    """Return a ``faster_whisper.WhisperModel``, on a GPU if there is one.

    Args:
        name: a size, a folder, or a repository on the hub.

    Raises:
        ModelError: the model is unknown, or cannot be downloaded or opened.
    """
    whisper, ctranslate2 = library("faster_whisper", "listen-whisper"), library("ctranslate2", "listen-whisper")
    folder = Path(name).expanduser()
    if folder.is_dir():
        for file in ("model.bin", "tokenizer.json"):  # without the latter, one would be downloaded
            if not (folder / file).exists():
                raise ModelError(f"folder {name!r} is not a Whisper model of CTranslate2: {file} is missing")
    device = "cuda" if ctranslate2.get_cuda_device_count() else "cpu"
    supported = ctranslate2.get_supported_compute_types(device)
    compute_type = next((each for each in _COMPUTE_TYPES[device] if each in supported), "float32")
    try:
        return whisper.WhisperModel(
            str(folder) if folder.is_dir() else name,
            device=device,
            compute_type=compute_type,
            cpu_threads=min(_MOST_THREADS, usable_cores()),
        )
    except Exception as error:
        raise ModelError(
            f"whisper cannot open model {name!r}: {first_sentence(error).removeprefix('Got: ')}; a model is a size, a "
            "folder, which needs no hub, or a repository on the hub"
        ) from error


class Whisper:
    """Recognises growing utterances pass by pass.

    Args:
        model: a ``faster_whisper.WhisperModel``.
        languages: codes of the languages that may be spoken; of several, or of any if there are none, each pass finds
            the one of its utterance.
        is_speech, pause: as for `redraft.speech.endpoint.stretches`.
        clock: returns the time in seconds; a slow pass makes the next one wait for more audio, to keep up with live
            speech.
    """

    def __init__(
        self,
        model: Any,
        languages: Sequence[str],
        is_speech: Callable[[Samples], bool],
        pause: float = PAUSE,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._model, self._languages, self._clock = model, languages, clock
        self._is_speech, self._pause = is_speech, pause
        #: The language of the newest pass; None if only one is spoken.
        self._language: str | None = None
        self._audio: list[Samples] = []
        self._step = STEP
        self._words: list[str] = []
        self._agreed = 0
        #: The utterance before in each language.
        self._previous: dict[str | None, str] = {}

    def __call__(self, blocks: Iterator[Samples]) -> Generator[Recognised, None, None]:
        """Recognise a stream (`redraft.speech.recogniser.Recogniser`)."""
        new = 0.0
        for stretch in stretches(blocks, self._is_speech, self._pause):
            if isinstance(stretch, float):
                yield stretch
                continue
            self._audio.append(stretch.samples)
            new += len(stretch.samples) / RATE
            if stretch.ends or new >= self._step:
                new = 0.0
                text = self._final() if stretch.ends else self._partial()
                yield Hypothesis(text, stretch.start, stretch.end, stretch.ends, language=self._language)
            if stretch.ends:
                self._audio, self._words, self._agreed = [], [], 0

    def _final(self) -> str:
        """Return the utterance; what was shown of it remains if Whisper now finds no words."""
        found = self._pass()
        text = found if any(map(str.isalnum, found)) else " ".join(self._words)
        if text:
            self._previous[self._language] = text
        return text

    def _partial(self) -> str:
        # The costly second tries of repetitions are for the end; until then they are passed over.
        most = round(_MORE_TOKENS + _TOKENS_PER_SECOND * sum(map(len, self._audio)) / RATE)
        if found := self._pass(temperature=0.0, max_new_tokens=most):
            self._words, self._agreed = agreement(self._words, self._agreed, unfinished(found).split())
        return " ".join(self._words)

    def _pass(self, **more: Any) -> str:
        """Recognise the whole utterance again; return its text, or an empty one in place of a repetition."""
        began = self._clock()
        audio = np.concatenate(self._audio)
        if len(self._languages) != 1:
            self._language = self._spoken(audio)
        segments, _ = self._model.transcribe(
            audio,
            language=self._language or self._languages[0],
            beam_size=1,
            condition_on_previous_text=False,
            initial_prompt=self._previous.get(
                self._language
            ),  # the utterance before; a short one alone is often misunderstood
            without_timestamps=True,
            **more,
        )
        text = " ".join("".join(each.text for each in segments if each.compression_ratio <= _REPETITION).split())
        self._step = max(STEP, self._clock() - began)
        return text

    def _spoken(self, audio: Samples) -> str:
        """Return the code of the most probable language that may be spoken."""
        best, _, probable = self._model.detect_language(audio)
        allowed = [(chance, code) for code, chance in probable if code in self._languages]
        return max(allowed)[1] if allowed else str(best)


def unfinished(text: str) -> str:
    """Return the text of a pass over unfinished speech without the end that Whisper gives it.

    That is "...", a full stop, question mark or exclamation mark, or a word that was cut, such as "w-".
    """
    text = text.rstrip(_ENDS)
    return text.rpartition(" ")[0].rstrip(_ENDS) if text.endswith("-") else text


def agreement(before: Sequence[str], agreed: int, words: Sequence[str]) -> tuple[list[str], int]:
    """LocalAgreement-2: return the words after a pass, and how many of them are fixed.

    The fixed words stay, and are followed by what the pass has after them, wherever that is: it may have recognised
    more or fewer words than earlier passes.  The last word is never fixed, since its end may not have been spoken yet.

    Args:
        before: the words after the previous pass.
        agreed: how many of these are fixed.
        words: the words of this pass.
    """
    fixed, behind, found = ([bare(word) or word for word in each] for each in (before[:agreed], before[agreed:], words))
    now = [*before[:agreed], *words[seam(fixed, behind, found) :]]
    same = agreed
    while same < min(len(before), len(now) - 1) and before[same] == now[same]:
        same += 1
    return now, same
