"""The recogniser that needs no download, on speech that espeak-ng makes."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from redraft.captions.events import Update
from redraft.speech.audio import file_blocks
from redraft.speech.recogniser import transcribe
from redraft.speech.registry import open_recogniser
from tests.speech.recognisers import errors, silence, spoken, words

pytest.importorskip("pocketsphinx")
pytest.importorskip("soundfile")

#: Sentences of the demo talk; "Good evening" and many names are beyond this recogniser.
LINES = (
    "My name is Mary, and I live next to the station.",
    "I worked there for twenty years, and I never talked to anyone on the train.",
    "Soon the room was warm, and everyone was talking and laughing.",
)


def test_growing_hypotheses_with_revisions_times_and_finals(tmp_path: Path) -> None:
    path = spoken(tmp_path / "talk.wav", LINES)
    items = list(transcribe(file_blocks(str(path)), open_recogniser("pocketsphinx", pause=0.24)))
    updates = [item for item in items if isinstance(item, Update)]
    assert updates == items
    finals = [update for update in updates if update.final]
    assert len(finals) == len(LINES)
    said, heard = words(" ".join(LINES)), words(" ".join(final.text for final in finals))
    assert errors(said, heard) / len(said) < 0.6
    assert " I" in finals[1].text  # a capital, which the model does not have
    times = [final.time or 0.0 for final in finals]
    assert times == sorted(times) and times[-1] == pytest.approx(12, abs=3)
    for final in finals:
        texts = [update.text for update in updates if update.utterance == final.utterance]
        assert len(texts) > 5  # it grows
        assert any(not new.startswith(old) for old, new in pairwise(texts))  # and is revised


def test_silence_has_no_captions() -> None:
    assert list(transcribe(silence(600), open_recogniser("pocketsphinx"))) == []
