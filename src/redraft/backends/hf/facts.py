"""End tokens and metadata of a transformers model, found without its weights.

Needs neither torch nor the model, so that a model on a server is described in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from redraft.backends.hf.tokenizer import HfTokenizer
from redraft.captions.chat import ChatTemplate
from redraft.errors import ModelError

#: Key of a mapping in the configuration with metadata such as those under ``redraft.*`` in GGUF files.
FACTS = "redraft"


def ids_in(value: Any) -> list[int]:
    """Return the ids in a setting that holds one, several or none."""
    if value is None:
        return []
    return [int(token) for token in value] if isinstance(value, list | tuple | set) else [int(value)]


def end_tokens(generation: Any, tokenizer: HfTokenizer) -> frozenset[int]:
    """Return the ids that end an output: from the generation settings, the tokenizer and the chat template."""
    return frozenset({*ids_in(generation.eos_token_id), *ids_in(tokenizer.end_token), *_turn_ends(tokenizer)})


def pad_token(config: Any, tokenizer: HfTokenizer, ends: frozenset[int], vocabulary_size: int) -> int:
    """Return the id of a token to use as padding."""
    text = config.get_text_config()
    pads = [*ids_in(tokenizer.pad_token), *ids_in(getattr(text, "pad_token_id", None)), *sorted(ends), 0]
    return next(pad for pad in pads if pad < vocabulary_size)


def _chat_template(tokenizer: HfTokenizer) -> str:
    """Return the model's chat template; empty if it has none."""
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


def metadata(config: Any, tokenizer: HfTokenizer, name: str) -> Iterator[tuple[str, str]]:
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
