"""A final text as a finished sentence in the prompt: what is added, and which models want it."""

from __future__ import annotations

import pytest

from redraft.captions.sentence import as_sentence, final_mark


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("I have a dog", "I have a dog."),
        ("i have a dog", "I have a dog."),
        ("i have a dog.", "I have a dog."),
        ("I have a dog, ", "I have a dog."),
        ("I have a dog -", "I have a dog."),
        ("I have a dog\n", "I have a dog."),
        ('he said "i have a dog"', 'He said "i have a dog".'),
        ('"he has a dog."', '"He has a dog."'),
        ("(Do you?)", "(Do you?)"),
        ("Do you?", "Do you?"),
        ("Wait…", "Wait…"),
        ("At 5 p.m.", "At 5 p.m."),
        ("24 dogs", "24 dogs."),
        ("«oui!»", "«Oui!»"),
        ("我有一只狗。", "我有一只狗。"),
        ("ძაღლი", "ძაღლი."),  # a script whose capitals begin no sentence
    ],
)
def test_what_is_missing_is_added(text: str, sentence: str) -> None:
    assert as_sentence(text, ".") == sentence
    assert as_sentence(sentence, ".") == sentence
    assert as_sentence(text, "") == text


@pytest.mark.parametrize("text", ["", "  ", "…", "—", ", ,"])
def test_text_without_words_stays_as_it_is(text: str) -> None:
    assert as_sentence(text, ".") == text


def test_model_says_which_mark_it_needs() -> None:
    ours = {"redraft.prompt": "{source}<2{code}>"}
    assert final_mark(ours) == "."  # the first demo models do not say it
    assert final_mark({**ours, "redraft.final_mark": ""}) == ""
    assert final_mark({**ours, "redraft.final_mark": "。"}) == "。"
    assert final_mark({"tokenizer.chat_template": "..."}) == ""
