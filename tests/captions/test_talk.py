"""The demo talk: what its transcript promises, and that script, recording and transcript belong together."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby, islice, pairwise
from pathlib import Path

import pytest
import soundfile

from redraft.captions.events import Update
from redraft.captions.talk import RECORDING, SCRIPT, TRANSCRIPT, load_talk
from redraft.speech.audio import BLOCK_SECONDS, file_blocks
from redraft.speech.recogniser import transcribe
from redraft.speech.registry import open_recogniser
from redraft.speech.sentences import SentenceCutter
from redraft_bench.eval.stream import Stream, beside
from tests.programs import program
from tools.talk import VOICES, phonemes, sentences, write

#: Maximum size of what the talk adds to the wheel.
MOST_BYTES = 2_000_000
#: Seconds of the recording that are recognised again.
EXCERPT = 15.0


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9']+", text.lower())


def words_right(spoken: str, found: str) -> float:
    """The share of spoken words that were recognised, in their order."""
    matcher = difflib.SequenceMatcher(None, words(spoken), words(found), autojunk=False)
    return sum(block.size for block in matcher.get_matching_blocks()) / len(words(spoken))


def finals(updates: Iterable[Update]) -> str:
    return " ".join(update.text for update in updates if update.final)


@pytest.fixture(scope="module")
def utterances() -> list[list[Update]]:
    return [list(group) for _, group in groupby(load_talk(), key=lambda update: update.utterance)]


def test_utterances_are_numbered(utterances: list[list[Update]]) -> None:
    names = [updates[0].utterance for updates in utterances]
    assert names == [str(number) for number in range(1, len(names) + 1)]
    assert len(names) >= 50


def test_one_final_ends_utterance(utterances: list[list[Update]]) -> None:
    for updates in utterances:
        assert [update.seq for update in updates] == list(range(len(updates)))
        assert [update.final for update in updates] == [False] * (len(updates) - 1) + [True]


def test_times_follow_recording() -> None:
    length = soundfile.info(str(RECORDING)).duration
    times = [update.time or 0.0 for update in load_talk()]
    assert times == sorted(times)
    assert length - 10 < times[-1] <= length + 2
    assert 240 < length < 330


def test_new_transcript_drops_old_times(tmp_path: Path) -> None:
    path = tmp_path / TRANSCRIPT.name
    beside(path).write_bytes(beside(TRANSCRIPT).read_bytes())
    write((replace(update, text="Two words.") for update in load_talk()), path)
    assert {(segment.source, segment.ends) for segment in Stream.load(path).segments} == {("Two words.", ())}


def test_recogniser_corrects_itself(utterances: list[list[Update]]) -> None:
    def is_revision(before: Update, after: Update) -> bool:
        return words(after.text)[: len(words(before.text))] != words(before.text)

    revised = sum(any(is_revision(*pair) for pair in pairwise(updates)) for updates in utterances)
    assert revised > len(utterances) / 5


def test_transcript_has_words_of_script() -> None:
    assert words_right(" ".join(each.text for each in sentences(SCRIPT.read_text("utf-8"))), finals(load_talk())) > 0.9


@pytest.mark.slow
def test_recording_recognised_again() -> None:
    pytest.importorskip("moonshine_voice", reason="needs the extra listen")
    blocks = islice(file_blocks(str(RECORDING)), round(EXCERPT / BLOCK_SECONDS))
    found = transcribe(blocks, open_recogniser("moonshine"), SentenceCutter())
    again = finals(update for update in found if isinstance(update, Update))
    kept = finals(update for update in load_talk() if (update.time or 0.0) < EXCERPT - 1)
    assert words_right(kept, again) >= 0.9


def test_talk_is_small() -> None:
    assert sum(path.stat().st_size for path in (SCRIPT, RECORDING, TRANSCRIPT)) < MOST_BYTES
    assert RECORDING.with_name("LICENSE").read_text("utf-8").startswith("talk.ogg")


def test_two_voices_speak() -> None:
    spoken = list(sentences(SCRIPT.read_text("utf-8")))
    assert {each.speaker for each in spoken} == {*VOICES}
    assert sum(1 for _ in groupby(each.speaker for each in spoken)) >= 3
    assert {each.speaker for each in spoken} == {*VOICES}
    assert all(re.fullmatch(r"[A-Z].+[.?]", each.text) for each in spoken)


def test_phonemes_of_sentence() -> None:
    program("espeak-ng")
    assert phonemes("We ate, at 7:15.").count(",") == 1
    assert ":" not in phonemes("We ate, at 7:15.") and phonemes("We ate.").endswith("t.")
