"""The default backend: any GGUF on llama.cpp, through the low-level API of llama-cpp-python.

One context; a slot is a sequence of its cache.  A request reuses the longest prefix of ids that its slot holds, rolls
back the rest, and decodes prompt tail and draft in one call with logits only where they are asked for.  The branches of
a draft tree are further sequences that share the cells of their common part.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import addressof
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from redraft.backends.crash import explained, explained_once
from redraft.backends.engine import lib
from redraft.backends.llama_batch import Batch, Feed, leaf_paths
from redraft.backends.llama_model import LlamaModel, complaints, forget_complaints, on_gpu, usable_cores
from redraft.backends.numpy_rows import Matrix, NumpyRows
from redraft.backends.threads import AdaptiveThreads, FixedThreads, FreeCores, Threads
from redraft.errors import CapabilityError, ContextOverflow, ModelError, OptionError, RedraftError
from redraft.types import ROOT, Capabilities, Rows, Score, common_prefix

#: Sequences that llama.cpp's cache can tell apart.
MOST_SEQUENCES = 256
#: Bytes of weights up to which a model counts as small: they fit into the processor's caches.
SMALL_MODEL = 64 << 20
#: Cells that each branch of a tree may fill beyond its slot's own.
_CELLS_OF_A_BRANCH = 256
_KV_F32, _KV_Q8_0 = 0, 8
_PLAIN_ATTENTION, _FLASH_ATTENTION = 0, 1


@dataclass(frozen=True, slots=True)
class LlamaOptions:
    """Options of the backend; every number is range-checked.

    Attributes:
        context_length: ids that one slot can hold.
        slots: how many independent sequences (one for every stream and target language).
        branches: how many further branches a draft tree may have; 0 means chains only.  Trees need a cache that all
            sequences share, which is slower for many slots.
        threads: CPU threads; 0 finds the fastest number while it runs (`redraft.backends.threads`).
        gpu_layers: layers on the GPU; -1 all that fit, 0 none.
        batch: the most ids handed to the engine in one call; longer requests are split.
        exact: bit-equal batched and single passes for quantised weights (quantised cache, flash attention, plain
            kernels), somewhat slower.  Weights in floats get a cache of 32-bit floats and plain attention, with which
            the passes still differ, in logits by some 1e-5.
    """

    context_length: int = 2048
    slots: int = 1
    branches: int = 0
    threads: int = 0
    gpu_layers: int = -1
    batch: int = 2048
    exact: bool = False

    def __post_init__(self) -> None:
        ranges = {
            "context_length": (16, 1 << 20),
            "slots": (1, MOST_SEQUENCES),
            "branches": (0, MOST_SEQUENCES - 1),
            "threads": (0, 1024),
            "gpu_layers": (-1, 10_000),
            "batch": (1, 1 << 16),
        }
        for name, (low, high) in ranges.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise OptionError(f"{name} must be a whole number from {low} to {high}, not {value!r}")
        if self.slots + self.branches > MOST_SEQUENCES:
            raise OptionError(f"slots and branches together must be at most {MOST_SEQUENCES}")


@dataclass(slots=True)
class _Slot:
    """What the cache holds: the ids of the slot's own sequence, and of each spare sequence that is a branch of it."""

    ids: tuple[int, ...] = ()
    branches: dict[int, tuple[int, ...]] = field(default_factory=dict)


class LlamaCpp:
    """A model with a cache of several slots; implements `redraft.types.Backend`.

    Args:
        path: the file.
        options: how it is run.
        model: its weights, where another backend has loaded them already and will be closed after this one.

    Raises:
        ModelError: the file is missing, broken, or does not fit into memory.
        CapabilityError: the model cannot be rolled back.
    """

    def __init__(self, path: Path, options: LlamaOptions = LlamaOptions(), model: LlamaModel | None = None) -> None:
        self.options = options
        self._owns_model = model is None
        self.model = model or LlamaModel(path, gpu_layers=options.gpu_layers, exact=options.exact)
        self.capabilities = Capabilities(trees=options.branches > 0, prompt_rows=True, batches=True)
        self.end_tokens, self.pad_token = self.model.end_tokens, self.model.pad_token
        self.metadata, self.vocabulary_size = self.model.metadata, self.model.vocabulary_size
        self.tokenize, self.token_bytes = self.model.tokenize, self.model.token_bytes
        self._threads = self._choose_threads()
        self._running = self._threads.choose(1)
        self._context = self._open_context()
        self._memory = lib.llama_get_memory(self._context)
        self.context_length = min(options.context_length, int(lib.llama_n_ctx_seq(self._context)))
        # The engine lowers its limit to the size of the cache.
        self._batch_limit = min(options.batch, int(lib.llama_n_batch(self._context)))
        self._batch = Batch(self._batch_limit, options.slots + options.branches)
        self._logits, self._address = np.empty((0, self.vocabulary_size), np.float32), 0
        self._slots: dict[int, _Slot] = {}
        self._run = explained_once(lib.llama_decode, f"running model {self.model.path.name!r}")
        self._spare = list(range(options.slots, options.slots + options.branches))

    def _open_context(self) -> Any:
        options, params = self.options, lib.llama_context_default_params()
        sequences = options.slots + options.branches
        params.n_seq_max = sequences
        params.kv_unified = options.branches > 0
        per_sequence = -(-options.context_length // 256) * 256
        params.n_ctx = per_sequence * options.slots + _CELLS_OF_A_BRANCH * options.branches
        params.n_batch, params.n_ubatch = options.batch, min(512, options.batch)
        params.n_outputs_max_per_seq = 0
        params.n_threads = params.n_threads_batch = self._running
        # A window's cache forgets what roll-back would need, so models with one get the full size.
        params.swa_full = True
        params.no_perf = True
        if options.exact:
            # Flash attention rounds floats to 16 bits, differently for one token and for many; on integers it is exact.
            floats = self.model.in_floats
            params.type_k = params.type_v = _KV_F32 if floats else _KV_Q8_0
            params.flash_attn_type = _PLAIN_ATTENTION if floats else _FLASH_ATTENTION
        forget_complaints()
        with explained(f"opening model {self.model.path.name!r}"):
            context = lib.llama_init_from_model(self.model.handle, params)
        if not context:
            reason = "; ".join(complaints()) or "not enough memory"
            raise ModelError(f"no context of {params.n_ctx} tokens for {self.model.path.name!r}: {reason}")
        return context

    def _choose_threads(self) -> Threads:
        options, cores = self.options, usable_cores()
        if options.threads or cores == 1 or on_gpu(options.gpu_layers):
            return FixedThreads(options.threads or cores)
        # A large model's first prompt would take long on one thread; a small one's operations are soon over.
        small = self.model.path.stat().st_size <= SMALL_MODEL
        return AdaptiveThreads(cores, 1 if small else cores, FreeCores(cores))

    @contextmanager
    def fixed_threads(self, count: int) -> Iterator[None]:
        """Run all passes meanwhile on so many threads, for a measurement."""
        before, self._threads = self._threads, FixedThreads(count)
        try:
            yield
        finally:
            self._threads = before

    @property
    def identity(self) -> str:
        """The model's file and the options that its speed depends on."""
        file, options = self.model.path.stat(), self.options
        trees = "trees" if options.branches else "chains"
        threads = options.threads or "adaptive"
        settings = f"{threads} threads, {options.gpu_layers} layers, exact {options.exact}, {trees}"
        return f"llamacpp {self.model.path.name} {file.st_size} {file.st_mtime_ns}, {settings}"

    def open_slot(self) -> int:
        """A free sequence.

        Raises:
            CapabilityError: all are in use.
        """
        for slot in range(self.options.slots):
            if slot not in self._slots:
                self._slots[slot] = _Slot()
                return slot
        raise CapabilityError(f"all {self.options.slots} slots of the cache are in use; open the model with more slots")

    def close_slot(self, slot: int) -> None:
        """Forget a sequence and its branches."""
        self._drop_branches(self._slots.pop(slot))
        lib.llama_memory_seq_rm(self._memory, slot, -1, -1)

    def close(self) -> None:
        """Free the context, and the weights if they are its own."""
        if self._context:
            self._batch.close()
            lib.llama_free(self._context)
            self._context = None
            if self._owns_model:
                self.model.close()

    def score(self, requests: Sequence[tuple[int, Score]]) -> list[Rows]:
        """Answer requests of different slots in one batched pass.

        Raises:
            ContextOverflow: prefix and draft of a request are longer than the context.
            CapabilityError: the draft trees together have more branches than the backend was opened for.
        """
        if not self._context:
            raise ModelError(f"model {self.model.path.name!r} is closed")
        if not requests:
            return []
        self._check(requests)
        feed = Feed()
        spans: dict[int, tuple[int, int]] = {}
        # The engine runs sequences together only where they stand in the order of their numbers, without gaps.
        for slot, score in sorted(requests, key=lambda request: request[0]):
            start = feed.rows
            self._prepare(slot, score, feed)
            spans[slot] = start, feed.rows
        try:
            logits = self._decode(feed)
        except RedraftError:
            for slot, _score in requests:
                self._forget(slot)
            raise
        return [NumpyRows(logits[slice(*spans[slot])], score.prompt_rows - 1) for slot, score in requests]

    def _check(self, requests: Sequence[tuple[int, Score]]) -> None:
        """Refuse what cannot be done before anything is changed; free branches that older trees still hold."""
        branches = 0
        for _slot, score in requests:
            length = len(score.prefix) + score.draft.depth
            if length > self.context_length:
                raise ContextOverflow(f"{length} tokens do not fit into the context length of {self.context_length}")
            if not score.draft.is_chain:
                branches += len(score.draft) - len(set(score.draft.parents) - {ROOT}) - 1
        if branches > self.options.branches:
            raise CapabilityError(
                f"draft trees with {branches} further branches need branches={branches} or more; "
                f"this backend was opened with branches={self.options.branches}"
            )
        for slot, score in requests:
            if self._slots[slot].branches:
                self._adopt_branch(slot, self._slots[slot], score.prefix)
        if branches > len(self._spare):
            # A branch that another slot would have gone on with is only a cache: that slot computes it anew.
            for state in self._slots.values():
                self._drop_branches(state)

    def _prepare(self, slot: int, score: Score, feed: Feed) -> None:
        """Roll the slot's cache back to what it shares with the request, and add the ids to decode."""
        state, prefix, draft = self._slots[slot], score.prefix, score.draft
        length = len(prefix)
        kept = min(common_prefix(state.ids, prefix), length - score.prompt_rows)
        if len(state.ids) > kept and not lib.llama_memory_seq_rm(self._memory, slot, kept, -1):
            raise CapabilityError(f"the memory of model {self.model.path.name!r} cannot be rolled back")
        tokens = prefix[kept:] + draft.tokens
        positions: Sequence[int] = range(kept, kept + len(tokens))
        if draft.is_chain:
            state.ids = prefix + draft.tokens
            sequences = [[slot]] * len(tokens)
        else:
            positions = [*range(kept, length), *[length - 1 + depth for depth in draft.depths]]
            sequences = self._branch_off(slot, score, kept)
        feed.add(tokens, positions, sequences, score.prompt_rows + len(draft.tokens))

    def _branch_off(self, slot: int, score: Score, kept: int) -> list[list[int]]:
        """Give each branch of a tree but the first a sequence of its own; the sequences of every id to decode."""
        state, draft = self._slots[slot], score.draft
        paths = leaf_paths(draft)
        every = [slot, *(self._spare.pop() for _ in paths[1:])]
        members: list[list[int]] = [[] for _ in draft.tokens]
        for sequence, path in zip(every, paths, strict=True):
            if sequence != slot:
                lib.llama_memory_seq_cp(self._memory, slot, sequence, 0, kept)
            for node in path:
                members[node].append(sequence)
        held = [score.prefix + tuple([draft.tokens[node] for node in path]) for path in paths]
        state.ids, state.branches = held[0], dict(zip(every[1:], held[1:], strict=True))
        return [every] * (len(score.prefix) - kept) + members

    def _adopt_branch(self, slot: int, state: _Slot, prefix: Sequence[int]) -> None:
        """After a tree: continue on the branch that the rule accepted, forget the others."""
        own = common_prefix(state.ids, prefix)
        best = max(state.branches, key=lambda branch: common_prefix(state.branches[branch], prefix))
        if common_prefix(state.branches[best], prefix) > own:
            lib.llama_memory_seq_rm(self._memory, slot, own, -1)
            lib.llama_memory_seq_cp(self._memory, best, slot, own, -1)
            state.ids = state.branches[best]
        self._drop_branches(state)

    def _drop_branches(self, state: _Slot) -> None:
        for branch in state.branches:
            lib.llama_memory_seq_rm(self._memory, branch, -1, -1)
            self._spare.append(branch)
        state.branches = {}

    def _forget(self, slot: int) -> None:
        state = self._slots[slot]
        self._drop_branches(state)
        lib.llama_memory_seq_rm(self._memory, slot, -1, -1)
        state.ids = ()

    def _decode(self, feed: Feed) -> Matrix:
        """(wanted rows, vocabulary) logits in the order of the ids.

        One call gives a view of the engine's buffer; a request longer than the batch limit takes several, whose rows
        must be copied out, since each call overwrites the buffer.
        """
        size = self._batch_limit
        if len(feed) <= size:
            return self._decode_batch(feed)
        return np.concatenate([self._decode_batch(part).copy() for part in feed.parts(size)])

    def _decode_batch(self, feed: Feed) -> Matrix:
        new = len(feed)
        threads = self._threads.choose(new)
        if threads != self._running:
            lib.llama_set_n_threads(self._context, threads, threads)
            self._running = threads
        forget_complaints()
        batch, started = self._batch.filled(feed), time.perf_counter()
        status = self._run(self._context, batch)
        self._threads.took(new, time.perf_counter() - started)
        if status == 1:
            raise ContextOverflow("the cache of the model is full; open it with a larger context length")
        if status != 0:
            raise ModelError(f"llama.cpp could not run the model (status {status}): {'; '.join(complaints())}")
        return self._view(feed.rows)

    def _view(self, rows: int) -> Matrix:
        """The first rows of the engine's buffer of logits."""
        if rows == 0:
            return self._logits[:0]
        buffer = lib.llama_get_logits(self._context)
        address = addressof(buffer.contents)
        # A view takes longer to make than all else about a row, so it is kept while it serves.
        if len(self._logits) < rows or self._address != address:
            self._logits = np.ctypeslib.as_array(buffer, (rows, self.vocabulary_size))
            self._address = address
        return self._logits[:rows]
