"""The packaged talk: what its stream promises, and that it is what its script says."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import groupby, pairwise

import pytest

from redraft.captions.events import Update
from redraft.captions.talk import load_talk
from redraft.captions.talk.build import build, to_jsonl
from redraft.errors import InputError

FOLDER = files("redraft.captions.talk")
SCRIPT = FOLDER.joinpath("talk.txt").read_text(encoding="utf-8")


def words(update: Update) -> list[str]:
    return re.sub(r"[.,?!](?!\d)", "", update.text).lower().split()


def is_revision(before: Update, after: Update) -> bool:
    """Whether more happened than that words were added."""
    return words(after)[: len(words(before))] != words(before)


def as_said(line: str) -> str:
    """A line of the script without its marks, read in another way than the builder does."""
    line = re.sub(r"\{[^}]*>([^>}]*)\}", r"\1", line)
    return re.sub(r" (=|<|\+\d+)(?= |$)", "", line)


@pytest.fixture(scope="module")
def utterances() -> list[list[Update]]:
    return [list(group) for _, group in groupby(load_talk(), key=lambda update: update.utterance)]


def pairs(utterances: list[list[Update]]) -> list[tuple[Update, Update]]:
    return [pair for updates in utterances for pair in pairwise(updates)]


def test_utterances_are_numbered_and_enough(utterances: list[list[Update]]) -> None:
    names = [updates[0].utterance for updates in utterances]
    assert names == [str(number) for number in range(1, len(names) + 1)]
    assert len(names) >= 44


def test_each_utterance_ends_in_one_final_with_the_sentence_of_the_script(utterances: list[list[Update]]) -> None:
    assert [updates[-1].text for updates in utterances] == [as_said(line) for line in SCRIPT.splitlines()]
    for updates in utterances:
        assert [update.final for update in updates] == [False] * (len(updates) - 1) + [True]
        assert re.fullmatch(r"[A-Z][\w' ,:]+\.", updates[-1].text)


def test_seq_grows_and_time_does_not_go_back(utterances: list[list[Update]]) -> None:
    for updates in utterances:
        assert [update.seq for update in updates] == list(range(len(updates)))
    times = [update.time for updates in utterances for update in updates if update.time is not None]
    assert len(times) == sum(map(len, utterances))
    assert times == sorted(times)
    assert all(time == round(time, 2) > 0 for time in times)


def test_pace_is_that_of_a_speaker(utterances: list[list[Update]]) -> None:
    said = sum(len(words(updates[-1])) for updates in utterances)
    length = utterances[-1][-1].time
    assert length is not None
    assert 1.5 < said / length < 2.6  # words a second, pauses included


def test_an_update_brings_a_few_words(utterances: list[list[Update]]) -> None:
    added = [len(words(after)) - len(words(before)) for before, after in pairs(utterances) if not after.final]
    assert max(added) <= 5
    assert 2 <= sum(added) / len(added) <= 4
    assert all(1 <= len(words(updates[0])) <= 4 for updates in utterances)


def test_partials_are_lower_case_without_punctuation(utterances: list[list[Update]]) -> None:
    partials = [update.text for updates in utterances for update in updates[:-1]]
    assert all(re.fullmatch(r"[\w':]+( [\w':]+)*", text) for text in partials)
    assert {text.split()[0] for text in partials if text[0].isupper()} == {"I", "John", "Tom"}


def test_the_recogniser_corrects_itself(utterances: list[list[Update]]) -> None:
    revised = sum(any(is_revision(*pair) for pair in pairwise(updates)) for updates in utterances)
    assert len(utterances) / 4 <= revised <= len(utterances) * 3 / 4
    before_final = [pair for pair in pairs(utterances) if not pair[1].final]
    assert sum(is_revision(*pair) for pair in before_final) >= 15
    assert any(len(after.text) < len(before.text) for before, after in before_final)
    assert any(after.text == before.text for before, after in before_final)


def test_the_end_of_a_sentence_is_revised(utterances: list[list[Update]]) -> None:
    early = 0
    for updates, following in pairwise(utterances):
        overhang = words(updates[-2])[len(words(updates[-1])) :]
        early += bool(overhang) and words(following[-1])[: len(overhang)] == overhang
    assert early >= 2


def test_the_packaged_stream_is_what_the_script_gives() -> None:
    packaged = FOLDER.joinpath("talk.jsonl").read_text(encoding="utf-8")
    assert packaged == to_jsonl(build(SCRIPT)), "run python -m redraft.captions.talk.build"
    assert load_talk() == build(SCRIPT)


def test_marks_do_what_the_docstring_says() -> None:
    assert [update.text for update in build("We {met*2>meet} {>two} friends = at {ten>10}, here. <")] == [
        "we met",
        "we met two friends",
        "we met two friends",
        "we meet two friends at ten here",
        "we meet two friends at ten",
        "We meet two friends at 10, here.",
    ]


def test_words_of_the_next_sentence_are_taken_back() -> None:
    updates = build("We eat. +2\nTom and I {sink>sing}.")
    assert [(u.utterance, u.seq, u.text, u.time) for u in updates] == [
        ("1", 0, "we eat", 0.8),
        ("1", 1, "we eat Tom and", 2.3),
        ("1", 2, "We eat.", 2.5),
        ("2", 0, "Tom and", 2.5),
        ("2", 1, "Tom and I sink", 3.1),
        ("2", 2, "Tom and I sing.", 3.3),
    ]


@pytest.mark.parametrize("line", ["= We eat.", "We {eat.", "We eat}.", "We {eat} now.", "We {a*x>eat}.", "We < + eat."])
def test_a_mark_that_cannot_be_read_is_named_with_its_line(line: str) -> None:
    with pytest.raises(InputError, match=r"^line 2: '.+' must be a word, \{heard>said\}"):
        build(f"We sit.\n{line}")


@pytest.mark.parametrize("line", ["", "+2"])
def test_a_line_without_a_sentence_is_refused(line: str) -> None:
    with pytest.raises(InputError, match=r"^line 2: it must hold a sentence$"):
        build(f"We sit.\n{line}\nWe eat.")
