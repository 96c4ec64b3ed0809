"""The default backend: any GGUF on llama.cpp, through the low-level API of llama-cpp-python.

There is one context; a slot is a sequence of its cache.  A request reuses the longest prefix of ids in its slot, rolls
back the rest, and decodes the tail of the prompt and the draft in one call, with logits only where they are needed.
The branches of a draft tree are further sequences that share the cells of their common part.  Models with recurrent
layers go back to copies of their sequences instead (`redraft.backends.llama_slot`), and read no trees.

Single and batched passes are bit-identical only if the cells of a sequence are in the order of its positions, since
attention sums over cells in order.  So with `LlamaOptions.exact` every slot that would share cells has its own context,
and after a tree only what is in order stays in the cache; accepted tokens beyond that are computed again.

The hypotheses of a search for a better final text share cells.  A context whose sequences share cells is slower with
many slots, and the order of its cells, on which the last bits of a row depend, changes with each search.  So a search
has a context of its own, and takes nothing from the slots but a copy of what the cache holds of its prompt: what they
compute stays the same, bit for bit.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, chain, groupby, pairwise, zip_longest
from pathlib import Path

from redraft.backends.llama_context import Feed, LlamaContext, rows_in
from redraft.backends.llama_model import LlamaModel, has_gpus, on_gpu
from redraft.backends.llama_slot import ANCHORS, AnchoredSlot, LlamaSlot
from redraft.backends.numpy_rows import Matrix, NumpyRows
from redraft.backends.options import LLAMA, MOST_SEQUENCES, SMALL_MODEL, LlamaOptions
from redraft.backends.slots import Slotted
from redraft.backends.threads import FreeCores, Threads
from redraft.cores import usable_cores
from redraft.decoding.backend import Capability
from redraft.decoding.search import MOST
from redraft.decoding.types import ROOT, Rows, Score
from redraft.errors import CapabilityError, ModelError

#: Resolution in seconds of a clock that can time passes; that of Windows is 15 ms.
_FINE = 1e-5
#: Ids by which a slot is made longer to measure the memory of one.
_MEASURED = 16
#: Cells reserved for each branch of a tree.
_CELLS_OF_A_BRANCH = 256
#: Cells for all hypotheses of a search, behind what they share.
_CELLS_OF_A_SEARCH = 512
#: Most ids of a pass of a search; a prompt that cannot be copied is read in pieces.
_BATCH_OF_A_SEARCH = 64
#: Most ids that the sparse attention of Qwen4 reads.  Which ones it leaves out depends on their place in the cache.
_CHOSEN = "qwen4exp.attention.indexer.top_k"


class LlamaCpp(Slotted[LlamaSlot | AnchoredSlot]):
    """A model with a cache of several slots; implements `redraft.decoding.backend.Backend`.

    Args:
        path: the GGUF file.
        model: loaded weights of another backend, which must be closed after this one; None loads them.

    Raises:
        ModelError: the file is missing or broken, or does not fit into memory.
        CapabilityError: the model does not go back to an earlier token correctly, it has recurrent layers and exact
            passes, too many slots or too long a context are requested, exact passes are requested on a GPU, or options
            of GPUs where llama.cpp has none.
    """

    def __init__(self, path: Path, options: LlamaOptions = LLAMA, model: LlamaModel | None = None) -> None:
        if options.exact and on_gpu(options.gpu_layers):
            raise CapabilityError(
                "exact passes need the processor, since a GPU's kernels differ by the number of tokens: "
                "leave out exact, or set gpu_layers to 0"
            )
        if not has_gpus() and (wrong := options.changed("split_mode", "main_gpu", "tensor_split", "kv_offload")):
            raise CapabilityError(
                f"--engine {wrong[0]} cannot be used: llama.cpp was built without support for GPUs, so leave it out"
            )
        self.options = options
        # Loading takes long enough to observe other processes.
        free = FreeCores(usable_cores())
        self._owns_model = model is None
        self.model = model or LlamaModel(path, options)
        self._anchored = self.model.anchored
        #: Recurrent layers cannot read branches.
        self._branches = 0 if self._anchored else options.branches
        self.capabilities = frozenset({Capability.PROMPT_ROWS, Capability.BATCHES})
        if self._branches:
            self.capabilities |= {Capability.TREES}
        if not self._anchored and not options.exact:
            self.capabilities |= {Capability.HYPOTHESES}
        self._threads = self._choose_threads(free)
        self._contexts: list[LlamaContext] = []
        self._places: list[LlamaSlot | AnchoredSlot] = []  # an empty slot for each number
        #: What a search holds, opened by the first one, and the slot that is searched for.
        self._search: LlamaSlot | None = None
        self._searched: LlamaSlot | None = None
        try:
            if self._anchored:
                self._check_anchored()
            apart = options.exact and self._branches > 0
            for _ in range(options.slots if apart else 1):
                self._open_context(1 if apart else options.slots)
        except ModelError:
            self.close()
            raise
        facts = self.model.facts(self._contexts[0].length)
        super().__init__(facts, options, self._places.__getitem__, self.model.costs)
        # Then processor time is the cost of a pass on one thread; it stops while other processes run.
        self._alone = not on_gpu(options.gpu_layers) and time.get_clock_info("thread_time").resolution < _FINE

    def _check_anchored(self) -> None:
        options, most = self.options, MOST_SEQUENCES // (1 + ANCHORS)
        chosen = int(self.model.metadata.get(_CHOSEN, options.context_length))
        problems = {
            "whose batched and single passes differ: leave out exact": options.exact,
            f"and at most {most} slots, not {options.slots}": options.slots > most,
            f"and attention to at most {chosen} tokens, which llama.cpp chooses by their place in its cache: "
            f"set context_length to {chosen} or less": options.context_length > chosen,
        }
        for problem, there in problems.items():
            if there:
                raise CapabilityError(f"model {self.model.path.name!r} has recurrent layers, {problem}")

    def _open_context(self, slots: int) -> None:
        options = self.options
        per_sequence = -(-options.context_length // 256) * 256
        further = ANCHORS * slots if self._anchored else self._branches
        context = LlamaContext(
            self.model,
            options,
            cells=per_sequence * slots + _CELLS_OF_A_BRANCH * self._branches,
            sequences=slots + further,
            shared=further > 0,
            threads=self._threads,
        )
        self._contexts.append(context)
        spare = list(range(slots, slots + further))
        if self._anchored:
            self._places += [AnchoredSlot(context, slot, spare[slot * ANCHORS :][:ANCHORS]) for slot in range(slots)]
        else:
            self._places += [LlamaSlot(context, sequence, spare) for sequence in range(slots)]

    def _choose_threads(self, free: FreeCores) -> Threads:
        options, cores = self.options, usable_cores()
        if options.threads or on_gpu(options.gpu_layers):
            return lambda: options.threads or cores
        # The operations of a small model are too short to be divided.
        return free if self.model.size > SMALL_MODEL else lambda: 1

    def close_slot(self, slot: int) -> None:
        """Release a slot and clear its cache."""
        closed = self._slots.pop(slot)
        if self._search and closed is self._searched:
            self._search.forget()
        closed.forget()

    def slot_bytes(self, context_length: int) -> int:
        """Return the memory of a slot with so many ids: cells, and states with those of its anchors.

        Runs a short pass in a free slot.

        Raises:
            CapabilityError: all slots are in use.
        """
        slot = self.open_slot()
        try:
            context, sequence = self._slots[slot].context, self._slots[slot].sequence
            self.score([(slot, Score((self.pad_token,) * _MEASURED))])
            states = context.stored(sequence, states=True) if self._anchored else 0
            cells = context.stored(sequence) - states
        finally:
            self.close_slot(slot)
        return cells * context_length // _MEASURED + states * (1 + ANCHORS)

    def close(self) -> None:
        """Free the context, and the weights unless they are shared."""
        for context in (*self._contexts, *([self._search.context] if self._search else ())):
            context.close()
        self._contexts, self._places, self._search = [], [], None
        if self._owns_model:
            self.model.close()

    def score(self, requests: Sequence[tuple[int, Score]]) -> list[Rows]:
        """Answer requests of different slots in one batched pass.

        Raises:
            ContextOverflow: prefix and draft of a request exceed the context length.
            CapabilityError: the draft trees together have more branches than the backend was opened with, or a search
                shares the pass.
        """
        if not self._contexts:
            raise ModelError(f"model {self.model.path.name!r} is closed")
        if any(score.is_aside for _, score in requests):
            asked = [(slot, self._search_beside(requests), score) for slot, score in requests]
        else:
            self._check(requests)
            # llama.cpp batches sequences only if they are in order of number without gaps.
            ordered = sorted(requests, key=lambda request: request[0])
            asked = [(slot, self._slots[slot], score) for slot, score in ordered]
        answers: dict[int, Rows] = {}
        try:
            for context, each in groupby(asked, key=lambda one: one[1].context):
                answers |= self._answer(context, [*each])
        except BaseException:  # an interrupt too: what was prepared has not been computed
            for _slot, state, _score in asked:
                state.forget()
            raise
        return [answers[slot] for slot, _score in requests]

    def _search_beside(self, requests: Sequence[tuple[int, Score]]) -> LlamaSlot | AnchoredSlot:
        """Return what holds the hypotheses of a search, whose pass is its own."""
        (slot, score), *others = requests
        state = self._slots[slot]
        if others or isinstance(state, AnchoredSlot) or Capability.HYPOTHESES not in self.capabilities:
            raise CapabilityError(f"model {self.model.path.name!r} searches for one slot at a time, if at all")
        self._check_length(len(score.prefix) + score.draft.depth)
        if self._search is None:
            context = LlamaContext(
                self.model,
                replace(self.options, batch=_BATCH_OF_A_SEARCH),
                cells=self.context_length + _CELLS_OF_A_SEARCH,
                sequences=MOST + 1,  # and the best hypothesis that is finished
                shared=True,
                threads=self._threads,
            )
            self._search = LlamaSlot(context, 0, list(range(1, MOST + 1)))
        search = self._search
        if state is not self._searched or not score.draft:
            search.forget()
            if state.ids and state.context.copy(state.sequence, search.context, search.sequence):
                search.ids = state.ids
            self._searched = state
        return search

    def _decode(self, context: LlamaContext, feed: Feed) -> Matrix:
        wall, own = time.perf_counter(), time.thread_time()
        logits = context.decode(feed)
        wall, own = time.perf_counter() - wall, time.thread_time() - own
        self._took(len(feed), len(logits), own if self._alone and context.running == 1 else wall)
        return logits

    def _answer(
        self, context: LlamaContext, asked: Sequence[tuple[int, LlamaSlot | AnchoredSlot, Score]]
    ) -> dict[int, Rows]:
        ahead = [state.read_ahead(score) for _, state, score in asked if isinstance(state, AnchoredSlot)]
        for pieces in zip_longest(*ahead, fillvalue=()):
            context.decode([*chain(*pieces)])
        feeds = [state.prepare(score) for _, state, score in asked]
        ends = [0, *accumulate(map(rows_in, feeds))]
        logits = self._decode(context, [*chain(*feeds)])
        return {
            slot: NumpyRows(logits[start:end], score.prompt_rows - 1, state.places)
            for (slot, state, score), (start, end) in zip(asked, pairwise(ends), strict=True)
        }

    def _check(self, requests: Sequence[tuple[int, Score]]) -> None:
        """Check requests before anything is changed; free the branches of older trees."""
        wanted: dict[LlamaContext, int] = {}
        for slot, score in requests:
            self._check_length(len(score.prefix) + score.draft.depth)
            if not score.draft.is_chain:
                branches = len(score.draft) - len(set(score.draft.parents) - {ROOT}) - 1
                context = self._slots[slot].context
                wanted[context] = wanted.get(context, 0) + branches
        most = max(wanted.values(), default=0)
        if most and self._anchored:
            raise CapabilityError(f"model {self.model.path.name!r} has recurrent layers, which cannot read draft trees")
        if most > self._branches:
            raise CapabilityError(
                f"draft trees with {most} further branches need branches={most} or more; "
                f"this backend was opened with branches={self.options.branches}"
            )
        for slot, score in requests:
            state = self._slots[slot]
            if isinstance(state, AnchoredSlot):
                continue
            # Of a tree that goes on with its branches, it has these already; an exact pass needs cells in order.
            if score.draft.leaves_only and not score.draft.is_chain and not self.options.exact:
                wanted[state.context] -= len(state.branches)
            elif state.branches:
                state.adopt_branch(score.prefix, exact=self.options.exact)
        slots = [each for each in self._slots.values() if isinstance(each, LlamaSlot)]
        # A branch that a slot would have continued is only cache: it is computed again.
        for state in [each for each in slots if wanted.get(each.context, 0) > len(each.spare)]:
            state.drop_branches()
