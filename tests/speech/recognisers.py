"""Recognisers and audio for tests; processes of tests import this too, so pytest is imported only where it is used."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from redraft.speech.audio import RATE, Samples
from redraft.speech.recogniser import Hypothesis, Recognised
from tests.edits import distances

#: The voice that is understood best of those that were tried.
VOICE = ("-v", "en-us+klatt4", "-s", "140")
#: The text of a recording in the package moonshine-voice, by Charles Dickens.
DICKENS = """
It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness, it was the
epoch of belief, it was the epoch of incredulity, it was the season of Light, it was the season of Darkness, it was the
spring of hope, it was the winter of despair, we had everything before us, we had nothing before us, we were all going
direct to Heaven, we were all going direct the other way—in short, the period was so far like the present period, that
some of its noisiest authorities insisted on its being received, for good or for evil, in the superlative degree of
comparison only.
"""


class Scripted:
    """Recognises one word in every ``seconds`` of audio, and an utterance in every ``words`` of them."""

    def __init__(self, words: int = 5, *, dies_after: float | None = None, sentence: str = "") -> None:
        self.words, self.seconds, self.dies_after = words, 0.5, dies_after
        self.sentence = sentence.split()
        self.samples, self.closed = 0, False

    def __call__(self, blocks: Iterator[Samples]) -> Generator[Recognised, None, None]:
        try:
            for block in blocks:
                yield from self.hear(block)
                yield self.recorded
            yield from self.finish()
        finally:
            self.closed = True

    @property
    def recorded(self) -> float:
        return self.samples / RATE

    def hear(self, samples: Samples) -> Iterator[Recognised]:
        before = int(self.recorded / self.seconds)
        self.samples += len(samples)
        if self.dies_after is not None and self.recorded > self.dies_after:
            raise RuntimeError("out of memory. Try a smaller model")
        for word in range(before, int(self.recorded / self.seconds)):
            yield self._at(word, (word + 1) % self.words == 0)

    def finish(self) -> Iterator[Recognised]:
        word = int(self.recorded / self.seconds)
        if word % self.words:
            yield self._at(word - 1, final=True)

    def _at(self, word: int, final: bool) -> Hypothesis:
        start = word - word % self.words
        spoken_words = range(start, word + 1)
        text = " ".join(self.sentence[each - start] if self.sentence else f"w{each}" for each in spoken_words)
        return Hypothesis(text, start * self.seconds, (word + 1) * self.seconds, final)


def silence(seconds: float, block: float = 0.1) -> Iterator[Samples]:
    """Blocks of nothing."""
    made = np.zeros(round(RATE * block), np.float32)
    for _ in range(round(seconds / block)):
        yield made


def dickens(path: Path | None = None, seconds: float | None = None) -> Path:
    """The recording of `DICKENS`, read by a person, or its beginning as a WAV file; skips without the package."""
    import pytest

    package = pytest.importorskip("moonshine_voice", reason="needs the extra listen")
    recording = Path(package.get_assets_path()) / "two_cities.wav"
    if path is None:
        return recording
    import soundfile

    samples, rate = soundfile.read(recording, dtype="int16")
    soundfile.write(path, samples[: None if seconds is None else round(rate * seconds)], rate)
    return path


def spoken(path: Path, lines: Sequence[str]) -> Path:
    """A WAV file with sentences, spoken by espeak-ng; the test is skipped where that is not installed."""
    from tests.programs import program

    subprocess.run([program("espeak-ng"), *VOICE, "-w", str(path), "\n".join(lines)], check=True, timeout=200)
    return path


def words(text: str) -> list[str]:
    """The words of a text without case and punctuation, as error rates count them."""
    return re.findall(r"[a-z0-9']+", text.lower())


def errors(reference: Iterable[str], found: Sequence[str]) -> int:
    """How many words are wrong, missing or too many: the Levenshtein distance."""
    return distances([*reference], found)[-1]
