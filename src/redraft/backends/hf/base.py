"""What both kinds of model have in common: facts, vocabulary, slots, and tokens that may never be produced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from redraft.backends.hf.options import HfOptions
from redraft.backends.hf.tokenizer import HfTokenizer
from redraft.captions.chat import ChatTemplate
from redraft.decoding.types import Score
from redraft.errors import CapabilityError, ContextOverflow, ModelError

S = TypeVar("S")

#: Facts that a configuration may carry in a mapping called ``redraft``, as GGUF files do under ``redraft.*``.
FACTS = "redraft"


class HfBackend(Generic[S]):
    """A loaded model with its slots; `S` is what is remembered of one.

    Args:
        model: a transformers model in evaluation mode, on its device.
        tokenizer: of the model.
        name: what messages and metadata call it.
        options: of the backend.
    """

    def __init__(self, model: Any, tokenizer: HfTokenizer, name: str, options: HfOptions) -> None:
        self.options, self.name, self.tokenizer = options, name, tokenizer
        self.model: Any = model
        self.device, self.dtype = model.device, model.dtype
        text = model.config.get_text_config()
        self.context_length = min(options.context_length, getattr(text, "max_position_embeddings", 1 << 20))
        self.vocabulary_size: int = model.get_output_embeddings().weight.shape[0]
        ends = {*_ids(model.generation_config.eos_token_id), *_ids(tokenizer.end_token), *_turn_ends(tokenizer)}
        self.end_tokens = frozenset(ends)
        pads = [*_ids(tokenizer.pad_token), *_ids(getattr(text, "pad_token_id", None)), *sorted(ends), 0]
        self.pad_token: int = next(pad for pad in pads if pad < self.vocabulary_size)
        self.metadata: Mapping[str, str] = dict(_metadata(model.config, tokenizer, name))
        banned = _banned(model.generation_config, self.end_tokens)
        self._banned = torch.tensor(banned, dtype=torch.long, device=self.device)
        self.tokenize, self.encode, self.token_bytes = tokenizer.tokenize, tokenizer.encode, tokenizer.token_bytes
        self._slots: dict[int, S] = {}

    def _new_slot(self) -> S:
        raise NotImplementedError

    def open_slot(self) -> int:
        """A free sequence.

        Raises:
            CapabilityError: all are in use.
        """
        for slot in range(self.options.slots):
            if slot not in self._slots:
                self._slots[slot] = self._new_slot()
                return slot
        raise CapabilityError(f"all {self.options.slots} slots of the cache are in use; open the model with more slots")

    def close_slot(self, slot: int) -> None:
        """Forget a sequence."""
        del self._slots[slot]

    def close(self) -> None:
        """Free cache and weights, unless another backend shares these."""
        self.model = None
        self._slots = {}

    def _check(self, requests: Sequence[tuple[int, Score]]) -> None:
        """Refuse what cannot be done before anything is changed."""
        if self.model is None:
            raise ModelError(f"model {self.name!r} is closed")
        for _slot, score in requests:
            length = max(len(score.prefix) + score.draft.depth, len(score.encoder))
            if length > self.context_length:
                raise ContextOverflow(f"{length} tokens do not fit into the context length of {self.context_length}")

    def allowed(self, logits: Tensor) -> Tensor:
        """The logits with those of banned tokens at minus infinity, as ``generate`` has them."""
        return logits.index_fill(-1, self._banned, float("-inf")) if len(self._banned) else logits


def _ids(value: Any) -> list[int]:
    """Ids of a setting that holds one, several or none."""
    if value is None:
        return []
    return [int(token) for token in value] if isinstance(value, list | tuple | set) else [int(value)]


def _banned(generation: Any, ends: frozenset[int]) -> list[int]:
    """Tokens that the generation settings forbid everywhere: bad words of one token, and suppressed tokens.

    Marian models list their padding there, from which their decoders start.
    """
    bad = {word[0] for word in getattr(generation, "bad_words_ids", None) or () if len(word) == 1} - ends
    return sorted(bad | set(_ids(getattr(generation, "suppress_tokens", None))))


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


def _metadata(config: Any, tokenizer: HfTokenizer, name: str) -> Iterator[tuple[str, str]]:
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
