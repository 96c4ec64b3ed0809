"""One notion of a word for masks, lag, erasure and line breaks."""

from __future__ import annotations

import pytest

from redraft.captions.align import seam
from redraft.captions.formats.read import prefixes
from redraft.captions.stabilise import stabilise
from redraft.captions.words import UNBREAKABLE, WORD, bare

THAI = "ฉันมีหมา"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I saw her, yes.", ["I", "saw", "her,", "yes."]),
        ("私は犬が好き。", list("私は犬が好き。")),
        ("か\u3099き", ["か\u3099", "き"]),
        (THAI, ["ฉั", "น", "มี", "ห", "ม", "า"]),
        ("ខ្ញុំ", ["ខ្", "ញុំ"]),
        ("iPhone を買う", ["iPhone", "を", "買", "う"]),
    ],
)
def test_word_is_run_or_character_with_its_marks(text: str, words: list[str]) -> None:
    assert WORD.findall(text) == words


def test_lag_and_display_count_alike() -> None:
    words = prefixes(THAI, 1)
    assert len(words) == 6
    pieces = [bytes([each]) for each in THAI.encode()]
    shown = {stabilise(pieces, final=False, confirmed=count).shown for count in range(len(pieces) + 1)}
    assert shown == {"", *words}


def test_line_does_not_begin_with_what_closes() -> None:
    assert UNBREAKABLE.findall("犬です。 Ja, gut.") == ["犬", "で", "す。 ", "Ja, ", "gut."]


@pytest.mark.parametrize(
    ("part", "rest"),
    [
        ("we met", "it rained"),
        ("met", "it rained"),
        ("they ate", "it rained"),
        ("they later met", "it rained"),
        ("we met it rained", ""),
        ("", "we met it rained"),
    ],
)
def test_rest_behind_revised_beginning(part: str, rest: str) -> None:
    whole = "we met it rained".split()
    assert whole[seam(part.split(), (), whole) :] == rest.split()


@pytest.mark.parametrize(
    "words",
    [
        ("5", "5%", "-5", "5°", "$5", "#5", "1.5", "15", ".5", "5′", "5％", "٥", "٥٪"),
        ("C", "C#", "C++", "&", "@", "＆", "*"),
        ("were", "we're"),
        ("recover", "re-cover"),
        ("ג", "ג׳"),
    ],
)
def test_other_words(words: tuple[str, ...]) -> None:
    assert len({bare(word) for word in words}) == len(words)
    assert all(bare(f"“({word.upper()}),”…") == bare(word) for word in words)


@pytest.mark.parametrize("mark", [".", "...", "–", "-", "“", "»", "、", "。", "¿", "؟", "'", ""])
def test_punctuation_alone_is_no_word(mark: str) -> None:
    assert bare(mark) == ""
    assert bare(f"{mark}word{mark}") == "word"
