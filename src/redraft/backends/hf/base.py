"""Shared by both kinds of models: metadata, vocabulary, slots, rows, banned tokens, and a model's first layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, Self, TypeVar

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from redraft.backends.hf.cache import SlotCache
from redraft.backends.hf.facts import cache_argument, described, ids_in
from redraft.backends.hf.tokenizer import HfTokenizer
from redraft.backends.numpy_rows import MatrixRows
from redraft.backends.options import HfOptions
from redraft.backends.slots import Slotted
from redraft.decoding.backend import Capability
from redraft.decoding.types import Score
from redraft.errors import CapabilityError, ModelError


def shortened(model: Any, layers: int, name: str) -> Any:
    """Return the model with the first ``layers`` layers of its decoder; parameters are shared.

    Raises:
        CapabilityError: ``layers`` is not below the number of layers.
    """
    every = len(_layers(_stack(model))[1])
    if not 1 <= layers < every:
        raise CapabilityError(
            f"an early exit of model {name!r} must be after 1 to {every - 1} of its {every} layers, not after {layers}"
        )
    short = deepcopy(model, {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())})
    stack = _stack(short)
    field, kept = _layers(stack)
    setattr(stack, field, nn.ModuleList(kept[:layers]))
    return short


def _stack(model: Any) -> nn.Module:
    stack: nn.Module = model.get_decoder() if model.config.is_encoder_decoder else model.base_model
    return stack


def _layers(stack: nn.Module) -> tuple[str, Sequence[nn.Module]]:
    """Return name and content of a decoder's longest list of modules."""
    found = [(name, list(part)) for name, part in stack.named_children() if isinstance(part, nn.ModuleList)]
    return max(found, key=lambda each: len(each[1]), default=("", []))


class TorchRows(MatrixRows):
    """Rows of one request.

    Only results leave the device: ids for `argmax` and `best`, single numbers otherwise.  Logits are converted to
    32-bit floats, in which log-probabilities and entropies have errors of about 1e-6.
    """

    _logits: Tensor

    def _log_normaliser(self, node: int) -> float:
        if node in self._normaliser:
            return self._normaliser[node]
        if node < -1 or self._places:
            self._normaliser[node] = float(torch.logsumexp(self.row(node).float(), dim=0))
        else:  # those of all rows at once, since each result synchronises a GPU
            found = torch.logsumexp(self._logits[self._root :].float(), dim=1).tolist()
            self._normaliser.update(enumerate(found, -1))
        return self._normaliser[node]

    def best(self, node: int, k: int) -> list[int]:
        """Return the ``k`` most probable tokens that are possible, best first, lower ids first among equals."""
        if k == 1:
            return [self.argmax(node)]
        logits = self.row(node)
        k = min(k, len(logits))
        # `topk` does not specify which of several equals it returns, so all candidates are sorted again.
        candidates = torch.nonzero((logits >= logits.topk(k).values[-1]) & (logits > -math.inf)).flatten()
        order = torch.sort(logits[candidates], descending=True, stable=True)
        return [*candidates[order.indices[:k]].tolist()]

    def array(self, node: int) -> NDArray[Any]:
        """Return the logits after ``node`` for NumPy."""
        found: NDArray[Any] = self.row(node).float().cpu().numpy()
        return found

    def entropy(self, node: int) -> float:
        """Return the entropy in nats."""
        logs = self.row(node).float() - self._log_normaliser(node)
        return -float(torch.nansum(logs.exp() * logs))  # 0 times infinity, for impossible tokens, counts as 0


S = TypeVar("S")


class HfBackend(Slotted[S]):
    """A loaded model with its slots; `S` is the state of a slot."""

    def __init__(
        self, model: Any, tokenizer: HfTokenizer, name: str, options: HfOptions, new_slot: Callable[[int], S]
    ) -> None:
        exits = len(_layers(_stack(model))[1])
        self.layers = exits or model.config.get_text_config().num_hidden_layers
        self.capabilities = frozenset({Capability.EARLY_EXIT} if exits > 1 else ())
        self._cache = SlotCache(self.layers, options.slots)
        self.name, self.tokenizer = name, tokenizer
        self.model: Any = model
        self._cache_argument = cache_argument(type(model)) or "past_key_values"
        self.device, self.dtype = model.device, model.dtype
        longest = getattr(model.config.get_text_config(), "max_position_embeddings", 1 << 20)
        size = model.get_output_embeddings().weight.shape[0]
        facts = described(name, model.config, model.generation_config, tokenizer, size, longest)
        super().__init__(facts, options, new_slot)
        banned = _banned(model.generation_config, self.end_tokens)
        self._banned = torch.tensor(banned, dtype=torch.long, device=self.device)

    def early_exit(self, layers: int) -> Self:
        """Return a model of the decoder's first ``layers`` layers with the same weights and head, and a separate cache.

        Raises:
            CapabilityError: ``layers`` is not below the decoder's number of layers.
        """
        short = shortened(self.model, layers, self.name)
        return type(self)(short, self.tokenizer, self.name, self.options)  # type: ignore[call-arg]  # the slots are its own

    def close_slot(self, slot: int) -> None:
        """Release a slot and clear its cache."""
        self._slots.pop(slot, None)  # there are none once the backend is closed

    def close(self) -> None:
        """Free the cache, and the weights unless another backend shares them."""
        self.model = None
        self._cache, self._slots = SlotCache(0, 0), {}

    def _check(self, requests: Sequence[tuple[int, Score]]) -> None:
        """Check requests before anything is changed."""
        if self.model is None:
            raise ModelError(f"model {self.name!r} is closed")
        for _slot, score in requests:
            self._check_length(max(len(score.prefix) + score.draft.depth, len(score.encoder)))

    def allowed(self, logits: Tensor) -> Tensor:
        """Set the logits of banned tokens to minus infinity, as ``generate`` does."""
        return logits.index_fill(-1, self._banned, float("-inf")) if len(self._banned) else logits


def _banned(generation: Any, ends: frozenset[int]) -> list[int]:
    """Return the tokens that the generation settings always ban: single-token bad words and suppressed tokens.

    Marian models ban their padding token this way, which starts their decoders.
    """
    bad = {word[0] for word in getattr(generation, "bad_words_ids", None) or () if len(word) == 1} - ends
    return sorted(bad | set(ids_in(getattr(generation, "suppress_tokens", None))))
