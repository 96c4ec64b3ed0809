"""Whisper over growing audio, with a stand-in for the model, which is too large to test with."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from redraft.captions.events import Failure, Update
from redraft.errors import MissingExtra, ModelError, OptionError
from redraft.speech.audio import RATE, Samples
from redraft.speech.endpoint import Endpointer
from redraft.speech.recogniser import transcribe
from redraft.speech.registry import open_recogniser
from redraft.speech.whisper import Whisper, agreement
from tests.speech.test_endpoint import loud

PASSES = ("Good", "Good eve and", "Good evening everyone", "Food evening, everyone.")


class Model:
    """A faster_whisper.WhisperModel that says something else in every pass."""

    def __init__(self, passes: tuple[str, ...] = PASSES, seconds: float = 0.0) -> None:
        self.passes, self.seconds, self.now = list(passes), seconds, 0.0
        self.lengths: list[float] = []

    def transcribe(self, audio: Samples, language: str, **_: Any) -> tuple[Iterator[Any], None]:
        assert audio.dtype == np.float32 and language == "en"
        self.lengths.append(round(len(audio) / RATE, 1))
        self.now += self.seconds
        text = self.passes.pop(0) if len(self.passes) > 1 else self.passes[0]
        return iter([SimpleNamespace(text=f" {text[:4]}"), SimpleNamespace(text=text[4:])]), None


def speech(seconds: float, silent: float = 1.0) -> Iterator[Samples]:
    for on, length in ((0.5, seconds), (0.0, silent)):
        for _ in range(round(length * 10)):
            yield np.full(RATE // 10, on, np.float32)


def heard(model: Model, seconds: float = 3.2) -> list[Update]:
    recogniser = Whisper(model, "en", Endpointer(loud), lambda: model.now)
    items = list(transcribe(speech(seconds), recogniser))
    assert not any(isinstance(item, Failure) for item in items)
    return [item for item in items if isinstance(item, Update)]


def test_an_utterance_grows_and_what_two_passes_agree_on_stays() -> None:
    model = Model()
    updates = heard(model)
    assert [update.text for update in updates] == [
        "Good",
        "Good eve and",
        "Good evening everyone",
        "Good evening, everyone.",  # that pass said "Food", but the first word had been agreed on
    ]
    assert [update.final for update in updates] == [False, False, False, True]
    assert model.lengths[:3] == pytest.approx([1.1, 2.1, 3.2], abs=0.15)
    assert updates[-1].time == pytest.approx(3.2, abs=0.1)


def test_a_slow_model_makes_fewer_passes() -> None:
    model = Model(seconds=2.5)
    heard(model, 9)
    assert len(model.lengths) <= 5
    assert np.diff(model.lengths[:3]).min() >= 2.4


def test_no_utterance_is_longer_than_what_whisper_hears_at_once() -> None:
    model = Model(("so",))
    assert sum(update.final for update in heard(model, 65)) == 4
    assert max(model.lengths) < 30


def test_agreement() -> None:
    assert agreement([], 0, ["a", "b"]) == (["a", "b"], 0)
    assert agreement(["a", "b"], 0, ["a", "c", "d"]) == (["a", "c", "d"], 1)
    assert agreement(["a", "c", "d"], 1, ["x", "c", "e"]) == (["a", "c", "e"], 2)
    assert agreement(["a", "c", "e"], 2, []) == (["a", "c"], 2)


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pocketsphinx")
    opened: list[str] = []

    def open_model(name: str) -> Model:
        opened.append(name)
        if name == "huge":
            raise ValueError("Invalid model size 'huge', expected one of: tiny, base")
        if name == "small":
            raise OSError("no network.\nMore of it")
        return Model()

    monkeypatch.setitem(sys.modules, "faster_whisper", SimpleNamespace(WhisperModel=open_model))
    assert isinstance(open_recogniser("whisper"), Whisper)
    assert isinstance(open_recogniser("whisper:large-v3-turbo", "French"), Whisper)
    assert opened == ["base.en", "large-v3-turbo"]
    with pytest.raises(OptionError, match="whisper has no model 'huge': Invalid model size 'huge'"):
        open_recogniser("whisper:huge")
    with pytest.raises(ModelError, match="whisper cannot open model 'small': no network$"):
        open_recogniser("whisper", "fr")
    with pytest.raises(OptionError, match="whisper:tiny.en recognises en, not 'fr'"):
        open_recogniser("whisper:tiny.en", "fr")
    monkeypatch.setitem(sys.modules, "faster_whisper", None)
    with pytest.raises(MissingExtra, match=r"pip install 'redraft\[listen-whisper\]'"):
        open_recogniser("whisper")
