"""Sentences about messages that are not as they should be: the field, the allowed values, and nothing of pydantic's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from redraft.serve import protocol

UPDATE = {"type": "update", "utterance": "1", "seq": 1, "text": "we saw"}
START = {"type": "start", "targets": ["de"]}
FINAL = {"utterance": "1", "seq": 1, "language": "de", "text": "wir"}
SEQ = "seq must be a whole number from 0 to 9007199254740992"
NAME = "a string of 1 to 100 characters"


def complaint(text: str) -> str:
    with pytest.raises(ValidationError) as raised:
        protocol.FROM_CLIENT.validate_json(text)
    return protocol.sentence(raised.value)


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ([], "the message must be a JSON object"),
        ({}, "type must be one of start, update, audio, audio_end, ack, restore, pause, hide, correct, end"),
        ({"type": "x"}, "type must be one of start, update, audio, audio_end, ack, restore, pause, hide, correct, end"),
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
            "日" * 60 + " is not known: the allowed fields are utterance, seq, text, final, time, speaker, type, begun",
        ),
        ({**START, "targets": []}, "targets must be a list of 1 to 64 entries"),
        ({**START, "targets": ["de", ""]}, f"targets.1 must be {NAME}"),
        ({**START, "options": {"beta": []}}, f"options.beta must be a number or {NAME}"),
        ({**START, "options": {"": 1}}, f"every name in options must be {NAME}"),
        ({**START, "token": "short"}, "token must be 22 to 128 letters, digits, hyphens and underscores"),
        ({**START, "mask_unit": "x"}, "mask_unit must be one of tokens, words"),
        ({**START, "mask_margin": 2}, "mask_margin must be a number from -1 to 1"),
        ({**START, "max_tokens": 0}, "max_tokens must be a whole number of 1 or more"),
        ({**START, "glossary": [["hull"]]}, f"glossary.0.1 is missing: it must be {NAME}"),
        ({"type": "restore", "finals": 7}, "finals must be a list of at most 1000 entries"),
        ({"type": "restore", "finals": [{**FINAL, "seq": "7"}]}, "finals.0.seq must be a whole number of 0 or more"),
    ],
)
def test_invalid_message(message: Any, sentence: str) -> None:
    assert complaint(json.dumps(message)) == sentence


def test_invalid_json() -> None:
    assert complaint('{"type": ') == "the message must be valid JSON; see line 1, column 9"
    half = complaint(json.dumps({**UPDATE, "text": "\ud800"}))
    assert half == "the message must be JSON in which no string has one half of a surrogate pair without the other"


def test_invalid_object() -> None:
    with pytest.raises(ValidationError) as raised:
        protocol.UpdateMessage(utterance="1", seq=1, text="\ud800")
    sentence = protocol.sentence(raised.value, protocol.UpdateMessage)
    assert sentence == "text must be Unicode text, and has one half of a surrogate pair without the other"
