"""Streams: validation, saving and loading, and invalid files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.captions.events import Update
from redraft.cli.shared.stream import updates as updates_of
from redraft.errors import InputError
from redraft_bench.eval.stream import Segment, Stream, beside

PARTIAL, FINAL = Update("u", 0, "one", time=0.0), Update("u", 1, "one two", True, 0.5)
SEGMENT = Segment((PARTIAL, FINAL), {"de": "eins zwei"}, 0.0, 0.5, "talk")
STREAM = Stream("numbers", (SEGMENT, Segment((Update("v", 0, "three", True),))))


# --- files

TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
SPEAKERS = st.none() | st.sampled_from(["Ann", "Иван"])
TIMES = st.none() | st.floats(0, 1e6) | st.integers(0, 100)


@st.composite
def segments(draw: st.DrawFn, utterance: str) -> Segment:
    seqs = sorted(draw(st.sets(st.integers(0, 50), min_size=1, max_size=4)))
    updates = tuple(Update(utterance, seq, draw(TEXTS), seq == seqs[-1], draw(TIMES), draw(SPEAKERS)) for seq in seqs)
    start, end = draw(TIMES), draw(TIMES)
    if start is not None and end is not None:
        start, end = min(start, end), max(start, end)
    references = draw(st.dictionaries(st.sampled_from(["de", "zh", "ja"]), TEXTS, max_size=3))
    return Segment(updates, references, start, end, draw(TEXTS))


@st.composite
def streams(draw: st.DrawFn) -> Stream:
    names = draw(st.lists(TEXTS.filter(bool), min_size=1, max_size=3, unique=True))
    return Stream(draw(TEXTS), tuple(draw(segments(name)) for name in names))


@given(stream=streams())
def test_saved_stream_is_loaded_as_it_was(stream: Stream, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    stream.save(path)
    loaded = Stream.load(path)
    assert loaded == stream and hash(loaded) == hash(stream)
    assert loaded.hash == stream.hash
    with path.open("rb") as file:
        assert tuple(updates_of(file, "jsonl", None)) == stream.updates


def test_what_is_saved(tmp_path: Path) -> None:
    STREAM.save(tmp_path / "a.b.jsonl")
    assert (tmp_path / "a.b.jsonl").read_text().splitlines() == [
        '{"utterance": "u", "seq": 0, "text": "one", "final": false, "time": 0.0}',
        '{"utterance": "u", "seq": 1, "text": "one two", "final": true, "time": 0.5}',
        '{"utterance": "v", "seq": 0, "text": "three", "final": true}',
    ]
    assert [json.loads(line) for line in (tmp_path / "a.b.references.jsonl").read_text().splitlines()] == [
        {"name": "numbers"},
        {"utterance": "u", "references": {"de": "eins zwei"}, "start": 0.0, "end": 0.5, "recording": "talk"},
    ]


def test_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "own.txt"
    line = '{{"utterance": "{0}", "seq": {1}, "text": "{0}{1}", "final": {2}}}\n'
    rows = [("a", 0, "false"), ("b", 3, "true"), ("a", 1, "false"), ("c", 0, "false")]
    path.write_text("".join(line.format(*row) for row in rows))
    stream = Stream.load(str(path))
    assert stream.name == "own.txt"
    assert [segment.updates for segment in stream.segments] == [
        (Update("a", 0, "a0"), Update("a", 1, "a1"), Update("a", 2, "a1", True)),
        (Update("b", 3, "b3", True),),
        (Update("c", 0, "c0"), Update("c", 1, "c0", True)),
    ]


def test_line_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"utterance": "a", "seq": 0, "text": "x"}\n\n{"utterance": "a", "seq": 0, "text": "y"}\n')
    with pytest.raises(InputError, match=r"line 3: .*bad.jsonl: seq of utterance 'a' must be greater") as raised:
        Stream.load(path)
    assert raised.value.line == 3
    path.write_text("")
    with pytest.raises(InputError, match="the input is empty"):
        Stream.load(path)
    with pytest.raises(InputError, match="stream file '.*none.jsonl' cannot be read: No such file"):
        Stream.load(tmp_path / "none.jsonl")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "references.jsonl must have a JSON object with the name"),
        ("{", "references.jsonl must have a JSON object with the name"),
        ('{"title": "a"}', "references.jsonl must have .*'name'"),
        ('{"name": "a"}\n{"start": 1}', "references.jsonl must have .*'utterance'"),
        ('{"name": "a"}\n{"utterance": "u", "begin": 1}', "references.jsonl: .*'begin'"),
        ('{"name": "a"}\n{"utterance": "u", "start": -1}', "start must be a finite number of seconds"),
        ('{"name": "a"}\n{"utterance": "u", "references": {"de": 1}}', "references must be texts by language"),
        ('{"name": "a"}\n{"utterance": "w"}', "utterance 'w' must be one of .*stream.jsonl"),
        ('{"name": "a"}\n{"utterance": "u", "start": 2, "end": 1}', "end of utterance 'u' must be 2.0 or more"),
        ('{"name": "\xff"}', "references.jsonl must have .*utf-8"),
    ],
)
def test_bad_line_beside_stream_is_named(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "stream.jsonl"
    STREAM.save(path)
    beside(path).write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=message):
        Stream.load(path)


# --- what a stream may hold


def test_texts_and_times_are_kept_as_reader_gives_them() -> None:
    segment = Segment((Update("u", 0, " a\tb ", True, 1),), start=1, end=1)
    assert segment.updates == (Update("u", 0, "a b", True, 1.0),)
    assert [type(value) for value in (segment.updates[0].time, segment.start, segment.end)] == [float] * 3
    assert (segment.source, segment.utterance) == ("a b", "u")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"updates": ()}, "a segment must have at least one update, and only the last one must be final"),
        ({"updates": (PARTIAL,)}, "only the last one must be final"),
        ({"updates": (FINAL, replace(FINAL, seq=2))}, "only the last one must be final"),
        ({"updates": (PARTIAL, replace(FINAL, utterance="v"))}, "must have the same utterance"),
        ({"updates": (PARTIAL, replace(FINAL, seq=0))}, "a growing seq"),
        ({"start": float("nan")}, "start must be a finite number of seconds, 0 or more, or null, not NaN"),
        ({"end": "1"}, "end must be a finite number"),
        ({"start": 1}, "end of utterance 'u' must be 1.0 or more, its start, not 0.5"),
        ({"references": {"de": None}}, "references must be texts by language, not an object"),
        ({"references": None}, "references must be texts by language, not null"),
        ({"recording": None}, "recording must be a string of whole characters, not null"),
    ],
)
def test_segment_refuses(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(SEGMENT, **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"segments": ()}, "a stream must have at least one segment"),
        ({"segments": (SEGMENT, SEGMENT)}, "each with a different utterance"),
    ],
)
def test_stream_refuses(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(STREAM, **changes)


# --- the hash


@pytest.mark.parametrize(
    "changes",
    [
        {"updates": (FINAL,)},
        {"updates": (replace(PARTIAL, text="on"), FINAL)},
        {"updates": (replace(PARTIAL, time=0.25), FINAL)},
        {"updates": (replace(PARTIAL, time=None), FINAL)},
        {"updates": (PARTIAL, replace(FINAL, seq=2))},
        {"updates": (PARTIAL, replace(FINAL, speaker="Ann"))},
        {"references": {"de": "eins"}},
        {"references": {"zh": "eins zwei"}},
        {"start": None},
        {"end": 0.75},
        {"recording": ""},
    ],
)
def test_all_that_counts_is_hashed(changes: dict[str, Any]) -> None:
    changed = replace(STREAM, segments=(replace(SEGMENT, **changes), STREAM.segments[1]))
    assert changed.hash != STREAM.hash


def test_hashes_in_published_tables_stay() -> None:
    assert Stream("any", (Segment((PARTIAL, FINAL)),)).hash == "33f9740606ed"


def test_name_and_order_of_languages_are_not() -> None:
    one, other = {"de": "a", "zh": "b"}, {"zh": "b", "de": "a"}
    hashes = {
        Stream(name, (replace(SEGMENT, references=references),)).hash for name, references in [("a", one), ("b", other)]
    }
    assert len(hashes) == 1 and len(hashes.pop()) == 12
    assert replace(STREAM, segments=STREAM.segments[::-1]).hash != STREAM.hash
