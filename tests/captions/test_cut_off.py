"""A sentence after one that was cut off its text: its draft is the rest of the translation, its ids are the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.captions.events import Caption
from tests.captions.copying import Copying
from tests.captions.streams import Stream, not_at_once, showing
from tests.fakes import RandomModel, greedy


@pytest.mark.parametrize("before", [b"", b" "])
@pytest.mark.parametrize("final", ["I saw.", "I was.", "We saw."])
def test_rest_of_sentence_cut_off_is_draft(final: str, before: bytes) -> None:
    stream = Stream(Copying(before))
    stream.send("I saw. It ra")
    stream.send(final, final=True, goes_on=True)
    assert stream.caption("It rained", "v").text == "It rained"
    assert bytes(stream.asked[0].draft.tokens) == before + b"It ra"
    assert len(stream.asked) == len("ined") + 1
    stream.send("It", "v", final=True)
    stream.send("Rain", "w")  # goes on with other words
    assert not stream.asked[0].draft


def test_draft_of_several_sentences_cut_off() -> None:
    stream = Stream(Copying())
    stream.send("I saw. It rained. We ran. He le")
    for utterance, sentence in (("u", "I saw."), ("v", "It rained."), ("w", "We ran.")):
        if utterance != "u":  # the first update of a sentence has the time of its start
            stream.send(sentence, utterance, goes_on=True)
            assert len(stream.asked) == 1
        stream.send(sentence, utterance, final=True, goes_on=True)
        assert len(stream.asked) <= 1
    assert stream.caption("He left", "x").text == "He left"
    assert bytes(stream.asked[0].draft.tokens) == b"He le"


@pytest.mark.parametrize("agree", [2, 3])
def test_what_was_shown_of_sentence_cut_off_stays_shown(agree: int) -> None:
    model = Copying()
    stream = Stream(model, display=showing(agree, first_sight=0.5))
    assert stream.caption("Yes. It rained").text == "Yes. It rained"
    stream.send("Yes.", final=True, goes_on=True)
    model.doubt = 100.0  # of everything from here on
    caption = stream.caption("It rained all day", "v")
    assert (caption.text, caption.unstable) == ("It rained", " all day")
    events = stream.send("We had", "w")
    assert [each.text for each in events if isinstance(each, Caption)] == ["It rained all day", ""]


@given(st.integers(0, 50), st.integers(1, 6), st.integers(2, 6), st.sampled_from(["ssbd", "redraft", "pld"]))
def test_exact_methods_after_sentence_cut_off(seed: int, end: int, more: int, method: str) -> None:
    model = RandomModel(seed, end_bias=0.5)
    stream = Stream(
        model, method=method, options={"beta": 0.0, "hidden_beta": 0.0} if method == "redraft" else None, max_tokens=12
    )
    words = "a b c d e f g h i j k l".split()
    for utterance, source, final, goes_on in (
        ("1", words[: end + more], False, False),
        ("1", words[:end], True, True),
        ("2", words[end : end + 1], False, True),
        ("2", words[end : end + 1], True, True),
        ("3", words[end + 1 : end + more], False, False),
        ("3", words[end + 1 :], True, False),
    ):
        stream.send(" ".join(source), utterance, final=final, goes_on=goes_on)
        prompt = stream.prompt(" ".join(source))
        expected = greedy(model, prompt, 12)
        assert stream.output() == (not_at_once(model, prompt, 12) if final and not expected else expected)
