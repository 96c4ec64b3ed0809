"""From hypotheses to updates, and errors on the way."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest

from redraft.captions.events import Failure, Update
from redraft.errors import InputError, OptionError
from redraft.speech.audio import RATE, Samples
from redraft.speech.recogniser import Hypothesis, Recognised, Transcript, transcribe
from redraft.speech.registry import open_recogniser
from tests.speech.recognisers import Scripted, silence


def updates(*found: Recognised) -> list[tuple[str, int, str, bool, float | None]]:
    return [
        (each.utterance, each.seq, each.text, each.final, each.time)
        for each in Transcript().items(found)
        if isinstance(each, Update)
    ]


def test_hypotheses_become_updates() -> None:
    assert updates(
        Hypothesis("", 1.0, 1.1),
        Hypothesis("a", 1.0, 1.2),
        Hypothesis("a", 1.0, 1.3),  # nothing new
        Hypothesis("a bee", 1.0, 1.4),
        Hypothesis("", 1.0, 1.5),  # all taken back
        Hypothesis("a be", 1.0, 1.6, final=True),
        Hypothesis("", 2.0, 2.1),
        Hypothesis("", 2.0, 2.2, final=True),  # a noise
        Hypothesis("Sea", 3.0, 3.5, final=True),
    ) == [
        ("1", 0, "a", False, 1.2),
        ("1", 1, "a bee", False, 1.4),
        ("1", 2, "", False, 1.5),
        ("1", 3, "a be", True, 1.6),
        ("2", 0, "Sea", True, 3.5),
    ]


def test_start_and_time() -> None:
    """All updates of an utterance have its start, by the first hypothesis, and the end of what was recognised."""
    names = Transcript()
    heard = [Hypothesis("a", 1.0, 1.2), Hypothesis("a bee", 1.1, 1.4), Hypothesis("a bee", 1.1, 1.6, final=True)]
    made = [names.update(each) for each in [*heard, Hypothesis("Sea", 3.0, 3.5, final=True)]]
    assert [each and (each.start, each.time) for each in made] == [(1.0, 1.2), (1.0, 1.4), (1.0, 1.6), (3.0, 3.5)]


def test_control_characters_become_spaces() -> None:
    assert updates(Hypothesis(" a\nb ", 0, 1))[0][2] == "a b"


def test_transcript() -> None:
    recogniser = Scripted(words=2)
    items = list(transcribe(silence(1.5), recogniser))
    assert [item.text for item in items if isinstance(item, Update)] == ["w0", "w0 w1", "w2", "w2"]
    assert [item.final for item in items if isinstance(item, Update)] == [False, True, False, True]
    assert recogniser.closed


def test_recogniser_dies() -> None:
    recogniser = Scripted(words=3, dies_after=2.25)
    items = list(transcribe(silence(60), recogniser))
    assert [item.text for item in items if isinstance(item, Update) and item.final] == ["w0 w1 w2", "w3"]
    assert items[-1] == Failure("the recogniser stopped after 2.3 s of audio: RuntimeError: out of memory")
    assert recogniser.closed


def test_recogniser_that_dies_at_end() -> None:
    class Dies(Scripted):
        def finish(self) -> Iterator[Recognised]:
            raise ValueError

    items = list(transcribe(silence(1.2), Dies(words=3)))
    assert [item.final for item in items if isinstance(item, Update)] == [False, False, True]
    assert items[-1] == Failure("the recogniser stopped after 1.2 s of audio: ValueError: ValueError")


def test_audio_breaks_off() -> None:
    def broken() -> Iterator[Samples]:
        yield from silence(1)
        raise InputError("the tape is torn")

    items = list(transcribe(broken(), Scripted(words=3)))
    assert isinstance(items[-2], Update) and items[-2].final
    assert items[-1] == Failure("the tape is torn")


def test_failures_in_audio_are_passed_on() -> None:
    lost = Failure("1.0 s of audio were dropped")
    assert lost in list(transcribe([lost, np.zeros(RATE, np.float32)], Scripted()))


def test_no_audio_at_all() -> None:
    assert list(transcribe(iter([]), Scripted())) == [Failure("the audio is empty: nothing was recorded in it")]


def test_bounded_memory() -> None:
    items = transcribe(silence(1800, block=0.5), Scripted(words=20))
    for _ in range(200):
        next(items)
    tracemalloc.start()
    finals = sum(isinstance(item, Update) and item.final for item in items)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert finals == 1800 * 2 // 20 - 10
    assert peak < 500_000


def test_names_that_are_none() -> None:
    with pytest.raises(OptionError, match="recogniser 'nothing' is not known; known recognisers: moonshine"):
        open_recogniser("nothing")
    with pytest.raises(OptionError, match="source language 'tlhx' is not known"):
        open_recogniser("moonshine", "tlhx")
