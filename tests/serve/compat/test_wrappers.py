"""What a tool puts round the text: marks, tags, instructions, and whatever stays the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.serve.compat.wrappers import Wrapped, Wrapper, instructed, marked

SENTENCES = ["We saw her duck.", "I have a dog", "I have a dog and", "Then a man came.", "It rained all day", "Nobody"]


@pytest.mark.parametrize(
    ("sent", "found"),
    [
        ("🔤 I have a dog 🔤", Wrapped("🔤 ", "I have a dog", " 🔤")),
        ("We saw. 🔤 I have a dog 🔤 ", Wrapped("We saw. 🔤 ", "I have a dog", " 🔤 ")),
        ("🔤🔤", None),
        ("I have a dog 🔤", None),
        ("from 10° to 20°", None),
        ("I have a dog", None),
        ("", None),
    ],
)
def test_a_pair_of_marks_encloses_the_text(sent: str, found: Wrapped | None) -> None:
    assert marked(sent) == found


@pytest.mark.parametrize(
    "sent",
    [
        "I have a dog.",
        " I have a dog.\n",
        "🔤 I have a dog. 🔤",
        "Translate the following English text:\n\nI have a dog.",
        "Translate into German: I have a dog.",
        "Please translate this to German. Do not explain.\n\nText: 🔤 I have a dog. 🔤",
        "Text to translate: I have a dog.",
        "<text>I have a dog.</text>",
        "Translate into German:\n```\nI have a dog.\n```",
    ],
)
def test_wrappers_that_are_known_at_sight(sent: str) -> None:
    assert instructed(sent).text == "I have a dog."


@pytest.mark.parametrize(
    "sent", ["The translator said: I have a dog.", "He said: no.", "It is 7:15", "<b>I</b> have", "Translate:"]
)
def test_what_only_looks_like_a_wrapper_is_text(sent: str) -> None:
    assert instructed(sent).text == sent


@given(st.text(alphabet="ab :.\n🔤<>/`\"'"))
def test_nothing_is_lost(sent: str) -> None:
    for found in (instructed(sent), marked(sent), Wrapper().cut(sent)):
        assert found is None or found.before + found.text + found.after == sent


@pytest.mark.parametrize(
    ("before", "after"), [("Say it in German. ", ""), (">>> ", " <<<"), ("Speech:\n", "\n(end)"), ("", " [German]")]
)
def test_what_stays_the_same_is_a_wrapper_from_the_third_utterance_on(before: str, after: str) -> None:
    wrapper = Wrapper()
    found = [wrapper.cut(f"{before}{text}{after}").text for text in SENTENCES]
    assert found[3:] == SENTENCES[3:]
    assert found[:3] == [f"{before}{text}{after}".strip() for text in SENTENCES[:3]]


def test_sentences_with_the_same_beginning_have_no_wrapper() -> None:
    wrapper = Wrapper()
    for text in ("He said: yes.", "He said: not today.", "She left. They stayed", "She left. I cried", "And so on."):
        assert wrapper.cut(text).text == text
    growing = Wrapper()
    for text in ("We saw. I", "We saw. I have", "We saw. I have a dog", "We saw. I have a dog. It barks"):
        assert growing.cut(text).text == text


def test_a_text_without_the_wrapper_is_left_as_it_is() -> None:
    wrapper = Wrapper()
    for text in SENTENCES:
        wrapper.cut(f">>> {text} <<<")
    assert wrapper.cut("good evening").text == "good evening"
    assert wrapper.cut(">>> <<<").text == ">>> <<<"
