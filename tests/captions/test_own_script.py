"""What the shipped model writes in Latin letters, by the script of the target language."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from redraft.backends.llamacpp import LlamaCpp
from redraft.backends.load import open_model
from redraft.backends.options import LlamaOptions
from redraft.captions.events import Caption, Update
from redraft.decoding.method import Value
from redraft.translator import Translator

WORD = re.compile("[A-Za-z\u00c0-\u024f]{2,}")
NAME = re.compile(" [A-Z][a-z]+")


@pytest.fixture(scope="module")
def shipped() -> Iterator[LlamaCpp]:
    backend = open_model("demo", LlamaOptions(context_length=512, slots=2, threads=1))
    yield backend
    backend.close()


@pytest.mark.parametrize(
    ("source", "stem", "wrong"),
    [
        ("She studied Informatics and Mathematics.", "Informatik", r"Informatics|Mathematics"),
        ("Psychology is interesting.", "Psychologie", "Psychology"),
        ("He was inspired by her.", "inspiriert", "inspired"),
    ],
)
def test_german_captions_are_german(shipped: LlamaCpp, source: str, stem: str, wrong: str) -> None:
    with Translator(shipped, ["de"]) as translator:
        (event,) = translator.translate(Update("1", 0, source, final=True))
    assert isinstance(event, Caption)
    assert stem in event.text and not re.search(wrong, event.text)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("ar", {}),
        ("ssbd", {"first_sight": 0.3, "agree": 2}),
        ("ssbd", {"beta": 0.5}),
        ("redraft", {}),
    ],
)
def test_every_latin_word_is_word_of_source(
    shipped: LlamaCpp, data_dir: Path, method: str, options: dict[str, Value]
) -> None:
    """News, where a third of the Chinese captions contain names in Latin letters: the sentences with the most names."""
    written = 0
    with (data_dir / "test" / "flores200.devtest.en.txt").open(encoding="utf-8") as lines:
        sources = sorted(map(str.strip, islice(lines, 20)), key=lambda line: len(NAME.findall(line)))[-3:]
    with Translator(shipped, ["zh", "ja"], method=method, options=options) as translator:
        for number, source in enumerate(sources):
            misheard = source[: len(source) // 2].replace("e", "ai")
            for seq, text in enumerate((misheard, source)):
                for event in translator.translate(Update(str(number), seq, text, text == source)):
                    if isinstance(event, Caption) and not event.cut:
                        words = set(WORD.findall(event.text + event.unstable))
                        assert words <= set(WORD.findall(text))
                        written += len(words)
    assert written >= 6
