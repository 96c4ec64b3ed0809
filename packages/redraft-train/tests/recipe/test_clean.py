"""Cleaning of sentence pairs, and the pairs that it drops."""

from __future__ import annotations

import pytest

from redraft_train.recipe.clean import clean, stray_words


@pytest.mark.parametrize(
    ("language", "written", "cleaned"),
    [
        ("ja", "彼は１０キロ重い。", "彼は10キロ重い。"),
        ("ja", "ﾃﾚﾋﾞを見た.", "テレビを見た。"),
        ("ja", '"はい"と言った', "「はい」と言った"),
        ("ja", "はい, 行きます。", "はい、行きます。"),
        ("zh", "他說,是的.", "他说，是的。"),
        ("zh", '他说"好"。', "他说“好”。"),
        ("zh", "我 爱 你。", "我爱你。"),
        ("de", 'Er sagte: "Ja."', "Er sagte: „Ja.“"),
        ("de", "Er sagte: »Ja.«", "Er sagte: „Ja.“"),
        ("de", "Wie geht’s  dir?", "Wie geht's dir?"),
    ],
)
def test_spelling_is_unified(language: str, written: str, cleaned: str) -> None:
    assert clean("He said it once more.", written, language) == ("He said it once more.", cleaned)


def test_english_quotation_marks_become_straight() -> None:
    assert clean("He said “it’s late”.", "Er sagte, es sei spät.", "de") == (
        'He said "it\'s late".',
        "Er sagte, es sei spät.",
    )


@pytest.mark.parametrize(
    ("language", "source", "target"),
    [
        ("zh", "I like it.", "I like it."),
        ("zh", "I like it.", "私はそれが好きです。"),
        ("ja", "I like it.", "好きdieです。"),
        ("zh", "Judy looked at me.", "Juddy 看着我。"),
        ("de", "I like it.", "好きです。"),
        ("de", "I like it.", ""),
        ("de", "I like it.", "Я люблю это."),
        ("de", "I would like to know when you will arrive at the station tomorrow morning.", "Ja."),
        ("zh", "Yes.", "我想知道你明天早上什么时候到达车站，因为我必须知道。"),
    ],
)
def test_misaligned_pairs_are_dropped(language: str, source: str, target: str) -> None:
    assert clean(source, target, language) is None


def test_latin_words_of_source_may_stay() -> None:
    assert stray_words("The DVD is from the BBC.", "そのDVDはBBCのものだ。") == []
    assert stray_words("The DVD is new.", "そのDVDとCDは新しい。") == ["CD"]
    assert clean("Install Python first.", "首先安装 Python。", "zh") == ("Install Python first.", "首先安装 Python。")
