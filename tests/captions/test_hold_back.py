"""Words at the end of a growing text that are held back: which ones, for how long, and that nothing is lost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.captions.hold_back import LONGEST, LONGEST_UPDATES, HoldBack
from redraft.captions.words import WORD, bare

OFF, ON, AGREED, ALL = "off", "on", "on 1", "on 0"
POLICIES = (OFF, ON, AGREED, ALL)


def made(policy: str) -> HoldBack:
    """On or off and, behind a space, with the least chance."""
    name, _, least = policy.partition(" ")
    return HoldBack(name == "on", float(least) if least else None)


def parts(policy: str, *texts: str, every: float | None = None) -> list[str]:
    """The parts of the texts of an utterance."""
    held = made(policy)
    return [held.part(text, None if every is None else every * number) for number, text in enumerate(texts)]


def test_off() -> None:
    assert parts(OFF, "We saw.", "we saw") == ["We saw.", "we saw"]


def test_punctuation() -> None:
    assert parts(ALL, "We saw.", "We saw her, ") == ["We saw", "We saw her"]


def test_place() -> None:
    assert parts("on 0.7", "We saw her", "We saw her duck.") == ["We saw", "We saw her duck"]


def test_chances_multiply() -> None:
    assert parts("on 0.8", "We saw her duck") == ["We"]
    assert parts("on 0.7", "We saw her duck") == ["We saw"]


def test_chances_are_learnt() -> None:
    held, growing = made("on 0.65"), "a b c d e f"
    found = [held.part(growing[:end]) for end in range(1, 12, 2)]
    assert found == ["", "a", "a b", "a b c d", "a b c d e", growing]
    for last in "ghijklm":  # revised again and again
        held.part(f"{growing} {last}")
    held.begin()
    assert held.part("a") == ""


def test_agreement() -> None:
    texts = ("That was the eve.", "That was the epoch of the inn,", "That was the epoch of incredulity.")
    assert parts(AGREED, *texts) == ["", "That was the", "That was the epoch of"]


def test_inserted_word() -> None:
    assert parts(AGREED, "We saw a duck", "We saw a duck there", "We all saw a duck there") == [
        "",
        "We saw a duck",
        "We all saw a duck there",
    ]


def test_case_and_punctuation() -> None:
    assert parts(AGREED, "Tonight, I saw", "Tonight, I saw", "tonight I saw.") == [
        "",
        "Tonight, I saw",
        "Tonight, I saw",
    ]


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("sales rose by 5", "sales rose by 5%"),
        ("sales rose by 5.", "sales rose by 5 %."),
        ("it was 15", "it was 1.5"),
        ("it was 5", "it was -5"),
        ("we write C", "we write C#"),
        ("R", "R &"),
        ("then were late", "then we're late"),
        ("我们有5", "我们有5％"),
    ],
)
def test_sign_that_makes_another_word(before: str, now: str) -> None:
    assert parts(ALL, before, now)[1] == now.rstrip(".")
    assert parts(ON, before, *[now] * 9)[-1] == now.rstrip(".")


def test_sent_twice() -> None:
    held = made(ALL)
    assert [held.part("We saw", 1.0), held.part("We saw", 1.0)] == ["We saw", "We saw"]
    assert parts(AGREED, "We saw", "We saw", every=0.0) == ["", ""]


def test_longest() -> None:
    texts = ["We " + word for word in ("a", "b", "c", "d", "e", "f", "g")]
    step = LONGEST / 2
    assert parts(AGREED, *texts, every=step) == ["", "We", "We", "We d", "We e", "We f", "We g"]
    assert parts(AGREED, *texts)[LONGEST_UPDATES + 1] == "We " + "abcdefg"[LONGEST_UPDATES + 1]


@pytest.mark.parametrize("end", ["We met late.", "We met her late.", "They ate.", "He met late."])
def test_sentence_cut_off(end: str) -> None:
    """Words of the next utterance that the text before had after its first sentence were there before."""
    held = HoldBack()
    held.part("We met late. It rained. The bus was", 1.0)
    held.part(end, 2.0, final=True)
    assert held.begin("It rained.")
    held.part("It rained.", 2.0, final=True)
    assert held.begin("The bus was full")
    assert held.part("The bus was full", 2.0) == "The bus was"
    held.part("The bus was full.", 3.0, final=True)
    assert not held.begin("The bus was late")


def test_sentences_cut_off_together() -> None:
    held = HoldBack()
    held.part("We met. It rained. The bus was", 1.0)
    held.part("We met.", 2.0, final=True)
    assert held.begin("It rained.")
    assert held.part("It rained.", 1.0) == "It rained"
    assert held.part("It rained.", 2.0, final=True) == "It rained."
    assert held.begin("The bus was full")
    assert held.part("The bus was full", 2.0) == "The bus was"
    held.part("The bus was full.", 3.0, final=True)
    assert not held.begin("The bus was late")


def test_words_taken_back_by_first_text() -> None:
    held = HoldBack()
    held.part("We met. It rained. The bus", 1.0)
    held.part("We met.", 2.0, final=True)
    assert held.begin("It rained.")
    held.part("It rained.", 2.0)
    held.part("It rained again.", 3.0)
    held.part("It rained again.", 4.0, final=True)
    assert not held.begin("The bus")


def test_other_utterance_after_sentence_cut_off() -> None:
    """Words that the recogniser has retracted, or of another speaker, confirm no word and no time."""
    held = made("on 0.8")
    held.part("We met. The bus was", 1.0)
    held.part("We met.", 2.0, final=True)
    assert not held.begin("So now the")
    assert held.part("So now the", 3.0) == "So"


def test_words_cut_off_are_not_revised() -> None:
    cut, plain = made("on 0.8"), made("on 0.8")
    cut.part("We met. Two cats ran")
    for held in (cut, plain):
        held.part("We met.", final=True)
        held.begin()
    growing = "a b c d e f g".split()
    for end in range(1, 8):
        assert cut.part(" ".join(growing[:end])) == plain.part(" ".join(growing[:end]))


def test_longest_after_sentence_cut_off() -> None:
    held = made(AGREED)
    held.part("We met. It ra", 1.0)
    held.part("We met.", 2.0, final=True)
    assert held.begin("It was")
    found = [
        held.part(text, time) for text, time in (("It was", 3.0), ("Help", 3.5 + LONGEST), ("Held", 4.0 + 2 * LONGEST))
    ]
    assert found == ["It", "Help", "Held"]


def test_chinese() -> None:
    assert parts(AGREED, "我喜欢猫。", "我喜欢狗和", "我喜欢狗和猫。") == ["", "我喜欢", "我喜欢狗和"]


_TEXTS = st.lists(st.sampled_from("a b c d A. b, c? 7:15 -".split()), max_size=8).map(" ".join)
_STREAMS = st.lists(st.tuples(_TEXTS, st.sampled_from([0.0, 0.4, 1.1])), min_size=1, max_size=12)


def words(texts: str | Iterable[str]) -> list[str]:
    return [word for each in WORD.findall(texts if isinstance(texts, str) else " ".join(texts)) if (word := bare(each))]


@given(st.sampled_from(POLICIES), _STREAMS, st.booleans(), st.booleans())
def test_any_stream(policy: str, stream: Sequence[tuple[str, float]], timed: bool, ends: bool) -> None:
    held, time, before, text = made(policy), 0.0, "", ""
    for number, (new, step) in enumerate(stream):
        time += step
        final = ends and number == len(stream) - 1
        part = held.part(new, time if timed else None, final=final)
        assert words(part) == words(new)[: len(words(part))]  # a beginning
        if final:
            assert part == new
            assert not held.held
        # Captions do not shrink while the recogniser only adds words.
        if words(new)[: len(words(text))] == words(text):
            assert words(part)[: len(words(before))] == words(before)
        before, text = part, new
    if not held.held:
        assert words(before) == words(text)
    if held.held:
        assert words(held.whole()) == words(text)
        held.release()
        assert not held.held


@given(st.sampled_from(POLICIES[1:]), st.lists(_TEXTS, min_size=1, max_size=9))
def test_no_word_waits_longer(policy: str, texts: list[str]) -> None:
    """A word that stays at its place is translated after `LONGEST` at the latest."""
    held, step = made(policy), LONGEST / 4
    waited = 0
    before: list[str] = []
    for number, text in enumerate(texts):
        new, part = words(text), words(held.part(text, number * step))
        waited = waited + 1 if len(new) > len(part) and new[: len(part)] == before[: len(part)] else 0
        assert waited <= 5
        before = new
