"""The shipped model on real text: the promises of the README, on samples small enough for every run.

`benchmarks` holds the same measurements at full size.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from redraft import Translator, Update
from redraft.backends.engine import kernels_mark
from redraft.backends.llamacpp import LlamaCpp
from redraft.backends.load import open_model, resolve
from redraft.backends.machine import processor
from redraft.backends.options import LlamaOptions
from redraft.captions.events import Caption
from redraft.captions.talk import load_talk
from redraft.errors import OptionError
from redraft_bench.eval.contender import Contender
from redraft_bench.eval.figures import TableLine, rows
from redraft_bench.eval.measure import compare, open_runs
from redraft_bench.eval.sets import lag_stream, load_set
from redraft_bench.quantise import quantise
from redraft_bench.scripts.exact import follow, mismatches

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shipped() -> Iterator[LlamaCpp]:
    backend = open_model("demo", LlamaOptions(context_length=512, slots=8, threads=1))
    yield backend
    backend.close()


@pytest.fixture(scope="module")
def in_floats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaCpp]:
    path: Path = tmp_path_factory.mktemp("model") / "tiny-f32.gguf"
    quantise(resolve("demo-tiny"), path, "F32")
    backend = LlamaCpp(path, LlamaOptions(context_length=512, slots=3, threads=1, exact=True))
    yield backend
    backend.close()


def test_ssbd_without_bias(in_floats: LlamaCpp, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRAFT_DATA", str(data_dir))
    stream = lag_stream(load_set("flores200.devtest", "de", 1), "de", 3)
    contenders = [Contender("ar", "de"), Contender("ssbd", "de", (("beta", 0.0),))]
    plain, drafted = follow(in_floats, contenders, stream.updates)
    assert len(plain.outputs) == len(list(stream.updates))
    assert all(gap <= rounding for gap, rounding in mismatches(in_floats, plain, drafted))
    assert drafted.run.passes < plain.run.passes


@pytest.mark.skipif(not kernels_mark(), reason="llama.cpp was built without our kernels")
@pytest.mark.skipif("avx2" not in processor().features, reason="our kernels need AVX2")
@pytest.mark.parametrize("weights", ["Q8_0", "Q4_K_M"])
def test_drafts_change_no_id_without_exact_kernels(
    weights: str, tmp_path: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = processor()
    if weights == "Q4_K_M" and "AMD" in here.name and "avx512f" in here.features:
        pytest.skip("llama.cpp multiplies single tokens by Q4_K here")
    monkeypatch.setenv("REDRAFT_DATA", str(data_dir))
    quantise(resolve("demo"), tmp_path / "demo.gguf", weights)
    stream = lag_stream(load_set("flores200.devtest", "de", 4), "de", 3)
    contenders = [Contender("ar", "de"), Contender("ssbd", "de", (("beta", 0.0),))]
    with closing(LlamaCpp(tmp_path / "demo.gguf", LlamaOptions(context_length=512, slots=2, threads=1))) as backend:
        plain, drafted = follow(backend, contenders, stream.updates)
    assert plain.outputs == drafted.outputs
    assert drafted.run.passes < plain.run.passes


def outputs(line: TableLine) -> list[tuple[int, ...]]:
    return [step.tokens for step in line.steps]


def test_bias_and_masks(shipped: LlamaCpp) -> None:
    contenders = [
        Contender("ar", "de"),
        *(Contender("ssbd", "de", (("beta", beta),)) for beta in (0.0, 0.4, 0.5)),
        Contender("cd", "de"),
        Contender("ssbd", "de", (("beta", 0.4), ("mask_k", 3))),
        Contender("ssbd", "de", (("beta", 0.4), ("mask_k", 3), ("plain", 1))),
    ]
    runs = open_runs(shipped, contenders)
    compare(runs, [update for update in load_talk() if int(update.utterance) <= 4])
    for run in runs:
        run.system.close()
    plain, exact, bare, half, continuous, masked, shortened = [TableLine(run.contender, run.records) for run in runs]
    found: list[Any] = rows([plain, exact, bare, half, continuous, masked, shortened])
    _, *biased, _, masked_row, _ = found
    # More bias keeps more and erases less; half of it keeps everything, as continuous decoding does.
    kept, erased = ([row[name] for row in biased] for name in ("draft_acceptance", "ne_output"))
    assert kept == sorted(kept) and kept[0] < kept[1] and kept[-1] == 1.0
    assert erased == sorted(erased, reverse=True) and erased[-1] == 0.0
    assert outputs(half) == outputs(continuous)
    assert bare.passes * 1.3 < plain.passes
    # A mask for the display changes only that; a plain one shortens drafts.
    assert outputs(masked) == outputs(bare) and masked.passes == bare.passes < shortened.passes
    assert [each.translation for each in masked.records] == [each.translation for each in bare.records]
    assert masked_row["ne_display"] < biased[1]["ne_display"] and masked_row["ne_output"] == biased[1]["ne_output"]


def test_unchanged_source_costs_no_pass_and_final_unmasks(shipped: LlamaCpp) -> None:
    with Translator(shipped, ["de"], options={"mask_k": 3, "search": 0, "agree": 1, "first_sight": 1}) as translator:
        first = translator.translate(Update("1", 0, "I have a very small dog."))
        passes = translator.state("de").tally.passes
        last = translator.translate(Update("1", 1, "I have a very small dog.", final=True))
        assert translator.state("de").tally.passes == passes > 0
    assert isinstance(first[0], Caption)
    assert isinstance(last[0], Caption)
    assert last[0].text == first[0].text + first[0].unstable
    assert last[0].unstable == ""


def test_languages_side_by_side_are_languages_alone(shipped: LlamaCpp) -> None:
    updates = [update for update in load_talk() if update.utterance == "3"]
    with Translator(shipped, ["de", "zh-CN", "ja"]) as together:
        answers = [event for update in updates for event in together.translate(update)]
    for tag in ("de", "zh-CN", "ja"):
        with Translator(shipped, [tag]) as alone:
            expected = [event for update in updates for event in alone.translate(update)]
        assert [event for event in answers if isinstance(event, Caption) and event.language == tag][-1].final
        assert len([event for event in answers if event.language == tag]) == len(expected)


def test_language_that_model_does_not_know_is_refused(shipped: LlamaCpp) -> None:
    with pytest.raises(OptionError, match=r"target language 'fr' is not supported by this model \(allowed: "):
        Translator(shipped, ["fr"])


def test_closing_gives_slots_back(shipped: LlamaCpp) -> None:
    for _ in range(20):
        with Translator(shipped, ["de", "zh", "ja"]) as translator:
            translator.translate(Update("1", 0, "Hello"))
