"""Changing the number format of a model file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import gguf
import numpy as np
import pytest

from redraft.backends.llamacpp import LlamaCpp
from redraft.backends.options import LlamaOptions
from redraft.decoding.types import Draft, Provenance, Score
from redraft.errors import ModelError, OptionError
from redraft_bench.quantise import FORMATS, quantise
from tests.fakes import distribution
from tests.gguf_models import write_llama

PROMPT, DRAFT = (0, 70, 80, 90), (100, 110, 120, 130)


@pytest.fixture(scope="module")
def f32(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_llama(tmp_path_factory.mktemp("models") / "f32.gguf", facts={"redraft.prompt": "{source}"})


def distributions(path: Path) -> np.ndarray:
    """(5, vocabulary) what the model says after a prompt and each token of a draft."""
    backend = LlamaCpp(path, LlamaOptions(context_length=64, threads=1, gpu_layers=0))
    rows = backend.score([(backend.open_slot(), Score(PROMPT, Draft.chain(DRAFT, Provenance.MODEL)))])[0]
    table = np.array([distribution(rows, node) for node in range(-1, len(DRAFT))])
    backend.close()
    return table


def weights(path: Path) -> dict[str, np.ndarray]:
    """Every tensor of a file, unpacked."""
    return {
        tensor.name: gguf.dequantize(tensor.data, tensor.tensor_type).ravel()
        for tensor in gguf.GGUFReader(path).tensors
    }


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_gives_model_that_says_nearly_same(f32: Path, tmp_path: Path, format: str) -> None:
    target = tmp_path / "out.gguf"
    quantise(f32, target, format)
    assert np.abs(distributions(target) - distributions(f32)).max() < (0.6 if "Q4" in format else 0.15)
    assert (target.stat().st_size < f32.stat().st_size * 0.55) is (format != "F32")


def test_facts_and_tokens_are_kept(f32: Path, tmp_path: Path) -> None:
    quantise(f32, tmp_path / "out.gguf", "Q8_0")
    before, after = (LlamaCpp(path, LlamaOptions(threads=1)) for path in (f32, tmp_path / "out.gguf"))
    assert after.metadata["redraft.prompt"] == "{source}"
    assert after.end_tokens == before.end_tokens
    assert after.tokenize("the 日本") == before.tokenize("the 日本")
    before.close()
    after.close()


def test_quantised_file_is_unpacked_to_same_numbers(f32: Path, tmp_path: Path) -> None:
    packed, unpacked = tmp_path / "packed.gguf", tmp_path / "unpacked.gguf"
    quantise(f32, packed, "Q8_0")
    quantise(packed, unpacked, "F32")
    assert {tensor.tensor_type for tensor in gguf.GGUFReader(unpacked).tensors} == {gguf.GGMLQuantizationType.F32}
    original, narrow, wide = weights(f32), weights(packed), weights(unpacked)
    assert wide.keys() == original.keys()
    for name in original:
        assert np.array_equal(narrow[name], wide[name])
    name = "blk.0.attn_q.weight"
    assert 0 < np.abs(wide[name] - original[name]).max() < np.abs(original[name]).max() / 100


@pytest.mark.parametrize("format", ["Q9", "q8_0", ""])
def test_unknown_format(f32: Path, tmp_path: Path, format: str) -> None:
    with pytest.raises(OptionError) as raised:
        quantise(f32, tmp_path / "out.gguf", format)
    assert str(raised.value) == f"format must be one of F32, F16, BF16, Q8_0, Q4_0, Q4_K_M, not {format!r}"
    assert not (tmp_path / "out.gguf").exists()


@pytest.mark.parametrize("keep", [None, 0, 4, 100, 5000, -100])
def test_broken_input_is_named(f32: Path, tmp_path: Path, keep: int | None) -> None:
    broken = tmp_path / "broken.gguf"
    if keep is not None:
        broken.write_bytes(f32.read_bytes()[:keep])
    with pytest.raises(ModelError, match="broken.gguf") as raised:
        quantise(broken, tmp_path / "out.gguf", "Q8_0")
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "out.gguf").exists()


def test_target_that_cannot_be_written(f32: Path, tmp_path: Path) -> None:
    for target in (tmp_path / "absent" / "out.gguf", tmp_path):
        with pytest.raises(ModelError, match="cannot be written as Q8_0"):
            quantise(f32, target, "Q8_0")


def test_file_is_not_written_over_itself(f32: Path, tmp_path: Path) -> None:
    path = tmp_path / "same.gguf"
    path.write_bytes(f32.read_bytes())
    code = (
        "import sys; from pathlib import Path\n"
        "from redraft_bench.quantise import quantise; from redraft.errors import RedraftError\n"
        "try: quantise(Path(sys.argv[1]), Path(sys.argv[1]), 'Q8_0')\n"
        "except RedraftError: pass\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, timeout=200)
    assert done.returncode == 0
    assert distributions(path).shape[0] == 5
