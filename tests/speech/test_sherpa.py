"""Recognisers of sherpa-onnx, with a stand-in for the library: models are too large to test with."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from redraft.captions.events import Update
from redraft.errors import MissingExtra, ModelError, OptionError
from redraft.models.hub import SPEECH
from redraft.speech import registry
from redraft.speech.audio import RATE
from redraft.speech.recogniser import transcribe
from redraft.speech.registry import open_recogniser, punctuated, punctuator
from redraft.speech.sherpa import Sherpa, model_files
from tests.speech.recognisers import Scripted, silence

#: What the model has recognised after so many tenths of a second, from the start of a segment.
TEXTS = {3: "I'M", 5: "I'M IT", 8: "I'M HIT"}


class Model:
    """A sherpa_onnx.OnlineRecognizer that hears the same in every segment of one second, and nothing after three."""

    def __init__(self, **asked: Any) -> None:
        self.asked = asked
        self.tenths = self.segment = self.waiting = 0
        self.options: dict[str, str] = {}

    def set_option(self, name: str, value: str) -> None:
        self.options[name] = value

    def create_stream(self) -> Model:
        return self

    def accept_waveform(self, rate: int, samples: Any) -> None:
        assert rate == RATE
        self.waiting += len(samples) * 10 // RATE

    def input_finished(self) -> None:
        pass

    def is_ready(self, _: Model) -> bool:
        return self.waiting > 0

    def decode_stream(self, _: Model) -> None:
        self.waiting -= 1
        self.tenths += 1

    def get_result(self, _: Model) -> str:
        if self.segment >= 2:
            return ""
        return next((text for tenth, text in reversed(TEXTS.items()) if self.tenths >= tenth), "")

    def timestamps(self, _: Model) -> list[float]:
        return [0.2]

    def start_time(self, _: Model) -> float:
        return float(self.segment)

    def is_endpoint(self, _: Model) -> bool:
        return self.tenths >= 10

    def reset(self, _: Model) -> None:
        self.tenths, self.segment = 0, self.segment + 1


def folder(path: Path, *names: str) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    for name in names or ("encoder-1.onnx", "encoder-1.int8.onnx", "decoder-1.onnx", "joiner-1.onnx", "tokens.txt"):
        (path / name).touch()
    return path


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Any:
    """sherpa_onnx, without models."""
    made = SimpleNamespace(OnlineRecognizer=SimpleNamespace(from_transducer=Model))
    monkeypatch.setitem(sys.modules, "sherpa_onnx", made)
    return made


def test_segments_are_utterances() -> None:
    items = [item for item in transcribe(silence(5), Sherpa(Model())) if isinstance(item, Update)]
    texts = [("I'm", False), ("I'm it", False), ("I'm hit", False), ("I'm hit", True)]
    assert [(item.text, item.final) for item in items] == [*texts, *texts]
    assert [item.utterance for item in items] == ["1"] * 4 + ["2"] * 4
    assert [item.time for item in items] == pytest.approx([0.3, 0.5, 0.8, 1, 1.3, 1.5, 1.8, 2])
    assert [item.start for item in items] == pytest.approx([0.2] * 4 + [1.2] * 4)


def test_end_of_audio_ends_what_is_open() -> None:
    items = list(transcribe(silence(0.5), Sherpa(Model())))
    assert (
        isinstance(items[-1], Update) and items[-1].final and items[-1].text == "I'm hit"
    )  # with the silence after it


def test_models_in_folders(library: Any, tmp_path: Path) -> None:
    made = open_recogniser(f"sherpa:{folder(tmp_path / 'mine')}", "fr", pause=0.7)
    assert isinstance(made, Sherpa)
    asked = made._model.asked
    assert asked["encoder"].endswith("encoder-1.int8.onnx") and asked["decoder"].endswith("decoder-1.onnx")
    assert asked["rule2_min_trailing_silence"] == 0.7 and asked["enable_endpoint_detection"]


def test_models_of_several_languages(library: Any, tmp_path: Path) -> None:
    place = folder(tmp_path / "mine")
    for language, told in (("fr", "fr"), ("en,de", "auto"), ("auto", "auto")):
        made = open_recogniser(f"sherpa:{place}", language)
        assert isinstance(made, Sherpa) and made._model.options == {"language": told}


def test_models_that_were_fetched(library: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRAFT_MODELS", str(tmp_path))
    with pytest.raises(
        ModelError, match="'zipformer-en' has not been downloaded yet; run: redraft models get zipformer-en"
    ):
        open_recogniser("sherpa")
    folder(tmp_path / "kroko-de", *[*SPEECH["kroko-de"].files][1:])
    with pytest.raises(ModelError, match="'kroko-de' has not been downloaded yet"):  # not to its end
        open_recogniser("sherpa", "de")
    folder(tmp_path / "kroko-de", *SPEECH["kroko-de"].files)
    assert isinstance(open_recogniser("sherpa", "de"), Sherpa)
    assert isinstance(open_recogniser("sherpa:kroko-de", "German"), Sherpa)


def test_refusals(library: Any, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"sherpa:kroko-de recognises de, not 'en'"):
        open_recogniser("sherpa:kroko-de")
    with pytest.raises(OptionError, match=r"sherpa has models for de, en, es, zh, not 'ja': name a model's folder"):
        open_recogniser("sherpa", "ja")
    with pytest.raises(OptionError, match=r"sherpa has no model 'large': name one of zipformer-en, .*, or a folder"):
        open_recogniser("sherpa:large")
    with pytest.raises(ModelError, match=r"is not a sherpa-onnx model: joiner\*.onnx is missing"):
        model_files(folder(tmp_path / "a", "encoder.onnx", "decoder.onnx", "tokens.txt"))
    with pytest.raises(ModelError, match=r"is not a sherpa-onnx model: tokens.txt is missing"):
        model_files(folder(tmp_path / "b", "encoder.onnx", "decoder.onnx", "joiner.onnx"))


def test_files_that_are_no_models(tmp_path: Path) -> None:
    pytest.importorskip("sherpa_onnx", reason="needs the extra listen-sherpa")
    with pytest.raises(ModelError, match=r"mine' cannot be used by sherpa-onnx: "):
        open_recogniser(f"sherpa:{folder(tmp_path / 'mine')}")
    for vocabulary in (), ("bpe.vocab",):
        with pytest.raises(ModelError, match="is not a punctuation model: "):
            punctuator(str(folder(tmp_path / "punctuation", "model.onnx", *vocabulary)))


def test_without_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "sherpa_onnx", None)
    for call in (lambda: open_recogniser("sherpa"), lambda: punctuator(str(folder(tmp_path, "model.onnx")))):
        with pytest.raises(
            MissingExtra, match=r"sherpa_onnx, which is not installed: pip install 'redraft\[listen-sherpa\]'"
        ):
            call()


class TestPunctuation:
    def test_of_utterance(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(registry, "punctuator", lambda _: lambda text: text.capitalize() + ".")
        recogniser = Scripted(words=4, sentence="i have a dog")
        items = transcribe(silence(2.1), punctuated(recogniser, "folder"))
        texts = [item.text for item in items if isinstance(item, Update)]
        assert texts == ["I", "I have", "I have a", "I have a dog."]
        assert recogniser.closed

    def test_with_capitals(self, library: Any, tmp_path: Path) -> None:
        library.OnlinePunctuationModelConfig = dict
        library.OnlinePunctuationConfig = dict
        library.OnlinePunctuation = lambda config: SimpleNamespace(
            add_punctuation_with_case=lambda text: f"{text} {config['model_config']['cnn_bilstm'][-15:]}"
        )
        punctuate = punctuator(str(folder(tmp_path, "model.int8.onnx", "model.onnx", "bpe.vocab")))
        assert punctuate("a") == "a model.int8.onnx"[-17:]

    def test_without_capitals(self, library: Any, tmp_path: Path) -> None:
        library.OfflinePunctuationModelConfig = dict
        library.OfflinePunctuationConfig = lambda model: model
        library.OfflinePunctuation = lambda _: SimpleNamespace(add_punctuation=lambda text: f"{text}。")
        assert punctuator(str(folder(tmp_path, "model.onnx")))("你好") == "你好。"

    def test_folders_that_are_none(self, tmp_path: Path) -> None:
        with pytest.raises(OptionError, match="^punctuation must be the folder of a punctuation model, not 'absent'"):
            punctuator("absent")
        with pytest.raises(ModelError, match="is not a punctuation model: model.onnx is missing"):
            punctuator(str(tmp_path))
