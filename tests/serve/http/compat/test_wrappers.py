"""Marks, tags and instructions that tools put around the text, and speech that looks like them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.serve.http.compat.instructions import Instructions, Wrapped, marked
from redraft.serve.http.compat.naming import names_target

GERMAN = "Translate what the user says into German."
#: Texts in which a prompt could begin or end.
SPOKEN = [
    "We won the game 🎉 thank you all 🎉",
    "🎉 We won the game 🎉",
    "Translate our values into action: that is what we do.",
    "Translate into French: I have a dog.",
    "Please translate this: I have a dog.",
    "The source: I have a dog.",
    "Text: I have a dog.",
    "<b>I have a dog.</b>",
    '"""I have a dog."""',
    "The translator said: I have a dog.",
    "He said: no.",
    "It is 7:15",
    "<b>I</b> have",
    "Translate:",
]


def text_of(*asked: str, system: str = GERMAN, instructions: Instructions | None = None) -> str:
    found, _ = (instructions or Instructions()).text_of(
        ("caller",), system, asked, lambda instruction: names_target(instruction, system)
    )
    return found.text


@pytest.mark.parametrize("mark", ["```", '"""', "<b>"])
def test_spaces_behind_mark_without_end(mark: str) -> None:
    sent, began = f"{mark}{' ' * 30_000}I have a dog", time.process_time()
    assert text_of(sent) == sent
    assert text_of(f"{sent}{mark.replace('<', '</')}", system="What is in ```, <b> or triple quotes") == "I have a dog"
    assert time.process_time() - began < 2


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


@pytest.mark.parametrize("sent", SPOKEN)
def test_speech_is_kept(sent: str) -> None:
    assert text_of(sent) == sent


@pytest.mark.parametrize("sent", SPOKEN)
def test_growing_speech_is_kept(sent: str) -> None:
    instructions = Instructions()
    parts = [sent[:end] for end in range(1, len(sent) + 1)]
    assert [text_of(part, instructions=instructions) for part in parts] == [part.strip() for part in parts]


@pytest.mark.parametrize(
    "sent",
    [
        "Translate the following English text into German:\n\nI have a dog.",
        "Translate into German: I have a dog.",
        "Please translate this to German. Do not explain.\n\nText: 🔤 I have a dog. 🔤",
        "Translate the sentence in 🔤 into German: 🔤 I have a dog. 🔤",
        "Translate into German:\n```\nI have a dog.\n```",
    ],
)
@pytest.mark.parametrize("system", ["", "You are a helpful assistant.", "Answer in English."])
def test_only_instruction_names_target(sent: str, system: str) -> None:
    assert text_of(sent, system=system) == "I have a dog."


@pytest.mark.parametrize(
    ("named", "sent"),
    [
        ("Translate the sentence in 🔤 into German.", "🔤 I have a dog. 🔤"),
        ("Translate the sentence in 🔤 into German.", "We went home. 🔤 I have a dog. 🔤"),
        ("Translate what is in <text> into German.", "<text>I have a dog.</text>"),
        ("Translate what is in triple backticks into German.", "```\nI have a dog.\n```"),
    ],
)
def test_prompt_names_wrapper(named: str, sent: str) -> None:
    assert text_of(sent, system=named) == "I have a dog."


@pytest.mark.parametrize(
    "wrapper",
    [
        "🔤 {} 🔤",
        "Translate the following text, without comments:\n\n{}",
        "Text to translate: {}",
        "<source>{}</source>",
        "```\n{}\n```",
    ],
)
@pytest.mark.parametrize("history", [False, True])
def test_repeated_wrapper(wrapper: str, history: bool) -> None:
    instructions = Instructions()
    sent = [wrapper.format(text) for text in ("I have a dog.", "I have a dog and two cats.", "The weather is nice.")]
    if history:
        found = [text_of(*sent[: place + 1]) for place in range(3)]
    else:
        found = [text_of(each, instructions=instructions) for each in sent]
    assert found == [*sent[:2], "The weather is nice."]
    if not history:
        assert text_of(sent[0], instructions=instructions) == "I have a dog."


def test_context_without_name_is_kept() -> None:
    instructions = Instructions()
    for sent in ("We won the game 🎉 thank you all 🎉", "We won the game 🎉 see us on Sunday 🎉"):
        assert text_of(sent, instructions=instructions) == sent


def test_callers_are_forgotten() -> None:
    now = [0.0]
    instructions = Instructions(lambda: now[0])
    wrapped = [f"Text: {text}" for text in ("I have a dog.", "The weather is nice.", "We are going home.")]
    text_of(wrapped[0], instructions=instructions)
    assert text_of(wrapped[1], instructions=instructions) == "The weather is nice."
    now[0] = 100.0
    instructions.forget(60)
    assert text_of(wrapped[2], instructions=instructions) == wrapped[2]


@given(st.lists(st.text(alphabet="ab :.\n🔤<>/`\"'"), min_size=1, max_size=3), st.sampled_from([GERMAN, "in 🔤", ""]))
def test_nothing_is_lost(sent: list[str], system: str) -> None:
    found, _ = Instructions().text_of((), system, sent, lambda instruction: names_target(instruction, system))
    for each in (found, marked(sent[-1])):
        assert each is None or each.before + each.text + each.after == sent[-1]
