"""Models whose caches cannot be rolled back are refused by name, before their weights are read."""

from __future__ import annotations

from pathlib import Path

import pytest
import transformers

torch = pytest.importorskip("torch", reason="needs the extra hf")

from redraft.backends.hf.facts import check_model  # noqa: E402
from redraft.backends.hf.model import open_hf  # noqa: E402
from redraft.backends.options import HfOptions  # noqa: E402
from redraft.errors import CapabilityError  # noqa: E402
from tests.backends.hf import models as tiny  # noqa: E402

UNFIT = {
    "MambaConfig": "has recurrent layers",
    "FalconMambaConfig": "has recurrent layers",
    "RwkvConfig": "has recurrent layers",
    "RecurrentGemmaConfig": "has recurrent layers",
    "JambaConfig": "has recurrent layers",
    "Qwen3NextConfig": "has recurrent layers",
    "MiniMaxConfig": "has layers of type linear_attention",
    "BertConfig": "is an encoder",
    "ModernBertConfig": "is no language model with a decoder",
    "BloomConfig": "takes no position_ids",
    "Gemma3nTextConfig": "shares caches between layers",
    "T5GemmaConfig": "is an encoder-decoder of type 't5gemma'",
    "WhisperConfig": "is an encoder-decoder of type 'whisper', which this backend does not run; it runs m2m_100",
    "LEDConfig": "is an encoder-decoder of type 'led'",
}


@pytest.mark.parametrize("name", UNFIT)
def test_unfit_models_are_refused_by_name(name: str) -> None:
    with pytest.raises(CapabilityError, match=f"model 'fancy' .*{UNFIT[name]}"):
        check_model(getattr(transformers, name)(), "fancy")


def test_decoder_that_reads_both_ways_is_refused() -> None:
    with pytest.raises(CapabilityError, match="attends to what comes after"):
        check_model(transformers.Gemma3TextConfig(use_bidirectional_attention=True), "fancy")


def test_hybrid_is_refused_for_its_layers() -> None:
    with pytest.raises(CapabilityError, match="has layers of type conv, whose memory cannot be rolled back"):
        check_model(transformers.Lfm2Config(full_attn_idxs=[0]), "fancy")


def test_from_folder_without_weights(tmp_path: Path) -> None:
    folder = tmp_path / "my-mamba"
    transformers.MambaConfig().save_pretrained(folder)
    with pytest.raises(CapabilityError, match=r"model 'my-mamba' \(mamba\) has recurrent layers, so its memory cannot"):
        open_hf(str(folder), HfOptions(device="cpu"))


@pytest.mark.parametrize(
    "name", ["Qwen3Config", "LlamaConfig", "GPT2Config", "MarianConfig", "T5Config", "MBartConfig"]
)
def test_fit_models_pass(name: str) -> None:
    check_model(getattr(transformers, name)(), "plain")


def test_model_that_attends_as_it_likes_is_refused() -> None:
    model = tiny.of_family("GPTNeoConfig", attention_types=[[["global", "local"], 1]], window_size=3)
    for slots in (1, 2):
        with pytest.raises(CapabilityError, match=r"'tiny' \(gpt_neo\) ignores attention masks"):
            tiny.watched(model, context_length=64, slots=slots)
