"""Opens a model of transformers: a folder, or a name on the hub.

From the hub a model is fetched by transformers itself.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer
from transformers.utils import logging

from redraft.backends.hf.decoder_only import HfDecoder
from redraft.backends.hf.encoder_decoder import HfEncoderDecoder
from redraft.backends.hf.options import HfOptions
from redraft.backends.hf.refuse import check_model
from redraft.backends.hf.tokenizer import HfTokenizer
from redraft.errors import ModelError, OptionError, first_sentence
from redraft.models.hub import hub_host


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
    source = _source(name)
    config = _loaded(AutoConfig, name, source)
    check_model(config, short)
    tokenizer = _loaded(AutoTokenizer, name, source)
    kind = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    model = _loaded(kind, name, source, dtype=getattr(torch, options.dtype))
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


#: What the hub takes for the name of a model.
_HUB_NAME = re.compile(r"[\w.-]{1,96}(/[\w.-]{1,96})?")


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


def _source(name: str) -> dict[str, Any]:
    """Where a model is loaded from: a folder, or the hub, or what was fetched before if the hub does not answer."""
    if _is_folder(name):
        return {"pretrained_model_name_or_path": name}
    repository, _, revision = name.partition("@")
    pinned = {"revision": revision} if revision else {}
    return {"pretrained_model_name_or_path": repository, "local_files_only": hub_host() is not None, **pinned}


def _is_folder(name: str) -> bool:
    try:
        return Path(name).is_dir()
    except OSError:  # the name is too long for a file
        return False


def _loaded(kind: Any, name: str, source: dict[str, Any], **options: Any) -> Any:
    try:
        with quiet(local="local_files_only" not in source):
            return kind.from_pretrained(**source, **options)
    except (OSError, ValueError, KeyError, ImportError) as error:
        if source.get("local_files_only") and _HUB_NAME.fullmatch(source["pretrained_model_name_or_path"]):
            raise ModelError(
                f"model {name!r} has not been downloaded before and there is no network: name a folder"
            ) from error
        raise ModelError(f"model {name!r} cannot be loaded with transformers: {first_sentence(error)}") from error


@contextmanager
def quiet(*, local: bool) -> Iterator[None]:
    """No progress bar for what is read from a folder, or written; a download keeps its own."""
    silenced = local and logging.is_progress_bar_enabled()
    if silenced:
        logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            # Marian's tokenizer does without; punctuation is then read as it stands.
            warnings.filterwarnings("ignore", "Recommended: pip install sacremoses")
            yield
    finally:
        if silenced:
            logging.enable_progress_bar()
