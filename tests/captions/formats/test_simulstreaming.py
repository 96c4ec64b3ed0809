"""SimulStreaming's rows: what its recogniser prints, as updates."""

from __future__ import annotations

import io
import json
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.captions.events import Failure, Update
from redraft.captions.formats.read import Item, read_simulstreaming, received
from redraft.cli.shared.options import INPUTS
from redraft.cli.shared.stream import updates as updates_of


def read(*rows: dict | bytes) -> list[Item]:
    lines = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in rows]
    return list(read_simulstreaming(io.BytesIO(b"\n".join(lines))))


def row(new: str, time: float = 1.0, **more: object) -> dict:
    """A row of the recogniser."""
    return {"start": 0, "end": 0.7, "text": new, "tokens": [400], "words": [], "emission_time": time, **more}


def test_text_of_recogniser_is_what_is_new() -> None:
    assert read(row(" And so", 1.5), row(",", 2.5), row(" my fellow", 3), row(" Americans.", 4, is_final=True)) == [
        Update("1", 0, "And so", time=1.5),
        Update("1", 1, "And so,", time=2.5),
        Update("1", 2, "And so, my fellow", time=3.0),
        Update("1", 3, "And so, my fellow Americans.", final=True, time=4.0),
    ]


def test_final_row_without_text() -> None:
    pause = {"is_final": True, "emission_time": 3}
    assert read(pause, row(" one", 1), pause, pause, row(" two", 4, is_final=False)) == [
        Update("1", 0, "one", time=1.0),
        Update("1", 1, "one", final=True, time=3.0),
        Update("2", 0, "two", time=4.0),
        Update("2", 1, "two", final=True, time=4.0),
    ]


def test_no_space_comes_between_chinese_or_japanese_characters() -> None:
    items = read(row("今日は"), row("いい"), row("天気。", is_final=True))
    assert [item.text for item in items if isinstance(item, Update)] == ["今日は", "今日はいい", "今日はいい天気。"]


def test_zero_is_time_and_null_no_status() -> None:
    assert read(row(" a", 0, status=None))[0] == Update("1", 0, "a", time=0.0)


def test_control_characters_become_spaces() -> None:
    assert read(row(" a\tb\x1b[2J", is_final=True)) == [Update("1", 0, "a b [2J", final=True, time=1.0)]


BAD: list[tuple[bytes | dict, str]] = [
    (b"{", "the line is not valid JSON: Expecting property name enclosed in double quotes at character 2"),
    (b"[]", "the line must be a JSON object with emission_time, status, text, is_final, not a list"),
    (b"\xff", "the line must be UTF-8, but byte 0xff at offset 0 of the line is not"),
    ({"text": " a"}, "emission_time must be given: a row needs emission_time"),
    ({"emission_time": 1}, "text must be given unless is_final is"),
    (row(" a", -1), "emission_time must be a finite number of seconds, 0 or more, not -1"),
    (row(" a", emission_time=None), "emission_time must be a finite number of seconds, 0 or more, not null"),
    (
        row(" a", float("inf")),
        "emission_time must be a finite number of seconds, 0 or more, not Infinity",
    ),
    (row(" a", status="COMPLETE"), 'status must be null, as in the rows of the recogniser, not "COMPLETE"'),
    (row(" a", text=1), "text must be a string of whole characters, not 1"),
    (row(" a", text="\ud800"), 'text must be a string of whole characters, not "\\ud800"'),
    (row(" a", is_final=1), "is_final must be true or false, not 1"),
]


@pytest.mark.parametrize(("bad", "message"), BAD)
def test_bad_row_is_one_failure_and_loses_nothing_around_it(bad: bytes | dict, message: str) -> None:
    assert read(row(" one"), bad, b"", row(" two", is_final=True)) == [
        Update("1", 0, "one", time=1.0),
        Failure(message, 2),
        Update("1", 1, "one two", final=True, time=1.0),
    ]


def test_it_is_form_of_command_line() -> None:
    assert "simulstreaming" in INPUTS
    line = json.dumps(row(" a", is_final=True)).encode()
    assert list(updates_of(io.BufferedReader(io.BytesIO(line)), "simulstreaming", None)) == [
        Update("1", 0, "a", final=True, time=1.0)
    ]


@given(
    st.lists(st.lists(st.sampled_from([" a", "b", " c d", ",", ""]), min_size=1, max_size=5), min_size=1, max_size=4)
)
def test_nothing_that_is_confirmed_is_lost(utterances: list[list[str]]) -> None:
    rows = [row(text, is_final=number == len(texts) - 1) for texts in utterances for number, text in enumerate(texts)]
    items = [item for item in read(*rows) if isinstance(item, Update)]
    spoken = [[received(text) for text in accumulate(texts)] for texts in utterances]
    assert [item.text for item in items if item.final] == [texts[-1] for texts in spoken if texts[-1]]
    assert [item.text for item in items] == [text for texts in spoken for text in texts if text]
