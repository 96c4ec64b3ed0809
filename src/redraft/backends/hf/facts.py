"""What a transformers model is, found without torch and its weights: support, end tokens, metadata.

A model on a server is described in the same way.
"""

from __future__ import annotations

import inspect
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
)
from transformers.utils import logging

from redraft.backends.hf.tokenizer import HfTokenizer
from redraft.backends.slots import Facts
from redraft.captions.chat import ChatTemplate
from redraft.errors import CapabilityError, MissingExtra, ModelError, first_sentence, install
from redraft.models.disk import check_gguf, parts
from redraft.models.hub import hub_host

#: Ending of files whose weights transformers turns into floats.
GGUF = ".gguf"
#: Valid names of models on the hub.
_HUB_NAME = re.compile(r"[\w.-]{1,96}(/[\w.-]{1,96})?")


def source_of(name: str) -> tuple[str, dict[str, Any]]:
    """Return where to load a model from: a folder, a GGUF file, the hub, or its local cache if it does not respond.

    Returns:
        What ``from_pretrained`` of transformers takes: the place, and arguments by name.

    Raises:
        MissingExtra: the name is a GGUF file, and the libraries that read it are not installed.
        ModelError: the name is a GGUF file that cannot be read, or that has several parts.
    """
    if os.path.isdir(name):  # noqa: PTH112  # false for names that are too long, where a Path raises
        return name, {}
    if name.lower().endswith(GGUF):
        if not all(map(find_spec, ("accelerate", "gguf"))):
            raise MissingExtra(f"transformers reads {name!r} with the gguf extra: {install('gguf')}")
        check_gguf(Path(name))
        if len(parts(Path(name))) > 1:
            raise ModelError(
                f"model {name!r} has several parts, which transformers does not read: use it without hf:, or merge it "
                "with `llama-gguf-split --merge`"
            )
        return str(Path(name).parent), {"gguf_file": Path(name).name}
    repository, _, revision = name.partition("@")
    pinned = {"revision": revision} if revision else {}
    return repository, {"local_files_only": hub_host() is not None, **pinned}


def loaded(kind: Any, name: str, source: tuple[str, dict[str, Any]], **options: Any) -> Any:
    """Load an object with a class of transformers.

    Raises:
        ModelError: the model does not exist or is broken, or is not cached and there is no network.
    """
    place, where = source
    try:
        with quiet(local="local_files_only" not in where):
            return kind.from_pretrained(place, **where, **options)
    except Exception as error:  # of many libraries, whose exceptions have no class in common
        if where.get("local_files_only") and _HUB_NAME.fullmatch(place):
            raise ModelError(
                f"model {name!r} has not been downloaded, and there is no network: use a folder"
            ) from error
        raise ModelError(f"model {name!r} cannot be loaded with transformers: {first_sentence(error)}") from error


@contextmanager
def quiet(*, local: bool) -> Iterator[None]:
    """Hide transformers' warnings, and progress bars for reading from a folder or writing; downloads keep theirs."""
    shown, known = logging.is_progress_bar_enabled(), logging.get_verbosity()
    if local:
        logging.disable_progress_bar()
    logging.set_verbosity_error()  # a table of weights that a model lacks, which is refused in one sentence
    try:
        with warnings.catch_warnings():
            # Marian's tokenizer works without it, but does not normalise punctuation.
            warnings.filterwarnings("ignore", "Recommended: pip install sacremoses")
            yield
    finally:
        logging.set_verbosity(known)
        if shown:
            logging.enable_progress_bar()


#: Key of a mapping in the configuration with metadata such as those under ``redraft.*`` in GGUF files.
FACTS = "redraft"


def ids_in(value: Any) -> list[int]:
    """Return the ids in a setting that holds one, several or none."""
    if value is None:
        return []
    return [int(token) for token in value] if isinstance(value, list | tuple | set) else [int(value)]


def described(
    name: str, config: Any, generation: Any, tokenizer: HfTokenizer, vocabulary_size: int, context_length: int
) -> Facts:
    """Return what a model is: an output ends as generation settings, tokenizer and chat template say."""
    ends = frozenset({*ids_in(generation.eos_token_id), *ids_in(tokenizer.end_token), *_turn_ends(tokenizer)})
    own = ids_in(getattr(config.get_text_config(), "pad_token_id", None))
    pad = next(each for each in (*ids_in(tokenizer.pad_token), *own, *sorted(ends), 0) if each < vocabulary_size)
    known = dict(_metadata(config, tokenizer, name.rpartition("/")[2]))
    return Facts(name, tokenizer, context_length, ends, pad, vocabulary_size, known)


def _chat_template(tokenizer: HfTokenizer) -> str:
    template = getattr(tokenizer.base, "chat_template", None)
    if isinstance(template, dict):
        template = template.get("default")
    return template or ""


def _turn_ends(tokenizer: HfTokenizer) -> list[int]:
    """Return the control token with which the chat template ends an answer; not every model lists it as an end token.

    Gemma 2 ends its turns with ``<end_of_turn>`` but lists only ``<eos>``.
    """
    try:
        turn_end = ChatTemplate(_chat_template(tokenizer), end=tokenizer.base.eos_token or "").turn_end
    except ModelError:  # reported later, if the template is used
        return []
    ids = tokenizer.tokenize(turn_end.strip(), special=True)
    first = next((token for token in ids if tokenizer.is_control(token) or tokenizer.token_bytes(token).strip()), None)
    if first is None or not tokenizer.is_control(first) or first == tokenizer.base.unk_token_id:
        return []
    return [first]


def _metadata(config: Any, tokenizer: HfTokenizer, name: str) -> Iterator[tuple[str, str]]:
    """Yield metadata of the model under GGUF keys."""
    yield "general.name", name
    yield "general.architecture", config.model_type.removesuffix("_text").replace("_", "").replace("-", "")
    yield "tokenizer.ggml.model", "llama" if tokenizer.adds_space else "gpt2"
    template = _chat_template(tokenizer)
    if template:
        yield "tokenizer.chat_template", template
    for key, token in (("bos", tokenizer.start_token), ("eos", tokenizer.end_token)):
        if token is not None:
            yield f"tokenizer.ggml.{key}_token_id", str(token)
    for key, value in (getattr(config, FACTS, None) or {}).items():
        yield f"{FACTS}.{key}", str(value)


#: Supported encoder-decoders: their decoders take embeddings and a cache, and their prompt formats are known.
ENCODER_DECODERS = ("m2m_100", "marian", "mbart", "mt5", "t5", "umt5")
#: Layer types whose cache keeps every position.
_CROPPABLE = {"full_attention", "sliding_attention"}
#: Required arguments of a decoder besides an external cache: for rows of different lengths, and a choice of positions.
_NEEDED = {"attention_mask", "position_ids", "logits_to_keep"}
#: Names of the argument for the cache: since transformers 5.24, and before.
_CACHE_NAMES = ("cache", "past_key_values")


def check_model(config: Any, name: str) -> None:
    """Check that a model supports rolling back and the masks that drafts need.

    Raises:
        CapabilityError: the model is not supported; the message says why.
    """
    if config.is_encoder_decoder:
        if config.model_type not in ENCODER_DECODERS:
            raise CapabilityError(
                f"model {name!r} is an encoder-decoder of type {config.model_type!r}, which this backend does not run; "
                f"it runs {', '.join(ENCODER_DECODERS[:-1])} and {ENCODER_DECODERS[-1]}"
            )
        return
    text = config.get_text_config()
    reason = _unfit(config, text)
    if reason:
        raise CapabilityError(f"model {name!r} ({config.model_type}) {reason}; a decoder-only transformer is needed")


def cache_argument(model_class: type) -> str | None:
    """Return the name of the argument by which a model takes its cache; None if it takes none."""
    parameters = inspect.signature(model_class.forward).parameters  # type: ignore[attr-defined]
    return next((name for name in _CACHE_NAMES if name in parameters), None)


def _unfit(config: Any, text: Any) -> str:
    model_class = MODEL_FOR_CAUSAL_LM_MAPPING.get(type(config), None)
    if isinstance(model_class, list | tuple):
        model_class = model_class[0]
    if model_class is None:
        return "is no language model with a decoder"
    taken = set(inspect.signature(model_class.forward).parameters)
    foreign = set(getattr(text, "layer_types", None) or ()) - _CROPPABLE
    missing = (_NEEDED - taken) | ({"past_key_values"} if taken.isdisjoint(_CACHE_NAMES) else set())
    reasons = {
        "has recurrent layers, so its memory cannot be rolled back": getattr(model_class, "_is_stateful", False),
        f"has layers of type {', '.join(sorted(foreign))}, whose memory cannot be rolled back": foreign,
        "is an encoder": config.model_type in MODEL_FOR_MASKED_LM_MAPPING_NAMES,
        "attends to what comes after": getattr(text, "use_bidirectional_attention", False),
        "shares caches between layers, which this backend does not": getattr(text, "num_kv_shared_layers", 0),
        f"takes no {' nor '.join(sorted(missing))}, which rolling back and batches need": missing,
    }
    return next((reason for reason, there in reasons.items() if there), "")
