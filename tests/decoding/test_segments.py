"""From segments to ids, with a tokenizer of words that puts a space before every text but behind nothing functional."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from redraft.decoding.segments import FunctionalToken, PromptTokenizer, is_markup
from redraft.decoding.segments import PromptSegment as Segment

END, THINK, BYTE = 1_000_001, 1_000_002, 10
FUNCTIONAL = {
    "<end>": FunctionalToken(END, strips_right=True),
    "<think>": FunctionalToken(THINK, strips_left=True),
    "<0x0A>": FunctionalToken(BYTE, parsed=False),
}


def tokenize(text: str, special: bool) -> list[int]:
    """Letters, which together spell what is functional wherever that is read; ``<think>`` always is, as engines do."""
    found: list[int] = []
    for number, part in enumerate(re.split("(<end>|<think>)", text) if special else text.split("<think>")):
        if special and number % 2:
            found.append(FUNCTIONAL[part].token)
        else:
            found += [THINK] * (number > 0 and not special) + [ord(letter) for letter in part]
    return found


encode = PromptTokenizer(tokenize, FUNCTIONAL)


def ids(*parts: str | int) -> list[int]:
    return [each for part in parts for each in ([part] if isinstance(part, int) else map(ord, part))]


def test_text_between_functional_tokens_is_one() -> None:
    asked: list[str] = []

    def noted(text: str, special: bool) -> list[int]:
        asked.append(text)
        return tokenize(text, special)

    segments = [
        Segment("<end>user\nEnglish: ", True),
        Segment("the cat", False),
        Segment("\nGerman:<end>", True),
    ]
    assert PromptTokenizer(noted, FUNCTIONAL)(segments) == ids(END, "user\nEnglish: the cat\nGerman:", END)
    assert asked == ["user\nEnglish: the cat\nGerman:"]


def test_white_space_beside_tokens_that_swallow_it() -> None:
    segments = [
        Segment("a<end> ", True),
        Segment("b", False),
        Segment(" <think> c", True),
        Segment("", True, 7),
    ]
    assert encode(segments) == ids("a", END, "b", THINK, " c", 7)


def test_token_across_edge_of_segment_is_not_read() -> None:
    assert encode([Segment("<", True), Segment("think>", False)]) == ids("<think>")
    assert encode([Segment("<think", False), Segment("><end>", True)]) == ids("<think>", END)


@given(st.lists(st.sampled_from(["<", "think", "<think>", "<end>", "<0x0A>", ">", "a", " "]), max_size=8))
def test_users_write_what_they_like(pieces: list[str]) -> None:
    text = "".join(pieces)
    asked: list[str] = []

    def noted(text: str, special: bool) -> list[int]:
        asked.append(text)
        return tokenize(text, special)

    made = PromptTokenizer(noted, FUNCTIONAL)([Segment("x", True), Segment(text, False), Segment("y", True)])
    assert made == ids("x" + text + "y")
    assert not any(token in each for each in asked for token in FUNCTIONAL)


def test_assembled_token() -> None:
    def joining(text: str, special: bool) -> list[int]:
        return [THINK] if text == "think!" else tokenize(text, special)

    assert PromptTokenizer(joining, FUNCTIONAL)([Segment("think!", False)]) == ids("think!")


def test_space_before_text() -> None:
    def spaced(text: str, special: bool) -> list[int]:
        known = text.startswith("<end>") and special
        return tokenize(text, special) if known or not text else ids(" ") + tokenize(text, special)

    before = PromptTokenizer(spaced, FUNCTIONAL, "<end>")
    assert before([Segment("a<end>b", True)]) == ids(" a", END, "b")
    assert before([Segment("<end>", True), Segment("a<think>", False)]) == ids(END, "a<think>")


def test_markup() -> None:
    assert all(map(is_markup, ["<think>", "<|im_end|>", "[INST]", "<2de>", "<｜User｜>", "{{x}}"]))
    assert not any(map(is_markup, ["\n\n", "ü", "  ", "<", ">>", "[]", "a>b"]))
