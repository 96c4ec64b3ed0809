"""Decoder-only models: one pass for all slots of a round, draft trees by an attention mask, and fixed shapes.

A short pass is hundreds of small kernels, and starting them takes longer than running them.  A graph starts all of them
at once, but has fixed shapes and addresses: so a pass is padded to the next of a few widths and lengths, and its inputs
are copied into tensors that stay.

A pass has a row per request.  The ids to process are at the end of their row, after padding, so that the wanted logits
are the last of every row.  A tree's nodes are stored after the prefix in draft order, one cell each; afterwards the
cells of the accepted path are moved together and the others are dropped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from redraft.backends.hf.base import HfBackend, TorchRows
from redraft.backends.hf.cache import BLOCK, ONE_MASK, CellPlan, Masks, PassRow, SlotCache
from redraft.backends.hf.tokenizer import HfTokenizer
from redraft.backends.options import HfOptions
from redraft.decoding.backend import Capability
from redraft.decoding.types import EMPTY_DRAFT, ROOT, Draft, Provenance, Rows, Score, common_prefix
from redraft.errors import CapabilityError

#: Numbers of new ids to which passes are padded; wider ones, such as those of new prompts, run as they are.
WIDTHS = (1, 2, 4, 8, 16, 32, 64)

Inputs = Mapping[str, Tensor]


def shape_of(width: int, length: int) -> tuple[int, int] | None:
    """Return the width and the number of cells to which a pass is padded; None if it runs as it is."""
    fixed = next((each for each in WIDTHS if each >= width), None)
    return None if fixed is None else (fixed, cells_of(length))


def cells_of(length: int) -> int:
    """Return the number of cells to which a length is rounded up."""
    return -(-length // BLOCK) * BLOCK


class StaticPasses:
    """Runs a function in fixed shapes: captured once for each on a GPU and replayed, called elsewhere.

    Args:
        run: computes a pass from its inputs and its number of cells; all that changes from pass to pass must be in the
            inputs.
    """

    def __init__(self, run: Callable[[Inputs, int], Tensor]) -> None:
        self._run = run
        #: By (batch, width, cells): the tensors that are read, and what computes a pass from them.
        self._passes: dict[tuple[int, int, int], tuple[dict[str, Tensor], Callable[[], Tensor]]] = {}

    def __call__(self, inputs: Inputs, length: int) -> Tensor:
        """Return what the function returns; another pass of the shape overwrites it.

        Args:
            inputs: tensors by name; ``ids``, (batch, width), is among them.
            length: number of cells, as in `shape_of`.
        """
        batch, width = inputs["ids"].shape
        key = batch, width, length
        if key not in self._passes:
            held = {name: tensor.clone() for name, tensor in inputs.items()}
            run = partial(self._run, held, length)
            self._passes[key] = held, _captured(run) if held["ids"].is_cuda else run
        held, compute = self._passes[key]
        for name, tensor in inputs.items():
            held[name].copy_(tensor)
        return compute()


def _captured(run: Callable[[], Tensor]) -> Callable[[], Tensor]:
    """Return a function that replays what another one computes on a GPU."""
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):  # libraries set themselves up, which cannot be captured
        run()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = run()

    def replay() -> Tensor:
        graph.replay()
        return output

    return replay


#: Maximum relative difference between two computations of the same row, in 32 bits and in lower precision.
_ROUNDING, _COARSE_ROUNDING = 1e-3, 0.1


@dataclass(slots=True)
class _Slot:
    """Contents of a cache row: the ids of its first cells, then the nodes of a draft."""

    ids: tuple[int, ...] = ()
    draft: Draft = EMPTY_DRAFT


class HfDecoder(HfBackend[_Slot]):
    """A decoder-only model; implements `redraft.decoding.backend.Backend`.  See `HfBackend` for the arguments."""

    def __init__(self, model: Any, tokenizer: HfTokenizer, name: str, options: HfOptions) -> None:
        super().__init__(model, tokenizer, name, options, lambda _slot: _Slot())
        self.capabilities |= {Capability.TREES, Capability.PROMPT_ROWS, Capability.BATCHES}
        self._masks = Masks(model.config, self.dtype)
        #: Runs short passes in fixed shapes, if that is asked for.
        self.static = StaticPasses(self._pass) if options.static else None
        if self.static:  # graphs know the addresses of the cache, so it must not grow
            self._cache = SlotCache(self.layers, options.slots, cells_of(self.context_length) + 1)

    def check_attention(self) -> None:
        """Score a small tree next to another request, and compare with passes that need neither mask nor cache.

        Some models do not follow attention masks (ALiBi derives positions from the mask's shape).

        Raises:
            CapabilityError: the rows differ by far more than rounding errors.
        """
        five, six, *nodes = (token % self.vocabulary_size for token in range(5, 10))
        slots = [self.open_slot() for _ in range(min(2, self.options.slots))]
        tree = Draft(tuple(nodes), (ROOT, ROOT, 1), (Provenance.MODEL,) * 3)
        scores = [Score((five, six), tree), Score((five,))][: len(slots)]
        with torch.inference_mode():
            rows = [self._prepare(slot, score) for slot, score in zip(slots, scores, strict=True)]
            found = self._forward(slots, rows)[:, -1].float()
            for row, path in zip(found, [[five, six, *nodes[1:]], [five]], strict=False):
                plain = self.model(input_ids=torch.tensor([path], device=self.device), use_cache=False).logits[0, -1]
                plain = self.allowed(plain).float()
                share = _ROUNDING if self.dtype == torch.float32 else _COARSE_ROUNDING
                most = share * float(plain[plain.isfinite()].abs().max())
                if not torch.allclose(row, plain, rtol=0, atol=most):
                    raise CapabilityError(
                        f"model {self.name!r} ({self.model.config.model_type}) ignores attention masks, "
                        "so drafts cannot be scored"
                    )
        for slot in slots:
            self.close_slot(slot)

    @torch.inference_mode()
    def score(self, requests: Sequence[tuple[int, Score]]) -> list[Rows]:
        """Answer requests of different slots in one forward pass.

        Raises:
            ContextOverflow: prefix and draft of a request exceed the context length.
        """
        self._check(requests)
        if not requests:
            return []
        slots = [slot for slot, _score in requests]
        started = time.perf_counter()
        try:
            rows = [self._prepare(slot, score) for slot, score in requests]
            logits = self._forward(slots, rows)
        except BaseException:
            for slot in slots:
                self._slots[slot] = _Slot()
            raise
        float(logits[0, -1, 0])  # waits for a GPU
        new, wanted = sum(len(row.ids) for row in rows), sum(row.wanted for row in rows)
        self._took(new, wanted, time.perf_counter() - started)
        return [
            TorchRows(found[-row.wanted :], score.prompt_rows - 1)
            for found, row, (_slot, score) in zip(logits, rows, requests, strict=True)
        ]

    def _prepare(self, slot: int, score: Score) -> PassRow:
        """Roll the slot back to the prefix it shares with the request, and return what must be processed."""
        state = self._slots[slot]
        self._adopt(slot, state, score.prefix)
        length = len(score.prefix)
        kept = min(common_prefix(state.ids, score.prefix), length - score.prompt_rows)
        state.ids, state.draft = score.prefix, score.draft
        nodes = len(score.draft)
        return PassRow(
            [*score.prefix[kept:], *score.draft.tokens],
            list(range(kept, length + nodes)),
            [*range(kept, length), *(length + depth - 1 for depth in score.draft.depths)],
            length - kept,
            score.draft,
            score.prompt_rows + nodes,
        )

    def _adopt(self, slot: int, state: _Slot, prefix: Sequence[int]) -> None:
        """After a draft: keep the cells of the path that the new prefix follows, moved to the end of the old prefix."""
        base, draft = len(state.ids), state.draft
        state.draft = EMPTY_DRAFT
        if not len(draft) or common_prefix(state.ids, prefix) < base:
            return
        followed = {ROOT: 0}  # node -> length of its path, for nodes on the prefix
        for node, (token, parent) in enumerate(zip(draft.tokens, draft.parents, strict=True)):
            place = base + followed.get(parent, len(prefix))
            if place < len(prefix) and prefix[place] == token:
                followed[node] = place - base + 1
        path = draft.path(max(followed, key=lambda each: followed[each]))
        if path != list(range(len(path))):
            self._cache.move(slot, [base + node for node in path], range(base, base + len(path)))
        state.ids = tuple(prefix[: base + len(path)])

    def _forward(self, slots: Sequence[int], rows: Sequence[PassRow]) -> Tensor:
        """Return the (batch, most wanted, vocabulary) logits."""
        width, length = max(len(row.ids) for row in rows), max(row.cells[-1] for row in rows) + 1
        fixed = shape_of(width, length) if self.static else None
        width, length = fixed or (width, length)

        def padded(values: Sequence[list[int]], filler: int) -> Tensor:
            table = [[filler] * (width - len(each)) + each for each in values]
            return torch.tensor(table, device=self.device)

        ids, cells, positions = (
            padded([getattr(row, name) for row in rows], filler)
            for name, filler in (("ids", 0), ("cells", -1), ("positions", 0))
        )
        masks = self._masks.of(rows, width, length, self.device)
        at = torch.tensor(list(slots), device=self.device)
        inputs = {"ids": ids, "cells": cells, "positions": positions, "rows": at, **masks}
        if self.static and fixed:
            return self.static(inputs, length)
        return self._pass(inputs, length, slots, max(row.wanted for row in rows))

    def _pass(self, inputs: Inputs, length: int, slots: Sequence[int] = (), wanted: int = 0) -> Tensor:
        """Return the (batch, wanted, vocabulary) logits of the last ids; of all ids in a pass of a fixed shape."""
        masks = dict(inputs)
        ids, cells, positions, rows = (masks.pop(name) for name in ("ids", "cells", "positions", "rows"))
        self._cache.follow(CellPlan.of(slots, cells, length) if slots else CellPlan(rows, cells, length, rows, 0))
        output = self.model(
            input_ids=ids,
            attention_mask=masks.get(ONE_MASK, masks),
            position_ids=positions,
            **{self._cache_argument: self._cache},
            use_cache=True,
            logits_to_keep=wanted or ids.shape[1],
        )
        return self.allowed(output.logits)
