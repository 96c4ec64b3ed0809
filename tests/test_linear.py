"""Every stage from the input to the captions takes time in proportion to what it is given, and keeps little of it."""

from __future__ import annotations

import io
import os
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator

import pytest
from rich.console import Console

from redraft.captions.events import Caption, Update
from redraft.captions.formats.live import LiveWriter
from redraft.captions.formats.read import Item, ended, read_jsonl, read_lines, read_text
from redraft.captions.formats.rows import RowsWriter
from redraft.captions.formats.write import JsonlWriter, LinesWriter, SubtitleWriter, Writer
from redraft.captions.sentence import sentence_ends
from redraft.captions.words import bare_words
from redraft.speech.committed import Committed, Span
from redraft.speech.sentences import in_sentences

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
    return SubtitleWriter(Nowhere(), Nowhere(), "srt", ["de"])


def revised(count: int) -> None:
    """Updates of one utterance that never ends, with words that change at its beginning."""

    def updates() -> Iterator[Item]:
        for seq in range(10):
            yield Update("1", seq, words(count - 10 + seq, f"first{seq // 5}"), False, 3.0 * seq)

    consume(in_sentences(updates()))


def committed(count: int) -> None:
    known = Committed()
    for first in ("one", "two", "two"):
        known.update([Span(words(count, first), 0.0, 9.0)])


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
    "committed": committed,
}
#: What each stage does with so many utterances.
MANY: dict[str, Callable[[int], object]] = {
    "lines": lambda count: consume(read_lines(io.BytesIO(b"we saw\nwe saw her duck\n\n" * count))),
    "text": lambda count: consume(read_text(io.BytesIO(b"We saw her duck under it.\n" * count))),
    "jsonl": lambda count: consume(
        ended(
            read_jsonl(
                io.BytesIO("".join(f'{{"utterance": {n}, "seq": 0, "text": "a"}}\n' for n in range(count)).encode())
            )
        )
    ),
    "cutter": lambda count: consume(in_sentences(talk(count))),
    "cutter, whole": lambda count: consume(in_sentences(talk(count), whole=True)),
    "written as lines": lambda count: write(LinesWriter(Nowhere(), Nowhere()), count),
    "written as JSON": lambda count: write(JsonlWriter(Nowhere()), count),
    "subtitles": lambda count: write(subtitles(), count),
    "subtitles, reading": lambda count: write(RowsWriter(subtitles(), 37), count),
    "live, to a file": lambda count: write(LiveWriter(["de"], Console(file=Nowhere(), force_terminal=False)), count),
}


def seconds(stage: Callable[[int], object], count: int) -> float:
    began = time.process_time()
    stage(count)
    return time.process_time() - began


@pytest.mark.parametrize("name", LONG)
def test_long_texts(name: str) -> None:
    """Four times the words of 64 KB take about four times as long."""
    stage = LONG[name]
    assert seconds(stage, 8000) < 10 * min(seconds(stage, 2000) for _ in range(2)) + 0.05


@pytest.mark.parametrize("name", MANY)
def test_many_utterances(name: str) -> None:
    stage = MANY[name]
    assert seconds(stage, UTTERANCES) < 10 * min(seconds(stage, UTTERANCES // 4) for _ in range(2)) + 0.05


@pytest.mark.parametrize("name", ["cutter", "cutter, whole", "written as lines", "subtitles", "subtitles, reading"])
def test_memory(name: str) -> None:
    """What is kept of an utterance is less than its text."""
    stage = MANY[name]
    peaks = []
    for count in (500, 1500):
        tracemalloc.start()
        stage(count)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < 1000 * 400
