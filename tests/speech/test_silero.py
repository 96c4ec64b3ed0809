"""The detector of speech that comes with faster-whisper."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from redraft.speech.audio import RATE, file_blocks
from redraft.speech.endpoint import FRAME, Stretch, stretches
from redraft.speech.whisper import SpeechDetector
from tests.speech.recognisers import silence, spoken

pytest.importorskip("faster_whisper", reason="needs the extra listen-whisper")


def test_utterances(tmp_path: Path) -> None:
    talk = np.concatenate(list(file_blocks(str(spoken(tmp_path / "talk.wav", ["We saw two bicycles."])))))
    gap = np.concatenate(list(silence(2)))
    audio = np.concatenate((gap, talk, gap, talk, gap))
    blocks = (audio[start : start + 1600] for start in range(0, len(audio), 1600))
    found = [
        (each.start, each.end)
        for each in stretches(blocks, SpeechDetector(), 0.5)
        if isinstance(each, Stretch) and each.ends
    ]
    second = 4 + len(talk) / RATE
    assert [start for start, _ in found] == pytest.approx([2, second], abs=0.5)
    assert [end for _, end in found] == pytest.approx([2 + len(talk) / RATE, second + len(talk) / RATE], abs=0.5)


def test_noise_is_no_speech() -> None:
    detector, noise = SpeechDetector(), np.random.default_rng(0)
    frames = (noise.normal(0, 0.01, FRAME).astype(np.float32) for _ in range(100))
    assert sum(map(detector, frames)) < 5
