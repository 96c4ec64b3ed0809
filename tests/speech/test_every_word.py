"""Every recognised word is in exactly one final text, in order, for every input."""

from __future__ import annotations

import io
import json
import os
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from redraft.captions.events import Order, Update
from redraft.captions.formats.read import Item, read_jsonl, read_lines, read_simulstreaming, read_text
from redraft.speech import servers
from redraft.speech.audio import RATE
from redraft.speech.recogniser import transcribe
from redraft.speech.sentences import SentenceCutter, in_sentences
from redraft.speech.servers import ServerRecogniser

#: Random streams of each kind; more for a long search: WORD_STREAMS=10000.
STREAMS = int(os.environ.get("WORD_STREAMS", "40"))

_ENGLISH = (
    "the a and I we you it is was are so but when they that there talk city wall harbour winter money one two three "
    "four is. was. it. there. here! why? well, now, yes. no. Mr. 3.5 7. 15 e.g. p.m. ... a. b. I."
).split()
_CHINESE = [*"我你他好是的在城市海港冬天", "。", "，", "！", "？"]


class Talk:
    """Words that are spoken, with their times."""

    def __init__(self, random: random.Random) -> None:
        self.random, self.chinese = random, random.random() < 0.15
        count = random.choice((0, 1, 3, 12, 40, 150))
        marked = random.random() < 0.7
        vocabulary = _CHINESE if self.chinese else _ENGLISH
        vocabulary = [word for word in vocabulary if marked or word.isalpha()]
        self.words = random.choices(vocabulary, k=count)
        self.starts: list[float] = []
        self.ends: list[float] = []
        time = random.choice((0.0, 3.2))
        for _ in self.words:
            time += random.choice((0.0, 0.0, 0.0, 0.1, 0.5, 3.0))
            self.starts.append(round(time, 2))
            time += random.choice((0.1, 0.2, 0.4))
            self.ends.append(round(time, 2))

    def text(self, first: int, last: int) -> str:
        return ("" if self.chinese else " ").join(self.words[first:last])

    def guess(self) -> str:
        """Words that the recogniser takes back."""
        return " ".join(self.random.choices(("uh", "hm", "um"), k=self.random.randint(0, 3)))

    def steps(self, most: int) -> Iterator[tuple[int, int]]:
        """How many words were known before, and are known now; often the same."""
        last = 0
        while last < len(self.words):
            before, last = last, min(len(self.words), last + self.random.randint(0, most))
            yield before, last

    def utterances(self) -> Iterator[tuple[int, int]]:
        """Where utterances begin and end."""
        first = 0
        while first < len(self.words):
            last = min(len(self.words), first + self.random.choice((1, 5, 20, 200)))
            yield first, last
            first = last


def vosk_messages(talk: Talk) -> Iterator[dict[str, Any]]:
    """Partial texts that are revised, and final ones, which may come twice."""
    times = talk.random.random() < 0.5
    for first, last in talk.utterances():
        for _ in range(talk.random.randint(0, 4)):
            place = talk.random.randint(first, last)
            yield {"partial": f"{talk.text(first, place)} {talk.guess()}".strip()}
        final: dict[str, Any] = {"text": talk.text(first, last)}
        if times:
            spoken = zip(talk.words[first:last], talk.starts[first:last], talk.ends[first:last], strict=True)
            final["result"] = [{"word": word, "start": start, "end": end} for word, start, end in spoken]
        yield final
        if times and talk.random.random() < 0.2:
            yield final
        if talk.random.random() < 0.3:
            yield {"text": ""}


def sherpa_messages(talk: Talk) -> Iterator[dict[str, Any]]:
    """Segments with an end or without; numbers have gaps or begin again; last texts come twice."""
    random, number = talk.random, 0
    marks, renumbers = random.random() < 0.5, random.random() < 0.3
    for first, last in talk.utterances():
        for _, place in [*((0, random.randint(first, last)) for _ in range(random.randint(0, 4)))]:
            yield {"text": f"{talk.text(first, place)} {talk.guess()}".strip(), "segment": number, "is_final": False}
        whole = {"text": talk.text(first, last), "segment": number, "is_final": marks}
        yield whole
        if marks and random.random() < 0.3:
            yield whole
        number = number + random.choice((1, 1, 2)) if not renumbers or number < 3 else 0


class Scripted:
    """A connection over which a server's messages come, a few with each block of audio; then it is closed, or left."""

    def __init__(self, messages: Sequence[dict[str, Any]], random: random.Random) -> None:
        self.random, self.waiting, self.allowed = random, list(messages), 1
        self.left: threading.Event | None = None

    def send(self, message: str | bytes) -> None:
        self.allowed = self.random.randint(1, 3)

    def recv(self, timeout: float) -> str:
        from websockets.exceptions import ConnectionClosedOK

        if timeout == 0 and not (self.waiting and self.allowed):
            raise TimeoutError
        if not self.waiting:
            if self.left is None:
                raise ConnectionClosedOK(None, None)
            self.left.set()
            raise TimeoutError
        self.allowed -= 1
        return json.dumps(self.waiting.pop(0))

    def ping(self) -> threading.Event:
        answered = threading.Event()
        answered.set()
        return answered

    def __enter__(self) -> Scripted:
        return self

    def __exit__(self, *_: object) -> None:
        pass


MESSAGES: dict[str, Callable[[Talk], Iterator[dict[str, Any]]]] = {"sherpa": sherpa_messages, "vosk": vosk_messages}


#: Sentences, utterances that are cut only if they are too long, and utterances as they come.
WHOLE = (False, True, None)


def cut(items: Iterator[Item], whole: bool | None) -> Iterator[Item]:
    return items if whole is None else in_sentences(items, whole=whole)


def plain(text: str) -> str:
    """Letters and digits; a text without them is silence, and ends nowhere."""
    return "".join(filter(str.isalnum, text))


def check(items: Iterable[Item], talk: Talk, seed: int) -> None:
    """The final updates have every word once, in order."""
    order, made = Order(), []
    for item in items:
        assert isinstance(item, Update), (seed, item)
        order.accept(item)
        if item.final:
            made.append(item.text)
    assert all(final for _, final, _ in order._last.values()), seed
    assert plain("".join(made)) == plain("".join(talk.words)), seed


@pytest.mark.parametrize("name", MESSAGES)
def test_servers(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for seed in range(STREAMS):
        talk = Talk(random.Random(seed))
        connection = Scripted(list(MESSAGES[name](talk)), talk.random)
        monkeypatch.setattr(servers, "connect", lambda *_, made=connection, **__: made)
        server = ServerRecogniser(f"{name}:ws://test")
        connection.allowed = 1
        whole = talk.random.choice(WHOLE)
        if talk.random.random() < 0.5:
            connection.left = server.hurried
            made = cut(server.overhear(), whole)
        else:
            blocks = (np.zeros(RATE // 10, np.float32) for _ in range(len(connection.waiting) // 2 + 1))
            made = transcribe(blocks, server, None if whole is None else SentenceCutter(whole=whole))
        check(made, talk, seed)


def lines_input(talk: Talk) -> Iterator[Item]:
    """Growing texts: a line each, or as for a terminal, on which they overwrite each other."""
    random, lines = talk.random, []
    overwrites = random.random() < 0.5
    for first, last in talk.utterances():
        texts = [
            f"{talk.text(first, place)} {talk.guess() if place < last else ''}".strip()
            for _, place in talk_steps(talk, first, last)
        ]
        if overwrites:
            begin = random.choice(("\r", "\x1b[2K\r", "\x1b[2K\r   \x1b[2K\r"))
            lines.append("".join(f"{begin}{text}" for text in texts) + random.choice(("", "\x1b[0m", "\r")))
        else:
            lines += [random.choice(("", "\x1b[1m", "\x1b]0;title\x07")) + text for text in texts]
            lines.append(random.choice(("", "\r", "\u200b")))
    source = io.BytesIO("\n".join(lines).encode())
    return read_lines(source if random.random() < 0.5 else io.BufferedReader(source))


def jsonl_input(talk: Talk) -> Iterator[Item]:
    random, rows = talk.random, []
    timed = random.random() < 0.5
    for first, last in talk.utterances():
        for seq, place in talk_steps(talk, first, last):
            text = f"{talk.text(first, place)} {talk.guess() if place < last else ''}".strip()
            when = {"time": talk.ends[max(first, place - 1)]} if timed else {}
            rows.append({"utterance": f"u{first}", "seq": seq, "text": text, "final": place == last, **when})
            if place == last:
                break
    return read_jsonl(io.BytesIO("\n".join(map(json.dumps, rows)).encode()))


def text_input(talk: Talk) -> Iterator[Item]:
    text = "\n".join(talk.text(first, last) for first, last in talk.utterances())
    return read_text(io.BytesIO(text.encode()), lag=talk.random.randint(1, 5), rate=talk.random.choice((None, 2.5)))


def simulstreaming_input(talk: Talk) -> Iterator[Item]:
    rows = []
    for before, last in talk.steps(5):
        text = talk.text(before, last)
        when = talk.ends[last - 1] if last else 0.0
        rows.append({"text": text if talk.chinese or not text else f" {text}", "emission_time": when})
        if talk.random.random() < 0.2:
            rows.append({"is_final": True, "emission_time": when})
    return read_simulstreaming(io.BytesIO("\n".join(map(json.dumps, rows)).encode()))


def talk_steps(talk: Talk, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Numbers of updates, with the number of the last word of each."""
    place = first
    for seq in range(1000):
        place = min(last, place + talk.random.randint(1, 4))
        yield seq, place
        if place == last:
            return


@pytest.mark.parametrize("read", [lines_input, jsonl_input, text_input, simulstreaming_input])
def test_inputs(read: Callable[[Talk], Iterator[Item]]) -> None:
    for seed in range(STREAMS):
        talk = Talk(random.Random(seed))
        if talk.words:
            check(cut(read(talk), talk.random.choice(WHOLE)), talk, seed)
