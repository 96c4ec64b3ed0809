"""Which requests belong together: sequences of texts, as tools send them, and where each is placed."""

from __future__ import annotations

import time
from collections import defaultdict
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.captions.talk import load_talk
from redraft.serve.http.compat.callers import Continuation, likeness
from tests.serve.http.compat.captioning_tool import requests


def utterances(*texts: str, seconds: float = 1.0, **options: float) -> list[str]:
    """The names of the utterances of texts that come one after the other."""
    places = Continuation(**options)  # type: ignore[arg-type]
    return [places.place(text, seconds * number).utterance for number, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I have", "I have a dog"),
        ("i have a dog and to", "I have a dog and two cats."),
        ("I saw her dock", "I saw her duck under"),
        ("I have a dog and two", "I have a dog and"),
        ("it was a Monday in March twenty fifteen", "It was a Monday in March 2015, and it"),
        ("good", "Good evening."),
        ("我们看到", "我们看到了一只狗"),
        ("今日は天気が", "今日は、天気がいいですね。"),
        ("...", "..."),
        ("I'm here", "I’m here now"),
    ],
)
def test_continuing_text(older: str, newer: str) -> None:
    assert likeness(older, newer) >= 0.6
    assert utterances(older, newer) == ["1", "1"]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I have a dog.", "We saw a cat"),
        ("Chapter 1", "Chapter 2"),
        ("I think that we should go home now.", "I"),
        ("he saw", "we saw"),
        ("...", "!"),
        ("", "a"),
        ("我们看到了一只狗。", "昨天天气很好"),
        ("and then we all went to the station", "the train was late again on Monday"),
    ],
)
def test_unrelated_text(older: str, newer: str) -> None:
    assert likeness(older, newer) == 0
    assert utterances(older, newer) == ["1", "2"]


def test_likeness_of_long_texts() -> None:
    began = time.perf_counter()
    assert likeness("a b " * 5000, "b a " * 5000) >= 0
    assert time.perf_counter() - began < 1


@given(st.text(), st.text())
def test_likeness_is_a_share(older: str, newer: str) -> None:
    assert 0 <= likeness(older, newer) <= 1
    assert likeness(older, older) == 1


def test_next_sentence() -> None:
    found = utterances("We saw", "We saw her", "We saw her duck.", "It was", "It was late.", "it was late")
    assert found == ["1", "1", "1", "2", "2", "2"]


def test_two_streams() -> None:
    first = ["we", "we all", "we all looked at", "we all looked at our phones"]
    second = ["then", "then a young", "then a young man", "then a young man came"]
    places = Continuation()
    found = [places.place(text, 0.1 * number) for number, text in enumerate(chain(*zip(first, second, strict=True)))]
    assert [place.utterance for place in found] == ["1", "2"] * 4
    assert [place.lane for place in found] == [0, 1] * 4
    assert [place.seq for place in found] == [0, 0, 1, 1, 2, 2, 3, 3]


def test_texts_of_one_request() -> None:
    places, lines = Continuation(), set[int]()
    for text in ("I have a dog", "I have a dog and two", "I have"):
        lines.add(places.place(text, 0.0, lines).lane)
    assert lines == {0, 1, 2}


def test_idle_lane_reused() -> None:
    places = Continuation(most=2, quiet=5)
    lines = [places.place(text, at).lane for text, at in (("one", 0), ("two", 1), ("three", 2), ("four", 8))]
    assert lines == [0, 1, 0, 1]
    assert utterances("one", "two", "one", seconds=6) == ["1", "2", "3"]
    assert utterances("one", "two", "one", seconds=1) == ["1", "2", "1"]


def test_lane_refused() -> None:
    places = Continuation(most=4)
    assert [places.place(text, 0.0).lane for text in ("one", "two", "three")] == [0, 1, 2]
    places.without(2)
    assert [places.place(text, 1.0).lane for text in ("three", "two more", "four")] == [0, 1, 0]


def test_whole_texts() -> None:
    places = Continuation()

    def whole(text: str) -> bool:
        return places.place(text, 0.0).whole

    assert [whole(text) for text in ("Save", "Open file.", "Close")] == [True] * 3  # nothing has grown
    assert [whole(text) for text in ("we all", "we all looked", "We all looked.")] == [True] * 3
    assert [whole(text) for text in ("then a", "then a man", "Then a man came.")] == [False, False, True]
    assert [whole(text) for text in ("every", "every morning", "every morning")] == [False, False, True]  # a pause
    assert whole("nobody") is False
    assert whole("nobody said a word") is False
    assert whole("it rained") is True  # the last one has ended without a mark


@pytest.mark.parametrize(("interval", "number", "torn", "joined"), [(0, 714, 12, 1), (5, 360, 12, 0)])
def test_utterance_per_sentence(interval: int, number: int, torn: int, joined: int) -> None:
    places, sent = Continuation(), list(requests(load_talk(), interval))
    names = defaultdict(set)
    for each in sent:
        names[each.sentence].add(places.place(each.text, each.time).utterance)
    assert len(sent) == number
    assert sum(len(found) - 1 for found in names.values()) == torn  # where the recogniser took the first words back
    assert len(set().union(*names.values())) == len(names) + torn - joined  # one begins like words taken back
