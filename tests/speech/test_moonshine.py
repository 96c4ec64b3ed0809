"""Moonshine: the real one on a real voice, and a stand-in for models that must be downloaded."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from enum import Enum
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import soundfile
import soxr

from redraft.captions.events import Failure, Update
from redraft.errors import MissingExtra, ModelError, OptionError, install
from redraft.speech import moonshine, registry
from redraft.speech.audio import RATE, Samples, file_blocks
from redraft.speech.moonshine import STEP, Moonshine, default_model
from redraft.speech.recogniser import transcribe
from redraft.speech.registry import open_recogniser, resolve
from tests.speech.recognisers import DICKENS, dickens, errors, silence, words


@pytest.mark.slow
def test_dickens(tmp_path: Path) -> None:
    path = dickens(tmp_path / "start.wav", seconds=16)
    items = list(transcribe(file_blocks(str(path)), open_recogniser("moonshine")))
    updates = [item for item in items if isinstance(item, Update)]
    assert updates == items
    finals = [update for update in updates if update.final]
    found = words(" ".join(final.text for final in finals))
    assert errors(words(DICKENS)[: len(found)], found) / len(found) < 0.2 and len(found) > 30
    times = [final.time or 0.0 for final in finals]
    assert times == sorted(times) and times[-1] == pytest.approx(16, abs=1)
    assert len(updates) > len(finals)


def test_growing_line(tmp_path: Path) -> None:
    path = dickens(tmp_path / "start.wav", seconds=5.5)
    updates = list(transcribe(file_blocks(str(path)), open_recogniser("moonshine", pause=0.25)))
    assert all(isinstance(item, Update) for item in updates)
    first = [item for item in updates if isinstance(item, Update) and item.utterance == "1"]
    assert first[0].start == pytest.approx(1, abs=0.3) and first[-1].time == pytest.approx(4.7, abs=0.3)
    assert first[-1].text == "It was the best of times, it was the worst of times."


def final_text(samples: Samples, rate: int, path: Path) -> str:
    """What is recognised in samples, in the final updates."""
    soundfile.write(path, samples, rate, "FLOAT")
    items = list(transcribe(file_blocks(str(path)), open_recogniser("moonshine")))
    assert not any(isinstance(item, Failure) for item in items)
    return " ".join(item.text for item in items if isinstance(item, Update) and item.final)


@pytest.mark.slow
def test_bad_audio(tmp_path: Path) -> None:
    """Overdriven, from a telephone, in one channel of two."""
    path = dickens(tmp_path / "start.wav", seconds=5)
    samples, rate = soundfile.read(path, dtype="float32")
    samples = soxr.resample(samples / np.abs(samples).max() * 3, rate, 8000)
    samples = np.stack([samples, np.zeros_like(samples)], axis=1)
    reference = words(DICKENS)[:12]
    assert errors(reference, words(final_text(samples, 8000, tmp_path / "fault.wav"))) <= 1


def test_no_words_in_other_sounds(tmp_path: Path) -> None:
    """Noise, chords that fade, a constant, and silence."""
    pytest.importorskip("moonshine_voice", reason="needs the extra listen")
    seconds = np.arange(5 * RATE) / RATE
    chord = sum(np.sin(2 * np.pi * pitch * seconds) for pitch in (220, 277, 330, 440, 660)) / 6
    sounds = (
        np.random.default_rng(0).normal(0, 0.3, len(seconds)),
        chord * np.exp(-3 * ((2 * seconds) % 1)),
        np.full(len(seconds), 0.5),
        np.zeros(len(seconds)),
    )
    samples = np.concatenate(sounds).astype(np.float32)
    assert final_text(samples, RATE, tmp_path / "sound.wav") == ""


class Error(Exception):
    """A moonshine_voice.MoonshineError."""


class Arch(Enum):
    TINY = 0
    BASE = 1
    TINY_STREAMING = 2
    SMALL_STREAMING = 4
    MEDIUM_STREAMING = 5


class Transcriber:
    """A moonshine_voice.Transcriber with one stream, that recognises three lines, one every two seconds."""

    MOONSHINE_FLAG_FORCE_UPDATE = 1

    def __init__(self, folder: Path, arch: Any, options: dict[str, Any], seconds: float = 0.0) -> None:
        if not (folder / "tokenizer.bin").exists():
            raise Error("Required tokenizer file does not exist. And more")
        self.folder, self.arch, self.options = folder, arch, options
        self.now, self.seconds, self.samples, self.passes, self.closed = 0.0, seconds, 0, 0, 0

    def create_stream(self, update_interval: float) -> Transcriber:
        return self

    def start(self) -> None:
        pass

    def close(self) -> None:
        self.closed += 1

    def add_audio(self, samples: list[float], rate: int) -> None:
        assert rate == RATE and max(map(abs, samples)) <= 1
        self.samples += len(samples)

    def update_transcription(self, flags: int) -> Any:
        assert flags
        self.passes += 1
        self.now += self.seconds
        return SimpleNamespace(lines=list(self._lines()))

    def _lines(self) -> Iterator[Any]:
        now = self.samples / RATE
        for start in range(0, min(int(now) + 1, 6), 2):
            length = min(now - start, 1.5)
            if length > 0:
                yield SimpleNamespace(
                    text=f"line {start}" if length < 1 else f"Line {start}.",
                    start_time=float(start),
                    duration=length,
                    is_complete=length == 1.5,
                )


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """The folder of a model."""
    folder = tmp_path / "base-es"
    folder.mkdir()
    (folder / "tokenizer.bin").touch()
    return folder


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch, model: Path) -> SimpleNamespace:
    """Stands in for the package."""
    made = SimpleNamespace(
        Transcriber=Transcriber, MoonshineError=Error, ModelArch=Arch, get_model_path=lambda name: model
    )
    monkeypatch.setitem(sys.modules, "moonshine_voice", made)
    return made


def made(model: Path, seconds: float = 0.0) -> tuple[Transcriber, Moonshine]:
    transcriber = Transcriber(model, Arch.TINY, {}, seconds)
    return transcriber, Moonshine(transcriber, 0.5, lambda: transcriber.now)


def test_lines_become_updates(model: Path) -> None:
    transcriber, recogniser = made(model)
    items = [item for item in transcribe(silence(4.7), recogniser) if isinstance(item, Update)]
    assert [(item.utterance, item.text, item.final, item.start, item.time) for item in items] == [
        ("1", "line 0", False, 0.0, 0.5),
        ("1", "Line 0.", False, 0.0, 1.0),
        ("1", "Line 0.", True, 0.0, 1.0),  # without the pause
        ("2", "line 2", False, 2.0, 2.5),
        ("2", "Line 2.", False, 2.0, 3.0),
        ("2", "Line 2.", True, 2.0, 3.0),
        ("3", "line 4", False, 4.0, 4.5),
        ("3", "Line 4.", True, 4.0, 4.2),  # the last 0.2 s are recognised too
    ]
    assert transcriber.closed == 2


def test_slow_passes_are_fewer(model: Path) -> None:
    transcriber, recogniser = made(model, seconds=1.0)
    list(transcribe(silence(20), recogniser))
    assert transcriber.passes == pytest.approx(20 / 1.5 + 1, abs=1)
    assert transcriber.passes < 20 / STEP / 2


def test_overdriven_samples_are_clipped(model: Path) -> None:
    _, recogniser = made(model)
    loud: Samples = np.full(RATE, 1.2, np.float32)
    assert not any(isinstance(item, Failure) for item in transcribe([loud], recogniser))


def test_folders(package: SimpleNamespace, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []
    monkeypatch.setattr(moonshine, "Moonshine", lambda transcriber, pause: opened.append(transcriber))
    open_recogniser(f"moonshine:{model}", "es", pause=0.75)
    (model / "streaming_config.json").touch()
    model.rename(model.with_name("small-streaming-en"))
    open_recogniser(f"moonshine:{model.with_name('small-streaming-en')}", "ja")
    assert [each.arch for each in opened] == [Arch.BASE, Arch.SMALL_STREAMING]
    assert opened[0].options["vad_window_duration"] == 1.0 and opened[0].options["vad_threshold"] == 0.25
    assert "max_tokens_per_second" not in opened[0].options and opened[1].options["max_tokens_per_second"] == 13


def test_refusals(package: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OptionError, match="moonshine has no model 'huge': name one of tiny-en, .*, or a folder"):
        open_recogniser("moonshine:huge")
    with pytest.raises(OptionError, match="moonshine:tiny-en recognises en, not 'es'"):
        open_recogniser("moonshine:tiny-en", "Spanish")
    with pytest.raises(OptionError, match="moonshine recognises ar, en, es, ja, ko, uk, vi, zh, not 'fr'"):
        open_recogniser("moonshine", "fr")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match="must be named after its model, such as tiny-streaming-en"):
        open_recogniser(f"moonshine:{tmp_path / 'empty'}")
    (tmp_path / "tiny").mkdir()
    with pytest.raises(ModelError, match="cannot be used by moonshine: Required tokenizer file does not exist"):
        open_recogniser(f"moonshine:{tmp_path / 'tiny'}")
    (tmp_path / "small").mkdir()
    with pytest.raises(ModelError, match=r"is not a moonshine model: streaming_config.json is missing"):
        open_recogniser(f"moonshine:{tmp_path / 'small'}")
    monkeypatch.setitem(sys.modules, "moonshine_voice", None)
    with pytest.raises(MissingExtra, match=re.escape(install("listen"))):
        open_recogniser("moonshine")


def test_no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("moonshine_voice", reason="needs the extra listen")
    import requests

    asked: list[str] = []

    def get(url: str, **_: Any) -> None:
        asked.append(url)
        raise requests.ConnectionError("[Errno -3] Temporary failure in name resolution")

    monkeypatch.setattr(requests, "get", get)
    monkeypatch.setenv("REDRAFT_MODELS", str(tmp_path))
    with pytest.raises(ModelError) as raised:
        open_recogniser("moonshine", "es")
    assert str(raised.value) == (
        "model 'base-es' could not be downloaded: [Errno -3] Temporary failure in name resolution; a folder with its "
        "files works too, as in moonshine:models/base-es"
    )
    assert asked == ["https://download.moonshine.ai/model/base-es/quantized/base-es/encoder_model.ort"]
    assert "for non-commercial use" in capsys.readouterr().err


def test_every_model_can_be_downloaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """All names are those of the package, and its files end up in the cache folder."""
    pytest.importorskip("moonshine_voice", reason="needs the extra listen")
    from moonshine_voice import download

    monkeypatch.setenv("REDRAFT_MODELS", str(tmp_path))
    monkeypatch.setattr(download, "download_model", lambda url, path: asked.append((url, path)))
    for name in moonshine.MODELS:
        asked: list[tuple[str, str]] = []
        folder = moonshine._folder(name)
        assert folder.is_relative_to(tmp_path)
        assert all(f"/{name}/" in url and Path(path).parent == folder for url, path in asked) and len(asked) >= 3


def test_default_models() -> None:
    assert default_model("en") == "tiny-en" and default_model("ja") == "base-ja"


@pytest.mark.parametrize(
    ("installed", "language", "name"),
    [
        ("moonshine_voice sherpa_onnx faster_whisper", "en", "moonshine:tiny-en"),
        ("faster_whisper", "en", "whisper"),
        ("", "en", "moonshine:tiny-en"),
        ("moonshine_voice faster_whisper", "es", "whisper"),
        ("moonshine_voice", "es", "moonshine:base-es"),
        ("moonshine_voice sherpa_onnx", "es", "moonshine:base-es"),  # whose model has not been downloaded
        ("moonshine_voice", "fr", "whisper"),
    ],
)
def test_automatic_choice(
    installed: str, language: str, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("REDRAFT_MODELS", str(tmp_path))
    monkeypatch.setattr(registry, "find_spec", lambda name: name in installed or None)
    assert resolve("auto", language).startswith(name)


@pytest.mark.parametrize(
    ("declared", "chosen"),
    [
        ({"place": lambda language: 5}, "bells"),
        ({"place": lambda language: 5, "PACKAGE": "bells_that_are_missing"}, "moonshine:tiny-en"),
        ({"place": lambda language: 15}, "moonshine:tiny-en"),
        ({}, "moonshine:tiny-en"),
        (None, "moonshine:tiny-en"),  # it cannot be imported
    ],
)
def test_automatic_choice_of_plug_in(
    declared: dict[str, object] | None, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if declared is not None:
        monkeypatch.setitem(sys.modules, "bells_for_test", SimpleNamespace(**declared))
    point = EntryPoint("bells", "bells_for_test", registry.ENTRY_POINT_GROUP)
    known = registry._points()
    monkeypatch.setattr(registry, "_points", lambda: {**known, "bells": point})
    monkeypatch.setattr(registry, "find_spec", lambda name: name == "moonshine_voice" or None)
    assert resolve("auto", "en") == chosen


def test_names_that_are_complete() -> None:
    assert resolve("sherpa:/srv/model") == "sherpa:/srv/model"
    assert resolve("vosk:ws://127.0.0.1:2700") == "vosk:ws://127.0.0.1:2700"
    assert "moonshine" in {point.name for point in entry_points(group=registry.ENTRY_POINT_GROUP)}
