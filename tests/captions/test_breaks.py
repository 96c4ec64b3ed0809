"""The width of texts, and where lines of them are broken."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.captions.breaks import broken, cells
from redraft.captions.events import Caption
from redraft.captions.formats.rows import Reading
from redraft.captions.words import UNBREAKABLE


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("ที่นี่", 2),
        ("น้ำ", 2),
        ("ນ້ຳ", 2),
        ("नमस्ते", 4),
        ("हिन्दी", 4),
        ("বাংলা", 4),
        ("வணக்கம்", 5),
        ("שָׁלוֹם", 4),
        ("مُحَمَّدٌ", 4),
        ("e\u0301a\u0308", 2),
        ("か\u3099き", 4),
        ("\u1112\u1161\u11ab한", 4),
        ("👨‍👩‍👧", 2),
        ("🇩🇪👍🏽❤️1️⃣", 8),
        ("a\u200bb", 2),
        ("彼女 Ja", 7),
        ("", 0),
    ],
)
def test_cells(text: str, width: int) -> None:
    assert cells(text) == width


def lines(text: str, width: int = 16) -> list[str]:
    return ["".join(line).strip(" ") for line in broken(UNBREAKABLE.findall(text), width)]


THAI = ["วัน", "นี้", "อากาศ", "ดี", "มาก", "เรา", "ไป", "เดิน", "เล่น", "ที่", "สวน", "สาธารณะ", "กัน", "เถอะ"]


@pytest.mark.parametrize("width", range(16, 31))
def test_thai_words_stay_whole(width: int) -> None:
    found = lines("".join(THAI * 3), width)
    assert "".join(found) == "".join(THAI * 3) and max(map(cells, found)) <= width
    assert min(map(cells, found[:-1])) > width - 8  # no line is half empty
    assert set(accumulate(map(len, THAI * 3))) >= set(accumulate(map(len, found)))


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("犬（猫）は「犬」を、ちょっと。", "犬|（猫）|は|「犬」|を、|ちょっ|と。"),
        ("今天“好”，100％(笑)。", "今|天|“好”，|100％|(笑)。"),
        ("« Bonjour\u00a0»\u202f! Il a 10\u202f000\u00a0€.", "« |Bonjour\u00a0»\u202f! |Il |a |10\u202f000\u00a0€."),
        ("မြန်မာ", "မြန်|မာ"),
        ("ខ្ញុំចង់", "ខ្ញុំ|ច|ង់"),
        ("ໄປຕະຫຼາດ", "ໄປ|ຕະ|ຫຼາ|ດ"),
    ],
)
def test_breaks(text: str, pieces: str) -> None:
    ends = set(accumulate(map(len, pieces.split("|"))))
    for width in range(8, 20):
        found = broken(UNBREAKABLE.findall(text), width)
        assert ends >= set(accumulate(sum(map(len, line)) for line in found))


@given(st.text("กาะที่เแ ม้น้ำไปๆ ฯabc.ມາ ເປັນຈະ က်မြန်ာ ខ្ញុំ犬「」、ー😀👍🏽é\u0301\u200d ", max_size=60), st.integers(16, 40))
def test_any_text(text: str, width: int) -> None:
    """Nothing is lost, and only a unit that is longer than a line makes it too wide."""
    units = UNBREAKABLE.findall(text)
    assert "".join(units) == text[len(text) - len(text.lstrip()) :]
    found = broken(units, width)
    assert [unit for line in found for unit in line] == units
    assert all(cells("".join(line).rstrip()) <= width or len(line) == 1 for line in found)


def test_no_break_space_stays() -> None:
    caption = Caption("1", 0, "fr", "Il a payé  10\u202f000\u00a0€ hier", final=True)
    assert Reading(16, 0, 0).read(caption, 0) == ["Il a payé", "10\u202f000\u00a0€ hier"]
