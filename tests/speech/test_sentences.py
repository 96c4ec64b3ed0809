"""Sentences from a recogniser's text: cutting, joining, times, and that no word is lost."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from redraft.captions.clauses import SHORTEST
from redraft.captions.ending import LONG_PAUSE, UPDATES
from redraft.captions.events import Failure, Order, Update
from redraft.speech.sentences import WORDS, SentenceCutter, in_sentences
from tests.speech.recognised import recognised, transcript, utterances

#: More for a long search: SENTENCE_STREAMS=10000.
STREAMS = int(os.environ.get("SENTENCE_STREAMS", "60"))


def finals(items: Iterable[object]) -> list[str]:
    return [item.text for item in items if isinstance(item, Update) and item.final]


def test_sentence_goes_on() -> None:
    updates = utterances("It was the season of light,", "it was the season of darkness.", "We had everything.")
    assert finals(in_sentences(updates)) == [
        "It was the season of light, it was the season of darkness.",
        "We had everything.",
    ]


def test_long_pause_ends_sentence() -> None:
    texts = ["It was the season of light,", "it was dark."]
    assert finals(in_sentences(utterances(*texts, gap=LONG_PAUSE + 0.1))) == texts


def test_clock_starts_again() -> None:
    updates = [Update("1", 0, "It was the season of light,", True, 80.0), Update("2", 0, "It is dark.", True, 3.0)]
    assert finals(in_sentences(updates)) == ["It was the season of light,", "It is dark."]


def test_times_of_a_recogniser_that_sends_finals_only() -> None:
    """Its times are those of ends: sentences share the time before it, and speech without a pause goes on."""
    said = [(20.0, "The house is red. The dog is big."), (21.0, "Yes, and"), (23.0, "it is late now."), (40.0, "No.")]
    made = list(in_sentences(Update(str(seq), 0, text, True, time) for seq, (time, text) in enumerate(said)))
    assert finals(made) == ["The house is red.", "The dog is big.", "Yes, and it is late now.", "No."]
    spans = [(each.start, each.time) for each in made if isinstance(each, Update) and each.final]
    assert spans == [(16, 18), (18, 20), (20, 23), (39.5, 40)]


def test_silence_ends_sentence() -> None:
    sentences = SentenceCutter()
    made = [each for update in utterances("It was the season of light,") for each in sentences.update(update)]
    assert not finals(made)
    assert not list(sentences.passed(1 + LONG_PAUSE))
    assert finals(sentences.passed(1.1 + LONG_PAUSE)) == ["It was the season of light,"]
    assert not list(sentences.finish())


def test_text_that_begins_again() -> None:
    """A recogniser may drop a whole text whose first sentence has ended, and write another one or the same."""
    said = [(0, "One is here."), (1, "One is here. Two"), (4, "One is here. Two"), (5, "")]
    for rest, more in (("Three is here.", ["Three is here."]), ("One is here. Two is.", ["Two is."])):
        texts = [*said, (6, rest.split()[0]), (8, rest)]
        updates = [Update("1", seq, text, seq == 5, time) for seq, (time, text) in enumerate(texts)]
        assert finals(in_sentences(updates)) == ["One is here.", *more]


def test_no_punctuation() -> None:
    texts = ["it was the season of light", "it was the season of darkness"]
    assert finals(in_sentences(utterances(*texts))) == texts


def test_endless_sentence() -> None:
    made = finals(in_sentences(utterances(*["and so on and so on," for _ in range(40)], gap=0.1)))
    assert " ".join(made) == " ".join(["and so on and so on,"] * 40)
    assert max(len(text.split()) for text in made) < WORDS + 6


LONG = [f"w{number}" for number in range(240)]


def growing(words: Sequence[str], seconds: float = 0.4) -> list[Update]:
    """One utterance without punctuation that grows word by word."""
    made = [(" ".join(words[:count]), count * seconds) for count in range(1, len(words) + 1)]
    return transcript([*made, made[-1]])


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("updates", [growing(LONG), growing(LONG)[-1:]])
def test_no_punctuation_for_minutes(whole: bool, updates: list[Update]) -> None:
    made = list(in_sentences(updates, whole=whole))
    texts = finals(made)
    assert " ".join(texts) == " ".join(LONG)
    assert all(SHORTEST <= len(text.split()) <= WORDS for text in texts)
    times = [item.time or 0.0 for item in made if isinstance(item, Update) and item.final]
    assert times == sorted(times)


def test_cut_at_pause() -> None:
    updates = [replace(each, time=(each.time or 0.0) + 3 * (each.seq >= 15)) for each in growing(LONG[:45])]
    assert finals(in_sentences(updates))[0] == " ".join(LONG[:15])


def test_slow_speech() -> None:
    """A sentence ends after some seconds, even if it has few words."""
    made = finals(in_sentences(growing(LONG[:30], seconds=1.5)))
    assert len(made) > 2 and " ".join(made) == " ".join(LONG[:30])


def test_long_utterances_are_kept() -> None:
    """Without sentences, utterances are as they came, unless they are far too long."""
    updates = growing(LONG[: 2 * WORDS], seconds=0.1)
    assert list(in_sentences(updates, whole=True)) == [replace(each, start=updates[0].time) for each in updates]


def test_names_of_parts() -> None:
    updates = [replace(each, utterance="7") for each in growing(LONG)] + [
        Update("7.2", 3, "no"),
        Update("7.2", 5, "no", True),
    ]
    made = [item for item in in_sentences(updates, whole=True) if isinstance(item, Update)]
    order = Order()
    for item in made:
        order.accept(item)
    assert made[0].utterance == "7" and made[0].seq == 0
    assert [each.text for each in made[-2:]] == ["no", "no"]


def test_two_sentences() -> None:
    texts = ["I like cats.", "I like cats. And", "I like cats. And dogs", "I like cats. And dogs too"]
    updates = transcript([(text, place * LONG_PAUSE / 2) for place, text in enumerate(texts)])
    made = [item for item in in_sentences(updates) if isinstance(item, Update)]
    assert [(each.utterance, each.text, each.final) for each in made] == [
        ("1", "I like cats.", False),
        ("1", "I like cats. And", False),
        ("1", "I like cats.", True),
        ("2", "And dogs", False),
        ("2", "And dogs too", False),
        ("2", "And dogs too", True),
    ]
    assert (made[2].time, made[3].start) == (0.0, 0.0)  # the second sentence starts where the first one ends
    assert [each.seq for each in made if each.goes_on] == [2]


def test_end_found_again() -> None:
    """A sentence ended when its words were there, whenever the recogniser sees its end."""
    house, dog, sun = "The house is red.", "The dog is big.", "The sun"
    texts = [(f"{house} {dog}", 4.5), ("The house is red, the dog is big.", 5.0), (f"{house} {dog} {sun}", 6.0)]
    texts += [(f"{house} {dog} {sun} is warm.", time) for time in (8.1, 8.5)]
    for begun in (texts, texts[1:]):
        made = [each for each in in_sentences(transcript(begun)) if isinstance(each, Update)]
        start = begun[0][1]
        assert [(each.text, each.time) for each in made if each.final] == [
            (house, start),
            (dog, start),
            ("The sun is warm.", 8.5),
        ]


def test_two_sentences_without_times() -> None:
    updates = transcript([("I like cats. And dogs", None)] * (UPDATES + 1))
    assert finals(in_sentences(updates[:-1])) == ["I like cats.", "And dogs"]


def test_sentences_at_end() -> None:
    updates = transcript([("Yes.", 1.0), ("Yes. We do. I know,", 2.0)], [("but why?", 3.0)])
    made = [item for item in in_sentences(updates) if isinstance(item, Update)]
    assert finals(made) == ["Yes.", "We do.", "I know, but why?"]
    assert [each.time for each in made if each.final] == [1.0, 2.0, 3.0]


def test_revised_sentence_stays() -> None:
    first = "I like cats. And dogs"
    updates = transcript([(first, 0.0), (first, LONG_PAUSE), ("I like bats a lot and dogs too.", LONG_PAUSE + 1)])
    assert finals(in_sentences(updates)) == ["I like cats.", "and dogs too."]


def test_marks_belong_to_sentence_before() -> None:
    updates = transcript(
        [("我喜欢猫。你", 0.0), ("我喜欢猫。你呢", LONG_PAUSE), ("我喜欢猫！「你呢」？", LONG_PAUSE + 1)]
    )
    assert finals(in_sentences(updates)) == ["我喜欢猫。", "「你呢」？"]


def test_speakers() -> None:
    """Sentences keep their speaker, and do not go on in the words of another one."""
    names, texts = ("Ann", "Bob", "Bob", None), ("It was cold,", "but dry. I", "went out,", "alone.")
    updates = [replace(update, speaker=names[int(update.utterance[1:])]) for update in utterances(*texts)]
    made = [item for item in in_sentences(updates) if isinstance(item, Update)]
    assert [(each.speaker, each.text) for each in made if each.final] == [
        ("Ann", "It was cold,"),
        ("Bob", "but dry."),
        ("Bob", "I went out,"),
        (None, "alone."),
    ]
    assert len({(each.utterance, each.speaker) for each in made}) == 4


def test_speakers_at_same_time() -> None:
    updates = [
        Update("a", 0, "I think,", time=0.0),
        Update("b", 0, "No,", time=0.5),
        Update("a", 1, "I think,", True, 1.0),
        Update("b", 1, "No, never.", True, 1.5),
    ]
    assert finals(in_sentences(updates)) == ["I think,", "No, never."]


def test_never_final() -> None:
    updates = [Update("a", seq, text, time=float(seq)) for seq, text in enumerate(["I", "I know", "I know. You"])]
    assert finals(in_sentences(updates)) == ["I know.", "You"]


def test_failures_pass() -> None:
    failure = Failure("lost")
    made = list(in_sentences([failure, Update("a", 1, "I"), Update("a", 1, "You")]))
    assert made[0] is failure
    assert isinstance(made[2], Failure)
    assert "seq" in made[2].message


def test_open_sentence_is_known() -> None:
    sentences = SentenceCutter()
    assert sentences.since is None
    for update in utterances("Yes. I know,"):
        list(sentences.update(update))
    assert sentences.since == 0.0
    list(sentences.finish())
    assert sentences.since is None


def spoken(texts: Iterable[str]) -> str:
    """Texts without spaces."""
    return "".join("".join(text.split()) for text in texts)


def check_times(items: Iterable[object]) -> None:
    """A sentence does not end before it begins, and the next one does not begin before that."""
    begun: dict[str, float] = {}
    ended = 0.0
    for item in items:
        if isinstance(item, Update) and item.time is not None:
            begun.setdefault(item.utterance, item.time)
            assert begun[item.utterance] >= ended
            if item.final:
                assert item.time >= begun[item.utterance]
                ended = item.time


def test_signs_that_come_behind_a_sentence() -> None:
    """Without words, they began when the sentence had, although it had ended later."""
    made = list(in_sentences(transcript([("我好。！", 0.5), ("我！，！", 2.5)])))
    check_times(made)
    assert finals(made) == ["我！", "，！"]


def check_order(items: Iterable[object]) -> None:
    """Updates of sentences are in order, and each sentence has one final update before the next one begins."""
    order, current = Order(), ""
    for item in items:
        assert isinstance(item, Update)
        order.accept(item)
        assert item.utterance == current or int(item.utterance) == int(current or 0) + 1
        current = item.utterance
    assert all(final for _, final, _ in order._last.values())


def check_cuts(items: Sequence[object]) -> None:
    """What goes on in the next sentence says so, and only that, among what one update makes."""
    for item, following in pairwise([*items, None]):
        if isinstance(item, Update) and item.goes_on:
            same = isinstance(following, Update) and following.utterance == item.utterance and following.goes_on
            assert same if not item.final else isinstance(following, Update) and following.text


@settings(max_examples=STREAMS)
@given(st.integers(1, 4).flatmap(lambda number: recognised(number, steady=True)))
def test_no_word_is_lost(updates: list[Update]) -> None:
    made = list(in_sentences(updates))
    check_order(made)
    check_times(made)
    assert spoken(finals(made)) == spoken(finals(updates))


@settings(max_examples=STREAMS)
@given(recognised(1, steady=False))
def test_revised_anywhere(updates: list[Update]) -> None:
    """What comes after a text without words begins again (`_Utterance.take`), so it continues nothing."""
    worded = [bool(bare([each.text])) for each in updates]
    assume(not any(before and not after for before, after in pairwise(worded)))
    sentences = SentenceCutter()
    early = [item for update in updates[:-1] for item in sentences.update(update)]
    late = [*sentences.update(updates[-1]), *sentences.finish()]
    check_order([*early, *late])
    rest, final = (bare(texts) for texts in (finals(late), [updates[-1].text]))
    assert final[len(final) - len(rest) :] == rest


def revised(drawn: random.Random) -> tuple[list[Update], set[str], set[str]]:
    """One utterance of words that occur once, revised anywhere; its steady words, and those that were taken back."""
    number, time, rate = 0, 0.0, drawn.choice([0.1, 0.3, 0.6])
    words: list[str] = []
    changed, gone = set[str](), set[str]()
    updates: list[Update] = []

    def new() -> str:
        nonlocal number
        number += 1
        return f"w{number}{drawn.choice(_MARKS)}"

    for seq in range(drawn.randint(2, 40)):
        words += [new() for _ in range(drawn.choice([0, 1, 1, 2, 4, 9]))]
        for _ in range(drawn.randint(1, 2) if words and drawn.random() < rate else 0):
            place = drawn.randrange(len(words)) if drawn.random() < 0.5 else max(0, len(words) - drawn.randint(1, 4))
            name, how = base(words[place]), drawn.random()
            if how < 0.5:
                words[place] = f"{name}{drawn.choice('xyz')}{drawn.choice(_MARKS)}"
                changed.add(name)
            elif how < 0.75:
                words.insert(place, new())
                changed.add(base(words[place]))
            elif len(words) > 1:
                gone.add(base(words.pop(place)))
        time += drawn.choice([0.2, 0.5, 1.0, 2.2])
        count = drawn.randint(0, len(words)) if drawn.random() < 0.05 else len(words)
        updates.append(Update("u", seq, " ".join(words[:count]), time=time))
    updates.append(replace(updates[-1], seq=len(updates), text=" ".join(words), final=True))
    return updates, {base(each) for each in words} - changed, gone


_MARKS = [*[""] * 9, ".", "?", "!", ",", " -", "...", "。"]


def base(word: str) -> str:
    found = re.match(r"w\d+", word)
    assert found
    return found[0]


@pytest.mark.parametrize("whole", [False, True])
def test_seam(whole: bool) -> None:
    """Whatever is revised in sentences that have ended, the words behind them are in one final, once, in order."""
    for seed in range(5 * STREAMS):
        updates, steady, gone = revised(random.Random(seed))
        said = [base(word) for word in re.findall(r"w\S+", " ".join(finals(in_sentences(updates, whole=whole))))]
        last = [base(word) for word in re.findall(r"w\S+", updates[-1].text)]
        assert len(said) == len({*said}), seed
        assert steady <= {*said} <= {*last} | gone, seed
        assert [word for word in last if word in said] == [word for word in said if word in last], seed


@pytest.mark.parametrize(
    ("sentence", "revised", "rest"),
    [
        ("Is that right uh huh?", "Is that right?", "Yes."),
        ("We saw it again.", "We saw it.", "I have a dog"),
        ("We saw it again.", "We saw it once more.", "I have a dog"),
        ("We saw it today.", "We saw it to day.", "I have a dog"),
        ("We saw it to day.", "We saw it today.", "I have a dog"),
        ("We saw it.", "We saw it.", "Yes, I have a dog"),
        ("我们又看见了。", "我们看见。", "我有一只狗"),
    ],
)
def test_sentence_revised_behind_its_end(sentence: str, revised: str, rest: str) -> None:
    begun = " ".join([sentence, rest.removeprefix("Yes, ")[:3]])
    updates = transcript([(sentence, 0), (begun, 2), (begun, 4), (begun, 6), (f"{revised} {rest}", 8)])
    assert finals(in_sentences(updates)) == [sentence, rest]


@settings(max_examples=STREAMS)
@given(st.integers(1, 4).flatmap(lambda number: recognised(number, steady=False)))
def test_any_stream(updates: list[Update]) -> None:
    sentences = SentenceCutter()
    whole = spoken(finals(updates))
    made: list[object] = []
    revised = False
    for update in updates:
        made += (new := list(sentences.update(update)))
        check_cuts(new)
        revised = revised or not whole.startswith(spoken(finals(made)))
    made += sentences.finish()
    check_order(made)
    check_times(made)
    assert revised or spoken(finals(made)) == whole


def bare(texts: Iterable[str]) -> list[str]:
    """Words without case and punctuation; a Chinese character is a word."""
    return re.findall(r"[a-z0-9.:]*[a-z0-9]|[我你他好]", " ".join(texts).lower())
