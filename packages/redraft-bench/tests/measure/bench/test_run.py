"""Runs of a bench on the shipped model: their files, repeating them and resuming them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from redraft.backends import costs
from redraft.captions.events import Update
from redraft.captions.formats.read import prefixes
from redraft.captions.style import Style
from redraft.errors import InputError
from redraft_bench.bench.peers import PEERS
from redraft_bench.bench.results import chrf_change, finish
from redraft_bench.bench.run import Bench, BenchModels
from redraft_bench.bench.tables import TABLES, Table
from redraft_bench.eval.long_yaal import LongYaal
from redraft_bench.eval.record import read_records
from redraft_bench.eval.stream import Segment, Stream
from redraft_bench.pages.page import SHOWN

SENTENCES = (
    ("I have a small dog that sleeps all day.", "Ich habe einen kleinen Hund, der den ganzen Tag schläft."),
    ("She wants to learn how to play the piano.", "Sie will lernen, wie man Klavier spielt."),
    ("We went to the beach because it was hot.", "Wir gingen zum Strand, weil es heiß war."),
)


@pytest.fixture(scope="module", autouse=True)
def quick_curves() -> Iterator[None]:
    """Cost curves of few sizes: their times are not looked at here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(costs, "SIZES", (1, 2, 8))
        yield


MODELS = BenchModels(engine={"context_length": 256, "threads": 1})


def segment(number: int, source: str, reference: str) -> Segment:
    parts = prefixes(source, 3)
    updates = [Update(str(number), seq, part, final=seq == len(parts) - 1) for seq, part in enumerate(parts)]
    return Segment(tuple(updates), {"de": reference})


STREAM = Stream("sentences", tuple(segment(number, *pair) for number, pair in enumerate(SENTENCES)))


TABLE = Table("few", "Three lines.", ("ar", "ssbd beta=0.2", "cd"))


def bench(folder: Path, table: Table = TABLE, **changes: object) -> Bench:
    return Bench(table, changes.get("stream", STREAM), "de", MODELS, folder)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    made = bench(tmp_path_factory.mktemp("bench"))
    made.run()
    return made


def test_every_segment_is_recorded_by_every_line(done: Bench) -> None:
    records = list(read_records(done.file(".records.jsonl")))
    assert [(each.segment, each.contender) for each in records] == [
        (number, each.name) for number in range(3) for each in done.contenders
    ]
    for record in records:
        source = STREAM.segments[record.segment].source
        assert record.steps[-1].source == source
        assert record.steps[-1].final
        assert all(step.seconds >= step.model_seconds > 0 for step in record.steps)


def test_peer_opens_its_own_draft_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run needs it for the signature only."""
    monkeypatch.setitem(PEERS, "local-agreement", replace(PEERS["local-agreement"], drafts=True))
    stream = replace(STREAM, segments=STREAM.segments[:1])
    made = bench(tmp_path, replace(TABLE, lines=("ar", "local-agreement n=2")), stream=stream)
    assert [len(line.records) for line in made.run()] == [1, 1]
    assert "small:" in made.signature


def test_peers_take_the_prompt_of_a_run(tmp_path: Path) -> None:
    stream = Stream("whole", tuple(replace(each, updates=each.updates[-1:]) for each in STREAM.segments))
    table, style = Table("two", "Two lines.", ("ar", "local-agreement")), Style(prompt="Yes. {source}<2de>")
    made = Bench(table, stream, "de", MODELS, tmp_path, style=style)
    made.run()
    records = list(read_records(made.file(".records.jsonl")))
    # Methods cut off what repeats itself, which peers do not.
    begins = [
        [each.steps[-1].tokens[:4] for each in records if each.contender == name.name] for name in made.contenders
    ]
    assert begins[0] == begins[1] and len({*begins[0]}) == len(stream.segments)


def test_run_that_was_cut_off_goes_on(done: Bench, tmp_path: Path) -> None:
    def first_two(segments: Sequence[int]) -> Iterator[int]:
        yield from segments[:2]

    cut = bench(tmp_path)
    cut.run(first_two)
    with cut.file(".records.jsonl").open("a") as file:
        file.write('{"segment":2,"utterance"')  # killed while it wrote
    with cut.file(".costs.jsonl").open("a") as file:
        file.write("[0.001, 0.0")
    ran: list[int] = []

    def seen(segments: Sequence[int]) -> Iterable[int]:
        ran.extend(segments)
        return segments

    continued = bench(tmp_path)
    table = continued.run(seen)
    assert ran == [2]
    assert [len(line.records) for line in table] == [3, 3, 3]
    assert continued.curve().sizes == costs.SIZES
    whole = [each.without_times() for each in read_records(done.file(".records.jsonl"))]
    assert [each.without_times() for each in read_records(continued.file(".records.jsonl"))] == whole


def test_folder_with_another_run_is_refused(done: Bench) -> None:
    other = bench(done.folder, stream=Stream("sentences", STREAM.segments[:2]))
    with pytest.raises(InputError, match="another run"):
        other.run()


def test_passes_add_up_to_outputs(done: Bench) -> None:
    for line in done.lines():
        for step in line.steps:
            made = sum(each.accepted + 1 for each in step.passes)
            assert made + step.settled == len(step.tokens) + step.finished
            assert step.passes[0].cached + step.passes[0].new == step.prompt + step.settled + step.passes[0].nodes
    plain, drafted, kept = done.lines()
    assert all(each.nodes == 0 for step in plain.steps for each in step.passes)
    assert plain.passes > drafted.passes >= kept.passes


def test_rows_have_figures_quality_and_signature(done: Bench) -> None:
    rows, line = finish(done, done.lines())
    assert [row["method"] for row in rows] == ["ar", "ssbd", "cd"]
    assert rows[0]["speedup"] == rows[0]["pass_speedup"] == 1.0
    assert rows[2]["ne_output"] == 0.0
    assert rows[2]["draft_acceptance"] == 1.0
    assert all(0 < float(row["chrf"] or 0) <= 100 for row in rows)
    assert all(float(row["limit_distance"] or 0) > 0.5 for row in rows)
    assert f"data:sentences@{STREAM.hash}" in line
    written = [json.loads(text) for text in done.file(".rows.jsonl").read_text().splitlines()]
    assert len(written) == 4
    assert all(each["signature"] == line for each in written)
    assert written[-1]["curve"]["sizes"][0] == 1


def test_every_table_has_baseline_first_and_no_line_twice() -> None:
    for table in TABLES.values():
        found = table.contenders("de", ["demo-tiny"])
        assert (found[0].method, found[0].options) == ("ar", ())
        assert len({each.name for each in found}) == len(found)


def test_printed_table_has_the_columns_of_its_page() -> None:
    for name in SHOWN.keys() & TABLES.keys():
        assert {*SHOWN[name]} <= {*TABLES[name].columns}, name


def test_chrf_is_compared_caption_by_caption() -> None:
    references = ("eins zwei drei vier", "fünf sechs sieben acht", "neun zehn elf zwölf")
    raw = LongYaal(1, 50, 50, ("eins zwei drei", "fünf sechs", "neun zehn elf zwölf"), references)
    better = replace(raw, captions=references)
    same = {"chrf_change": 0, "chrf_change_low": 0, "chrf_change_high": 0}
    assert chrf_change(raw, raw, "de") == same
    found = chrf_change(better, raw, "de-AT")
    assert 0 <= found["chrf_change_low"] < found["chrf_change"] < found["chrf_change_high"]  # type: ignore[operator]
    assert chrf_change(raw, better, "de")["chrf_change"] == -found["chrf_change"]  # type: ignore[operator]


def test_timed_stream_without_starts_has_no_dal(tmp_path: Path) -> None:
    first = STREAM.segments[0]
    timed = replace(first, updates=tuple(replace(each, time=1.0) for each in first.updates))
    made = bench(tmp_path, replace(TABLE, columns=("dal",)), stream=replace(STREAM, segments=(timed,)))
    made.run()
    rows, _ = finish(made, made.lines())
    assert [row["dal"] for row in rows] == [None, None, None]
    assert "dal_low" not in rows[0]
