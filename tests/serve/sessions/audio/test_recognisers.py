"""The recogniser of a server: its problems are reported at start-up."""

from __future__ import annotations

from typing import Any

import pytest

from redraft.errors import OptionError
from redraft.serve.metrics import Metrics
from redraft.serve.service import offered_recogniser
from redraft.serve.sessions import session_audio
from redraft.serve.sessions.session_audio import Recognisers, check_recognition, command_of, try_recogniser
from redraft.serve.settings import ServeSettings
from redraft.speech import registry
from tests.serve.hearing import command


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"recogniser": "nothing"}, "recogniser 'nothing' is not known; known recognisers: moonshine"),
        ({"recogniser": "nothing:ws://127.0.0.1:1"}, "server 'nothing' is not known; known are"),
        ({"recogniser": "vosk:http://127.0.0.1:1"}, "the address of vosk must be like ws://127.0.0.1:2700"),
        ({"punctuation": "models/punct"}, "punctuation is for recognised text, so it needs"),
    ],
)
def test_unknown_recogniser(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(OptionError, match=sentence):
        check_recognition(ServeSettings(**settings))


def test_names_that_are_known() -> None:
    for spec in (None, "auto", "moonshine", "whisper:small", "sherpa:/srv/model", "vosk:ws://127.0.0.1:2700"):
        check_recognition(ServeSettings(recogniser=spec))


def test_recogniser_command() -> None:
    made = command_of(ServeSettings(recogniser="sherpa", punctuation="models/punct"), "de")
    assert made[1:] == ["-m", "redraft.speech.worker", '["sherpa", "de", 0.5, "models/punct"]']


@pytest.mark.parametrize(
    ("spec", "languages", "sentence"),
    [
        ("moonshine:huge", ("en",), "recogniser 'moonshine:huge' cannot be used: moonshine has no model 'huge'"),
        (
            "moonshine:tiny-en",
            ("fr", "en"),
            "recogniser 'moonshine:tiny-en' cannot be used: moonshine:tiny-en recognises en, not 'fr'",
        ),
        ("vosk:ws://127.0.0.1:9", (), "cannot be used: the recogniser at ws://127.0.0.1:9/ cannot be reached"),
    ],
)
def test_a_recogniser_is_tried(spec: str, languages: tuple[str, ...], sentence: str) -> None:
    pytest.importorskip("moonshine_voice", reason="needs the extra listen")
    with pytest.raises(OptionError, match=sentence):
        try_recogniser(ServeSettings(recogniser=spec), languages)


@pytest.mark.parametrize(
    ("spec", "sentence", "public"),
    [
        ("vosk:ws://10.0.0.1:9", "the recogniser at ws://10.0.0.1:9/ is gone", "the recogniser at vosk is gone"),
        (
            "sherpa:/srv/m",
            "'/srv/m/tokens.txt' and '/srv/p' cannot be read",
            "'sherpa/tokens.txt' and 'punctuation' cannot be read",
        ),
        ("moonshine", "it is broken", "it is broken"),
    ],
)
def test_public_error(spec: str, sentence: str, public: str) -> None:
    settings = ServeSettings(recogniser=spec, punctuation="/srv/p")
    assert Recognisers(settings, Metrics()).public(sentence) == public


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        ("auto", "moonshine:tiny-en"),
        ("moonshine", "moonshine:tiny-en"),
        ("moonshine:base-en", "moonshine:base-en"),
        ("moonshine:/srv/tiny-en", "moonshine"),
        ("sherpa:/srv/model", "sherpa"),
        ("vosk:ws://10.0.0.1:9", "vosk"),
    ],
)
def test_offered_name(spec: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "find_spec", lambda name: name == "moonshine_voice" or None)
    assert offered_recogniser(spec, "en") == shown


def test_a_recogniser_that_can_be_used() -> None:
    pytest.importorskip("moonshine_voice", reason="needs the extra listen")
    try_recogniser(ServeSettings(recogniser="moonshine"), ("en",))
    try_recogniser(ServeSettings(), ())


def test_a_process_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_audio, "command_of", lambda settings, language: command("--unknown")(language))
    with pytest.raises(OptionError, match="cannot be used: .* its process ended with status 2"):
        try_recogniser(ServeSettings(recogniser="moonshine"), ("en",))
