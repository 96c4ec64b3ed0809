"""Where utterances begin and end."""

from __future__ import annotations

import tracemalloc
from itertools import islice

import numpy as np
import pytest

from redraft.speech.audio import RATE
from redraft.speech.endpoint import LONG, LONGEST, Stretch, stretches
from tests.speech.loudness import loud
from tests.speech.recognisers import silence


def utterances(pattern: list[tuple[bool, float]], pause: float = 0.5, block: int = 700) -> list[tuple[float, float]]:
    """Start and end of every utterance in audio that is loud and quiet in turn."""
    audio = np.concatenate([np.full(round(RATE * seconds), 0.5 * on, np.float32) for on, seconds in pattern])
    found, samples = [], 0
    blocks = (audio[start : start + block] for start in range(0, len(audio), block))
    made = [each for each in stretches(blocks, loud, pause) if isinstance(each, Stretch)]
    for stretch in made:
        samples += len(stretch.samples)
        if stretch.ends:
            found.append((stretch.start, stretch.end))
            assert samples / RATE >= stretch.end - stretch.start - 0.1  # no audio of an utterance is left out
            samples = 0
    return found


def test_pause_ends_utterance() -> None:
    found = utterances([(False, 1), (True, 2), (False, 0.3), (True, 1), (False, 1), (True, 1), (False, 1)])
    assert np.array(found) == pytest.approx(np.array([[0.8, 4.3], [5.1, 6.3]]), abs=0.2)
    assert len(utterances([(True, 2), (False, 0.3), (True, 1)], pause=0.2)) == 2


def test_one_loud_moment_is_no_speech() -> None:
    assert utterances([(False, 1), (True, 0.1), (False, 1)]) == []


def test_end_of_audio_ends_what_is_open() -> None:
    assert np.array(utterances([(True, 2)])) == pytest.approx(np.array([[0, 2]]), abs=0.1)


def test_long_utterance() -> None:
    first, *_ = utterances([(True, LONG + 1), (False, 0.3), (True, 1)])
    assert first[1] == pytest.approx(LONG + 1, abs=0.1)
    lengths = [end - start for start, end in utterances([(True, 50)])]
    assert lengths == pytest.approx([LONGEST, LONGEST, 50 - 2 * LONGEST], abs=0.3)


def test_silence_costs_no_memory() -> None:
    heard = stretches(silence(130), loud)
    assert all(isinstance(each, float) for each in islice(heard, 100))
    tracemalloc.start()
    assert all(isinstance(each, float) for each in heard)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000
