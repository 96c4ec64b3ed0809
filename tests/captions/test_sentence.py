"""Where sentences end, and a final text as a finished sentence in the prompt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.captions.sentence import as_sentence, cut_text, final_mark, join_text, sentence_ends


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
        ("iPhone sales are up", "iPhone sales are up."),  # as it is written
        ("macOS is here", "macOS is here."),
        ("'pH' is low", "'pH' is low."),
        ("o'clock is early", "O'clock is early."),
        ("«oui!»", "«Oui!»"),
        ("我有一只狗。", "我有一只狗。"),
        ("Τι κάνεις;", "Τι κάνεις;"),
        ("we came;", "We came."),
        ("မင်္ဂလာပါ။", "မင်္ဂလာပါ။"),
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


@pytest.mark.parametrize(
    "text",
    [
        "I came.| She went.|",
        "Really?!| Yes…",
        'He said "go."| Then he went',
        "Mr. Smith and Dr. Jones met J. Doe.| It rained.|",
        "At 7:15 it was 3.5 degrees, e.g. Here.| Cold!|",
        "He came at 7 p.m. yesterday.|",
        "He came at 7 p.m.|",
        "It was No. 5.|",
        "On Jan. 5 Apple Inc. and Co. Ltd. Apple grew.| See Art. 7 and Sec. 3.|",
        "It was in Jan.| Then",
        "It is Apple Inc.|",
        "No.| I mean it.|",
        "Am 3. Mai kam er.| Er blieb.|",
        "I was...| You know... the one.|",
        "It is not I.| We are.|",
        "See example.com for more.| Thanks",
        "我喜欢猫。|你呢？|「好。」|他",
        "と言った。|はい",
        "Τι κάνεις;| Καλά είμαι.| Εσύ;|",
        "Τι κάνεις\u037e| Καλά",
        "we came; they left",
        "မင်္ဂလာပါ။|နေကောင်းလား။|",
        "សួស្តី។|អ្នកសុខសប្បាយទេ៕|",
        "བཀྲ་ཤིས།| བདེ་ལེགས།|",
        "እንዴት ነህ፧| ደህና።|",
        "Das kostet 5 Mio. Euro.| Ja.|",
        "Es sind 3,5 Mrd. Menschen und 20 Tsd. Tiere.|",
        "Er hat das Auto.| Mio.| Euro",
        "Это 5 млн. рублей.| Да.|",
        "Zapłacił 10 tys. złotych.|",
        "De heer Jansen en dhr. Bakker komen.| Ja.|",
        "È il sig. Rossi.| Sì.|",
        "Mr.",
        "",
    ],
)
def test_ends(text: str) -> None:
    bare = text.replace("|", "")
    marked = [len(part) for part in text.split("|")[:-1]]
    assert list(sentence_ends(bare)) == [sum(marked[: place + 1]) for place in range(len(marked))]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("We saw. Her duck!", [("We saw.", " "), ("Her duck!", "")]),
        ("\n We saw\r\n\n  her duck \n", [("", "\n "), ("We saw", "\r\n\n  "), ("her duck", " \n")]),
        ("Mr. Smith came on Oct. 3. He left.", [("Mr. Smith came on Oct. 3. He left.", "")]),  # as "3. Oktober"
        ("hello there. how are you? fine", [("hello there.", " "), ("how are you?", " "), ("fine", "")]),
        ("你好。今天很好！", [("你好。", ""), ("今天很好！", "")]),
        ("Oui ? Non.\u2003Si.", [("Oui ?", " "), ("Non.", "\u2003"), ("Si.", "")]),
        ("♪\nWe saw.", [("♪", "\n"), ("We saw.", "")]),
        (" \n", [("", " \n")]),
        ("", []),
    ],
)
def test_cut_text(text: str, pieces: list[tuple[str, str]]) -> None:
    assert cut_text(text) == pieces
    assert "".join(sentence + gap for sentence, gap in pieces) == text


def test_cut_text_in_part() -> None:
    text = "We saw\nher duck. Again."
    assert cut_text(text, lines=False) == [("We saw\nher duck.", " "), ("Again.", "")]
    assert cut_text(f" {text} ", lines=False, marks=False) == [("", " "), (text, " ")]


@given(st.text(alphabet="aA1 .!?。\n\r\u2028\x85\t\"'…", max_size=40))
def test_cut_text_loses_nothing(text: str) -> None:
    pieces = cut_text(text)
    assert "".join(sentence + gap for sentence, gap in pieces) == text
    assert all(sentence == sentence.strip() for sentence, _ in pieces)
    assert all(sentence for sentence, _ in pieces[1:])


def test_join_text() -> None:
    assert join_text([("Hallo.", ""), ("Guten Tag.", "\n"), ("Ja.", "")]) == "Hallo. Guten Tag.\nJa."
    assert join_text([("你好。", ""), ("今天。", " "), ("好。", "")]) == "你好。今天。 好。"
    assert join_text([("", "\n"), ("Ja.", "")]) == "\nJa."
    assert join_text([]) == ""
