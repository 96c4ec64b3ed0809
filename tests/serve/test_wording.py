"""The wording of refusals, in one table; other tests assert codes.  No wording is pydantic's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from redraft import protocol
from redraft.protocol.fields import describe
from redraft.serve.access import new_key
from tests.serve.servers import Running, running

UPDATE = {"type": "update", "utterance": "1", "seq": 1, "text": "we saw"}
START: dict[str, Any] = {"type": "start", "targets": ["de"]}
CORRECT = {"type": "correct", "utterance": "1", "language": "de"}
AUDIO = {"type": "audio", "stream": "1"}
FINAL = {"utterance": "1", "seq": 1, "language": "de", "text": "wir"}
SEQ = "seq must be a whole number from 0 to 9007199254740992"
NAME = "a string of 1 to 100 characters"


def complaint(text: str) -> str:
    with pytest.raises(ValidationError) as raised:
        protocol.FROM_CLIENT.validate_json(text)
    return str(describe(raised.value, *protocol.CLIENT))


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ([], "the message must be a JSON object"),
        ({}, "type must be one of start, update, audio, audio_end, ack, declare, restore, pause, hide, correct, end"),
        (
            {"type": "x"},
            "type must be one of start, update, audio, audio_end, ack, declare, restore, pause, hide, correct, end",
        ),
        ({**UPDATE, "seq": -1}, SEQ),
        ({**UPDATE, "seq": 1.5}, SEQ),
        ({**UPDATE, "seq": True}, SEQ),
        ({**UPDATE, "text": None}, "text must be a string of at most 20000 characters"),
        ({**UPDATE, "text": "a" * 20_001}, "text must be a string of at most 20000 characters"),
        ({**UPDATE, "time": float("nan")}, "time must be a number of 0 or more"),
        ({**UPDATE, "time": -1}, "time must be a number of 0 or more"),
        ({**UPDATE, "final": "yes"}, "final must be true or false"),
        ({**UPDATE, "utterance": ""}, f"utterance must be {NAME} or a whole number"),
        ({"type": "update"}, f"utterance is missing: it must be {NAME} or a whole number"),
        (
            {**UPDATE, "日" * 90: 1},
            "日" * 60 + " is not known: the allowed fields are utterance, seq, text, final, time, speaker, committed, "
            "goes_on, type, begun",
        ),
        ({**START, "targets": []}, "targets must be a list of 1 to 64 entries"),
        ({**START, "targets": ["de", ""]}, f"targets.1 must be {NAME}"),
        ({**START, "options": {"beta": []}}, f"options.beta must be a number or {NAME}"),
        ({**START, "options": {"": 1}}, f"options: every name must be {NAME}"),
        ({**START, "token": "short"}, "token must be 22 to 128 letters, digits, hyphens and underscores"),
        ({**START, "agree": 0}, "agree must be a whole number from 1 to 10"),
        ({**START, "first_sight": 2}, "first_sight must be a number from 0 to 1"),
        ({**START, "mask_k": -1}, "mask_k must be a whole number from 0 to 100"),
        ({**START, "max_tokens": 0}, "max_tokens must be a whole number of 1 or more"),
        ({**START, "glossary": {"de": [["hull"]]}}, f"glossary.de.0.1 is missing: it must be {NAME}"),
        ({**START, "glossary": []}, "glossary must be an object of at most 64 entries"),
        (
            {**START, "template": "x"},
            "template is not known: the allowed fields are targets, source_language, method, options, ",
        ),
        (
            {**START, "room": "Hall"},
            "room must be 1 to 63 lower-case letters, digits, hyphens and underscores, the first",
        ),
        ({**CORRECT, "text": " "}, "text must be a string of 1 to 20000 characters"),
        ({**AUDIO, "rate": 44_100}, "rate must be 16000"),
        ({**AUDIO, "stream": ""}, "stream must be a string of 1 to 50 characters"),
        ({**AUDIO, "samples": 0.5}, "samples must be a whole number from 0 to 9007199254740992"),
        ({**AUDIO, "utterance": 0}, "utterance must be a whole number from 1 to 9007199254740992"),
        ({"type": "restore", "finals": 7}, "finals must be a list of at most 1000 entries"),
        ({"type": "restore", "finals": [{**FINAL, "seq": "7"}]}, "finals.0.seq must be a whole number of 0 or more"),
    ],
)
def test_invalid_message(message: Any, sentence: str) -> None:
    assert complaint(json.dumps(message)).startswith(sentence)


def test_invalid_json() -> None:
    assert complaint('{"type": ') == "the message must be valid JSON; see line 1, column 9"
    half = complaint(json.dumps({**UPDATE, "text": "\ud800"}))
    assert half == "the message must be JSON in which no string has one half of a surrogate pair without the other"


def test_invalid_object() -> None:
    with pytest.raises(ValidationError) as raised:
        protocol.UpdateMessage(utterance="1", seq=1, text="\ud800")
    error = describe(raised.value, protocol.UpdateMessage)
    assert str(error) == "text must be Unicode text, and has one half of a surrogate pair without the other"


#: A message, the field that is wrong with it, and the sentence.
REFUSED: list[tuple[dict[str, Any], str | None, str]] = [
    ({"type": "end"}, None, "the first message must be `start`, not `end`"),
    ({**START, "protocol": 2}, "protocol", "protocol must be 1, not 2"),
    ({**START, "targets": ["xx-nonsense"]}, "targets", "target 'xx-nonsense' is not known"),
    ({**START, "targets": ["de", "German"]}, "targets", "targets must be different languages"),
    ({**START, "source_language": "xx-nonsense"}, "source_language", "source language 'xx-nonsense' is not known"),
    ({**START, "method": "bild"}, "method", "method must be one of ssbd, ar, not 'bild'"),
    ({**START, "options": {"beta": 2}}, "beta", "beta must be a number from 0 to 1, not 2"),
    ({**START, "options": {"beta": [2]}}, "options.beta", "options.beta must be a number or a string of 1 to 100"),
    ({**START, "context": 5}, "context", "context must be at most 4, not 5"),
    ({**START, "key": "wrong"}, "key", "the API key is not known to this server: check it, or ask the operator for"),
    (START, "key", "an API key is needed: send it as `key`, or as a bearer token"),
    ({**START, "room": "other"}, "room", "there is no room 'other' on this server"),
    (
        {**START, "room": "hall-1"},
        "room",
        "room 'hall-1' is in use: end its session, or begin this one with take_over to end it",
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
        ("/v1/translate", {"targets": ["de"]}, "text is missing: it must be a string of 1 to 20000 characters"),
        ("/v1/translate", {"text": "a" * 70_000}, "a request must have at most 65536 bytes"),
        ("/v1/ingest/TOKEN?seq=x", b"a", SEQ),
        ("/v1/ingest/TOKEN?seq=1&final=x", b"a", "final must be true or false"),
        ("/v1/ingest/TOKEN?seq=1", b"\xff", "the body must be UTF-8: send it as text/plain; charset=utf-8"),
        (
            "/v1/control/TOKEN",
            {"type": "hide", "utterance": "9"},
            "utterance must be one that the session has received",
        ),
        ("/v1/sessions/NAME/transcript?format=pdf", None, "format must be one of srt, vtt, jsonl, txt"),
        ("/v1/sessions/NAME/transcript?language=fr", None, "language must be one of de, not 'fr'"),
        ("/v1/sessions/none/transcript", None, "the session does not exist, or was forgotten after its end"),
        (
            "/v2/translate",
            {"text": ["a"], "target_lang": "DE", "formality": "more"},
            "formality must be one of default",
        ),
        ("/v2/translate", {"text": ["a"], "target_lang": "XX"}, "target_lang 'XX' is not known"),
        ("/v2/translate", {"text": [], "target_lang": "DE"}, "text must be a list of 1 to 50 entries"),
        ("/v2/translate", [], "the body must be a JSON object, or a form, in valid UTF-8"),
        ("/translate", {"q": "a", "source": "en", "target": "de", "format": "html"}, "format must be text"),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]}, "the prompt must name the target"),
        ("/v1/chat/completions", {"messages": [{"role": "system"}]}, "messages must include one with the role user"),
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
