"""What a translation of an utterance has lost: each count on made-up examples, and the set that is chosen by a rule."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from redraft.errors import InputError
from redraft_bench.eval import spoken
from redraft_bench.eval.losses import (
    LOSSES,
    cut,
    empty,
    has_number,
    losses,
    lost,
    name_lost,
    negation_lost,
    number_lost,
    wrong_language,
)
from redraft_bench.eval.numbers import numbers
from redraft_bench.eval.spoken import held_out, kept_back, load_spoken


@pytest.mark.parametrize(
    ("language", "text", "found"),
    [
        ("en", "in March twenty fifteen", [2015]),
        ("en", "in nineteen oh five it was two thousand and seven", [1905, 2007]),
        ("en", "three hundred twenty five people at 7:15", [325, 7, 15]),
        ("en", "twenty five, seven or 1,200", [25, 7, 1200]),
        ("en", "no one said a word", [1]),
        ("de", "Um 19:15 kamen fünfundzwanzig von 1.200 Gästen, zwölf blieben.", [19, 15, 25, 1200, 12]),
        ("de", "Ein Mann, zweitausend Euro, dreihundertfünf Zweifel", [2000, 305]),
        ("zh", "二〇一五年三月，二十五个人，一百零三元，3万", [2015, 3, 25, 103, 30000]),
        ("ja", "七時十五分に三千二百円", [7, 15, 3200]),
    ],
)
def test_numbers(language: str, text: str, found: list[int]) -> None:
    assert numbers(text, language) == found


Lost = Callable[[str, str, str], bool]


@pytest.mark.parametrize(
    ("lost", "source", "language", "kept", "missing"),
    [
        (number_lost, "At 6pm.", "de", ("Um 18 Uhr.", "Um sechs Uhr abends."), ("Abends.", "Um 16 Uhr.")),
        (
            number_lost,
            "In March twenty fifteen.",
            "ja",
            ("2015年3月でした。", "二〇一五年のことです。"),
            ("3月です。",),
        ),
        (number_lost, "Half past eleven.", "de", ("Um halb zwölf.", "11:30 Uhr."), ("Um halb.",)),
        (number_lost, "One of the two.", "zh", ("其中之一。",), ()),
        (name_lost, "Tom's cake is for Mary.", "zh", ("汤姆的蛋糕是给玛丽的。", "Tom给Mary。"), ("汤姆。",)),
        (name_lost, "He lives in Germany.", "de", ("Er lebt in Deutschland.",), ("Er lebt.",)),
        (negation_lost, "Nobody knows.", "de", ("Niemand weiß es.", "Das weiß keiner."), ("Jeder weiß es.",)),
        (negation_lost, "I don't know.", "ja", ("知りません。", "わからない。"), ("知っています。",)),
        (negation_lost, "I don't know.", "zh", ("我不知道。",), ("我知道。",)),
        (wrong_language, "Grain.", "zh", ("谷物。",), ("穀物です。", "Grain.", "谷物 cereal。")),
        (wrong_language, "Some mornings.", "ja", ("朝に。",), ("Some mornings.",)),
        (wrong_language, "This is a test.", "de", ("Dies ist ein Test.",), ("This is a test.", "这是测试。")),
    ],
)
def test_lost(lost: Lost, source: str, language: str, kept: tuple[str, ...], missing: tuple[str, ...]) -> None:
    assert [lost(source, text, language) for text in kept] == [False] * len(kept)
    assert [lost(source, text, language) for text in missing] == [True] * len(missing)


def test_empty_and_cut() -> None:
    assert [empty(text) for text in ("", " .", "。", "あ。", "7")] == [True, True, True, False, False]
    reference = "Während ich dies schreibe, startet der Server neu."
    assert cut("Während ich dieses", reference) and cut("Während.", reference)
    assert not cut("Der Server startet neu, während ich schreibe.", reference)
    assert not cut("Der Server startet neu, während ich", "während ich dies schreibe")  # no mark is asked for
    assert not cut("", reference)  # which counts as empty


def test_counts() -> None:
    sources = ("No.", "Tom has 25.", "I see.")
    row = losses(sources, ("", "Er hat sie.", "Ich verstehe."), ("Nein.", "Tom hat 25.", "Ich verstehe."), "de")
    assert {name: row[name] for name in LOSSES} == {
        "empty": 1,
        "cut_short": 0,
        "number_lost": 1,
        "name_lost": 1,
        "negation_lost": 1,
        "wrong_language": 0,
    }
    assert (row["with_number"], row["with_name"], row["with_negation"]) == (1, 1, 1)


def write(path: Path, rows: Sequence[tuple[str, ...]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines("\t".join(row) + "\n" for row in rows)


def test_set_is_what_training_never_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRAFT_DATA", str(tmp_path))
    with pytest.raises(InputError, match="--data spoken is chosen from"):
        load_spoken("de")
    sources = [f"We have {number} dogs." for number in range(10, 300)]
    pairs = [(source, source.replace("We have", "Wir haben").replace("dogs", "Hunde")) for source in sources]
    write(tmp_path / "train4" / "en-de.nicky-case.tsv.gz", pairs)
    write(tmp_path / "train" / "en-de.tsv.gz", [(*pair, "tatoeba", "CC-BY") for pair in pairs])
    write(tmp_path / "train" / "en-de.other.tsv.gz", [("They have 12 cats.", "Sie haben 12 Katzen.", "bible", "")])
    expected = {source for source in sources if kept_back(source)}
    assert expected and expected >= {source for source in sources if held_out(source)}
    chosen = load_spoken("de")
    assert set(chosen.sources) <= expected and len(chosen.sources) == len(set(chosen.sources))
    assert load_spoken("de", limit=3).sources == chosen.sources[:3]
    monkeypatch.setattr(spoken, "EACH", 2)
    assert len(load_spoken("de").sources) < len(chosen.sources)


def test_references_lose_nothing(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A count of zero can be reached."""
    monkeypatch.setenv("REDRAFT_DATA", str(data_dir))
    chosen = load_spoken("de")
    assert len(chosen.sources) > 500 and sum(map(has_number, chosen.sources)) > 100
    for source, reference in zip(chosen.sources, chosen.references, strict=True):
        assert not lost(source, reference, reference, "de")
