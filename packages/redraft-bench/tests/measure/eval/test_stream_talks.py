"""Talks with times: transcripts of ACL 60/60, and a recogniser's output of one talk."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from redraft.captions.events import Update
from redraft.errors import InputError, OptionError
from redraft_bench.bench.data import RECOGNISED as STREAMS
from redraft_bench.bench.data import open_stream
from redraft_bench.eval.stream import Stream
from redraft_bench.eval.talks import RECOGNISED, recogniser_stream, talk_stream


@pytest.fixture(autouse=True)
def data(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRAFT_DATA", str(data_dir))


def test_all_talks() -> None:
    stream = talk_stream()
    assert (stream.name, len(stream.segments)) == ("acl6060.talks", 468)
    assert len({segment.recording for segment in stream.segments}) == 5
    assert all(set(segment.references) == {"de", "zh", "ja"} for segment in stream.segments)
    assert stream.hash == talk_stream().hash != talk_stream(lag=4).hash


def test_words_are_spread_over_their_segment_by_characters() -> None:
    segment = next(each for each in talk_stream(languages=["German"]).segments if each.recording == RECOGNISED)
    assert (segment.start, segment.end, segment.recording) == (0.583, 3.533, RECOGNISED)
    assert segment.references == {"de": "Hallo, ich bin Jiawei Zhou von der Harvard University."}
    assert segment.updates[0] == Update("0", 0, "Hello, this is", False, round(0.583 + 2.95 * 14 / 51, 3))
    assert segment.updates[-1].time == segment.end
    assert segment.source == "Hello, this is Jiawei Zhou from Harvard University."


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lag": -1}, "lag must be a whole number of 0 or more, not -1"),
        ({"limit": -1}, "limit must be a whole number of 0 or more, not -1"),
        ({"languages": ["xx"]}, "target language 'xx' is not known"),
    ],
)
def test_options_out_of_range(options: dict, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        talk_stream(**options)


def test_data_that_are_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"acl6060.dev.fr.txt does not exist"):
        talk_stream(languages=["fr"])
    monkeypatch.setenv("REDRAFT_DATA", str(tmp_path))
    for make in (talk_stream, recogniser_stream):
        with pytest.raises(InputError, match="does not exist: set REDRAFT_DATA"):
            make()


# --- the recogniser

recognised = cache(recogniser_stream)


@cache
def talk() -> Stream:
    """The talk of the recogniser, as it is written."""
    stream = talk_stream()
    return replace(stream, segments=tuple(each for each in stream.segments if each.recording == RECOGNISED))


def test_recognisers_lines_are_utterances() -> None:
    stream = recognised()
    assert (stream.name, len(stream.segments)) == (f"acl6060.talks.{RECOGNISED}.asr", 101)
    assert stream.segments[0].updates == (
        Update("0", 0, "Hello, this is", False, 2.6),
        Update("0", 1, "Hello, this is Jiawei Zhou from Harvard", False, 4.44),
        Update("0", 2, "Hello, this is Jiawei Zhou from Harvard University.", True, 6.28),
    )
    # The rest of the same line is the next utterance, at the same time.
    assert stream.segments[1].updates[0] == Update("1", 0, "I am very glad to present our", False, 6.28)
    # A mark that comes alone ends the utterance.
    (asked,) = (segment for segment in stream.segments if segment.source.startswith("In this talk, we ask"))
    assert asked.updates[-1].text == asked.updates[-2].text + "?"
    times = [update.time for update in stream.updates if update.time is not None]
    assert len(times) == len(stream.updates) and times == sorted(times)


def test_nothing_that_was_recognised_is_lost(data_dir: Path) -> None:
    output = (data_dir / f"asr/ufal-asr_latency.candidate.{RECOGNISED}.txt").read_text()
    said = "".join(line.split(" ", 3)[3] for line in output.splitlines())
    stream = recogniser_stream(languages=[])
    assert " ".join(segment.source for segment in stream.segments).split() == said.split()


def _references(stream: Stream) -> list[str]:
    return [segment.references["de"] for segment in stream.segments if segment.references]


def test_every_reference_is_given_once_and_in_order() -> None:
    stream, spoken = recognised(), talk()
    assert " ".join(_references(stream)) == " ".join(_references(spoken))
    spans = [(each.start, each.end) for each in stream.segments if each.start is not None and each.end is not None]
    assert (spans[0][0], spans[-1][1]) == (0.583, 700.516)
    assert all(before[0] < after[0] for before, after in pairwise(spans))


def test_references_are_those_of_what_was_said() -> None:
    segments = recognised().segments
    assert segments[1].references == talk().segments[1].references
    joined = segments[5]  # "Under the hood, ..." is two sentences of the set
    assert joined.references["de"].endswith(
        "übersetzt. Dieses wird dann ausgeführt, damit das System richtig reagieren kann."
    )
    assert "翻訳されます。そして、" in joined.references["ja"]
    assert (joined.start, joined.end) == (32.175, 42.252)
    # Of a sentence that the recogniser cut in two, the greater part has the reference, be it the first or the second.
    without = [segment for segment in segments if not segment.references]
    assert [segment.source for segment in without] == [
        "And next node, next edge.",
        "There are also some functions on which we gain.",
    ]
    assert all((segment.start, segment.end) == (None, None) for segment in without)


def test_real_voice_recognised() -> None:
    made = open_stream("dickens", "de")
    assert made.name == "dickens" and len(made.segments) == 12
    assert all(segment.updates[-1].final for segment in made.segments)
    texts = [update.text for update in made.segments[0].updates]
    assert len(texts) == 10 and not texts[-1].startswith(texts[0])  # it is revised
    assert len(open_stream("dickens", "de", limit=2).segments) == 2


def test_recognised_streams_have_ends_of_words() -> None:
    for name in STREAMS:
        made = open_stream(name, "de")
        assert all(segment.ends for segment in made.segments if segment.source), name


def test_options_without_effect_are_refused(tmp_path: Path) -> None:
    mine = tmp_path / "mine.jsonl"
    mine.write_text('{"utterance": "0", "seq": 0, "text": "One two.", "final": true}\n')
    for name in ("talk", str(mine), "recogniser"):
        with pytest.raises(OptionError, match="least_words is for test sets"):
            open_stream(name, "de", least_words=5)
