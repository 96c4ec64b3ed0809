"""Files of sentences: reading, refusals, and held-out sentences."""

from __future__ import annotations

from pathlib import Path

import pytest

from redraft.errors import InputError
from redraft_train.sources import FEWEST, Sentence, divided, read_sources


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "sentences.txt"


def test_sentences_are_cleaned_and_each_is_read_once(file: Path) -> None:
    file.write_bytes("\ufeffHello,  world! \r\n\n  \nIt rains.\nHello, world!\n".encode())
    assert read_sources(file) == [Sentence("Hello, world!"), Sentence("It rains.")]


def test_translations_stand_behind_tab(file: Path) -> None:
    file.write_text("It rains.\tEs regnet.\nGood night.\t Gute Nacht. \n", encoding="utf-8")
    assert read_sources(file) == [Sentence("It rains.", "Es regnet."), Sentence("Good night.", "Gute Nacht.")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"one\ttwo\nthree\n", "line 2: data: sentences.txt must have a sentence and its translation with a tab"),
        (b"one\nthree\tfour\n", "line 2: data: sentences.txt must have a sentence in every line"),
        (b"one\ttwo\tthree\n", "line 1: data: .* a sentence and its translation with a tab between"),
        (b"one\ttwo\n\nthree\t \n", "line 3: data: .* a sentence and its translation"),
        (b"caf\xe9\n", "sentences.txt' is not UTF-8 text"),
    ],
)
def test_lines_that_cannot_be_used(file: Path, text: bytes, words: str) -> None:
    file.write_bytes(text)
    with pytest.raises(InputError, match=words):
        read_sources(file)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none.txt' cannot be read: No such file"):
        read_sources(tmp_path / "none.txt")
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        read_sources(tmp_path)


class TestDivided:
    SOURCES = [Sentence(f"this is sentence {number}") for number in range(60)] + [Sentence(str(n)) for n in range(10)]

    def test_what_is_measured_is_never_learnt_and_long_enough(self) -> None:
        learnt, held_out = divided(self.SOURCES, most=1000, held_out=12, seed=3)
        assert len(held_out) == 12
        assert {*learnt} | {*held_out} == {*self.SOURCES}
        assert not {*learnt} & {*held_out}
        assert all(len(source.text.split()) == 4 for source in held_out)
        assert divided(self.SOURCES, 1000, 12, seed=3) == (learnt, held_out)
        assert divided(self.SOURCES, 1000, 12, seed=4) != (learnt, held_out)

    def test_no_more_are_learnt_than_asked_for(self) -> None:
        learnt, held_out = divided(self.SOURCES, most=FEWEST, held_out=0, seed=0)
        assert (len(learnt), held_out) == (FEWEST, [])

    def test_too_few(self) -> None:
        with pytest.raises(InputError, match="data: at least 20 sentences .* of 70 different ones only 10 are left"):
            divided(self.SOURCES, most=1000, held_out=60, seed=0)
        with pytest.raises(InputError, match="of 0 different ones only 0 are left after 0 are held"):
            divided([], most=1000, held_out=60, seed=0)
