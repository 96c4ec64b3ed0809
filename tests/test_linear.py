"""Every stage from the input to the captions takes time in proportion to what it is given, and keeps little of it."""

from __future__ import annotations

import io
import os
import re
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any

import pytest
from rich.console import Console

from redraft.captions import answer, sentence
from redraft.captions.events import Caption, Update
from redraft.captions.formats.cues import SubtitleWriter
from redraft.captions.formats.live import LiveWriter
from redraft.captions.formats.read import Item, printable, read_jsonl, read_lines, read_text, received
from redraft.captions.formats.rows import RowsWriter
from redraft.captions.formats.write import JsonlWriter, LinesWriter, Output, Writer
from redraft.captions.sentence import as_sentence, cut_text, ends_sentence, join_text, sentence_ends
from redraft.captions.words import bare_words
from redraft.serve.http.compat.openai import pattern_of
from redraft.serve.sessions.posts import texts_of
from redraft.speech.backlog import Backlog
from redraft.speech.sentences import in_sentences

#: What adversarial texts are made of: pieces on which patterns could try many ways.
PIECES = [
    *(
        "A",
        "*",
        "a ",
        "A ",
        "to ",
        "into Abcde Fghij (a b c) ",
        "from ",
        "translate ",
        "Translate to German ",
        "1.",
        "'",
    ),
    *(
        "<a>",
        "<a",
        "</a> ",
        '"""',
        "```",
        " ",
        "\t",
        "\n",
        "\n\n ",
        "Text: ",
        ": ",
        "翻译成",
        "中文",
        "ก",
        "🎉 ",
        "\n ** ",
        "**",
        "note ",
    ),
    *("Translation: \n", "=> ", "The ", "German (", "zh-", "_", "(", "[", "♪ a", "a.", "e.g. ", "…", "?!", "α;", " - "),
    *(
        "2020-01-01T00:00:00 region:a\n",
        "\x1b[",
        "\x1b[1;",
        "\x1b]",
        "\r",
        "\x08",
        "\u200d",
        "\u0301",
        "&#1;",
        "{",
        "|",
    ),
]
UTTERANCES = 30_000 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 4000
WORDS = "we saw her duck under the table and left, because it rained. then we ate".split()


def words(count: int, first: str = "first") -> str:
    return " ".join([first, *(WORDS[number % len(WORDS)] for number in range(count - 1))])


def consume(items: Iterable[object]) -> None:
    for _ in items:
        pass


def talk(count: int) -> Iterator[Item]:
    """Utterances of three updates."""
    for number in range(count):
        for seq in range(3):
            yield Update(str(number), seq, words(4 * seq + 2), seq == 2, number * 3.0 + seq)


def captions(count: int) -> Iterator[Caption]:
    for each in talk(count):
        assert isinstance(each, Update)
        yield Caption(each.utterance, each.seq, "de", each.text, "", each.final, each.time, each.text)


def write(writer: Writer, count: int) -> None:
    for each in captions(count):
        writer.write(each)
    writer.close()


class Nowhere(io.StringIO):
    def write(self, text: str) -> int:
        return len(text)


def subtitles() -> SubtitleWriter:
    return SubtitleWriter(Output("srt", Nowhere(), Nowhere(), ["de"]))


def revised(count: int) -> None:
    """Updates of one utterance that never ends, with words that change at its beginning."""

    def updates() -> Iterator[Item]:
        for seq in range(10):
            yield Update("1", seq, words(count - 10 + seq, f"first{seq // 5}"), False, 3.0 * seq)

    consume(in_sentences(updates()))


def waiting(backlog: Backlog) -> None:
    """Read everything before anything is translated."""
    items = iter(backlog)
    next(items)
    backlog.wait(60)
    consume(items)


#: What each stage does with so many words in one text.
LONG: dict[str, Callable[[int], object]] = {
    "lines": lambda count: consume(read_lines(io.BytesIO(f"{words(count)}\n{words(count, 'x')}\n".encode()))),
    "lines at once": lambda count: consume(
        read_lines(io.BufferedReader(io.BytesIO(f"{words(count)}\n{words(count, 'x')}\n".encode())))
    ),
    "sentence ends": lambda count: consume(sentence_ends(words(count))),
    "words": lambda count: bare_words(words(count)),
    "cutter": lambda count: consume(in_sentences([Update("1", 0, words(count), True, 9.0)])),
    "cutter, whole": lambda count: consume(in_sentences([Update("1", 0, words(count), True, 9.0)], whole=True)),
    "cutter, revised": revised,
}
#: What each stage does with so many utterances.
MANY: dict[str, Callable[[int], object]] = {
    "lines": lambda count: consume(read_lines(io.BytesIO(b"we saw\nwe saw her duck\n\n" * count))),
    "text": lambda count: consume(read_text(io.BytesIO(b"We saw her duck under it.\n" * count))),
    "jsonl": lambda count: consume(
        read_jsonl(io.BytesIO("".join(f'{{"utterance": {n}, "seq": 0, "text": "a"}}\n' for n in range(count)).encode()))
    ),
    "cutter": lambda count: consume(in_sentences(talk(count))),
    "cutter, whole": lambda count: consume(in_sentences(talk(count), whole=True)),
    "backlog": lambda count: waiting(Backlog(talk(count), live=True)),
    "written as lines": lambda count: write(LinesWriter(Nowhere(), Nowhere()), count),
    "written as JSON": lambda count: write(JsonlWriter(Nowhere()), count),
    "subtitles": lambda count: write(subtitles(), count),
    "subtitles, reading": lambda count: write(RowsWriter(subtitles(), 37), count),
    "live": lambda count: write(LiveWriter(["de"], Console(file=Nowhere(), force_terminal=True)), count),
}


def read_by_pattern(text: str) -> None:
    for prompt in ("{text}", "to {target}: {text}", "a {target} translate {text} c"):
        pattern_of(prompt).fullmatch(text)


#: What is done with a client's text: by the imitated APIs, by captions by POST, and by every session.
CLIENT: dict[str, Callable[[str], object]] = {
    "whole texts": lambda text: join_text(cut_text(text)),
    "prompts of openai's tools": read_by_pattern,
    "posts": texts_of,
    "one line": received,
    "printable": printable,
    "sentences": lambda text: (as_sentence(text, "."), ends_sentence(text), list(sentence_ends(text))),
    "words": bare_words,
}


PATTERNS = [each for of in (sentence, answer) for each in vars(of).values() if isinstance(each, re.Pattern)]


def seconds(stage: Callable[[Any], object], given: Any) -> float:
    began = time.process_time()
    stage(given)
    return time.process_time() - began


@pytest.mark.parametrize("name", LONG)
def test_long_texts(name: str) -> None:
    """Four times the words of 64 KB take about four times as long."""
    stage = LONG[name]
    allowed = 10 * min(seconds(stage, 2000) for _ in range(2)) + 0.05
    assert any(seconds(stage, 8000) < allowed for _ in range(3))  # a core may be shared, and memory collected


@pytest.mark.parametrize("name", CLIENT)
def test_adversarial_texts(name: str) -> None:
    """A client's text that is four times as long takes about four times as long, not sixteen or more."""
    stage = CLIENT[name]
    for one in [*PIECES, *map("".join, product(PIECES, ["A", " \n"]))]:
        short, long = ((one * size)[:size] for size in (1000, 4000))
        if seconds(stage, long) > 0.02 + 8 * seconds(stage, short):  # perhaps because the machine is busy
            assert min(seconds(stage, long) for _ in range(3)) < 0.02 + 8 * max(seconds(stage, short) for _ in range(3))


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda each: str(each.pattern[:30]))
def test_adversarial_patterns(pattern: re.Pattern[str]) -> None:
    """Each pattern for prompts, and for what models add to captions, by itself, however it is used."""
    for start, piece in product(("", "translate ", "<a>", "```"), PIECES):
        for does in (pattern.match, pattern.fullmatch):
            assert seconds(does, (start + piece * 4000)[:10_000]) < 0.2


@pytest.mark.parametrize("name", MANY)
def test_many_utterances(name: str) -> None:
    stage = MANY[name]
    allowed = 10 * min(seconds(stage, UTTERANCES // 4) for _ in range(2)) + 0.05
    assert any(seconds(stage, UTTERANCES) < allowed for _ in range(3))


@pytest.mark.parametrize("name", ["cutter", "cutter, whole", "written as lines", "subtitles", "subtitles, reading"])
def test_memory(name: str) -> None:
    """What is kept of an utterance is a name and a few numbers: less than half of its three updates."""
    stage = MANY[name]
    peaks = []
    for count in (1000, 3000):  # with fewer, Python's lists of free tuples, and dictionaries that grow, count for most
        tracemalloc.start()
        stage(count)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < 400 * 2000
