"""What is said about audio in which nothing is recognised."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from redraft.captions.events import Failure, Update
from redraft.captions.formats.read import Item
from redraft.speech.audio import RATE, Samples
from redraft.speech.lag import Unheard


def said(seconds: int, *, live: bool, sound: Sequence[int] = (), words: Sequence[int] = (), fails: bool = False) -> str:
    """What is said about audio with sound, and with words, in some of its seconds."""
    found: list[str] = []
    unheard = Unheard(found.append, live=live)

    def blocks() -> Iterator[Samples]:
        for second in range(seconds):
            yield np.full(RATE, 0.3, np.float32) * (np.arange(RATE) % 2 if second in sound else 1)

    def items() -> Iterator[Item]:
        for second, _ in enumerate(unheard.blocks(blocks())):
            if second in words:
                yield Update(str(second), 0, "yes", time=float(second))
        if fails:
            yield Failure("the recogniser stopped")

    assert sum(isinstance(item, Update) for item in unheard.recognised(items())) == len(words)
    return "\n".join(found)


@pytest.mark.parametrize("live", [True, False])
def test_words(live: bool) -> None:
    assert said(20, live=live, sound=range(20), words=[3]) == ""


def test_long_silence() -> None:
    minutes = [
        f"no sound for {each} s: if somebody is speaking, check the microphone" for each in (30, 60, 120, 240, 480)
    ]
    assert said(600, live=True).splitlines() == minutes
    assert said(600, live=False) == "no speech was recognised: the audio is silent"


def test_sound_without_words() -> None:
    assert said(30, live=True, sound=[7]).startswith("no words were recognised for 30 s, although there is sound: ")
    assert said(10, live=True, sound=[7]).startswith("no speech was recognised, although there is sound: ")


def test_words_end_silence() -> None:
    assert said(75, live=True, words=[20]) == "no sound for 30 s: if somebody is speaking, check the microphone"
    assert said(75, live=False, words=[20]) == ""


def test_failure_says_why() -> None:
    assert said(5, live=False, fails=True) == ""
