"""Which tokens a caption may contain, by the scripts of its language and its source."""

from __future__ import annotations

import pytest

from redraft.captions.languages import parse_language
from redraft.captions.script import foreign_tokens, spelling_rule, writes_own_script
from redraft.decoding.selection import Selection

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


def selection(language: str, source: str) -> Selection:
    target = parse_language(language)
    return spelling_rule(target, foreign_tokens([token.encode() for token in TOKENS], target), tokenize)(source)


def forbidden(language: str, source: str) -> set[str]:
    """The tokens that no output can begin with."""
    chosen = selection(language, source)
    return {text for token, text in enumerate(TOKENS) if not chosen.after(()).among([token])}


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


def test_words_of_source_may_begin() -> None:
    assert forbidden("ja", "(AB-kalt) iphone") == {"phone", "很kalt", "x", " Straße"}
    assert forbidden("ja", "Straße, kalte.") == {"AB", "phone", "很kalt", "x", "i"}


def test_words_of_source_are_spelt_to_their_end() -> None:
    chosen = selection("ja", "iphone")
    i, phone, no = (TOKENS.index(text) for text in ("i", "phone", "の"))
    assert chosen.after((no, i)).only == frozenset({phone})
    assert not chosen.after((i,)).among([no])
    assert chosen.after((i,)).among([phone])
    assert chosen.after((i, phone)).among([no])


def test_words_in_own_script_may_be_translated() -> None:
    """A German caption may begin as "iphone" does and continue otherwise."""
    chosen = selection("de", "iphone kalte Straße")
    i, phone, kalt, no = (TOKENS.index(text) for text in ("i", "phone", "kalt", "の"))
    assert chosen.after((i,)).among([i, phone, kalt, no]) == [i, phone, kalt]
    assert selection("de", "iphoneの").after((i,)).among([i, phone, no]) == [i, phone, no]


def test_single_capitals_are_no_word() -> None:
    chosen = selection("ja", "AB-kalt P")
    a, p, spaced, joined = (TOKENS.index(text) for text in ("A", "P", " kalt", "kalt"))
    assert chosen.after(()).among([p])
    assert not chosen.after((a,)).among([p])
    assert not chosen.after((p,)).among([joined])
    assert chosen.after((p,)).among([spaced])


def test_capitals_of_source_are_spelt() -> None:
    chosen = selection("ja", "AP.")
    a, p, no = (TOKENS.index(text) for text in ("A", "P", "の"))
    assert chosen.after((a,)).among([p])
    assert chosen.after((a,)).among([no])
    assert not chosen.after((a, p)).among([a])


def test_words_are_of_one_script() -> None:
    assert forbidden("ja", "很iphone很") == forbidden("ja", "iphone")


def test_scripts_without_spaces_are_allowed_token_by_token() -> None:
    assert forbidden("zh", "のカル").isdisjoint({"の", "カル"})


def test_part_of_character_is_allowed() -> None:
    assert foreign_tokens([("很".encode())[:2], "很".encode()], parse_language("de")).foreign == {1}


@pytest.mark.parametrize(("value", "expected"), [("true", True), ("True", True), ("false", False), ("", False)])
def test_model_asks_for_it(value: str, expected: bool) -> None:
    assert writes_own_script({"redraft.own_script": value}) is expected
    assert not writes_own_script({})
