"""Reading mode: complete lines never change, none is too wide, and no word of a text that only grows is lost."""

from __future__ import annotations

import io
import random
import re
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.captions.breaks import broken, cells
from redraft.captions.events import Caption
from redraft.captions.formats.rows import Reading, RowsWriter
from redraft.captions.formats.write import JsonlWriter, Writer
from redraft.errors import OptionError

WORDS = "Ich sah wie sie sich unter den alten Tisch duckte und es war wieder da".split()
NARROW = (16, 1.0, 4.0)


def caption(text: str, *, final: bool = False, utterance: str = "1", language: str = "de") -> Caption:
    return Caption(utterance, 0, language, text, final=final, time=None, source="x")


def test_line_waits_at_most() -> None:
    reading, shown = Reading(*NARROW), list[tuple[float, str]]()
    for tenth in range(100):
        text = f"Ich sah {'wie' if tenth % 2 else 'dass'} sie sich unter den"
        shown += [(tenth / 10, line) for line in reading.read(caption(text), tenth / 10)]
    assert shown[0][0] == pytest.approx(NARROW[2])


def test_revised_after_complete_line() -> None:
    reading = Reading(16, 0.0, 0.0)
    assert reading.read(caption("Ich sah, wie sie sich"), 0) == ["Ich sah, wie sie"]
    assert reading.read(caption("Ich sah, dass sie sich duckte", final=True), 1) == ["sich duckte"]


@given(st.integers(0, 100_000), st.integers(16, 40))
def test_words_behind_revised_lines(seed: int, width: int) -> None:
    """Whatever is revised in lines that are shown, every word that was never revised is in one line, in order."""
    drawn, names, known = random.Random(seed), count(), re.compile(r"w(\d+)")
    reading, words, changed, lines = Reading(width, 0, 0), list[str](), set[str](), list[str]()
    for now in range(drawn.randint(2, 30)):
        place, how = drawn.randrange(len(words) + 1), drawn.random()
        if how < 0.6 or place == len(words):
            words += [f"w{next(names)}" for _ in range(drawn.randint(1, 6))]
        else:
            changed |= {*known.findall(words[place])}
            ways = [[f"w{next(names)}", words[place]], [f"{words[place]}x"], *([] if place + 1 == len(words) else [[]])]
            words[place : place + 1] = drawn.choice(ways)
            changed |= {*known.findall(" ".join(words[place : place + 1]))}
        text = words[: drawn.randint(0, len(words))] if drawn.random() < 0.1 else words
        lines += reading.read(caption(" ".join(text)), now)
    lines += reading.read(caption(" ".join(words), final=True), 99)
    said, last = known.findall(" ".join(lines)), known.findall(" ".join(words))
    assert len(said) == len({*said})
    assert {*last} - changed <= {*said} <= {*last} | changed
    assert [word for word in last if word in said] == [word for word in said if word in last]


@given(
    st.lists(st.lists(st.sampled_from(WORDS), max_size=14), min_size=1, max_size=8),
    st.integers(16, 40),
    st.floats(0, 2),
)
def test_lines_are_never_too_wide(parts: list[list[str]], width: int, patience: float) -> None:
    reading, words, lines = Reading(width, patience, 4), list[str](), list[str]()
    for now, part in enumerate(parts):
        words += part
        lines += reading.read(caption(" ".join(words), final=now == len(parts) - 1), now)
    assert " ".join(lines) == " ".join(words)
    assert all(0 < cells(line) <= width for line in lines)


@given(st.lists(st.lists(st.sampled_from(WORDS), max_size=14), min_size=1, max_size=8))
def test_final_lines_are_read_once(revisions: list[list[str]]) -> None:
    reading = Reading(*NARROW)
    for now, words in enumerate(revisions):
        reading.read(caption(" ".join(words)), now)
    reading.read(caption(" ".join(revisions[-1]), final=True), len(revisions))
    assert reading.due(1e9) == []


def test_chinese_and_japanese_breaks() -> None:
    reading = Reading(16, 0, 0)
    lines = reading.read(caption("彼女が机の下に隠れるのを、私は見ました。", final=True, language="ja"), 0)
    assert "".join(lines) == "彼女が机の下に隠れるのを、私は見ました。"
    assert all(cells(line) <= 16 and line[0] not in "、。" for line in lines)
    assert broken(["Donaudampfschifffahrt "], 16) == [["Donaudampfschifffahrt "]]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((15,), "line width must be a whole number from 16 to 80, not 15"),
        ((37.0,), "line width must be a whole number"),
    ],
)
def test_layout_out_of_range_is_refused(arguments: tuple[int, ...], complaint: str) -> None:
    with pytest.raises(OptionError, match=complaint):
        Reading(*arguments)
    with pytest.raises(OptionError, match="line width"):
        RowsWriter(JsonlWriter(io.StringIO()), 15)


def test_any_writer_is_given_lines_as_captions_of_their_own() -> None:
    class Kept(Writer):
        def __init__(self) -> None:
            self.captions: list[Caption] = []

        def write(self, event: object) -> None:
            assert isinstance(event, Caption)
            self.captions.append(event)

        def close(self) -> None:
            """Nothing is held back."""

    kept, now = Kept(), [0.0]
    writer = RowsWriter(kept, 16, lambda: now[0])
    writer.write(caption("Ich sah, wie sie sich unter"))
    now[0] = 2
    writer.write(caption("Ich sah, wie sie sich unter den Tisch duckte.", final=True))
    assert [(each.utterance, each.text, each.final) for each in kept.captions] == [
        ("1.1", "Ich sah, wie sie", True),
        ("1.2", "sich unter den", True),
        ("1.3", "Tisch duckte.", True),
    ]
