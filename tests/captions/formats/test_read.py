"""Readers: what becomes an update, what becomes a failure, and that neither touches the lines around it."""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from redraft.captions.events import Failure, Update
from redraft.captions.formats.read import (
    MAX_TEXT_WORDS,
    UNGROWN,
    Item,
    decoded,
    not_empty,
    paced,
    prefixes,
    read_jsonl,
    read_lines,
    read_text,
    received,
)
from redraft.errors import OptionError
from redraft.speech.sentences import in_sentences

READERS = (read_lines, read_jsonl, read_text)


class Trickle(io.RawIOBase):
    """A source that gives one line a call, and notes how much was asked for."""

    def __init__(self, *lines: bytes) -> None:
        self.data, self.calls, self.largest = io.BytesIO(b"".join(lines)), 0, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        line = self.readline(len(buffer))
        buffer[: len(line)] = line
        return len(line)

    def readline(self, size: int | None = -1, /) -> bytes:
        assert size is not None and size > 0
        self.calls += 1
        self.largest = max(self.largest, size)
        return self.data.readline(size)


def jsonl(*lines: bytes | dict, **options: int) -> list[Item]:
    encoded = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    return list(read_jsonl(io.BytesIO(b"\n".join(encoded)), **options))


def finals(items: Iterable[Item]) -> list[str]:
    return [item.text for item in items if isinstance(item, Update) and item.final]


def line(**changes: object) -> dict:
    return {"utterance": "u", "seq": 5, "text": "hello"} | changes


# --- one hypothesis a line


def test_lines_are_partial_until_empty_line() -> None:
    assert list(read_lines(io.BytesIO(b"good\ngood evening\n\nmy name\n"))) == [
        Update("1", 0, "good"),
        Update("1", 1, "good evening"),
        Update("1", 2, "good evening", final=True),
        Update("2", 0, "my name"),
        Update("2", 1, "my name", final=True),
    ]


def test_byte_order_mark_and_crlf() -> None:
    data = "\ufeff\r\n\r\nguten Abend\r\n \t\r\n\r\n今日は".encode()
    assert list(read_lines(io.BytesIO(data))) == [
        Update("1", 0, "guten Abend"),
        Update("1", 1, "guten Abend", final=True),
        Update("2", 0, "今日は"),
        Update("2", 1, "今日は", final=True),
    ]


def test_control_characters_become_spaces() -> None:
    (first, _) = read_lines(io.BytesIO("a\x00b\x1b[2Jc\u2028d\x85e\tf\x07\n".encode()))
    assert first == Update("1", 0, "a bc d e f")


#: What programs write that redraw their line on a terminal: whisper.cpp's example, and others.
REDRAWN = {
    "It was\rIt was the best\rIt was the best of times.\n\nA": ["It was the best of times.", "A"],
    "\x1b[2K\r   \x1b[2K\rIt was\x1b[2K\r   \x1b[2K\rIt was it.\n\x1b[2K\r   \x1b[2K\rNext": ["It was it.", "Next"],
    "It was\r\x1b[1mIt was it.\x1b[0m\r\nNext\x1b]0;title\x07\r\n\r\n": ["It was it.", "Next"],
    "One\r\nOne two\r\n\r\nThree\r\r\nThree four": ["One two", "Three four"],
    "One\n\u200b\nTwo": ["One", "Two"],
    "One\n\u200f\nTwo\n\u3164 \u2067\u2069\ufe0f\nThree \u200e\n\u2800\n": ["One", "Two", "Three"],
}


@pytest.mark.parametrize("buffered", [False, True])
@pytest.mark.parametrize("data", REDRAWN)
def test_carriage_return_begins_line_again(data: str, buffered: bool) -> None:
    source = io.BytesIO(data.encode())
    items = list(read_lines(io.BufferedReader(source) if buffered else source))
    assert [item.text for item in items if isinstance(item, Update) and item.final] == REDRAWN[data]
    assert all(isinstance(item, Update) and item.text.isprintable() and "[" not in item.text for item in items)


def test_titles_that_never_end() -> None:
    began = time.process_time()
    items = list(read_lines(io.BytesIO(("\x9d" * 32_000 + "One\n\n").encode())))
    assert [item.text for item in items if isinstance(item, Update) and item.final] == ["One"]
    assert time.process_time() - began < 2


def test_redrawn_text_is_read_at_once() -> None:
    """The reader does not wait for the end of a line that is redrawn."""
    read, write = os.pipe()
    with os.fdopen(read, "rb") as source, os.fdopen(write, "wb", 0) as sink:
        items = read_lines(source)
        for text in ("It", "It was", "It was it"):
            sink.write(f"{text}\r".encode())
            assert next(items).text == text  # type: ignore[union-attr]


def test_plain_text_keeps_what_was_written_last() -> None:
    source = io.BytesIO(b"It was\rIt was the best\r\nNext\x1b[K\n\xe2\x80\x8b\n")
    items = list(read_text(source, lag=9))
    assert finals(items) == ["It was the best Next"]


def test_line_of_control_characters_is_blank() -> None:
    items = list(read_lines(io.BytesIO(b"a\n\x00\x00\nb\n")))
    assert [(item.utterance, item.final) for item in items if isinstance(item, Update)] == [
        ("1", False),
        ("1", True),
        ("2", False),
        ("2", True),
    ]


def test_broken_line_does_not_end_utterance() -> None:
    items = list(read_lines(io.BytesIO(b"one\n\xff\none two\n\n")))
    assert items[0] == Update("1", 0, "one")
    assert isinstance(items[1], Failure) and items[1].line == 2
    assert items[2:] == [Update("1", 1, "one two"), Update("1", 2, "one two", final=True)]


# --- JSON Lines


def test_jsonl_reads_all_fields_and_their_defaults() -> None:
    assert jsonl(
        {"utterance": 7, "seq": 0, "text": " gut\t", "time": 1},
        b"   ",
        {"time": None, "final": True, "text": "gut", "seq": 4, "utterance": "7"},
        {"utterance": -1, "seq": 0, "text": ""},
    ) == [Update("7", 0, "gut", False, 1.0), Update("7", 4, "gut", True), Update("-1", 0, "")]


def test_jsonl_utterances_may_alternate() -> None:
    updates = jsonl(line(utterance="a", seq=3), line(utterance="b", seq=0), line(utterance="a", seq=4))
    assert [(item.utterance, item.seq) for item in updates if isinstance(item, Update)] == [
        ("a", 3),
        ("b", 0),
        ("a", 4),
    ]


def test_what_end_of_input_leaves_open_is_ended() -> None:
    items = jsonl(line(utterance="a", seq=3, time=1.5), line(utterance="b", final=True), line(utterance="c"), b"{")
    found = [
        replace(each, start=None) if isinstance(each, Update) else each for each in in_sentences(items, whole=True)
    ]
    assert found == [*items, Update("a", 4, "hello", True, 1.5), Update("c", 6, "hello", True)]


def test_last_of_repeated_key_counts() -> None:
    (update,) = jsonl(b'{"utterance":"u","seq":1,"text":"a","text":"b\\u0000c"}')
    assert update == Update("u", 1, "b c")


#: Lines that cannot be used, each with the key parts of the sentence it gives.
MALFORMED: list[tuple[str, bytes | dict, tuple[str, ...]]] = [
    ("broken JSON", b'{"utterance": "u", "seq": 5,', ("not valid JSON", "at character 29")),
    ("no JSON", b"hello there", ("not valid JSON", "character 1")),
    ("two objects", b'{"utterance":"u"} {}', ("not valid JSON: Extra data",)),
    ("NUL in the line", b'{"utterance":\x00}', ("not valid JSON",)),
    ("raw control character", b'{"utterance":"u","seq":5,"text":"a\x01b"}', ("Invalid control character",)),
    (
        "list",
        b"[1, 2]",
        (
            "must be a JSON object with utterance, seq, text",
            "speaker, committed, goes_on, language, start, type, not a list",
        ),
    ),
    ("string", b'"hello"', ("must be a JSON object", 'not "hello"')),
    ("null", b"null", ("must be a JSON object", "not null")),
    ("empty object", b"{}", ("utterance, seq, text must be given",)),
    ("utterance missing", {"seq": 5, "text": "a"}, ("utterance must be given: an update needs utterance, seq, text",)),
    ("seq missing", {"utterance": "u", "text": "a"}, ("seq must be given",)),
    ("text missing", {"utterance": "u", "seq": 5}, ("text must be given",)),
    (
        "typo",
        line(utterence="u"),
        (
            '"utterence" is not known: allowed are utterance, seq, text, final, time, speaker, committed, goes_on, '
            "language, start, type",
        ),
    ),
    ("utterance null", line(utterance=None), ("utterance must be a non-empty string or a whole number, not null",)),
    ("utterance empty", line(utterance=""), ("utterance must be", 'not ""')),
    ("utterance boolean", line(utterance=True), ("utterance must be", "not true")),
    ("utterance fraction", line(utterance=1.5), ("utterance must be", "not 1.5")),
    ("utterance half a pair", b'{"utterance":"\\ud83d","seq":1,"text":""}', ("utterance must be", '"\\ud83d"')),
    ("seq negative", line(seq=-1), ("seq must be a whole number of 0 or more, not -1",)),
    ("seq fraction", line(seq=5.0), ("seq must be", "not 5.0")),
    ("seq string", line(seq="5"), ("seq must be", 'not "5"')),
    ("seq boolean", line(seq=True), ("seq must be", "not true")),
    ("text number", line(text=5), ("text must be a string of whole characters, not 5",)),
    ("text list", line(text=["a"]), ("text must be a string", "not a list")),
    ("text half a pair", b'{"utterance":"u","seq":5,"text":"\\udc00"}', ("text must be", '"\\udc00"')),
    ("final number", line(final=1), ("final must be true or false, not 1",)),
    ("final null", line(final=None), ("final must be true or false, not null",)),
    ("time negative", line(time=-0.5), ("time must be a finite number of seconds, 0 or more, or null, not -0.5",)),
    ("time NaN", b'{"utterance":"u","seq":5,"text":"a","time":NaN}', ("time must be", "not NaN")),
    ("time infinite", b'{"utterance":"u","seq":5,"text":"a","time":1e999}', ("time must be", "not Infinity")),
    ("time beyond floats", line(time=10**400), ("time must be a finite number", "...")),
    ("time string", line(time="1.5"), ("time must be", 'not "1.5"')),
    ("time boolean", line(time=False), ("time must be", "not false")),
    ("invalid UTF-8", b'{"utterance":"\xff\xfe"}', ("must be UTF-8", "byte 0xff at offset 14")),
    ("Latin-1", "{'Grüße".encode("latin-1"), ("must be UTF-8", "byte 0xfc at offset 4")),
    ("UTF-16", '{"a"'.encode("utf-16"), ("must be UTF-8", "byte 0xff at offset 0")),
    ("too long", b'{"text":"' + b"x" * 70_000, ("the line is longer than 65536 bytes and was skipped",)),
    ("a megabyte", b"\xff" * 1_000_000, ("longer than 65536 bytes",)),
    ("deep nesting", b"[" * 65_000, ("nested too deeply",)),
    ("endless number", b'{"seq":' + b"9" * 5_000 + b"}", ("a number is too long",)),
    ("seq repeated", line(utterance="before", seq=3), ("seq of utterance 'before' must be greater", "one, 3, not 3")),
    ("seq backwards", line(utterance="before", seq=2), ("must be greater than its last one, 3, not 2",)),
    ("a long name", line(utterance="n" * 60_000, sec=1), ('"sec" is not known',)),
    ("a long unknown field", line(**{"n" * 60_000: 1}), ('the field "nnn', "... is not known")),
    ("after the final", line(utterance="ended", seq=9), ("utterance 'ended' is final already",)),
]


@pytest.mark.parametrize(("bad", "parts"), [case[1:] for case in MALFORMED], ids=[case[0] for case in MALFORMED])
def test_malformed_line(bad: bytes | dict, parts: tuple[str, ...]) -> None:
    before = [line(utterance="ended", final=True), line(utterance="before", seq=3)]
    after = [line(utterance="before", seq=4, final=True), line(utterance="after")]
    items = jsonl(*before, bad, *after)
    assert [item.utterance for item in items if isinstance(item, Update)] == ["ended", "before", "before", "after"]
    failure = items[2]
    assert isinstance(failure, Failure)
    assert failure.line == 3
    assert all(part in failure.message for part in parts), failure.message
    assert failure.message.isprintable() and len(failure.message) < 200


def test_failure_of_order_names_utterance_and_seq() -> None:
    failure = jsonl(line(seq=5), line(seq=4))[1]
    assert isinstance(failure, Failure) and (failure.utterance, failure.seq, failure.line) == ("u", 4, 2)


def test_long_names_and_numbers_are_cut_short_in_messages() -> None:
    failure = jsonl(line(utterance="n" * 9_000, seq=10**4_000), line(utterance="n" * 9_000, seq=3))[1]
    assert isinstance(failure, Failure) and failure.utterance == "n" * 9_000
    assert "must be greater than its last one, 1000" in failure.message and len(failure.message) < 200


def test_update_refused_for_its_order_does_not_count() -> None:
    items = jsonl(line(seq=5), line(seq=4, final=True), line(seq=6))
    assert items[2] == Update("u", 6, "hello")


# --- plain text


def test_text_reveals_lag_words_at_time() -> None:
    assert list(read_text(io.BytesIO(b"one two three four. Five\n\n \nsix"), lag=3)) == [
        Update("1", 0, "one two three"),
        Update("1", 1, "one two three four.", final=True),
        Update("2", 0, "Five", final=True),
        Update("3", 0, "six", final=True),
    ]


def test_sentence_goes_on_in_next_line() -> None:
    updates = list(read_text(io.BytesIO(b"It was\nthe best. It\nwas"), lag=3))
    assert [(item.utterance, item.seq, item.text, item.final) for item in updates if isinstance(item, Update)] == [
        ("1", 0, "It was the", False),
        ("1", 1, "It was the best.", True),
        ("2", 0, "It was", True),
    ]


TEXT = ["We", "I", "Her.", "Why?", "Mr.", "3.5", "今日は。", "♪", "(Music)", "[Sic]", "5"]


@given(st.lists(st.sampled_from(TEXT), min_size=1, max_size=30), st.randoms(), st.booleans(), st.integers(1, 4))
def test_text_is_complete_whatever_its_lines(words: list[str], random: Random, by_line: bool, lag: int) -> None:
    text = "".join(word + random.choice((" ", " ", "\n", "\r\n", "\n\n")) for word in words)
    items = list(read_text(io.BytesIO(text.encode()), lag=lag, by_line=by_line))
    assert "".join("".join(finals(items)).split()) == "".join(words)
    if by_line:
        assert finals(items) == [line.strip() for line in text.splitlines() if line.strip()]
    elif "\n\n" not in text:  # lines say nothing, but no space is added between two with Chinese or Japanese
        in_one_line = finals(list(read_text(io.BytesIO(" ".join(words).encode()))))
        assert ["".join(each.split()) for each in finals(items)] == ["".join(each.split()) for each in in_one_line]


def test_text_in_one_line() -> None:
    """A talk of hours; longer ones are refused."""
    items = list(read_text(io.BytesIO(b"We go home. " * 50_000), lag=100))
    assert finals(items) == ["We go home."] * 50_000
    (failure,) = read_text(io.BytesIO(b"We go home. " * 100_000))
    assert isinstance(failure, Failure) and "longer than 1048576 bytes" in failure.message


@pytest.mark.parametrize("by_line", [False, True])
def test_text_without_end(by_line: bool) -> None:
    items = list(read_text(io.BytesIO(b"word " * 1200 + b"\nword"), lag=100, by_line=by_line))
    counts = [len(text.split()) for text in finals(items)]
    assert counts == ([500, 500, 200, 1] if by_line else [500, 500, 201]) and MAX_TEXT_WORDS == 500


def test_text_with_rate_has_times() -> None:
    items = list(read_text(io.BytesIO(b"a b c\nd\n"), lag=2, rate=2, by_line=True))
    assert [item.time for item in items if isinstance(item, Update)] == [1.0, 1.5, 2.0]


def test_prefixes_of_text_without_spaces_go_by_character() -> None:
    assert prefixes("今日は、いい天気。", 4) == ["今日は、", "今日は、いい天気", "今日は、いい天気。"]
    assert prefixes("我用 iPhone 15。", 2) == ["我用", "我用 iPhone 15", "我用 iPhone 15。"]
    assert prefixes("か\u3099き", 1) == ["か\u3099", "か\u3099き"]
    assert prefixes("안녕하세요 여러분", 1) == ["안녕하세요", "안녕하세요 여러분"]


@given(st.text(alphabet="ab 今日。\u3099\n", max_size=40), st.integers(1, 6))
def test_prefixes_grow_to_whole_text(text: str, lag: int) -> None:
    found = prefixes(text, lag)
    assert bool(found) == bool(text.strip())
    assert not found or found[-1] == text.strip()
    assert all(longer.startswith(shorter) and longer != shorter for shorter, longer in pairwise(found))
    if text.isascii():
        assert [len(prefix.split()) for prefix in found[:-1]] == [lag * (n + 1) for n in range(len(found) - 1)]


@pytest.mark.parametrize("lag", [0, -1, 2.5, True])
def test_lag_out_of_range(lag: int) -> None:
    with pytest.raises(OptionError, match="lag must be a whole number of 1 or more, not"):
        prefixes("a", lag)


# --- all readers


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf", b"\n\r\n", b"  \t"])
def test_empty_input_is_one_failure(reader: type, data: bytes) -> None:
    assert list(not_empty(reader(io.BytesIO(data)))) == [
        Failure("the input is empty: at least one line of text was expected")
    ]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_longest_line(end: bytes) -> None:
    assert list(decoded(io.BytesIO(b"x" * 10 + end).readline, 10)) == [(1, "x" * 10, True)]
    assert list(decoded(io.BytesIO(b"x" * 11 + end).readline, 10)) == [
        (1, Failure("the line is longer than 10 bytes and was skipped", 1), True)
    ]


def test_long_line_in_bounded_memory() -> None:
    source = Trickle(b"y" * 100_000 + b"\n", b"after\n")
    lines = decoded(source.readline, 100)
    assert isinstance(next(lines)[1], Failure) and source.calls == 1
    assert next(lines) == (2, "after", True)
    assert source.largest <= 102


@pytest.mark.parametrize("reader", [read_lines, read_text])
def test_broken_line_is_named_by_number_and_offset(reader: type) -> None:
    items = list(reader(io.BytesIO("\ufeffgut\n\n\nab\u00fc".encode() + b"\xc3\nende\n")))
    failures = [item for item in items if isinstance(item, Failure)]
    assert failures == [Failure("the line must be UTF-8, but byte 0xc3 at offset 4 of the line is not", 4)]
    assert [item.text for item in items if isinstance(item, Update) and item.final] == ["gut", "ende"]


def test_nothing_is_read_ahead() -> None:
    source = Trickle(b"one\n", b"one two\n", b"\n", b"two\n")
    items = read_lines(source)
    assert source.calls == 0
    for calls, text in enumerate(["one", "one two", "one two", "two"], 1):
        item = next(items)
        assert isinstance(item, Update) and (item.text, source.calls) == (text, calls)


@given(st.lists(st.binary(max_size=60), max_size=8))
def test_no_bytes_raise_or_disturb_their_neighbours(lines: list[bytes]) -> None:
    junk = b"\n".join(data.replace(b"\n", b"") for data in lines)
    items = list(read_text(io.BytesIO(b"first line\n" + junk + b"\nlast line")))
    assert finals(items)[0].startswith("first line") and finals(items)[-1].endswith("last line")
    numbers = [item.line for item in items if isinstance(item, Failure)]
    assert numbers == sorted(numbers, key=lambda number: number or 0)
    list(read_lines(io.BytesIO(junk)))
    found = jsonl(line(utterance="first"), junk, line(utterance="last"))
    assert [item.utterance for item in found if isinstance(item, Update)] == ["first", "last"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@given(st.fixed_dictionaries(dict.fromkeys(("utterance", "seq", "text", "final", "time"), VALUES)))
def test_any_object(fields: dict) -> None:
    (item,) = jsonl(fields)
    if isinstance(item, Update):
        assert json.loads(json.dumps([item.text, item.seq, item.final, item.time], allow_nan=False))
        assert item.text.encode() is not None and item.seq >= 0 and item.utterance
    else:
        assert item.message.split()[0] in fields


# --- pace


def test_paced_waits_for_each_time_and_not_for_what_is_late() -> None:
    now = [100.0]
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        now[0] += seconds

    failure = Failure("x", 1)
    items: list[Item] = [Update("1", 0, "a", time=1.5), failure, Update("1", 1, "b", time=2.0), Update("1", 2, "c")]
    passed = []
    for item in paced(items, lambda: now[0], sleep):
        passed.append((item, now[0]))
        now[0] += 1.0 if item is failure else 0.0
    assert waits == [1.5]
    assert [at for _, at in passed] == [101.5, 101.5, 102.5, 102.5]
    assert [item for item, _ in passed] == items


def test_paced_at_twice_the_speed() -> None:
    waits: list[float] = []
    clock = lambda: sum(waits)  # noqa: E731
    assert len([*paced([Update("1", 0, "a", time=2.0), Update("2", 0, "b", time=3.0)], clock, waits.append, speed=2)])
    assert waits == [1.0, 0.5]


def test_paced_never_asks_for_sleep_that_overflows() -> None:
    now, waits = [0.0], []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        now[0] += 1e9

    assert list(paced([Update("1", 0, "a", time=1e9)], lambda: now[0], sleep))
    assert waits == [3600.0]


SENTENCES = ["Good morning.", "I have a dog.", "I have a cat.", "No.", "Yes.", "it rained", "犬を飼っています。"]


@given(st.lists(st.sampled_from(SENTENCES), min_size=2, max_size=2 * UNGROWN), st.sampled_from(["", "\n", "\n\n"]))
def test_list_of_sentences_is_reported(lines: list[str], end: str) -> None:
    """No line of it ends an utterance: this is reported once, after some lines or at the end of fewer."""
    lines = [line for line, before in zip(lines, [None, *lines], strict=False) if line != before]
    assume(len(lines) > 1)
    items = list(read_lines(io.BytesIO(("\n".join(lines) + end).encode())))
    failures = [item for item in items if isinstance(item, Failure)]
    if end == "\n\n" and len(lines) < UNGROWN:  # a program that ends its utterances
        assert failures == []
        return
    (failure,) = failures
    assert "use --input text" in failure.message and failure.message.startswith(f"{min(len(lines), UNGROWN)} lines")
    assert failure.line == (UNGROWN if len(lines) >= UNGROWN else None)


@given(st.lists(st.lists(st.sampled_from("we saw her duck under it".split()), min_size=1), min_size=1, max_size=4))
def test_growing_lines_stay_together(utterances: list[list[str]]) -> None:
    """A recogniser's lines, the last word of which it may revise, are one utterance up to each blank line."""
    text = ""
    for words in utterances:
        for count in range(1, len(words) + 1):
            text += " ".join([*words[: count - 1], "doc"]) + "\n" + " ".join(words[:count]) + "\n"
        text += "\n"
    for source in (io.BytesIO(text.encode()), io.BufferedReader(io.BytesIO(text.encode()))):
        items = list(read_lines(source))
        assert finals(items) == [" ".join(words) for words in utterances]
        assert not any(isinstance(item, Failure) for item in items)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[BLANK_AUDIO]", ""),
        (" [ Silence ] (upbeat music)", ""),
        ("[MUSIC PLAYING]", ""),
        ("(soft music) *typing*", ""),
        ("♪", ""),
        ("♪♪", ""),
        ("...", ""),
        ("[音楽]", ""),
        ("（音楽）", ""),
        ("【拍手】", ""),
        ("[음악]", ""),
        ("[Музыка]", ""),
        ("(拍手)", ""),
        ("[laughing out loud] ♪ (applause)", ""),
        ("♪ We all live in a yellow submarine ♪", "♪ We all live in a yellow submarine ♪"),
        ("♪ 音楽 ♪", "♪ 音楽 ♪"),
        ("*laughs*", ""),
        ("[Musik] (Applaus)", ""),
        ("<|nospeech|>", ""),
        ("<|0.00|> I have a dog.<|3.00|>", "I have a dog."),
        ("[BLANK_AUDIO] I have a dog.", "I have a dog."),
        ("I like (loud) music.", "I like (loud) music."),
        ("(music) I have a dog.", "(music) I have a dog."),
        ("(((((", ""),
        ("((1) 2", "((1) 2"),
    ],
)
def test_what_is_written_for_silence(text: str, words: str) -> None:
    assert received(text) == words
    items = list(read_lines(io.BytesIO(f"{text}\n".encode())))
    # A line that says nothing is as if it were not there; otherwise its words are not looked at.
    assert [item.text for item in items if isinstance(item, Update)] == ([text.strip()] * 2 if words else [])


def test_silence_takes_no_sentence() -> None:
    items = list(read_lines(io.BytesIO("We saw\n♪\nWe saw her\n[音楽]\n\n♪\nduck\n".encode())))
    assert finals(items) == ["We saw her", "duck"]
