"""Where sentences end, and a final text as a finished sentence in the prompt."""

from __future__ import annotations

import pytest

from redraft.captions.sentence import as_sentence, final_mark, sentence_ends


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
