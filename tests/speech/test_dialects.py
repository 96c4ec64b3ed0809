"""Messages of recognition servers; the messages are as their documentation has them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from redraft.errors import InputError, OptionError
from redraft.speech.dialect import Dialect, find_dialect, pcm
from redraft.speech.dialects import sherpa, vosk
from redraft.speech.recogniser import Hypothesis

SOUND = np.array([0, 0.5, -1, 2], np.float32)


def read(dialect: Dialect, *messages: Any) -> list[Hypothesis]:
    """What is in messages that come at the times 0, 1, 2, ..."""
    return [found for now, message in enumerate(messages) for found in dialect.read(json.dumps(message), now)]


def finals(dialect: Dialect, *messages: Any) -> list[str]:
    return [found.text for found in read(dialect, *messages) if found.final]


def test_samples_as_integers() -> None:
    assert np.frombuffer(pcm(SOUND), "<i2").tolist() == [0, 16383, -32767, 32767]


class TestVosk:
    def test_utterance(self) -> None:
        dialect = vosk.dialect()
        assert json.loads(dialect.greeting) == {"config": {"sample_rate": 16_000, "words": True}}
        assert dialect.goodbye == '{"eof" : 1}'
        assert dialect.audio(SOUND) == pcm(SOUND)
        words = [
            {"conf": 1.0, "start": 0.84, "end": 1.02, "word": "one"},
            {"conf": 0.9, "start": 1.02, "end": 1.5, "word": "two"},
        ]
        found = read(
            dialect,
            {"partial": ""},
            {"partial": "one"},
            {"partial": "one too"},
            {"result": words, "text": "one two"},
            {"text": ""},
        )
        assert found == [
            Hypothesis("", 4 / 16_000, 4 / 16_000),
            Hypothesis("one", 1, 1),
            Hypothesis("one too", 2, 2),
            Hypothesis("one two", 0.84, 1.5, True),
            Hypothesis("", 4, 4, True),
        ]

    @pytest.mark.parametrize("message", ["{", "[]", "{}", '{"text": "a", "result": [{"word": "a"}]}', b"\xff\1"])
    def test_messages_that_are_none(self, message: str | bytes) -> None:
        with pytest.raises((ValueError, LookupError, TypeError)):
            vosk.dialect().read(message, 0)

    def test_alternatives(self) -> None:
        with pytest.raises(InputError, match="run the server without VOSK_ALTERNATIVES"):
            vosk.dialect().read('{"alternatives": [{"text": "one"}]}', 0)


class TestSherpa:
    def test_server_in_c(self) -> None:
        dialect = sherpa.dialect()
        assert np.frombuffer(dialect.audio(SOUND), "<f4").tolist() == SOUND.tolist()
        common = {"is_eof": False, "start_time": 0.0, "tokens": [" A"], "words": []}
        found = read(
            dialect,
            {"text": "", "segment": 0, "is_final": False, "timestamps": [], **common},
            {"text": "AFTER", "segment": 0, "is_final": False, "timestamps": [0.64], **common},
            {"text": "AFTER EARLY", "segment": 0, "is_final": True, "timestamps": [0.64, 1.2], **common},
            {**common, "text": "NIGHT", "segment": 1, "is_final": False, "timestamps": [0.5], "start_time": 3.2},
            {**common, "text": "NIGHTFALL", "segment": 1, "is_final": True, "timestamps": [0.5], "start_time": 3.2},
        )
        assert found == [
            Hypothesis("", 0.0, 0.0),
            Hypothesis("AFTER", 0.0, 0.64),
            Hypothesis("AFTER EARLY", 0.0, 1.2, True),
            Hypothesis("NIGHT", 3.2, 3.7),
            Hypothesis("NIGHTFALL", 3.2, 3.7, True),
        ]
        assert not dialect.over
        assert dialect.read("Done!", 9) == [] and dialect.over

    def test_server_in_python_marks_no_ends(self) -> None:
        found = read(
            sherpa.dialect(),
            {"text": "AFTER", "segment": 0},
            {"text": "AFTER EARLY", "segment": 0},
            {"text": "", "segment": 1},
            {"text": "NIGHTFALL", "segment": 1},
        )
        assert found == [
            Hypothesis("AFTER", 0, 0),
            Hypothesis("AFTER EARLY", 1, 1),
            Hypothesis("AFTER EARLY", 1, 1, True),
            Hypothesis("", 2, 2),
            Hypothesis("NIGHTFALL", 3, 3),
        ]

    @pytest.mark.parametrize("message", ["Done", '{"text": "a"}', '{"text": 3, "segment": 0}'])
    def test_messages_that_are_none(self, message: str) -> None:
        with pytest.raises((ValueError, LookupError, TypeError, AttributeError)):
            sherpa.dialect().read(message, 0)


def test_addresses() -> None:
    assert find_dialect("vosk:ws://localhost:2700") == (vosk, "ws://localhost:2700/")
    assert find_dialect("sherpa:wss://host:6006/asr?language=fr")[1] == "wss://host:6006/asr?language=fr"
    for spec, complaint in {
        "kaldi:ws://localhost:2700": "server 'kaldi' is not known; known are .*vosk.*, as in vosk:ws://127.0.0.1:2700",
        "vosk:http://localhost": "the address of vosk must be like ws://127.0.0.1:2700, not 'http://localhost'",
        "vosk:ws://": "must be like",
        "vosk:ws://host:99999": "must be like",
    }.items():
        with pytest.raises(OptionError, match=complaint):
            find_dialect(spec)
