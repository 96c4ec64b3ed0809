"""Tokens as text: parts of characters, controls, spaces, width."""

from __future__ import annotations

import pytest

from redraft_bench.viz.labels import label, texts


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
def test_token_alone(piece: bytes, shown: str) -> None:
    assert label(piece) == shown


def test_character_of_several_tokens_belongs_to_last() -> None:
    assert texts([b"a\xe6", b"\x97", b"\xa5b", b" c"]) == ["a", "", "日b", " c"]
