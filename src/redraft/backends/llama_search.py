"""The cache of a search for a better final text (`redraft.decoding.search`): one at a time, in a context of its own.

The hypotheses of a search share cells.  A context whose sequences share cells is slower with many slots, and the order
of its cells, on which the last bits of a row depend, changes with each search.  So a search takes nothing from the
slots but a copy of what the cache holds of its prompt: what they compute stays the same, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from redraft.backends.llama_context import Feed, LlamaContext
from redraft.backends.llama_model import LlamaModel
from redraft.backends.llama_slot import AnchoredSlot, LlamaSlot
from redraft.backends.numpy_rows import Matrix, NumpyRows
from redraft.backends.options import LlamaOptions
from redraft.backends.threads import Threads
from redraft.decoding.search import MOST
from redraft.decoding.types import Score

#: Cells for all hypotheses, behind what they share.
_CELLS = 512
#: Most ids of a call; a prompt that cannot be copied is read in pieces.
_BATCH = 64
#: The hypotheses that go on, and the best one that is finished.
_SEQUENCES = MOST + 1


class LlamaSearch:
    """One search at a time.

    Args:
        options: those of the slots' contexts, so that what they hold can be copied.
        length: ids of a slot.

    Attributes:
        context: its cache.

    Raises:
        ModelError: there is not enough memory.
    """

    def __init__(self, model: LlamaModel, options: LlamaOptions, length: int, threads: Threads) -> None:
        self.context = LlamaContext(
            model,
            replace(options, batch=_BATCH),
            cells=length + _CELLS,
            sequences=_SEQUENCES,
            shared=True,
            threads=threads,
        )
        self._place = LlamaSlot(self.context, 0, list(range(1, _SEQUENCES)))
        #: The slot that is searched for.
        self._of: LlamaSlot | None = None

    def forget(self, slot: LlamaSlot | AnchoredSlot) -> None:
        """Clear what is held for a slot."""
        if slot is self._of:
            self._place.forget()
            self._of = None

    def rows(self, slot: LlamaSlot, score: Score, decode: Callable[[LlamaContext, Feed], Matrix]) -> NumpyRows:
        """Answer a request with hypotheses of a slot; ``decode`` runs a pass of a context.

        Raises:
            ContextOverflow: the hypotheses do not fit into the cache.
        """
        place = self._place
        try:
            if slot is not self._of or not score.draft:
                place.forget()
                if slot.ids and slot.context.copy(slot.sequence, self.context, place.sequence):
                    place.ids = slot.ids
                self._of = slot
            logits = decode(self.context, place.prepare(score, exact=False))
            return NumpyRows(logits, score.prompt_rows - 1, place.places)
        except BaseException:  # what was prepared has not been computed
            place.forget()
            self._of = None
            raise
