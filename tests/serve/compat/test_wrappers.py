"""What a tool puts round the text: marks, tags and instructions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.serve.compat.dialect import Wrapped, instructed, marked


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
def test_marks(sent: str, found: Wrapped | None) -> None:
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
def test_wrappers(sent: str) -> None:
    assert instructed(sent).text == "I have a dog."


@pytest.mark.parametrize(
    "sent", ["The translator said: I have a dog.", "He said: no.", "It is 7:15", "<b>I</b> have", "Translate:"]
)
def test_no_wrapper(sent: str) -> None:
    assert instructed(sent).text == sent


@given(st.text(alphabet="ab :.\n🔤<>/`\"'"))
def test_nothing_is_lost(sent: str) -> None:
    for found in (instructed(sent), marked(sent)):
        assert found is None or found.before + found.text + found.after == sent
