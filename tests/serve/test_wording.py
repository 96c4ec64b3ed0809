"""The wording of refusals, in one table; other tests assert codes.  What is wrong with a field, pydantic says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from redraft import protocol
from redraft.errors import OptionError
from redraft.protocol.codes import describe
from redraft.serve.access import new_key
from tests.serve.servers import Running, running

UPDATE = {"type": "update", "utterance": "1", "seq": 1, "text": "we saw"}
START: dict[str, Any] = {"type": "start", "targets": ["de"]}
CORRECT = {"type": "correct", "utterance": "1", "language": "de"}
AUDIO = {"type": "audio", "stream": "1"}
FINAL = {"utterance": "1", "seq": 1, "language": "de", "text": "wir"}
TYPES = "type must be one of start, update, audio, audio_end, ack, declare, restore, pause, hide, correct, name, end"
ROOM = "room: must be 1 to 63 lower-case letters, digits, hyphens and underscores, the first a letter or a digit"


def complaint(text: str) -> OptionError:
    with pytest.raises(ValidationError) as raised:
        protocol.FROM_CLIENT.validate_json(text)
    return describe(raised.value, *protocol.CLIENT)


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ([], None),
        ({}, "type"),
        ({**UPDATE, "seq": -1}, "seq"),
        ({**UPDATE, "seq": True}, "seq"),
        ({**UPDATE, "text": None}, "text"),
        ({**UPDATE, "text": "secret" * 4_000}, "text"),
        ({**UPDATE, "time": float("nan")}, "time"),
        ({**UPDATE, "final": "secret"}, "final"),
        ({**UPDATE, "utterance": ""}, "utterance"),
        ({"type": "update"}, "utterance"),
        ({**UPDATE, "日" * 90: 1}, "日" * 60),
        ({**START, "targets": ["de", ""]}, "targets.1"),
        ({**START, "token": "secret"}, "token"),
        ({**START, "agree": 2}, "agree"),
        ({**START, "glossary": {"de": [["secret"]]}}, "glossary.de.0.1"),
        ({**START, "template": "secret"}, "template"),
        ({**START, "room": "Secret"}, "room"),
        ({**CORRECT, "text": " "}, "text"),
        ({**AUDIO, "rate": 44_100}, "rate"),
        ({"type": "restore", "finals": [{**FINAL, "seq": "secret"}]}, "finals.0.seq"),
    ],
)
def test_invalid_message(message: Any, field: str | None) -> None:
    found = complaint(json.dumps(message))
    assert found.field == field and str(found).startswith(field or "Input") and len(str(found)) <= 300
    assert "secret" not in str(found).lower()


def test_sentences_of_our_own() -> None:
    assert str(complaint(json.dumps({"type": "secret"}))) == TYPES
    assert str(complaint(json.dumps({**START, "room": "Hall"}))) == ROOM


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ({"type": "restore", "finals": [1] * 5_000}, "finals.0: Input should be an object"),
        ({"type": "declare", "decisions": [{}] * 5_000}, TYPES),
        ({**START, "glossary": {"de": [["we"]] * 5_000}}, "glossary.de.0.1: Field required"),
        ({**START, "options": {str(number): [] for number in range(5_000)}}, "10000 values in it are invalid"),
        ({**UPDATE, **{str(number): 1 for number in range(5_000)}}, "5000 values in it are invalid"),
    ],
)
def test_many_problems(message: Any, sentence: str) -> None:
    """Messages with thousands of them, which need no key, must not take tens of milliseconds to describe."""
    with pytest.raises(ValidationError) as raised:
        protocol.FROM_CLIENT.validate_json(json.dumps(message))
    assert str(describe(raised.value, *protocol.CLIENT)) == sentence
    assert raised.value.error_count() <= 2 or "values" in sentence


@pytest.mark.parametrize("text", ['{"type": ', json.dumps({**UPDATE, "text": "\ud800"}), '{"secret'])
def test_invalid_json(text: str) -> None:
    found = complaint(text)
    assert found.field is None and str(found).startswith("Invalid JSON: ") and "secret" not in str(found)


#: A message, the field that is wrong with it, and the sentence.
REFUSED: list[tuple[dict[str, Any], str | None, str]] = [
    ({"type": "end"}, None, "the first message must be `start`, not `end`"),
    ({**START, "protocol": 2}, "protocol", "protocol must be 1, not 2"),
    ({**START, "targets": ["xx-nonsense"]}, "targets", "target 'xx-nonsense' is not known"),
    ({**START, "targets": ["de", "German"]}, "targets", "targets must be different languages"),
    ({**START, "source_language": "xx-nonsense"}, "source_language", "source language 'xx-nonsense' is not known"),
    ({**START, "method": "bild"}, "method", "method must be one of ssbd, ar, not 'bild'"),
    ({**START, "options": {"beta": 2}}, "beta", "beta must be a number from 0 to 1, not 2"),
    ({**START, "options": {"beta": [2]}}, "options.beta.float", "options.beta.float: "),
    ({**START, "options": {"context": 101}}, "context", "context must be a whole number from 0 to 100, not 101"),
    ({**START, "key": "wrong"}, "key", "the API key is not known to this server: check it, or ask the operator for"),
    (START, "key", "an API key is needed: send it as `key`, or as a bearer token"),
    ({**START, "room": "other"}, "room", "there is no room 'other' on this server"),
    (
        {**START, "room": "hall-1"},
        "take_over",
        "room 'hall-1' is in use: end its session first, or take it over",
    ),
    (
        {**START, "targets": ["de", "ja"]},
        None,
        "the server translates into 1 of at most 2 languages at a time, so 2 more cannot",
    ),
]


def test_refused_start(tmp_path: Path) -> None:
    key = new_key(tmp_path / "keys", "stage")
    with running(keys=tmp_path / "keys", rooms={"hall-1": ()}, languages=2) as server, server.socket() as socket:
        socket.start(room="hall-1", key=key)
        for message, field, sentence in REFUSED:
            given = {"key": key} if message is not START and message["type"] == "start" else {}
            with server.socket() as other:
                other.say(**{**given, **message})
                heard = other.hear()
                assert heard["message"].startswith(sentence)
                assert heard.get("field") == field


@pytest.mark.parametrize(
    ("path", "body", "sentence"),
    [
        ("/v1/translate", {"targets": ["de"]}, "text: Field required"),
        ("/v1/translate", {"text": "a" * 70_000}, "a request must have at most 65536 bytes"),
        ("/v1/ingest/TOKEN?seq=x", b"a", "seq: "),
        ("/v1/ingest/TOKEN?seq=1&final=x", b"a", "final: "),
        ("/v1/ingest/TOKEN?seq=1", b"\xff", "the body must be UTF-8: send it as text/plain; charset=utf-8"),
        (
            "/v1/control/TOKEN",
            {"type": "hide", "utterance": "9"},
            "utterance must be one that the session has received",
        ),
        ("/v1/sessions/NAME/transcript?format=pdf", None, "format: Input should be 'txt', 'srt', 'vtt' or 'jsonl'"),
        ("/v1/sessions/NAME/transcript?language=fr", None, "language must be one of en, de, not 'fr'"),
        ("/v1/sessions/none/transcript", None, "the session does not exist, or has expired"),
        (
            "/v2/translate",
            {"text": ["a"], "target_lang": "DE", "formality": "more"},
            "formality: Input should be",
        ),
        ("/v2/translate", {"text": ["a"], "target_lang": "XX"}, "target_lang 'XX' is not known"),
        ("/v2/translate", {"text": [], "target_lang": "DE"}, "text: List should have at least 1 item"),
        ("/v2/translate", [], "the body must be a JSON object, or a form, in valid UTF-8"),
        ("/translate", {"q": "a", "source": "en", "target": "de", "format": "html"}, "format: Input should be 'text'"),
        (
            "/v1/chat/completions",
            {"messages": [{"role": "user", "content": "a"}]},
            "this model only translates: the model's name must",
        ),
        (
            "/v1/chat/completions",
            {"messages": [{"role": "system"}]},
            "the messages must include one with the role user",
        ),
        ("/nowhere", None, "there is nothing at this address"),
    ],
)
def test_refused_request(imitating: Running, path: str, body: Any, sentence: str) -> None:
    begun = imitating.ask("/v1/sessions", {"targets": ["de"]}).json
    path = path.replace("TOKEN", begun["token"]).replace("NAME", begun["session"])
    kind = {"content-type": "text/plain"} if isinstance(body, bytes) else {}
    answer = imitating.ask(path, body, headers=kind).json
    found = answer.get("error", answer.get("message"))
    assert (found["message"] if isinstance(found, dict) else found).startswith(sentence)


@pytest.fixture(scope="module")
def imitating() -> Iterator[Running]:
    with running(compat=("deepl", "libretranslate", "openai"), starts_per_second=10_000) as server:
        yield server
