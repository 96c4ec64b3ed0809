"""Open a transformers model from a folder or from the hub.

Transformers downloads models from the hub.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

from redraft.backends.hf.decoder_only import HfDecoder
from redraft.backends.hf.encoder_decoder import HfEncoderDecoder
from redraft.backends.hf.facts import check_model, loaded, source_of
from redraft.backends.hf.tokenizer import HfTokenizer
from redraft.backends.options import HfOptions
from redraft.errors import CapabilityError, ModelError, OptionError


def open_hf(name: str, options: HfOptions) -> HfDecoder | HfEncoderDecoder:
    """Load a model with its tokenizer.

    Args:
        name: folder, GGUF file, or name of a model on the hub; ``NAME@REVISION`` pins a branch, tag or commit.

    Raises:
        ModelError: the model does not exist or is broken, or is not cached and there is no network.
        MissingExtra: the model is a GGUF file, and the library that reads it is not installed.
        CapabilityError: its cache cannot be rolled back; see `redraft.backends.hf.facts`.
        OptionError: the device does not exist.
    """
    device = device_of(options.device)
    short = Path(name).name or name
    source = source_of(name)
    config = loaded(AutoConfig, name, source)
    if config.model_type == "qwen3" and "gguf_file" in source[1]:
        config.head_dim = _head_size(Path(name)) or config.head_dim
    check_model(config, short)
    tokenizer = loaded(AutoTokenizer, name, source)
    kind = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    model = _with_weights(kind, name, source, config, getattr(torch, options.dtype))
    if "gguf_file" in source[1]:
        # The weights are floats now, but transformers would refuse to save them.
        model.hf_quantizer = None
        vars(model.config).pop("quantization_config", None)
    return backend_of(model.to(device), tokenizer, short, options)


def _with_weights(kind: Any, name: str, source: tuple[str, dict[str, Any]], config: Any, dtype: torch.dtype) -> Any:
    """Load a model with all its weights, where transformers would draw those that its files lack at random."""
    asked = {"config": config, "dtype": dtype, "ignore_mismatched_sizes": True, "output_loading_info": True}
    model, found = loaded(kind, name, source, **asked)
    missing = sorted({*found["missing_keys"], *(key for key, *_ in found["mismatched_keys"])})
    if missing:
        raise ModelError(
            f"model {name!r} is incomplete: its files lack {len(missing)} weights, such as {missing[0]}, or have them "
            "in another size; download it again"
        )
    return model


def _head_size(file: Path) -> int | None:
    """Return the size of attention heads in a GGUF file, which transformers ignores for Qwen3; None if it has none."""
    from gguf import GGUFReader

    field = GGUFReader(file).get_field("qwen3.attention.key_length")
    return None if field is None else int(field.contents())


def backend_of(model: Any, tokenizer: Any, name: str, options: HfOptions) -> HfDecoder | HfEncoderDecoder:
    """Return the backend of a loaded model and tokenizer.

    Raises:
        CapabilityError: the model's cache cannot be rolled back, or its passes cannot have fixed shapes.
    """
    check_model(model.config, name)
    if options.threads:
        torch.set_num_threads(options.threads)
    model.eval()
    wrapped = HfTokenizer(tokenizer)
    if model.config.is_encoder_decoder:
        if options.static:
            raise CapabilityError(f"model {name!r} has an encoder, so static cannot be used: leave it out")
        return HfEncoderDecoder(model, wrapped, name, options)
    decoder = HfDecoder(model, wrapped, name, options)
    decoder.check_attention()
    return decoder


def device_of(wanted: str) -> torch.device:
    """Return the device for an option.

    Raises:
        OptionError: the device does not exist.
    """
    there = torch.cuda.is_available()
    if wanted == "cuda" and not there:
        raise OptionError("device cuda is not available: use cpu or auto, or install a torch with CUDA")
    return torch.device("cuda" if there and wanted != "cpu" else "cpu")
