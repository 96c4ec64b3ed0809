"""Tokens as text: parts of characters, controls, spaces, width."""

from __future__ import annotations

import pytest

from redraft_bench.viz.figure import wrapped
from redraft_bench.viz.labels import label, shortened, texts, width


@pytest.mark.parametrize(
    ("piece", "shown"),
    [
        (b" Haus", "_Haus"),
        (b"\n", "↵"),
        (b"\xe6", "<E6>"),
        (b"\xa5\xe6", "<A5 E6>"),
        ("日本".encode(), "日本"),
        (b"\x1b[31m", "_[31m".replace("_", " ")),
        (b"", "·"),
    ],
)
def test_a_token_alone(piece: bytes, shown: str) -> None:
    assert label(piece) == shown


def test_a_character_of_several_tokens_belongs_to_the_last() -> None:
    assert texts([b"a\xe6", b"\x97", b"\xa5b", b" c"]) == ["a", "", "日b", " c"]


def test_bytes_that_are_no_character_are_shown_as_such() -> None:
    assert texts([b"\xff", b"a\xe6"]) == ["\ufffd", "a\ufffd"]
    assert texts([]) == []


def test_wide_characters_take_two_columns() -> None:
    assert width("a日") == 3
    assert shortened("日本語", 6) == "日本語"
    assert shortened("日本語", 5) == "日本…"
    assert shortened("abcdef", 4) == "abc…"


def test_lines_are_filled_in_order_and_a_word_too_wide_has_its_own() -> None:
    assert wrapped(["ab", "cd", "efghij", "k"], 4) == [[0, 1], [2], [3]]
    assert wrapped([], 4) == [[]]
