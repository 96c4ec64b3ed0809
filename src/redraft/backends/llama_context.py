"""A context of llama.cpp: the cache of some sequences, and the passes over it.

Batched and single passes run other kernels, so they differ in the last bits.  For exact runs there are two ways out:

* **quantised weights**: a quantised cache with flash attention, whose kernels give the same bits for any number of
  ids (with the kernels that `redraft.backends.llama_model` chooses);
* **weights in floats**, or matrices in floats among quantised ones (mixtures of experts), or heads that no quantised
  cache can hold: a cache of 32-bit floats, and passes over at least two ids with two rows and at most `_EXACT_PASS`
  ids.  Within these bounds llama.cpp takes one kernel for matrices and one for attention; below and above it takes
  others.

Attention sums over the cells of the cache in their order and skips what an id does not see.  So rows are exact only
where the cells of a sequence stand in the order of its positions: see `redraft.backends.llamacpp`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from ctypes import addressof
from typing import Any

import numpy as np

from redraft.backends.crash import explained, explained_once
from redraft.backends.engine import lib
from redraft.backends.llama_batch import Batch, Feed
from redraft.backends.llama_model import LlamaModel, complaints, forget_complaints
from redraft.backends.numpy_rows import Matrix
from redraft.backends.threads import Threads
from redraft.errors import ContextOverflow, ModelError

_KV_F32, _KV_Q8_0 = 0, 8
_FLASH_ATTENTION = 1
#: Ids of an exact pass over floats: from 64 on llama.cpp computes attention in tiles, which sum in another order.
_EXACT_PASS = 32
#: What the size of a head must be a multiple of for a quantised cache.
_BLOCK = 32


class LlamaContext:
    """A cache of several sequences.

    Args:
        model: the weights.
        cells: ids that the cache holds; of every sequence, unless they share them.
        sequences: how many.
        shared: whether cells may belong to several sequences, as branches of a tree need it.
        batch: the most ids of a pass; longer ones are split.
        threads: decides on the CPU threads of every pass.
        exact: whether single and batched passes are to be bit-equal.

    Attributes:
        length: ids that one sequence can hold.
        threads: decides on the CPU threads of every pass.

    Raises:
        ModelError: there is not enough memory.
    """

    def __init__(
        self, model: LlamaModel, *, cells: int, sequences: int, shared: bool, batch: int, threads: Threads, exact: bool
    ) -> None:
        self.threads, self._running = threads, threads.choose(1)
        self.model, self._in_pairs = model, exact and needs_pairs(model)
        params = lib.llama_context_default_params()
        params.n_ctx, params.n_seq_max, params.kv_unified = cells, sequences, shared
        limit = min(batch, _EXACT_PASS) if self._in_pairs else batch
        params.n_batch, params.n_ubatch = limit, min(512, limit)
        params.n_outputs_max_per_seq = 0
        params.n_threads = params.n_threads_batch = self._running
        # A window's cache forgets what roll-back would need, so models with one get the full size.
        params.swa_full = True
        params.no_perf = True
        if exact:
            params.type_k = params.type_v = _KV_F32 if self._in_pairs else _KV_Q8_0
            params.flash_attn_type = _FLASH_ATTENTION
            params.offload_kqv = params.op_offload = False
        forget_complaints()
        with explained(f"opening model {model.path.name!r}"):
            self._handle: Any = lib.llama_init_from_model(model.handle, params)
        if not self._handle:
            reason = "; ".join(complaints()) or "not enough memory"
            raise ModelError(
                f"cannot create a context of {params.n_ctx} tokens for model {model.path.name!r}: {reason}"
            )
        self._run = explained_once(lib.llama_decode, f"running model {model.path.name!r}")
        self._memory = lib.llama_get_memory(self._handle)
        self.length = int(lib.llama_n_ctx_seq(self._handle))
        # The engine lowers its limit to the size of the cache.
        self._limit = min(limit, int(lib.llama_n_batch(self._handle)))
        self._batch = Batch(self._limit, sequences)
        self._logits, self._address = np.empty((0, model.vocabulary_size), np.float32), 0

    def close(self) -> None:
        """Free the cache."""
        if self._handle:
            self._batch.close()
            lib.llama_free(self._handle)
            self._handle = None

    def remove(self, sequence: int, start: int = -1) -> bool:
        """Drop a sequence's ids from position ``start`` on, all with -1; whether the model's memory can do that."""
        return bool(lib.llama_memory_seq_rm(self._memory, sequence, start, -1))

    def share(self, source: int, target: int, start: int, end: int = -1) -> None:
        """Let ``target`` have the cells of ``source`` from position ``start`` to ``end``, which is left out."""
        lib.llama_memory_seq_cp(self._memory, source, target, start, end)

    def decode(self, feed: Feed) -> Matrix:
        """(wanted rows, vocabulary) logits in the order of the ids.

        One call gives a view of the engine's buffer; a request longer than the batch limit takes several, whose rows
        must be copied out, since each call overwrites the buffer.
        """
        if self._in_pairs:
            return self._decode_in_pairs(feed)
        if len(feed) <= self._limit:
            return self._decode_batch(feed)
        return np.concatenate([self._decode_batch(part).copy() for part in feed.parts(self._limit)])

    def _decode_in_pairs(self, feed: Feed) -> Matrix:
        """As `decode`, for ids of one sequence or tree, of which the last ones have their rows wanted."""
        rows = feed.rows
        if rows == 1:  # one id more, behind the others: its cell goes with the next roll-back
            last = slice(len(feed) - 1, None)
            feed.add(feed.tokens[last], [feed.positions[-1] + 1], feed.sequences[last], 1)
        if len(feed) <= self._limit:
            return self._decode_batch(feed)[:rows]
        found = [self._decode_batch(part)[part.rows - kept :].copy() for part, kept in _pairs(feed, self._limit)]
        return np.concatenate(found)[:rows]

    def _decode_batch(self, feed: Feed) -> Matrix:
        new = len(feed)
        threads = self.threads.choose(new)
        if threads != self._running:
            lib.llama_set_n_threads(self._handle, threads, threads)
            self._running = threads
        forget_complaints()
        batch, started = self._batch.filled(feed), time.perf_counter()
        status = self._run(self._handle, batch)
        self.threads.took(new, time.perf_counter() - started)
        if status == 1:
            raise ContextOverflow("the cache of the model is full; open it with a larger context length")
        if status != 0:
            raise ModelError(f"llama.cpp could not run the model (status {status}): {'; '.join(complaints())}")
        return self._view(feed.rows)

    def _view(self, rows: int) -> Matrix:
        """The first rows of the engine's buffer of logits."""
        if rows == 0:
            return self._logits[:0]
        buffer = lib.llama_get_logits(self._handle)
        address = addressof(buffer.contents)
        # A view takes longer to make than all else about a row, so it is kept while it serves.
        if len(self._logits) < rows or self._address != address:
            self._logits = np.ctypeslib.as_array(buffer, (rows, self.model.vocabulary_size))
            self._address = address
        return self._logits[:rows]


def needs_pairs(model: LlamaModel) -> bool:
    """Whether exact passes of a model must have two ids or more, since it multiplies floats or needs a cache of them.

    A mixture of experts chooses among these by a small matrix of floats.
    """
    experts = any(key.endswith(".expert_count") and value != "0" for key, value in model.metadata.items())
    return model.in_floats or experts or any(size % _BLOCK for size in _head_sizes(model.metadata))


def _head_sizes(facts: Mapping[str, str]) -> Iterator[int]:
    """Sizes of a model's heads, as far as its metadata have them."""
    about = facts.get("general.architecture", "")
    stated = [value for key, value in facts.items() if re.search(r"\.attention\.(key|value)_length", key)]
    yield from (int(value) for value in stated if value.isdecimal())
    hidden, heads = facts.get(f"{about}.embedding_length", ""), facts.get(f"{about}.attention.head_count", "")
    if not stated and hidden.isdecimal() and heads.isdecimal() and int(heads):
        yield int(hidden) // int(heads)


def _pairs(feed: Feed, size: int) -> Iterator[tuple[Feed, int]]:
    """``feed`` in pieces of 2 to ``size`` ids with no row or at least two; and how many of a piece's rows are wanted.

    Args:
        feed: at least two ids, of which the last ones have their rows wanted, two or more.
        size: 3 or more.
    """
    start = 0
    while start < len(feed):
        left = len(feed) - start
        end = start + (left if left <= size else size - (left == size + 1))
        part = feed.part(start, end)
        kept = part.rows
        if kept == 1:
            part.wanted[-2], part.rows = True, 2
        yield part, kept
        start = end
