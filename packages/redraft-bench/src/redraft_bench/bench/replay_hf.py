"""Models for replays on transformers: random weights, created in memory.  Needs the ``hf`` extra."""

from __future__ import annotations

import torch
from tokenizers import Tokenizer, models
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

from redraft.backends.hf.model import backend_of, device_of
from redraft.backends.hf.options import HfOptions
from redraft.decoding.backend import Backend
from redraft_bench.models.shape import SHAPES


def open_shape(name: str, options: HfOptions, seed: int = 0) -> tuple[Backend, dict[str, object]]:
    """Create a model of one of `SHAPES`; return the backend and facts for the signature.

    Raises:
        OptionError: the device does not exist.
    """
    shape, device = SHAPES[name], device_of(options.device)
    torch.manual_seed(seed)
    with device:
        config = AutoConfig.for_model(shape.architecture, **shape.hf_settings())
        model = AutoModelForCausalLM.from_config(config, dtype=getattr(torch, options.dtype))
    # No text is processed, so a vocabulary of one letter is enough.
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"a": 0}, unk_token="a")))
    return backend_of(model, tokenizer, name, options), {
        "model": f"{name}-{options.dtype}-{device.type}",
        "weights": "random",
        "shape": f"{shape.architecture}-{shape.layers}x{shape.hidden}",
        "dtype": options.dtype,
        "engine": "transformers",
        "device": torch.cuda.get_device_name(device).replace(" ", "-") if device.type == "cuda" else device.type,
        "threads": torch.get_num_threads(),
    }
