"""Models whose caches cannot be rolled back are refused by name, before their weights are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the hf extra is not installed")
transformers = pytest.importorskip("transformers", reason="the hf extra is not installed")

from redraft.accept.exact import Exact  # noqa: E402
from redraft.backends.hf.model import open_hf  # noqa: E402
from redraft.backends.hf.options import HfOptions  # noqa: E402
from redraft.backends.hf.refuse import check_model  # noqa: E402
from redraft.decode import decode  # noqa: E402
from redraft.draft.nothing import Nothing  # noqa: E402
from redraft.drive import run  # noqa: E402
from redraft.errors import CapabilityError  # noqa: E402
from tests.backends.hf import models as tiny  # noqa: E402
from tests.backends.hf.models import VOCABULARY  # noqa: E402

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
    "WhisperConfig": "is an encoder-decoder of type 'whisper', which this backend does not run; it runs m2m_100",
    "LEDConfig": "is an encoder-decoder of type 'led'",
}


@pytest.mark.parametrize("name", UNFIT)
def test_unfit_models_are_refused_by_name(name: str) -> None:
    with pytest.raises(CapabilityError, match=f"model 'fancy' .*{UNFIT[name]}"):
        check_model(getattr(transformers, name)(), "fancy", 512)


def test_a_hybrid_is_refused_for_its_layers() -> None:
    with pytest.raises(CapabilityError, match="has layers of type conv, whose memory cannot be rolled back"):
        check_model(transformers.Lfm2Config(full_attn_idxs=[0]), "fancy", 512)


def test_from_a_folder_without_weights(tmp_path: Path) -> None:
    folder = tmp_path / "my-mamba"
    transformers.MambaConfig().save_pretrained(folder)
    with pytest.raises(CapabilityError, match=r"model 'my-mamba' \(mamba\) has recurrent layers, so its memory cannot"):
        open_hf(str(folder), HfOptions(device="cpu"))


def sliding(**more: object) -> Any:
    return transformers.MistralConfig(sliding_window=100, **more)


def test_a_window_that_would_slide_is_refused() -> None:
    with pytest.raises(CapabilityError, match="sliding window of 100 tokens.* open it with a context length of 100 or"):
        check_model(sliding(), "narrow", 101)
    with pytest.raises(CapabilityError, match="model 'gemma' attends to a sliding window of 64"):
        check_model(transformers.Gemma2Config(sliding_window=64, num_hidden_layers=2), "gemma", 65)


def test_a_window_that_never_slides_is_fine() -> None:
    check_model(sliding(), "narrow", 100)
    check_model(sliding(max_position_embeddings=80), "narrow", 4096)
    check_model(transformers.Qwen2Config(use_sliding_window=False, sliding_window=32), "wide", 4096)
    check_model(transformers.Gemma2Config(sliding_window=4096), "gemma", 2048)


@pytest.mark.parametrize(
    "name", ["Qwen3Config", "LlamaConfig", "GPT2Config", "MarianConfig", "T5Config", "MBartConfig"]
)
def test_fit_models_pass(name: str) -> None:
    check_model(getattr(transformers, name)(), "plain", 1024)


def tiny_model(config: str, **settings: object) -> Any:
    """A random model of a family, with weights large enough that attention matters."""
    sizes = {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "head_dim": 8,
    }
    heads = {"num_attention_heads": 4, "num_key_value_heads": 4, "max_position_embeddings": 64}
    ids = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
    made = getattr(transformers, config)(**{**sizes, **heads, **ids, **settings})
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(made)
    with torch.no_grad():
        for weights in model.parameters():
            if weights.dim() == 2:
                weights.copy_(torch.randn_like(weights) * 0.3)
    return model.eval()


@pytest.mark.parametrize(
    ("config", "settings"),
    [("Gemma2Config", {"sliding_window": 64}), ("GPT2Config", {"n_positions": 64})],
)
def test_other_families_run(config: str, settings: dict[str, object]) -> None:
    model = tiny_model(config, **settings)
    backend = tiny.watched(model, context_length=64)
    prompt = tiny.prompts(1)[0]
    asking = decode(prompt, Nothing(), Exact(), end_tokens=backend.end_tokens, limit=6)
    assert run(asking, backend, backend.open_slot()).tokens == tiny.greedy(model, prompt, limit=6)[0]


def test_a_model_that_attends_as_it_likes_is_refused() -> None:
    model = tiny_model("GPTNeoConfig", attention_types=[[["global", "local"], 1]], window_size=3)
    for slots in (1, 2):
        with pytest.raises(CapabilityError, match=r"'tiny' \(gpt_neo\) does not attend as a mask tells it"):
            tiny.watched(model, context_length=64, slots=slots)
