"""One slot of a model with recurrent layers, in llama.cpp's cache.

The state of a recurrent layer sums up all ids that it has read, and none can be taken out again.  So a slot goes back
to an *anchor*: a copy of its sequence, with its state, at an earlier place.  From there it reads again what it needs,
in the same pass as the new ids.  Cells of attention layers are shared between copies.

Anchors are placed where requests are likely to go back to:

* where the last prefix and this one part: the end of the source, which grows, or the beginning of a sentence;
* before a draft, which may be rejected.

The pass is cut at an anchor, which costs another one of the engine.  So there are none close to each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from redraft.backends.llama_context import Feed, LlamaContext
from redraft.decoding.types import Score, common_prefix

#: Anchors of a slot: at most two where prefixes part, and one before a draft.
ANCHORS = 3
_BEFORE_DRAFT = 1
#: Fewest ids between anchors.  Reading eight ids again costs about as much as another pass on a processor.
DISTANCE = 8


@dataclass(slots=True)
class AnchoredSlot:
    """A slot that goes back to anchors.

    Attributes:
        sequence: the sequence that reads.
        spare: free sequences for anchors.
        ids: ids that ``sequence`` has read.
        anchors: sequence and number of ids of each anchor, shortest first.  All hold the first of ``ids``.
        settled: how many of ``ids`` were no draft.
        places: as in `redraft.backends.llama_slot.LlamaSlot`; this slot reads no trees.
    """

    context: LlamaContext
    sequence: int
    spare: list[int]
    ids: tuple[int, ...] = ()
    anchors: list[tuple[int, int]] = field(default_factory=list)
    settled: int = 0
    places: None = None

    def read_ahead(self, score: Score) -> Iterator[Feed]:
        """Go back for a request; yield what must be read, without rows, before an anchor is placed and the rest read.

        Each piece must be decoded before the next one is asked for.
        """
        prefix = score.prefix
        # The ids with wanted rows must be read by the last pass.
        last = len(prefix) - score.prompt_rows
        shared = common_prefix(self.ids, prefix[:last])
        parted = shared < self.settled
        length = self._go_back(shared)
        self.ids, self.settled = prefix[:length], length
        for place, most in ((shared * parted, ANCHORS - _BEFORE_DRAFT), (last * bool(score.draft.tokens), ANCHORS)):
            if place - (self.anchors[-1][1] if self.anchors else 0) < DISTANCE:
                continue
            if place > len(self.ids):
                piece = Feed()
                self._add(prefix[len(self.ids) : place], piece, 0)
                yield piece
            self._place_anchor(most)

    def prepare(self, score: Score, feed: Feed, *, exact: bool) -> None:
        """Add the rest of the ids to decode, after `read_ahead`."""
        rest = score.prefix[len(self.ids) :] + score.draft.tokens
        self._add(rest, feed, score.prompt_rows + len(score.draft.tokens))
        self.settled = len(score.prefix)

    def _add(self, ids: tuple[int, ...], feed: Feed, rows: int) -> None:
        start = len(self.ids)
        feed.add(ids, range(start, start + len(ids)), [[self.sequence]] * len(ids), rows)
        self.ids += ids

    def _go_back(self, shared: int) -> int:
        """Go back to at most ``shared`` ids; return how many the sequence holds."""
        while self.anchors and self.anchors[-1][1] > shared:
            self._drop_anchor()
        if shared == len(self.ids):
            return shared
        self.context.remove(self.sequence)
        if not self.anchors:
            return 0
        anchor, length = self.anchors[-1]
        self.context.share(anchor, self.sequence)
        return length

    def _place_anchor(self, most: int) -> None:
        """Copy the sequence as it is, instead of the longest anchor if there are ``most``."""
        while len(self.anchors) >= most:
            self._drop_anchor()
        self.anchors.append((self.spare.pop(), len(self.ids)))
        self.context.share(self.sequence, self.anchors[-1][0])

    def _drop_anchor(self) -> None:
        anchor, _length = self.anchors.pop()
        self.context.remove(anchor)
        self.spare.append(anchor)

    def forget(self) -> None:
        """Clear the sequence and its anchors."""
        while self.anchors:
            self._drop_anchor()
        self.context.remove(self.sequence)
        self.ids, self.settled = (), 0
