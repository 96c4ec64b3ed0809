"""Opens a model of transformers: a folder, or a name on the hub.

From the hub a model is fetched by transformers itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

from redraft.backends.hf.decoder_only import HfDecoder
from redraft.backends.hf.encoder_decoder import HfEncoderDecoder
from redraft.backends.hf.files import loaded, source_of
from redraft.backends.hf.options import HfOptions
from redraft.backends.hf.refuse import check_model
from redraft.backends.hf.tokenizer import HfTokenizer
from redraft.errors import OptionError


def open_hf(name: str, options: HfOptions) -> HfDecoder | HfEncoderDecoder:
    """Load a model with its tokenizer.

    Args:
        name: of a folder, or of a model on the hub; ``NAME@REVISION`` pins a branch, tag or commit of it.
        options: of the backend.

    Raises:
        ModelError: there is no such model, its files are broken, or there is no network and it was not fetched before.
        CapabilityError: it cannot be rolled back; see `redraft.backends.hf.refuse`.
        OptionError: there is no such device.
    """
    device = device_of(options.device)
    short = Path(name).name or name
    source = source_of(name)
    config = loaded(AutoConfig, name, source)
    check_model(config, short)
    tokenizer = loaded(AutoTokenizer, name, source)
    kind = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    model = loaded(kind, name, source, dtype=getattr(torch, options.dtype))
    return backend_of(model.to(device), tokenizer, short, options)


def backend_of(model: Any, tokenizer: Any, name: str, options: HfOptions) -> HfDecoder | HfEncoderDecoder:
    """The backend of a model and a tokenizer that are loaded already.

    Raises:
        CapabilityError: the model cannot be rolled back.
    """
    check_model(model.config, name)
    if options.threads:
        torch.set_num_threads(options.threads)
    model.eval()
    wrapped = HfTokenizer(tokenizer)
    if model.config.is_encoder_decoder:
        return HfEncoderDecoder(model, wrapped, name, options)
    decoder = HfDecoder(model, wrapped, name, options)
    decoder.check_attention()
    return decoder


def device_of(wanted: str) -> torch.device:
    """The device that an option names.

    Raises:
        OptionError: there is none.
    """
    if wanted == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
    if wanted == "cuda" and not torch.cuda.is_available():
        raise OptionError("device cuda is not available: use cpu or auto, or install a torch with CUDA")
    return torch.device(wanted)
