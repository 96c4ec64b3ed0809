"""Held words: their passes, when they appear, and that every word reaches a caption."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.captions.events import Caption, Event
from tests.captions.streams import Stream
from tests.fakes import RandomModel, greedy


@pytest.fixture
def holding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words are held back until two texts agree on them."""
    monkeypatch.setattr("redraft.captions.hold_back.LEAST_CHANCE", 1.0)


@pytest.mark.usefixtures("holding")
def test_held_words_cost_no_pass() -> None:
    stream = Stream(RandomModel(), hold_back=True)
    stream.send("we saw")
    stream.send("we saw her")
    assert [source for _, source, _ in stream.encoded] == ["we saw"]
    caption = stream.caption("We saw, it.")
    assert stream.asked == []
    assert caption.source == "We saw, it."
    assert stream.caption("we saw it", final=True).text == text_of(stream, "we saw it")


@pytest.mark.usefixtures("holding")
def test_rest_is_translated_once() -> None:
    stream = Stream(RandomModel(), ["de", "ja"], hold_back=True)
    assert stream.rest() == []
    stream.send("we saw her duck")
    captions = stream.rest()
    assert [(each.seq, each.final) for each in captions if isinstance(each, Caption)] == [(1, False)] * 2
    assert stream.output() == greedy(stream.model, stream.prompt("we saw her duck"), 200)
    assert stream.rest() == []


@pytest.mark.usefixtures("holding")
def test_rest_that_is_given_up_comes_later() -> None:
    stream = Stream(RandomModel(), hold_back=True)
    stream.send("we saw her duck")
    asking = stream.translations[0].rest()
    next(asking)
    asking.close()
    assert [each.source for each in stream.rest() if isinstance(each, Caption)] == ["we saw her duck"]


def text_of(stream: Stream, source: str) -> str:
    tokens = greedy(stream.model, stream.prompt(source), 200)
    return b"".join(map(stream.model.token_bytes, tokens)).decode().strip()


@given(
    st.booleans(),
    st.lists(
        st.tuples(
            st.lists(st.sampled_from("a b c d".split()), min_size=1, max_size=6), st.integers(0, 9), st.booleans()
        ),
        min_size=1,
        max_size=12,
    ),
)
def test_every_word_reaches_caption(hold_back: bool, updates: list[tuple[list[str], int, bool]]) -> None:
    """Utterances end with a final text, with another utterance, or with the stream."""
    stream = Stream(RandomModel(end_bias=2.0), method="ar", hold_back=hold_back)
    events: list[Event] = []
    newest: dict[str, tuple[str, bool]] = {}
    name = 0
    for words, turn, final in updates:
        name += turn == 0 or newest.get(str(name), ("", False))[1]
        newest[str(name)] = " ".join(words), final
        events += stream.send(" ".join(words), str(name), final=final)
    events += stream.rest()
    captions = {each.utterance: each for each in events if isinstance(each, Caption)}
    for utterance, (text, final) in newest.items():
        if text_of(stream, text):  # an empty translation of a final text is a failure
            assert captions[utterance].text == text_of(stream, text)
            assert captions[utterance].final == final
