"""What is known of a model of transformers without its weights: its end tokens, and its facts.

Knows neither torch nor the model, so that a model that runs elsewhere is described in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from redraft.backends.hf.tokenizer import HfTokenizer
from redraft.captions.chat import ChatTemplate
from redraft.errors import ModelError

#: Facts that a configuration may carry in a mapping called ``redraft``, as GGUF files do under ``redraft.*``.
FACTS = "redraft"


def ids_in(value: Any) -> list[int]:
    """Ids of a setting that holds one, several or none."""
    if value is None:
        return []
    return [int(token) for token in value] if isinstance(value, list | tuple | set) else [int(value)]


def end_tokens(generation: Any, tokenizer: HfTokenizer) -> frozenset[int]:
    """Ids that end an output: those of the generation settings, the tokenizer's, and the chat template's."""
    return frozenset({*ids_in(generation.eos_token_id), *ids_in(tokenizer.end_token), *_turn_ends(tokenizer)})


def pad_token(config: Any, tokenizer: HfTokenizer, ends: frozenset[int], vocabulary_size: int) -> int:
    """An id that stands for nothing."""
    text = config.get_text_config()
    pads = [*ids_in(tokenizer.pad_token), *ids_in(getattr(text, "pad_token_id", None)), *sorted(ends), 0]
    return next(pad for pad in pads if pad < vocabulary_size)


def _chat_template(tokenizer: HfTokenizer) -> str:
    """The model's chat template; empty if it has none."""
    template = getattr(tokenizer.base, "chat_template", None)
    if isinstance(template, dict):
        template = template.get("default")
    return template or ""


def _turn_ends(tokenizer: HfTokenizer) -> list[int]:
    """The control token with which the chat template ends an answer, which not every model lists as an end token.

    Gemma 2 ends its turns with ``<end_of_turn>`` and names ``<eos>`` alone.
    """
    try:
        turn_end = ChatTemplate(_chat_template(tokenizer), end=tokenizer.base.eos_token or "").turn_end
    except ModelError:  # the prompt will say so, if the template is wanted
        return []
    ids = tokenizer.tokenize(turn_end.strip(), special=True)
    first = next((token for token in ids if tokenizer.is_control(token) or tokenizer.token_bytes(token).strip()), None)
    if first is None or not tokenizer.is_control(first) or first == tokenizer.base.unk_token_id:
        return []
    return [first]


def metadata(config: Any, tokenizer: HfTokenizer, name: str) -> Iterator[tuple[str, str]]:
    """Facts of the model under the keys of GGUF files."""
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
