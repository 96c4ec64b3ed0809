"""llama.cpp with all layers on a GPU; `make test-gpu` runs these on Vulkan, in software if there is no card.

A GPU's kernels add in another order than a processor's, so logits differ, and where two tokens are nearly tied, so may
ids.  The counts are printed with ``-rP``.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from redraft import Caption, Translator, Update
from redraft.backends.llama_model import on_gpu
from redraft.backends.llamacpp import LlamaCpp
from redraft.backends.load import default_contexts, open_model
from redraft.backends.options import LlamaOptions
from redraft.decoding.backend import Capability
from redraft.decoding.types import ROOT, Draft, Provenance, Score
from redraft.errors import CapabilityError
from tests.hybrids import HYBRIDS

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not on_gpu(-1), reason="needs a llama.cpp that runs on a GPU: `make test-gpu`"),
]
#: With all layers on the GPU, and on the processor.
GPU = LlamaOptions(context_length=256, slots=2, threads=2, gpu_layers=99)
CPU = replace(GPU, gpu_layers=0)
PREFIX = tuple(range(5, 21))
DRAFT = Draft.chain(list(range(50, 58)), Provenance.PREVIOUS)
#: Most that a probability may differ between kernels.
ROUNDING = 0.05
TREE = Draft((50, 51, 52, 53), (ROOT, ROOT, 0, 1), (Provenance.MODEL,) * 4)
TALK = ("I have", "I have a dog and two", "I have a dog and two cats.")


def chances(backend: LlamaCpp, *drafts: Draft) -> np.ndarray:
    """Probabilities after a prefix and each token of the drafts, scored one after another in a slot."""
    slot = backend.open_slot()
    found = []
    for draft in drafts:
        (rows,) = backend.score([(slot, Score(PREFIX, draft))])
        found += [[rows.logprob(node, token) for token in range(256)] for node in range(ROOT, len(draft))]
    backend.close_slot(slot)
    return np.exp(found)


def opened(options: LlamaOptions, model: str = "demo-tiny") -> LlamaCpp:
    backend = open_model(model, options)
    assert isinstance(backend, LlamaCpp)
    return backend


def ids(options: LlamaOptions, texts: Sequence[str], method: str = "ar") -> list[int]:
    """The ids of the final output of a talk."""
    with Translator.open("demo-tiny", to=["de"], method=method, engine=as_engine(options)) as translator:
        for seq, text in enumerate(texts):
            (caption,) = translator.translate(Update("1", seq, text, seq == len(texts) - 1))
        assert isinstance(caption, Caption) and caption.text
        return [*translator.state("de").output]


def as_engine(options: LlamaOptions) -> dict[str, float | str]:
    return {name: getattr(options, name) for name in ("context_length", "threads", "gpu_layers")}


def test_rows_are_those_of_the_processor() -> None:
    with closing(opened(GPU)) as there, closing(opened(CPU)) as here:
        assert there.capabilities == here.capabilities
        drafts = (DRAFT, TREE) if Capability.TREES in there.capabilities else (DRAFT,)
        ours, theirs = chances(here, *drafts), chances(there, *drafts)
    print(f"largest difference of a probability: {np.abs(ours - theirs).max():.4f}")
    assert np.allclose(ours, theirs, atol=ROUNDING)
    assert np.isfinite(theirs).all()


def test_roll_back_leaves_nothing_behind() -> None:
    """A row after a rejected draft is that of a slot which never had it, up to rounding."""
    with closing(opened(GPU)) as backend:
        first = chances(backend, DRAFT, Draft.chain([50, 60], Provenance.PREVIOUS))[-3:]
        fresh = chances(backend, Draft.chain([50, 60], Provenance.PREVIOUS))
    assert np.allclose(first, fresh, atol=ROUNDING)


def test_ids_differ_seldom() -> None:
    found = {name: ids(options, TALK) for name, options in (("gpu", GPU), ("cpu", CPU))}
    differ = sum(a != b for a, b in zip(found["gpu"], found["cpu"], strict=False))
    print(f"{differ} of {len(found['cpu'])} ids differ")
    assert differ <= len(found["cpu"]) // 4


def test_default_method_makes_captions() -> None:
    assert len(ids(GPU, TALK, "redraft")) > 3


def test_exact_is_refused() -> None:
    with pytest.raises(CapabilityError, match="exact passes need the processor"):
        open_model("demo-tiny", replace(GPU, exact=True))


def test_threads_and_engines() -> None:
    """A model on a GPU is not opened once for each core, and its passes take the threads that were named."""
    assert default_contexts("demo-tiny", {"gpu_layers": 99}) == 1
    with closing(opened(replace(GPU, threads=1))) as backend:
        assert chances(backend, DRAFT).shape == (1 + len(DRAFT), 256)


def test_two_models_at_once() -> None:
    with closing(opened(GPU)) as one, closing(opened(GPU)) as other:
        first = chances(one, DRAFT)
        assert np.allclose(first, chances(other, DRAFT), atol=ROUNDING)
        assert np.allclose(first, chances(one, DRAFT), atol=ROUNDING)


@pytest.mark.parametrize("name", ["LFM2", "Mamba-2"])
def test_recurrent_layers(tmp_path: Path, name: str) -> None:
    """Whatever way back a recurrent model has there, its rows after a roll-back are right, or it is refused."""
    path = HYBRIDS[name](tmp_path / "model.gguf")
    try:
        backend = LlamaCpp(path, GPU)
    except CapabilityError as refused:
        pytest.skip(f"refused: {refused}")
    again = Draft.chain([50, 60], Provenance.PREVIOUS)
    with closing(backend):
        assert np.allclose(chances(backend, DRAFT, again)[-3:], chances(backend, again), atol=ROUNDING)


@pytest.fixture(scope="module")
def report() -> str:
    command = [sys.executable, "-m", "redraft", "doctor", "--model", "demo-tiny", "--verbose"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_doctor_names_the_gpu(report: str) -> None:
    assert "GPU" in report
