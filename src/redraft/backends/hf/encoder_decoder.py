"""Encoder-decoder models: the encoder runs once per source, and the decoder's cache is rolled back.

One request per pass, chains only: relative positions (T5) and positions counted by the cache (Marian) support neither
trees nor rows of different lengths.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

from redraft.backends.hf.base import HfBackend, TorchRows
from redraft.backends.hf.cache import CellPlan
from redraft.backends.hf.languages import SourcePrompts
from redraft.backends.hf.layers import decoder_layers, shortened
from redraft.backends.hf.tokenizer import HfTokenizer
from redraft.backends.options import HfOptions
from redraft.decoding.backend import Capability
from redraft.decoding.types import Rows, Score, common_prefix
from redraft.errors import CapabilityError, ModelError


@dataclass(slots=True)
class _Slot:
    """One sequence.

    Attributes:
        encoder: ids that the encoder has read.
        states: its output, (1, ids, hidden).
        cache: the decoder's self-attention keys and values, and those of ``states``.
        ids: ids that the decoder has read.
    """

    encoder: tuple[int, ...] = ()
    states: Tensor | None = None
    cache: Any = None
    ids: tuple[int, ...] = ()


class HfEncoderDecoder(HfBackend[_Slot]):
    """An encoder-decoder model; implements `redraft.decoding.backend.Backend`.  See `HfBackend` for the arguments."""

    def __init__(self, model: Any, tokenizer: HfTokenizer, name: str, options: HfOptions) -> None:
        layers = len(decoder_layers(model))
        super().__init__(model, tokenizer, name, options, layers)
        self.capabilities = frozenset({Capability.EARLY_EXIT} if layers > 1 else ())
        prompts = SourcePrompts(model, tokenizer, name)
        self.encoder_prompt, self.plain_prompt = prompts.encode, prompts.plain
        self.encoder_passes = 0
        #: The backends with this encoder: the model, and its early exits.
        self._sharing: list[HfEncoderDecoder] = [self]

    def _new_slot(self, slot: int) -> _Slot:
        return _Slot()

    def early_exit(self, layers: int) -> HfEncoderDecoder:
        """Return a model of the decoder's first ``layers`` layers with the same weights, encoder and head.

        Its cache is separate; what the encoder makes of a source is computed once.

        Raises:
            CapabilityError: ``layers`` is not below the decoder's number of layers.
        """
        short = HfEncoderDecoder(shortened(self.model, layers, self.name), self.tokenizer, self.name, self.options)
        short._sharing = self._sharing
        self._sharing.append(short)
        return short

    def close(self) -> None:
        """Free the cache, and the weights unless another backend shares them."""
        if self in self._sharing:
            self._sharing.remove(self)
        super().close()

    @torch.inference_mode()
    def score(self, requests: Sequence[tuple[int, Score]]) -> list[Rows]:
        """Answer requests one after the other.

        Raises:
            ContextOverflow: the source, or prefix and draft of a request, exceed the context length.
            CapabilityError: a draft is a tree.
            ModelError: a request has no encoder input.
        """
        self._check(requests)
        for _slot, score in requests:
            if not score.encoder:
                raise ModelError(f"model {self.name!r} is an encoder-decoder; its requests need ids for the encoder")
            if not score.draft.is_chain:
                raise CapabilityError(f"model {self.name!r} is an encoder-decoder, which scores no draft trees")
        return [self._answer(slot, score) for slot, score in requests]

    def _answer(self, slot: int, score: Score) -> Rows:
        state = self._slots[slot]
        self._slots[slot] = _Slot()  # drop a partial update of the cache
        if state.encoder != score.encoder:
            state = self._encode(score.encoder)
        started, ids = time.perf_counter(), score.prefix + score.draft.tokens
        kept = min(common_prefix(state.ids, ids), len(score.prefix) - score.prompt_rows)
        cells = torch.arange(kept, len(ids), device=self.device)[None]
        self._cache.follow(CellPlan.of([slot], cells, len(ids), kept))
        # Passed as embeddings, because M2M-100 assigns no position to padding ids, which drafts may contain.
        embedded = self.model.get_decoder().embed_tokens(torch.tensor([ids[kept:]], device=self.device))
        output = self.model(
            encoder_outputs=BaseModelOutput(last_hidden_state=state.states),
            decoder_inputs_embeds=embedded,
            **{self._cache_argument: state.cache},
            use_cache=True,
        )
        state.ids = ids
        self._slots[slot] = state
        wanted = score.prompt_rows + len(score.draft)
        logits = self.allowed(output.logits[0, -wanted:])
        float(logits[-1, 0])  # waits for a GPU
        self._took(len(ids) - kept, wanted, time.perf_counter() - started)
        return TorchRows(logits, score.prompt_rows - 1)

    def _encode(self, ids: tuple[int, ...]) -> _Slot:
        """Encode a source and reset the decoder, whose states depend on it."""
        slots = (slot for backend in self._sharing for slot in backend._slots.values())
        states = next((slot.states for slot in slots if slot.encoder == ids and slot.states is not None), None)
        if states is None:
            source = torch.tensor([ids], device=self.device)
            encoder = self.model.get_encoder()
            states = encoder(input_ids=source, attention_mask=torch.ones_like(source)).last_hidden_state
            self.encoder_passes += 1
        return _Slot(ids, states, EncoderDecoderCache(self._cache, DynamicCache()))
