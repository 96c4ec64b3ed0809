"""A context of llama.cpp: the cache of some sequences, and the passes over it.

Batched and single passes use different kernels, so they differ in the last bits.  Exact passes are possible in two
ways:

* **quantised weights**: a quantised cache with flash attention, whose kernels give the same bits for any number of ids
  (with the kernels that `redraft.backends.llama_model` selects);
* **float weights**, or float matrices among quantised ones (mixtures of experts): passes over single ids, which are as
  slow as decoding without drafts.

Attention sums over the cells of the cache in order and skips those that an id does not see.  So rows are exact only if
the cells of a sequence are in the order of its positions: see `redraft.backends.llamacpp`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from redraft.backends.engine import lib
from redraft.backends.llama_model import LlamaModel, complaints
from redraft.backends.numpy_rows import Matrix
from redraft.backends.options import LlamaOptions
from redraft.backends.threads import Threads
from redraft.errors import ContextOverflow, ModelError


class FedId(NamedTuple):
    """An id to decode: with its position in its sequences, and whether its row is needed."""

    token: int
    position: int
    sequences: list[int]
    wanted: bool


#: Ids to decode, in order.
Feed: TypeAlias = list[FedId]


def feed_of(tokens: Sequence[int], positions: Sequence[int], sequences: Sequence[list[int]], rows: int) -> Feed:
    """Return ids to decode, of which the rows of the last ``rows`` are needed."""
    return list(map(FedId, tokens, positions, sequences, [False] * (len(tokens) - rows) + [True] * rows))


def rows_in(feed: Feed) -> int:
    """Return the number of rows that are needed."""
    return sum(each.wanted for each in feed)


class Batch:
    """llama.cpp's batch structure, allocated once."""

    def __init__(self, size: int, sequences: int) -> None:
        self._batch = lib.llama_batch_init(size, 0, sequences)
        # Arrays accept a whole list at once, and each access to a pointer field would create an object.
        self._tokens, self._positions = _array(self._batch.token, size), _array(self._batch.pos, size)
        self._counts, self._wanted = _array(self._batch.n_seq_id, size), _array(self._batch.logits, size)
        self._sequences = [_array(self._batch.seq_id[index], sequences) for index in range(size)]

    def filled(self, feed: Feed) -> Any:
        """Fill the structure with ``feed`` and return it; the batch owns it."""
        self._batch.n_tokens = size = len(feed)
        self._tokens[:size], self._positions[:size], sequences, self._wanted[:size] = zip(*feed, strict=True)
        self._counts[:size] = list(map(len, sequences))
        for into, each in zip(self._sequences, sequences, strict=False):
            into[: len(each)] = each
        return self._batch

    def close(self) -> None:
        """Free the structure."""
        lib.llama_batch_free(self._batch)


def _array(pointer: Any, size: int) -> Any:
    return ctypes.cast(pointer, ctypes.POINTER(pointer._type_ * size)).contents


#: Values of `LlamaOptions.flash_attn` in llama.cpp.
_FLASH = {"auto": "AUTO", "on": "ENABLED", "off": "DISABLED"}


class LlamaContext:
    """A cache of several sequences.

    Args:
        model: the weights.
        options: how it is computed; with ``exact``, single and batched passes are bit-identical.
        cells: number of ids in the cache, per sequence unless they share cells.
        sequences: number of sequences.
        shared: whether cells may belong to several sequences, as needed for the branches of a tree.

    Attributes:
        length: maximum number of ids of a sequence.
        threads: returns the number of CPU threads of the next pass.
        running: number of threads of the latest pass.

    Raises:
        ModelError: there is not enough memory.
    """

    def __init__(
        self, model: LlamaModel, options: LlamaOptions, *, cells: int, sequences: int, shared: bool, threads: Threads
    ) -> None:
        self.threads, self.running = threads, threads()
        # A mixture of experts selects these with a small float matrix.
        experts = any(key.endswith(".expert_count") and value != "0" for key, value in model.metadata.items())
        self.model, single = model, options.exact and (model.in_floats or experts)
        params = lib.llama_context_default_params()
        params.n_ctx, params.n_seq_max, params.kv_unified = cells, sequences, shared
        limit = 1 if single else options.batch
        # llama.cpp aborts if it cannot return a row of every sequence at once, even if nobody asks for that.
        params.n_batch, params.n_ubatch = max(limit, sequences), min(512, limit)
        params.n_outputs_max_per_seq = 0
        params.n_threads = params.n_threads_batch = self.running
        # A sliding-window cache drops what rolling back needs, so models with one get the full size.
        params.swa_full = True
        params.no_perf = True
        params.type_k, params.type_v = (
            getattr(lib, f"GGML_TYPE_{each.upper()}") for each in (options.cache_type_k, options.cache_type_v)
        )
        params.flash_attn_type = getattr(lib, f"LLAMA_FLASH_ATTN_TYPE_{_FLASH[options.flash_attn]}")
        params.offload_kqv = options.kv_offload
        params.op_offload = options.gpu_layers != 0  # otherwise long passes would go to a GPU all the same
        if options.exact:
            params.type_k = params.type_v = lib.GGML_TYPE_F16 if single else lib.GGML_TYPE_Q8_0
            params.flash_attn_type = lib.LLAMA_FLASH_ATTN_TYPE_ENABLED
            params.offload_kqv = params.op_offload = False
        complaints()  # earlier ones
        self._handle: Any = lib.llama_init_from_model(model.handle, params)
        if not self._handle:
            reason = ("; ".join(complaints()) or "not enough memory") + ": leave out exact" * options.exact
            raise ModelError(
                f"cannot create a context of {params.n_ctx} tokens for model {model.path.name!r}: {reason}"
            )
        self._memory = lib.llama_get_memory(self._handle)
        self.length = int(lib.llama_n_ctx_seq(self._handle))
        # llama.cpp lowers its limit to the size of the cache.
        self._limit = min(limit, int(lib.llama_n_batch(self._handle)))
        self._batch = Batch(self._limit, sequences)

    def close(self) -> None:
        """Free the cache."""
        if self._handle:
            self._batch.close()
            lib.llama_free(self._handle)
            self._handle = self._memory = None  # llama.cpp ignores what is removed from no memory

    def remove(self, sequence: int, start: int = -1) -> bool:
        """Remove a sequence's ids from position ``start``, all with -1.

        Return whether the model's memory supports that.
        """
        return bool(lib.llama_memory_seq_rm(self._memory, sequence, start, -1))

    def share(self, source: int, target: int, start: int = -1, end: int = -1) -> None:
        """Share the cells of ``source`` from position ``start`` up to, but not including, ``end`` with ``target``.

        Without bounds, that includes the state of recurrent layers.
        """
        lib.llama_memory_seq_cp(self._memory, source, target, start, end)

    def copy(self, source: int, other: LlamaContext, target: int) -> bool:
        """Copy a sequence into one of another context of the model; return whether that is possible."""
        size = int(lib.llama_state_seq_get_size(self._handle, source))
        data = (ctypes.c_uint8 * size)()
        got = int(lib.llama_state_seq_get_data(self._handle, data, size, source))
        return bool(got and lib.llama_state_seq_set_data(other._handle, data, got, target))

    def stored(self, sequence: int, *, states: bool = False) -> int:
        """Return the bytes that a sequence takes: its cells and states, or only the states of its recurrent layers."""
        flags = lib.LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY if states else 0
        return int(lib.llama_state_seq_get_size_ext(self._handle, sequence, flags))

    def decode(self, feed: Feed) -> Matrix:
        """Return the (wanted rows, vocabulary) logits in the order of the ids.

        A single call returns a view of the engine's buffer.  A request longer than the batch limit needs several calls,
        which overwrite the buffer, so their rows are copied.
        """
        if len(feed) <= self._limit:
            return self._decode_batch(feed)
        parts = (feed[start : start + self._limit] for start in range(0, len(feed), self._limit))
        return np.concatenate([self._decode_batch(part).copy() for part in parts])

    def _decode_batch(self, feed: Feed) -> Matrix:
        threads = self.threads()
        if threads != self.running:
            lib.llama_set_n_threads(self._handle, threads, threads)
            self.running = threads
        complaints()  # earlier ones
        status = lib.llama_decode(self._handle, self._batch.filled(feed))
        if status == 1:
            raise ContextOverflow("the cache of the model is full; open it with a larger context length")
        if status != 0:
            raise ModelError(f"llama.cpp could not run the model (status {status}): {'; '.join(complaints())}")
        shape = rows_in(feed), self.model.vocabulary_size
        if not shape[0]:
            return np.empty(shape, np.float32)
        return np.ctypeslib.as_array(lib.llama_get_logits(self._handle), shape)
