"""Models with recurrent layers: they go back to anchors if a probe has proven that, and compute what fresh slots do.

With ``HYPOTHESIS_PROFILE=thorough``, prompts and streams are longer.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import llama_cpp
import numpy as np
import pytest
from hypothesis import settings

from redraft import Style, Translator
from redraft.backends import llamacpp, probe
from redraft.backends.llama_model import LlamaModel
from redraft.backends.llama_slot import ANCHORS, AnchoredSlot
from redraft.backends.llamacpp import LlamaCpp
from redraft.backends.options import LlamaOptions
from redraft.backends.probe import difference
from redraft.backends.selftest import SelfTestResult
from redraft.decoding.backend import Capability
from redraft.decoding.types import ROOT, Draft, Provenance, Rows, Score
from redraft.errors import CapabilityError
from tests.backends.test_llamacpp import tree
from tests.gguf_models import CONTROL, HIDDEN, LAYERS, VOCABULARY
from tests.hybrids import HYBRIDS, REFUSED, write_lfm2
from tests.latent_hybrids import write_qwen4

Ids = tuple[int, ...]
SLOTS = 3
OPTIONS = LlamaOptions(context_length=256, slots=SLOTS, threads=1, gpu_layers=0)
#: Steps of random streams, and further ids of their instructions in a long run, of which DeepSeek V4 sums up 128.
STEPS = min(100, settings().max_examples)
MORE = 130 if STEPS > 25 else 0
#: Difference of logits that rounding may make, where it is more than in other models: with AVX-512, 0.13.
MOST = {"Kimi K3": 0.2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hybrids")


def written(folder: Path, name: str) -> Path:
    path = folder / f"{name}.gguf"
    return path if path.exists() else HYBRIDS[name](path)


class Fresh(LlamaCpp):
    """Reads every request from its beginning."""

    def score(self, requests: Sequence[tuple[int, Score]]) -> list[Rows]:
        for slot, _score in requests:
            self._slots[slot].forget()
        return super().score(requests)


@pytest.fixture(params=HYBRIDS)
def pair(request: pytest.FixtureRequest, folder: Path) -> Iterator[tuple[LlamaCpp, Fresh]]:
    """A backend, and one that reads the same with fresh slots."""
    model = LlamaModel(written(folder, request.param), LlamaOptions(gpu_layers=0), anchored=True)
    with (
        closing(model),
        closing(LlamaCpp(model.path, OPTIONS, model)) as backend,
        closing(Fresh(model.path, OPTIONS, model)) as fresh,
    ):
        # Random models would hardly ever end.
        backend.end_tokens = fresh.end_tokens = frozenset(range(len(CONTROL), VOCABULARY, 12))
        yield backend, fresh


def some(draw: random.Random, most: int, least: int = 1) -> Ids:
    return tuple(draw.choices(range(len(CONTROL), VOCABULARY), k=draw.randint(least, most)))


class Stream:
    """Requests of a slot at random: sources that grow, shrink and change, drafts, outputs that are left off."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.instruction, self.after = some(self.draw, 20 + MORE, 5 + MORE), some(self.draw, 12)
        self.source, self.output = some(self.draw, 6), Ids()

    def next(self) -> Score:
        draw, kind = self.draw, self.draw.random()
        if kind < 0.3:
            self.source += some(draw, 3)
        elif kind < 0.4:
            self.source = self.source[: draw.randint(1, len(self.source))] + some(draw, 2)
        elif kind < 0.45 or len(self.source) > 40:
            self.source = some(draw, 4)
        previous = self.output
        if kind >= 0.45:  # the update goes on
            self.output = self.output[: draw.randint(0, len(self.output))] + some(draw, 2)
            prefix = self.instruction + self.source + self.after + self.output
        else:
            self.output = ()
            prefix = self.instruction + self.source + self.after
        draft = previous[len(self.output) :] if draw.random() < 0.5 else some(draw, 8)
        self.output += draft if draw.random() < 0.3 else ()
        rows = 1 if draw.random() < 0.8 else draw.randint(1, len(prefix))
        return Score(prefix, Draft.chain(draft, Provenance.PREVIOUS), rows)


def logits(backend: LlamaCpp, requests: Sequence[tuple[int, Score]]) -> list[np.ndarray]:
    answers = backend.score(requests)
    return [
        np.array([rows.row(node) for node in range(-score.prompt_rows, len(score.draft))])  # type: ignore[attr-defined]
        for rows, (_, score) in zip(answers, requests, strict=True)
    ]


def test_rows(pair: tuple[LlamaCpp, Fresh], request: pytest.FixtureRequest) -> None:
    """Random updates of several slots, some of them closed and opened again, have the rows of fresh slots."""
    backend, fresh = pair
    most = MOST.get(request.node.callspec.params["pair"], 0.02)
    draw, streams = random.Random(5), {backend.open_slot(): Stream(seed) for seed in range(SLOTS)}
    assert [fresh.open_slot() for _ in streams] == [*streams]
    with pytest.raises(CapabilityError, match="all 3 slots are in use"):
        backend.open_slot()
    read = 0
    for step in range(STEPS):
        if step % 8 == 7:
            backend.close_slot(1)
            assert backend.open_slot() == 1
        chosen = draw.sample(sorted(streams), draw.randint(1, SLOTS))
        asked = [(slot, streams[slot].next()) for slot in chosen]
        alone = [logits(fresh, [each])[0] for each in asked]
        for found, expected in zip(logits(backend, asked), alone, strict=True):
            read += len(found)
            assert np.allclose(found, expected, rtol=0, atol=most)
    for slot in backend._slots.values():
        assert isinstance(slot, AnchoredSlot)
        assert len(slot.anchors) + len(slot.spare) == ANCHORS
        assert [length for _, length in slot.anchors] == sorted({length for _, length in slot.anchors})


@pytest.mark.parametrize("pair", ["LFM2", "Qwen3.5"], indirect=True)
def test_memory_of_a_slot(pair: tuple[LlamaCpp, Fresh]) -> None:
    """Cells in proportion to the context, and the states of the slot and its anchors."""
    backend, _fresh = pair
    short, long = backend.slot_bytes(100), backend.slot_bytes(300)
    cells = 2 * LAYERS // 2 * HIDDEN * 2  # keys and values of every other layer, two bytes each
    assert cells <= (long - short) / 200 <= 1.2 * cells
    slot = backend.open_slot()
    backend.score([(slot, Score((9, 8)))])
    state = backend._contexts[0].stored(backend._slots[slot].sequence, states=True)
    assert short - 100 * (long - short) // 200 == pytest.approx((1 + ANCHORS) * state, abs=2)


@pytest.mark.parametrize("pair", ["LFM2"], indirect=True)
def test_what_recurrent_layers_cannot_do(pair: tuple[LlamaCpp, Fresh]) -> None:
    backend, _fresh = pair
    slot = backend.open_slot()
    with pytest.raises(CapabilityError, match="recurrent layers, which cannot read draft trees"):
        backend.score([(slot, Score((9, 8), tree((5, 6), (7,))))])
    assert backend.score([(slot, Score((9, 8)))])[0].argmax(ROOT) in range(VOCABULARY)
    assert Capability.HYPOTHESES not in backend.capabilities
    for method in ("beam", "aasd"):
        with pytest.raises(CapabilityError, match="needs a backend with trees"):
            Translator(backend, ["de"], style=Style(prompt="{source}"), method=method)
    for llama, words in (
        (LlamaOptions(exact=True, gpu_layers=0), "leave out exact"),
        (LlamaOptions(slots=65), "at most 64"),
    ):
        with pytest.raises(CapabilityError, match=f"recurrent layers, .*{words}"):
            LlamaCpp(backend.model.path, llama, backend.model)


def test_context_of_sparse_attention(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Qwen4 leaves out of a long context depends on its place in the cache."""
    path = written(folder, "Qwen4")
    options = dataclasses.replace(OPTIONS, context_length=257)
    with (
        closing(LlamaModel(path, LlamaOptions(gpu_layers=0), anchored=True)) as model,
        pytest.raises(CapabilityError, match="set context_length to 256 or less"),
    ):
        LlamaCpp(path, options, model)
    monkeypatch.setattr(llamacpp, "_CHOSEN", "")
    assert difference(write_qwen4(folder / "sparse.gguf", most=16)) > probe.TOLERANCE


class TestProbe:
    """What llama.cpp says about going back is not taken for true."""

    @pytest.fixture(autouse=True)
    def no_memory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def child(self, monkeypatch: pytest.MonkeyPatch, folder: Path, code: str) -> None:
        """Let the probe's process run ``code`` first."""
        (folder / "sitecustomize.py").write_text(f"import llama_cpp as lib\n{code}")
        monkeypatch.syspath_prepend(folder)

    def test_right(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = written(folder, "Qwen3.5")
        with closing(LlamaModel(path, LlamaOptions(gpu_layers=0))) as model:
            assert model.anchored
        asked: list[object] = []

        def right(command: object, **_: object) -> SelfTestResult:
            asked.append(command)
            return SelfTestResult("right")

        monkeypatch.setattr(probe, "judge", right)
        with closing(LlamaCpp(path, OPTIONS)) as backend:
            assert Capability.TREES not in backend.capabilities
        assert not asked, "it is remembered"
        monkeypatch.setattr(probe, "cache_folder", lambda: None)
        for _ in range(2):  # where nothing can be kept, it is tried each time
            LlamaCpp(path, OPTIONS).close()
        assert len(asked) == 2

    def test_llama_says_that_cells_go_back(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """With snapshots, taking back a whole pass or more returns true and leaves another state."""
        plain = llama_cpp.llama_context_default_params

        def with_snapshots() -> object:
            params = plain()
            params.n_rs_seq = 64
            return params

        monkeypatch.setattr(llama_cpp, "llama_context_default_params", with_snapshots)
        path = written(folder, "Qwen3.5")
        assert difference(path, anchored=False) > probe.TOLERANCE
        assert difference(path) < probe.TOLERANCE

    def test_wrong(self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.child(monkeypatch, tmp_path, "lib.llama_memory_seq_cp = lambda *arguments: None\n")
        with pytest.raises(CapabilityError, match=r"'LFM2.gguf' .* earlier token correctly \(logits are off by"):
            LlamaCpp(written(folder, "LFM2"), OPTIONS)

    @pytest.mark.parametrize(
        ("name", "why"),
        [
            ("PLaMo 2", "(logits are off|does not survive it)"),
            ("QRWKV 6", "logits are off"),
            ("ARWKV 7", "logits are off"),
        ],
    )
    def test_refused(self, tmp_path: Path, name: str, why: str) -> None:
        """llama.cpp writes the states of all sequences but the first outside its memory, or mixes them up."""
        with pytest.raises(CapabilityError, match=f"earlier token correctly .*{why}"):
            LlamaCpp(REFUSED[name](tmp_path / "refused.gguf"), OPTIONS)

    def test_process_ends(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """LFM2 with its real number of layers ends the process with a few snapshots more than it survives."""
        code = (
            "plain = lib.llama_context_default_params\n"
            "def with_snapshots():\n    params = plain()\n    params.n_rs_seq = 32\n    return params\n"
            "lib.llama_context_default_params = with_snapshots\n"
        )
        self.child(monkeypatch, tmp_path, code)
        with pytest.raises(CapabilityError, match="earlier token correctly .*does not survive it: SIGABRT"):
            LlamaCpp(write_lfm2(tmp_path / "lfm2.gguf", layers=16), OPTIONS)
