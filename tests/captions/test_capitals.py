"""Sources in capitals: which texts are lowered, how, and that every input's are."""

from __future__ import annotations

import pytest

from redraft.captions.ending import lowered

LOWERED = {
    "THE COMMITTEE MEETS TOMORROW AT NINE": "the committee meets tomorrow at nine",
    "I'M SURE I'LL GO": "I'm sure I'll go",
    "HELLO. HOW ARE YOU? I'M FINE": "Hello. How are you? I'm fine",
    "AT 3.5 WE GO": "at 3.5 we go",
    "«BONJOUR. ÇA VA»": "«Bonjour. Ça va»",
    "ПРИВЕТ КАК ДЕЛА": "привет как дела",
    "DIE GRÖßE DER STRAßE": "die größe der straße",
    "THE <unk> COMMITTEE [laughter]": "the <unk> committee [laughter]",
    "İSTANBUL'A GİDİYOR": "istanbul'a gidiyor",
    "The NATO": "The NATO",
    "你好": "你好",
    "A": "A",
    "": "",
}


@pytest.mark.parametrize("text", LOWERED)
def test_texts(text: str) -> None:
    assert lowered(text, mixed=False)[0] == LOWERED[text]


def all_of(*texts: str) -> list[str]:
    """The texts of one source."""
    mixed, found = False, []
    for text in texts:
        lower, mixed = lowered(text, mixed=mixed)
        found.append(lower)
    return found


def test_source_with_small_letters_keeps_its_capitals() -> None:
    assert all_of("Yes.", "OK", "NASA") == ["Yes.", "OK", "NASA"]


def test_source_without_case_may_get_capitals() -> None:
    assert all_of("你好", "THE END") == ["你好", "the end"]
