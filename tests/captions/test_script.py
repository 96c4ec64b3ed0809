"""Which tokens a caption may contain, by the scripts of its language and its source."""

from __future__ import annotations

import pytest

from redraft.captions.languages import parse_language
from redraft.captions.script import OwnScript, foreign_tokens, writes_own_script

TOKENS = ["", " kalt", "kalt", "A", "AB", "很", "の", "カル", "phone", "很kalt", "1,000", "x", " Straße", "i", "P"]


def tokenize(text: str) -> list[int]:
    """The longest token first."""
    found = []
    while text:
        token = max((token for token in TOKENS if text.startswith(token)), key=len)
        if token:
            found.append(TOKENS.index(token))
        text = text[len(token) or 1 :]
    return found


def forbidden(language: str, source: str) -> set[str]:
    script = OwnScript(foreign_tokens([token.encode() for token in TOKENS], parse_language(language)), tokenize)
    return {TOKENS[token] for token in script.forbidden(source)}


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("de", {"很", "の", "カル", "很kalt"}),
        ("zh", {" kalt", "kalt", "AB", "の", "カル", "phone", "很kalt", "x", " Straße", "i"}),
        ("zh-Hant", {" kalt", "kalt", "AB", "の", "カル", "phone", "很kalt", "x", " Straße", "i"}),
        ("ja", {" kalt", "kalt", "AB", "phone", "很kalt", "x", " Straße", "i"}),
        ("ar", set()),
    ],
)
def test_words_of_other_scripts_are_forbidden(language: str, expected: set[str]) -> None:
    assert forbidden(language, "") == expected


def test_what_spells_the_words_of_the_source_is_allowed() -> None:
    assert forbidden("ja", "(AB-kalt) iphone") == {"很kalt", "x", " Straße"}
    assert forbidden("ja", "Straße, kalte.") == {"AB", "phone", "很kalt", "x", "i"}


def test_a_part_of_a_character_is_allowed() -> None:
    assert foreign_tokens([("很".encode())[:2], "很".encode()], parse_language("de")) == {1}


@pytest.mark.parametrize(("value", "expected"), [("true", True), ("True", True), ("false", False), ("", False)])
def test_a_model_asks_for_it(value: str, expected: bool) -> None:
    assert writes_own_script({"redraft.own_script": value}) is expected
    assert not writes_own_script({})
