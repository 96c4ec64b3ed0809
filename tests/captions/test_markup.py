"""What chat models write beside a translation, and what they must be allowed to write."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.captions.answer import OutputReader
from redraft.captions.events import Caption, Failure, Update
from redraft.captions.languages import parse_language
from redraft.captions.script import writing_of
from redraft.captions.state import START, Settings, Vocabulary
from redraft.captions.translation import REPEATED, Translation
from redraft.decoding.drive import run_together
from redraft.decoding.ends import LineBreaks
from redraft.decoding.methods import get_method
from redraft.decoding.types import TARGET, Prompt
from tests.fakes import END, RandomModel

HELLO = "Hello world."
#: Answers to "Hello world." whose translation is "Hallo Welt.".
ANSWERS = """
‹Hallo Welt.›
＂Hallo Welt.＂
“Hallo Welt.”
«Hallo Welt.»
"Hallo Welt."
<think>⏎Okay, hello.⏎Hallo?⏎</think>⏎⏎Hallo Welt.
[THINK]The user wants German.[/THINK]Hallo Welt.
[THINK]The user wants German.⏎It is a greeting.[/THINK]⏎Hallo Welt.
<seed:think>⏎The user wants German.⏎</seed:think>⏎Hallo Welt.
<|channel>thought⏎The user wants German.⏎<channel|>Hallo Welt.
<|channel|>analysis<|message|>It is German.<|end|><|start|>assistant<|channel|>final<|message|>Hallo Welt.
<|START_THINKING|>It is German.<|END_THINKING|>Hallo Welt.
<mm:think>The user wants German.</mm:think>Hallo Welt.
<think:opensource>The user wants German.</think:opensource>Hallo Welt.
◁think▷The user wants German.◁/think▷Hallo Welt.
Here is my thought process: The user wants German. Here is my response: Hallo Welt.
[BEGIN FINAL RESPONSE]⏎Hallo Welt.
<think>⏎⏎</think>⏎⏎Hallo Welt.
<think> short </think>Hallo Welt.
<think>It is German.⏎Hello!</think> Hallo Welt.
<think>It is German.⏎Hello!</think>Hallo Welt.⏎A greeting.
<think>It is German.⏎Hello!</think>German: Hallo Welt.
</think>⏎⏎Hallo Welt.
German: Hallo Welt.
German: "Hallo Welt."
German:⏎Hallo Welt.
<think>⏎The user wants German.⏎⏎</think>⏎⏎German: Hallo Welt.
"""
#: Whatever else a model writes to "Hello world." is its translation, and stays.
KEPT = [
    "Here is the translation: Hallo Welt.",
    "**Hallo Welt.**",
    "`Hallo Welt.`",
    "<p>Hallo Welt.</p>",
    "'Hallo Welt.'",
    '""Hallo Welt.""',
    "Hallo Welt. (Hello world.)",
    "I'm sorry, but I can't assist with that.",
]
#: Sources with translations from which nothing is left out, and their target language.
GOOD = [
    ("Sure! Here is the translation:", "Klar! Hier ist die Übersetzung:", "de"),
    ("Klar! Hier ist die Übersetzung:", "Sure! Here is the translation:", "en"),
    ("Translation: a craft.", "Übersetzung: ein Handwerk.", "de"),
    ("He said: go.", "Er sagte: geh.", "de"),
    ("German: hello.", "Deutsch: hallo.", "de"),
    ("The rule is simple.", "Die Regel ist einfach: geh.", "de"),
    ("I am sorry.", "申し訳ありません：行けません。", "ja"),
    ("Transport by rail.", "Перевозка: по рельсам.", "ru"),
    ("Sicher!", "Sure!", "en"),
    ("Note: bring food.", "Hinweis: Bringt Essen mit.", "de"),
    ("It is closed (today).", "Es ist geschlossen (heute).", "de"),
    ("The World Health Organization met.", "开会的是世界卫生组织（WHO）", "zh"),
    ("We met Draper.", "我们见到了德雷珀 (Draper)", "zh"),
    ("War and Peace", "《战争与和平》", "zh"),
    ("5 times 3 is 15.", "5 * 3 ist 15.", "de"),
    ("two to the power of three", "2**3", "de"),
    ("Use a star b.", "Nutze a*b und c*d.", "de"),
    ("The * operator multiplies.", "* multipliziert.", "de"),
    ("Press <b>Enter</b>.", "Drücken Sie <b>Enter</b>.", "de"),
    ("A is less than B and B is greater than C.", "A<B und B>C.", "de"),
    ("Tom &amp; Jerry", "Tom &amp; Jerry", "de"),
    ("“Stop!” she said.", "„Halt!“, sagte sie.", "de"),
    ("“Stop!”", "„Halt!“", "de"),
    ("“Stop!” he said.", "„Halt!“", "de"),
    ('He said: "Stop!"', "„Er sagte: Halt!“", "de"),
    ('He said "stop" and "go" often.', "„Halt“ und „geh“", "de"),
    ("the fields are a and b", '"a": "b"', "de"),
    ("'Stop!'", "„Halt!“", "de"),
    ("It is nothing, boys.", "'s ist nichts, Jungs.", "de"),
    ("- one", "- eins", "de"),
    ("minus five degrees", "- 5 Grad", "de"),
    ("May 1st", "1. Mai", "de"),
    ("A -> B.", "A -> B.", "de"),
    ("use `ls`", "nutze `ls`", "de"),
    ("either or", "entweder / oder", "de"),
    ("I'm sorry, but I can't assist.", "I'm sorry, but I can't assist.", "de"),
    ("Hello", "Deutsch: hallo", "de"),  # no English name
    ("German hello", "German: hallo", "de"),
    ("Chinese three hundred", "中文：三百", "zh"),
    ("Greek, ten pupils.", "Modern Greek: 10", "el"),
    ("Hallo", "English: hello", "en"),
    ("French hello", "Französisch: hallo", "de"),
    ("Dabei kann ich leider nicht helfen.", "I'm sorry, but I can't assist with that.", "en"),
    ("Thank you 😊", "Danke 😊", "de"),
]


def tokens_of(answer: str, size: int) -> list[bytes]:
    """An answer in tokens of ``size`` bytes; line breaks are tokens of their own, or with 3 bytes parts of others."""
    found: list[bytes] = []
    for line in re.findall(b"[^\n]+\n*|\n+", answer.replace("⏎", "\n").encode()):
        text = line.rstrip(b"\n")
        pieces = [text[start : start + size] for start in range(0, len(text), size)]
        breaks = line[len(text) :]
        found += (
            [*pieces[:-1], pieces[-1] + breaks] if size == 3 and pieces else [*pieces, *([breaks] if breaks else [])]
        )
    return found


def read(answer: str, source: str = HELLO, target: str = "de", size: int = 2) -> str:
    """What is read of an answer that is decoded token by token."""
    tokens = tokens_of(answer, size)
    labels = parse_language(target).labels
    reader = OutputReader(source, LineBreaks.of(tokens), tokens.__getitem__, labels)
    ids = range(len(tokens))
    end = next((found for length in ids if (found := reader.end(ids[: length + 1])) is not None), len(ids))
    return b"".join(reader.pieces(ids[:end])).decode(errors="ignore").strip()


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("answer", ANSWERS.split("\n")[1:-1])
def test_only_the_translation(answer: str, size: int) -> None:
    assert read(answer, size=size) == "Hallo Welt."


@pytest.mark.parametrize("answer", KEPT)
def test_nothing_else_is_left_out(answer: str) -> None:
    assert read(answer) == answer


@pytest.mark.parametrize(("source", "answer", "target"), GOOD)
def test_good_translation_stays(source: str, answer: str, target: str) -> None:
    assert read(answer, source, target) == answer


@pytest.mark.parametrize(
    ("source", "answer", "text"),
    [
        ("New York City.", "New York City.⏎⏎(Note: a name)", "New York City."),
        ("New York City.", "New York City.⏎⏎", "New York City."),
        ('He said: "Stop!" and left.', "\"Er sagte: 'Halt!' und ging.\"", "Er sagte: 'Halt!' und ging."),
        ("He spoke in German.", "Er sprach auf Deutsch:⏎Note", "Er sprach auf Deutsch:"),
        ("No.", ".⏎(Note: x)", "."),
        ("2 + 2", "2 + 2 = 4⏎⏎In this example, the translation is", "2 + 2 = 4"),
        (HELLO, "<think>⏎This never ends", ""),
    ],
)
def test_chosen_line(source: str, answer: str, text: str) -> None:
    assert read(answer, source) == text


@pytest.mark.parametrize(
    ("target", "answer"),
    [
        ("zh", "中文：你好。"),
        ("zh-TW", "Chinese: 你好。"),
        ("zh-Hant", "Traditional Chinese: 你好。"),
        ("ja", "日本語: 你好。"),
    ],
)
def test_label_of_language(target: str, answer: str) -> None:
    assert read(answer, HELLO, target) == "你好。"
    assert read(answer, HELLO, "ko") == answer


MARKS = [
    "<think>",
    "</think>",
    "[THINK]",
    "◁think▷",
    "[BEGIN FINAL RESPONSE]",
    "Here is my response:",
    "<|channel>thought",
]
MARKS += ["German:", "日本語：", "Translation:"]
PLAIN = st.sampled_from(["", "so ", "wir gehen ", "2 3 "])


@given(st.sampled_from(MARKS), PLAIN, PLAIN, PLAIN, PLAIN, st.sampled_from(["de", "ja", "en"]))
def test_marks_of_source_stay(mark: str, a: str, b: str, c: str, d: str, target: str) -> None:
    """What a source has, its translation may have anywhere."""
    answer = f"{c}{mark} {d}".strip()
    assert read(f"{answer}⏎", f"{a}{mark} {b}", target) == answer


# Streams

GROWING = ("I have", "I have a dog", "I have a dog and two", "I have a dog and two cats.")
TRANSLATED = ("Ich habe", "Ich habe einen Hund", "Ich habe einen Hund und zwei", "Ich habe einen Hund und zwei Katzen.")


class Chatty(RandomModel):
    """Answers each source with a given text, character by character; the prompt is the number of the source."""

    def __init__(self, answers: Mapping[str, str]) -> None:
        self.texts = [text.replace("⏎", "\n") for text in answers.values()]
        self.characters = ["", *sorted({*"".join(self.texts), *map(str, range(10))})]
        super().__init__(vocabulary=len(self.characters) + len(self.texts))
        self.prompts = {source: len(self.characters) + number for number, source in enumerate(answers)}

    def logits(self, ids: Sequence[int]) -> np.ndarray:
        row, text = np.full(self.vocabulary, -50.0), self.texts[ids[0] - len(self.characters)]
        place = len(ids) - 200
        row[self.characters.index(text[place]) if place < len(text) else END] = 0.0
        return row

    def token_bytes(self, token: int) -> bytes:
        return self.characters[token].encode() if token < len(self.characters) else b""


def events(answers: Mapping[str, str], method: str = "redraft") -> list[Caption | Failure]:
    """What a stream of sources gives, of which the last is final."""
    model, chosen, found = Chatty(answers), get_method(method), []
    breaks = LineBreaks.of(map(model.token_bytes, range(model.vocabulary)))
    vocabulary = Vocabulary(model.end_tokens, model.token_bytes, model.tokenize, 800, breaks=breaks)
    encode = lambda source, *_: Prompt((model.prompts[source], *[1] * 199))  # noqa: E731
    writing = writing_of(parse_language("de"))
    translation = Translation("de", encode, vocabulary, Settings(chosen), writing)
    state = START
    for seq, source in enumerate(answers):
        asking = translation.translate(state, Update("u", seq, source, seq == len(answers) - 1))
        ((events, state),) = run_together([(asking, {TARGET: 0})], {TARGET: model})
        found += events
    return found


WRAPPED: dict[str, Callable[[str, str], str]] = {
    "line": lambda source, text: f"{text}⏎⏎Let me know!",
    "label": lambda source, text: f"German: {text}",
    "quotes": lambda source, text: f"「{text}」",
    "thoughts": lambda source, text: f"<think>⏎Okay: {source}⏎</think>⏎⏎{text}",
    "break": lambda source, text: f"⏎ ⏎{text}",
}


@pytest.mark.parametrize("method", ["ar", "ssbd", "redraft"])
@pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED)
def test_growing_source(wrap: Callable[[str, str], str], method: str) -> None:
    """Readers see what they would see of a model that writes the translation only."""
    chatty = events({source: wrap(source, text) for source, text in zip(GROWING, TRANSLATED, strict=True)}, method)
    shown = [(each.text + each.unstable) for each in chatty if isinstance(each, Caption)]
    assert [" ".join(each.split()) for each in shown] == list(TRANSLATED)
    texts = [each.text for each in chatty if isinstance(each, Caption)]
    assert all(later.startswith(earlier) for earlier, later in pairwise(texts))


@pytest.mark.parametrize("thoughts", ["<think>⏎This has no end", "[THINK] This has no end", "<think>" + "⏎Hm" * 300])
def test_thoughts_without_end_have_remedy(thoughts: str) -> None:
    failures = [each for each in events({HELLO: thoughts}) if isinstance(each, Failure)]
    assert failures and "--prompt" in failures[-1].message


def test_repeated_text_is_reported() -> None:
    text = "I have a dog and two cats."
    failure, caption = events({text: f'"{text}"'})
    assert failure == Failure(REPEATED, None, "u", 0, "de") and isinstance(caption, Caption) and caption.text == text
    for names in ("Ruhollah Musavi Khomeini", "BMW, Audi, VW, SAP, Siemens and Bosch.", "1 2 3 4 5 6"):
        assert len(events({names: names})) == 1
