"""Replayed passes: the same cached and new ids as recorded, the right times in the right rows."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from measure.bench.passes import AR, DRAFTED, ONE_BY_ONE, SSBD, record
from redraft.backends.llama_context import Feed, LlamaContext
from redraft.backends.llamacpp import LlamaCpp, LlamaOptions
from redraft.backends.machine import processor
from redraft.backends.numpy_rows import Matrix, NumpyRows
from redraft.captions.events import Update
from redraft.decoding.display import Display
from redraft.decoding.types import ROOT, Draft, Provenance, Score, common_prefix
from redraft.models import shipped_path
from redraft_bench.bench.recording import Recording, read_recording
from redraft_bench.bench.replay import FIELDS, Player, replay, rows, signature
from redraft_bench.eval.contender import Contender
from redraft_bench.eval.measure import compare, open_runs
from redraft_bench.eval.meter import Meter
from redraft_bench.eval.record import PassRecord, Record, write_records
from tests.fakes import RandomModel


class Timed(RandomModel):
    """A backend whose passes take 2 + new seconds by its own clock, and which counts as its cache has it."""

    def __init__(self) -> None:
        super().__init__()
        self.vocabulary_size, self.now = 3, 0.0
        self.passes: list[PassRecord] = []
        self.asked: list[Score] = []
        self._held: dict[int, tuple[int, ...]] = {}

    def open_slot(self) -> int:
        slot = super().open_slot()
        self._held[slot] = ()
        return slot

    def score(self, requests: Any) -> Any:
        ((slot, score),) = requests
        cached = min(common_prefix(self._held[slot], score.prefix), len(score.prefix) - score.prompt_rows)
        nodes = len(score.draft)
        new = len(score.prefix) - cached + nodes
        self.now += 2 + new
        self._held[slot] = score.prefix + score.draft.tokens
        self.asked.append(score)
        self.passes.append(PassRecord(cached, new, nodes, nodes, 0, score.prompt_rows))
        return [NumpyRows(np.zeros((score.prompt_rows + nodes, 3), np.float32), score.prompt_rows - 1)]


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Timed:
    made = Timed()
    monkeypatch.setattr(time, "perf_counter", lambda: made.now)
    return made


def recording(*records: Record) -> Recording:
    found: dict[str, list[Record]] = {}
    for each in records:
        found.setdefault(each.contender, []).append(each)
    return Recording(found)


def shape_of(each: PassRecord) -> tuple[int, ...]:
    return each.cached, each.new, each.nodes, each.prompt_rows


@st.composite
def requests(draw: st.DrawFn) -> list[Score]:
    """Requests of one slot that share beginnings and follow branches of the trees before them."""
    ids, made = st.integers(0, 2), []
    line: list[int] = []
    for _ in range(draw(st.integers(1, 12))):
        prefix = [*line[: draw(st.integers(0, len(line)))], *draw(st.lists(ids, min_size=1, max_size=6))]
        parents = [draw(st.integers(ROOT, node - 1)) for node in range(draw(st.integers(0, 5)))]
        draft = Draft(tuple(draw(ids) for _ in parents), tuple(parents), (Provenance.MODEL,) * len(parents))
        made.append(Score(tuple(prefix), draft, draw(st.integers(1, len(prefix)))))
        node, path = len(parents) - 1, list[int]()
        while node != ROOT:
            path.insert(0, draft.tokens[node])
            node = draft.parents[node]
        line = prefix + path
    return made


class TestPasses:
    @given(requests(), st.integers(0, 9))
    def test_ids_cached_and_new(self, asked: list[Score], seed: int) -> None:
        meter = Meter()
        for score in asked:
            meter([(0, score)], 0.0)
        passes = meter.take(len(asked[-1].prefix), 0, True)[0]
        backend = Timed()
        Player(backend, random.Random(seed)).play(record(AR, 0, (0, passes[:1]), (0, passes[1:])))
        assert [shape_of(each) for each in backend.passes] == [shape_of(each) for each in passes]

    def test_cached_by_earlier_segments(self, backend: Timed) -> None:
        played = Player(backend, random.Random(0)).play(record(AR, 7, (1, [PassRecord(6, 4, 0, 0, 0)])))
        assert [shape_of(each)[:2] for each in backend.passes] == [(0, 6), (6, 4)]
        assert played.steps[0].seconds == 2 + 4

    def test_segment_finds_nothing_of_one_before_it(self, backend: Timed) -> None:
        player = Player(backend, random.Random(0))
        for segment in range(2):
            player.play(record(AR, segment, *ONE_BY_ONE))
        assert backend.passes[:8] == backend.passes[8:]

    def test_all_but_times_is_as_recorded(self, backend: Timed) -> None:
        before = record(SSBD, 3, *DRAFTED)
        after = Player(backend, random.Random(0)).play(before)
        assert after.without_times() == before.without_times()
        assert [step.seconds for step in after.steps] == [21, 7 + 3]


class TestRows:
    def test_figures_of_model_with_known_costs(self, backend: Timed) -> None:
        played, curve = replay(backend, recording(record(AR, 0, *ONE_BY_ONE), record(SSBD, 0, *DRAFTED)))
        assert (curve(1), curve(50)) == (3, 52)
        first, second = rows(played, curve)
        # T(10) + 3 T(1), T(2) + 3 T(1); at best T(13), T(5).
        assert first["seconds"] == 12 + 9 + 4 + 9
        assert first["tokens_per_second"] == round(6 / 34, 1)
        assert first["limit_distance"] == round(34 / (15 + 7), 3)
        assert first["speedup"] == first["speedup_median"] == 1
        assert second["seconds"] == 12 + 9 + 7 + 3
        assert second["speedup"] == second["speedup_median"] == round(34 / 31, 3)
        assert second["limit_distance"] == round(31 / 22, 3)
        names = [[row[name] for name in ("replay", "method", "options", "target_language")] for row in (first, second)]
        assert names == [[True, "ar", "", "de"], [True, "ssbd", "beta=0.2", "de"]]
        assert {*first} == {*FIELDS, "bench", "data", "replay", "seconds"}

    @pytest.mark.parametrize(
        "contender",
        [
            Contender("ar", "de"),
            Contender("ar", "de", hold_back=True),
            Contender("ssbd", "ja", (("beta", 0.2),), Display(2, 0.7), hold_back=True),
            Contender(
                "ssbd",
                "zh",
                (("beta", 0.2), ("start", "source")),
                Display(mask_k=3, plain=True),
                small="demo-tiny",
                lines=2.0,
            ),
        ],
        ids=lambda contender: contender.name,
    )
    def test_names_are_read_back(self, backend: Timed, contender: Contender) -> None:
        (row,) = rows(*replay(backend, recording(record(contender.name, 0, *ONE_BY_ONE))))
        named = [row[name] for name in ("method", "options", "display", "hold_back", "target_language")]
        wanted = [contender.method, contender.settings, contender.shows, contender.hold_back, contender.language]
        assert named == wanted

    def test_baseline_holds_back_too(self, backend: Timed) -> None:
        names = [Contender("ar", "de", hold_back=hold_back).name for hold_back in (False, True)]
        given = [record(names[0], 0, *DRAFTED), record(names[1], 0, *ONE_BY_ONE)]
        assert [row["speedup"] for row in rows(*replay(backend, recording(*given)))] == [1, 1]

    def test_median_over_segments_beside_pooled_speed_up(self, backend: Timed) -> None:
        long = [(3, [PassRecord(0, 10, 0, 0, 0)]), (3, [PassRecord(8, 95, 93, 93, 2)])]
        segments = [(DRAFTED, ONE_BY_ONE)] * 2 + [(long, ONE_BY_ONE)]
        given = [
            record(name, n, *updates)
            for n, both in enumerate(segments)
            for name, updates in zip((SSBD, AR), both, strict=True)
        ]
        row = rows(*replay(backend, recording(*given)))[0]
        assert row["speedup_median"] == round(34 / 31, 3)
        assert row["speedup"] == round(3 * 34 / (31 + 31 + 12 + 97), 3)


class TestTurns:
    def test_contenders_take_turns_in_order_that_reverses(self, backend: Timed) -> None:
        # Prompts of their own lengths tell who ran.
        given = [
            record(name, n, (1, [PassRecord(0, length, 0, 0, 0)]))
            for n in range(4)
            for name, length in ((AR, 200), (SSBD, 300))
        ]
        replay(backend, recording(*given))
        assert [each.new for each in backend.passes if each.new >= 200] == [200, 300, 300, 200] * 2


def test_signature_begins_with_replay(tmp_path: Path) -> None:
    path = tmp_path / "a.records.jsonl"
    write_records(path, [record(AR, 0, *ONE_BY_ONE)])
    line = signature(path, read_recording(path), 3, shape="qwen3-28x1024", engine="llama.cpp")
    assert line.startswith("replay:a.records.jsonl@")
    assert "|segments:1|shape:qwen3-28x1024|engine:llama.cpp|seed:3|machine:" in line
    assert f"|processor:{processor().label}" in line


UPDATES = (
    Update("1", 0, "Tom has a dog and"),
    Update("1", 1, "Tom has a dog and Mary has a dog. Tom has"),
    Update("1", 2, "Tom has a dog and Mary has a dog. Tom has"),
    Update("1", 3, "Tom had a dog and Mary has a dog. Tom has a cat.", final=True),
    Update("2", 0, "We are"),
    Update("2", 1, "We are tired.", final=True),
)


@pytest.fixture(scope="module")
def recorded() -> Recording:
    """The demo model on a stream with a correction; a tree, and rows of the whole prompt (aasd), too."""
    backend = LlamaCpp(shipped_path("demo-tiny"), LlamaOptions(context_length=256, slots=3, branches=15, threads=1))
    contenders = [Contender("ar", "de"), Contender("ssbd", "de", (("beta", 0.2),)), Contender("aasd", "de")]
    runs = open_runs(backend, [replace(each, max_tokens=20) for each in contenders])
    compare(runs, UPDATES)
    backend.close()
    return recording(*(each for run in runs for each in run.records))


def fed_ids(records: Sequence[Record]) -> list[int]:
    """Ids that every pass of the records reads, and before those of a record what lay in the cache already."""
    found = []
    for each in records:
        passes = [one for step in each.steps for one in step.passes]
        found += [passes[0].cached] * bool(passes[0].cached) + [one.new for one in passes]
    return found


def test_record_has_all_kinds_of_passes(recorded: Recording) -> None:
    passes = [p for records in recorded.records.values() for each in records for s in each.steps for p in s.passes]
    assert any(each.nodes > each.depth for each in passes), "no tree"
    assert any(each.prompt_rows > 1 for each in passes), "no rows of the prompt"
    assert any(0 < each.accepted < each.depth for each in passes), "no draft kept in part"
    assert any(not step.passes for step in recorded.records[AR][0].steps), "no unchanged source"


def test_llama_cpp_reads_as_many_ids_as_recorded(recorded: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    fed: list[int] = []
    decode = LlamaContext.decode

    def counting(context: LlamaContext, feed: Feed) -> Matrix:
        fed.append(len(feed))
        return decode(context, feed)

    monkeypatch.setattr(LlamaContext, "decode", counting)
    backend = LlamaCpp(shipped_path("demo-tiny"), LlamaOptions(context_length=recorded.context_length, threads=1))
    player = Player(backend, random.Random(0))
    wanted = [each for records in recorded.records.values() for each in records]
    played = [player.play(each) for each in wanted]
    backend.close()
    assert fed == fed_ids(wanted)
    assert all((step.seconds > 0) is bool(step.passes) for each in played for step in each.steps)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_transformers_reads_as_many_ids_as_recorded(recorded: Recording, dtype: str) -> None:
    pytest.importorskip("transformers", reason="the hf extra is not installed")
    from redraft.backends.hf.decoder_only import HfDecoder
    from redraft.backends.hf.options import HfOptions
    from redraft_bench.bench.replay_hf import open_shape
    from tests.backends.hf.models import Watched

    backend, facts = open_shape("tiny", HfOptions(recorded.context_length, 1, dtype, "cpu", 1))
    assert isinstance(backend, HfDecoder)
    backend.__class__ = Watched
    assert isinstance(backend, Watched)
    backend.fed = []
    wanted = [each for records in recorded.records.values() for each in records]
    player = Player(backend, random.Random(0))
    for each in wanted:
        player.play(each)
    assert backend.fed == [[count] for count in fed_ids(wanted)]
    assert facts == {
        "model": f"tiny-{dtype}-cpu",
        "weights": "random",
        "shape": "qwen3-2x256",
        "dtype": dtype,
        "engine": "transformers",
        "device": "cpu",
        "threads": 1,
    }
