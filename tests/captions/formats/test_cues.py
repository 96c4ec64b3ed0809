"""Cues that can be read: their speed, lines and times, by profile."""

from __future__ import annotations

import io
import random
import time
from dataclasses import replace
from itertools import pairwise

import pysubs2
import pytest

from redraft.captions.breaks import cells
from redraft.captions.events import Caption
from redraft.captions.formats.cues import PROFILES, Profile, SubtitleWriter, divided, profile
from redraft.captions.formats.write import Output
from redraft.errors import OptionError

SENTENCE = (
    "Meine Damen und Herren, ich freue mich sehr, heute hier zu sein, weil wir lange auf diesen Tag gewartet haben und "
    "nun ist er endlich da."
)


def cues(
    *said: tuple[float, float, str], language: str = "de", form: Profile = PROFILES["web"], start: float = 0.0
) -> list[tuple[float, float, list[str]]]:
    """Start, end and lines of each cue of texts with the times of their words."""
    out = io.StringIO()
    writer = SubtitleWriter(Output("srt", out, io.StringIO(), [language], replace(form, start=start)))
    for name, (begun, ended, text) in enumerate(said):
        writer.write(Caption(str(name), 1, language, text, final=True, time=ended, start=begun))
    writer.close()
    found = pysubs2.SSAFile.from_string(out.getvalue(), "srt")
    return [(cue.start / 1000, cue.end / 1000, cue.plaintext.splitlines()) for cue in found]


def test_long_sentence_is_divided_at_clauses() -> None:
    found = cues((0, 10, SENTENCE))
    assert [lines for _, _, lines in found] == [
        ["Meine Damen und Herren,", "ich freue mich sehr, heute hier zu sein,"],
        ["weil wir lange auf diesen Tag gewartet", "haben und nun ist er endlich da."],
    ]
    assert found[0][0] == 0 and found[1][0] == pytest.approx(10 * 63 / 134, abs=0.3) and found[-1][1] >= 10


def test_phrases_of_japanese_and_chinese() -> None:
    found = cues((0, 12, "皆様、本日はここに来られて大変うれしく思います。"), language="ja")
    assert [lines for _, _, lines in found] == [["皆様、本日はここに来られて", "大変うれしく思います。"]]
    chinese = cues((0, 9, "我们很高兴今天能来到这里" * 5), language="zh")
    assert all(cells(line) <= 32 for _, _, lines in chinese for line in lines)


def test_cue_stays_until_it_is_read() -> None:
    text = "Sie spricht sehr schnell, und alle hören zu."  # 43 cells: 2.53 s
    assert cues((0, 1, text), (5, 6, "Ja."))[0][:2] == (0, 2.529)
    assert cues((0, 1, text), (3, 4, "Ja."))[0][:2] == (0, 2.92)  # soon: until the next one
    assert [each[:2] for each in cues((0, 1, text), (2, 4, "Ja, sie spricht schnell."))] == [
        (0, 2.529),
        (2.529, 4),
    ]  # the next one begins a little later
    assert cues((0, 1, text), (1, 4, text))[1][0] == 2  # by a second at most


def test_short_texts_share_a_cue() -> None:
    found = cues((0, 0.4, "Ist das richtig?"), (0.5, 0.9, "Ja."), (6, 7, "Gut."))
    assert [lines for _, _, lines in found] == [["Ist das richtig?", "Ja."], ["Gut."]]


def test_long_cue_ends() -> None:
    found = cues((0, 30, "Ja. Nein."), (40, 41, "Gut."))
    assert found[0][:2] == (0, 7)


def test_times_in_milliseconds() -> None:
    """The shortest cue is not a millisecond too short, whatever its start is rounded to."""
    drawn = random.Random(0)
    for _ in range(300):
        begun = (2 * drawn.randrange(9000) + 1) / 2000
        found = cues((begun, begun + 0.1, "Ja."), (begun + 0.2, begun + 0.3, "x" * 80), (begun + 0.4, begun + 9, "Ja."))
        assert all(end - start > 0.9995 for start, end, _ in found), begun
        assert all(one[1] <= other[0] for one, other in pairwise(found)), begun


def test_start_of_the_film() -> None:
    assert [each[:2] for each in cues((1, 3, "Guten Abend."), start=36_000)] == [(36_001, 36_003)]


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("language", ["de", "ja", "zh-TW", "ko", "th"])
def test_any_texts_keep_to_the_profile(name: str, language: str) -> None:
    form = PROFILES[name]
    drawn = random.Random(name + language)
    letters = {"de": ["und ", "Straße, ", "Donaudampfschifffahrt ", "wir. "], "ko": ["우리는 ", "집에 ", "갑니다. "]}
    others = {"th": ["บ้าน", "ของ ", "เรา"]}
    words = {**letters, **others}.get(language, ["我", "们", "很高兴", "，", "。", "10"])
    now, said = 0.0, []
    for _ in range(40):
        begun = now + drawn.choice([0, 0.1, 2, 20])
        now = begun + drawn.choice([0.2, 1, 5, 25])
        said.append((begun, now, "".join(drawn.choices(words, k=drawn.choice([1, 5, 30, 200]))).strip()))
    found = cues(*said, language=language, form=form)
    ends = [0.0, *(end for _, end, _ in found)]
    for (start, end, lines), before in zip(found, ends, strict=False):
        assert start >= before and form.shortest - 0.001 <= end - start <= form.longest + 0.001
        assert len(lines) <= form.lines and all(cells(line) <= form.line(language) for line in lines)
    text = "".join("".join(line) for _, _, lines in found for line in lines)
    assert "".join(text.split()) == "".join("".join(each for *_, each in said).split())


def test_profile_by_name() -> None:
    assert profile("web") == Profile()
    assert profile("cart,speed=20,lines=1").speed == 20
    assert profile("cart,start=10:00:00") == replace(PROFILES["cart"], start=36_000)
    for bad, message in (
        ("film", "must be one of broadcast, web, cart, not 'film'"),
        ("web,size=3", "has no field 'size': the fields are speed, width, lines, shortest, longest, gap, late, start"),
        ("web,lines=1.5", "must have lines as a whole number from 1 to 4, not '1.5'"),
        ("web,speed=x", "must have speed as a number from 5 to 60, not 'x'"),
    ):
        with pytest.raises(OptionError, match=message):
            profile(bad)


def test_start() -> None:
    for text, start in ("00:00:02.5", 2.5), ("10:00:00", 36_000), ("09:59:59.96", 35_999.96):
        assert profile(f"web,start={text}").start == start
    for bad in (
        "",
        "-1",
        "2.5",
        "10",
        "1000",
        "10:00",
        "T10:00:00",
        "10:00:60",
        "1:2:3:4",
        "99:60:00",
        "24:00:00",
        "ten",
        "1e3",
        "nan",
        "10:00:00+01:00",
    ):
        with pytest.raises(OptionError, match="must have start as a time such as 10:00:00, not"):
            profile(f"web,start={bad}")


def test_division_takes_time_in_proportion() -> None:
    units = [f"{word} " for word in random.Random(0).choices(["und", "Straße,", "a", "wir."], k=20_000)]
    began = time.process_time()
    parts = divided(units, 2500, 84)
    assert [unit for part in parts for unit in part] == units and len(parts) == 2500
    assert time.process_time() - began < 5


@pytest.mark.parametrize("place", [0, 1, 40, 79])
def test_word_that_is_longer_than_many_cues(place: int) -> None:
    """Laughter, or a model that repeats letters: nothing is lost, however many parts end in it."""
    units = [f"word{number} " for number in range(80)]
    units[place] = "ha" * 1000 + " "
    for count in (1, 2, 30, 60, 80):
        assert [unit for part in divided(units, count, 42) for unit in part] == units
