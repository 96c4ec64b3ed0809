"""One slot of llama.cpp's cache, and the cache of a search: contents, rolling back, and branches.

Models with recurrent layers have an `AnchoredSlot`.  The state of such a layer sums up all ids that it has read, and
none can be taken out again.  So the slot goes back to an *anchor*: a copy of its sequence, with its state, at an
earlier place.  From there it reads again what it needs, in the same pass as the new ids.  Cells of attention layers are
shared between copies.

Anchors are placed where requests are likely to go back to:

* where the last prefix and this one part: the end of the source, which grows, or the beginning of a sentence;
* before a draft, which may be rejected.

The pass is cut at an anchor, which costs another one of the engine.  So there are none close to each other.

The hypotheses of a search share cells.  A context whose sequences share cells is slower with many slots, and the order
of its cells, on which the last bits of a row depend, changes with each search.  So a search takes nothing from the
slots but a copy of what the cache holds of its prompt: what they compute stays the same, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from redraft.backends.llama_context import Feed, LlamaContext, feed_of, leaf_paths
from redraft.backends.llama_model import LlamaModel
from redraft.backends.numpy_rows import Matrix, NumpyRows
from redraft.backends.options import LlamaOptions
from redraft.backends.threads import Threads
from redraft.decoding.search import MOST
from redraft.decoding.types import ROOT, Score, common_prefix
from redraft.errors import CapabilityError

#: Anchors of a slot: at most two where prefixes part, and one before a draft.
ANCHORS = 3
_BEFORE_DRAFT = 1
#: Fewest ids between anchors.  Reading eight ids again costs about as much as another pass on a processor.
DISTANCE = 8


@dataclass(slots=True)
class LlamaSlot:
    """One sequence of a cache.

    Attributes:
        context: its context.
        sequence: its sequence number.
        spare: free sequences for branches, shared by all slots of the context.
        ids: ids in its own sequence.
        branches: sequence of a branch -> its ids.
        ordered: after a tree, the number of ids whose cells are in the order of their positions.
        places: after a tree whose computed nodes were left out, node -> index of its row; None after anything else.
    """

    context: LlamaContext
    sequence: int
    spare: list[int]
    ids: tuple[int, ...] = ()
    branches: dict[int, tuple[int, ...]] = field(default_factory=dict)
    ordered: int = 0
    places: dict[int, int] | None = None

    def read_ahead(self, score: Score) -> Iterator[Feed]:
        """Yield what must be decoded before `prepare`: nothing."""
        return iter(())

    def prepare(self, score: Score, *, exact: bool) -> Feed:
        """Roll the cache back to the prefix it shares with the request, and return the ids to decode.

        Raises:
            CapabilityError: the model's memory cannot be rolled back.
        """
        prefix, draft = score.prefix, score.draft
        self.places = None
        if self.branches:
            return self._extend_branches(score)
        length = len(prefix)
        kept = min(common_prefix(self.ids, prefix), length - score.prompt_rows)
        # An exact pass may have left one id more than requested.
        if (len(self.ids) > kept or exact) and not self.context.remove(self.sequence, kept):
            raise CapabilityError(f"the memory of model {self.context.model.path.name!r} cannot be rolled back")
        tokens = prefix[kept:] + draft.tokens
        positions: Sequence[int] = range(kept, kept + len(tokens))
        if draft.is_chain:
            self.ids = prefix + draft.tokens
            sequences = [[self.sequence]] * len(tokens)
        else:
            positions = [*range(kept, length), *[length - 1 + depth for depth in draft.depths]]
            sequences = self._branch_off(score, kept)
        return feed_of(tokens, positions, sequences, score.prompt_rows + len(draft.tokens))

    def _extend_branches(self, score: Score) -> Feed:
        """Return what the branches of the last tree lack, where only rows of leaves are read.

        Every path continues the sequence that shares most ids with it; the first path of a sequence takes it over, and
        the others get their own.
        """
        prefix, draft = score.prefix, score.draft
        held = {self.sequence: self.ids} | self.branches
        paths = leaf_paths(draft)
        ids = [prefix + tuple([draft.tokens[node] for node in path]) for path in paths]
        found = [max((common_prefix(each, wanted), sequence) for sequence, each in held.items()) for wanted in ids]
        kept = [min(shared, len(wanted) - 1) for (shared, _), wanted in zip(found, ids, strict=True)]
        every = self._take_over([sequence for _, sequence in found], kept, list(held))
        self.ids = ids[every.index(self.sequence)]
        self.branches = {at: one for at, one in zip(every, ids, strict=True) if at != self.sequence}
        # Negative nodes are ids of the prefix, see `redraft.decoding.types`.
        start = len(prefix)
        members: dict[int, list[int]] = {}
        for sequence, path, first in zip(every, paths, kept, strict=True):
            for node in [*range(first - start, 0), *path[max(0, first - start) :]]:
                members.setdefault(node, []).append(sequence)
        nodes = sorted(members)
        self.places = {node: row for row, node in enumerate(nodes)}
        return feed_of(
            [draft.tokens[node] if node > ROOT else prefix[node] for node in nodes],
            [start + node if node <= ROOT else start - 1 + draft.depths[node] for node in nodes],
            [members[node] for node in nodes],
            len(nodes),
        )

    def _take_over(self, sources: Sequence[int], kept: Sequence[int], held: Sequence[int]) -> list[int]:
        """Give each path a sequence with the first ``kept`` ids of its source; free those that are left over."""
        every = [source if sources.index(source) == place else -1 for place, source in enumerate(sources)]
        for sequence in set(held) - set(sources) - {self.sequence}:
            self.context.remove(sequence)
            self.spare.append(sequence)
        if self.sequence not in sources:
            self.context.remove(self.sequence)
            self.context.share(sources[0], self.sequence, 0, kept[0])
            every[0] = self.sequence
            if sources.count(sources[0]) == 1:
                self.context.remove(sources[0])
                self.spare.append(sources[0])
            else:
                every[sources.index(sources[0], 1)] = sources[0]
        for place, source in enumerate(sources):
            if every[place] < 0:
                every[place] = self.spare.pop()
                self.context.share(source, every[place], 0, kept[place])
        for sequence, source, count in zip(every, sources, kept, strict=True):
            if sequence == source:
                self.context.remove(sequence, count)
        return every

    def _branch_off(self, score: Score, kept: int) -> list[list[int]]:
        """Assign a sequence to each branch of a tree except the first; return the sequences of every id to decode."""
        draft = score.draft
        paths = leaf_paths(draft)
        every = [self.sequence, *(self.spare.pop() for _ in paths[1:])]
        members: list[list[int]] = [[] for _ in draft.tokens]
        for sequence, path in zip(every, paths, strict=True):
            if sequence != self.sequence:
                self.context.share(self.sequence, sequence, 0, kept)
            for node in path:
                members[node].append(sequence)
        held = [score.prefix + tuple([draft.tokens[node] for node in path]) for path in paths]
        self.ids, self.branches = held[0], dict(zip(every[1:], held[1:], strict=True))
        self.ordered = len(score.prefix) + common_prefix(paths[0], range(len(paths[0])))
        return [every] * (len(score.prefix) - kept) + members

    def adopt_branch(self, prefix: Sequence[int], *, exact: bool) -> None:
        """After a tree: continue on the accepted branch and drop the others."""
        own = common_prefix(self.ids, prefix)
        best = max(self.branches, key=lambda branch: common_prefix(self.branches[branch], prefix))
        if exact:
            self.context.remove(self.sequence, self.ordered)
            self.ids = self.ids[: self.ordered]
        elif common_prefix(self.branches[best], prefix) > own:
            self.context.remove(self.sequence, own)
            self.context.share(best, self.sequence, own)
            self.ids = self.branches[best]
        self.drop_branches()

    def drop_branches(self) -> None:
        """Drop the branches and free their sequences."""
        for branch in self.branches:
            self.context.remove(branch)
            self.spare.append(branch)
        self.branches = {}

    def forget(self) -> None:
        """Clear the sequence and its branches."""
        self.drop_branches()
        self.context.remove(self.sequence)
        self.ids = ()


@dataclass(slots=True)
class AnchoredSlot:
    """A slot that goes back to anchors.

    Attributes:
        sequence: the sequence that reads.
        spare: free sequences for anchors.
        ids: ids that ``sequence`` has read.
        anchors: sequence and number of ids of each anchor, shortest first.  All hold the first of ``ids``.
        settled: how many of ``ids`` were no draft.
        places: as in `LlamaSlot`; this slot reads no trees.
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
                yield self._read(prefix[len(self.ids) : place], 0)
            self._place_anchor(most)

    def prepare(self, score: Score, *, exact: bool) -> Feed:
        """Return the rest of the ids to decode, after `read_ahead`."""
        self.settled = len(score.prefix)
        rest = score.prefix[len(self.ids) :] + score.draft.tokens
        return self._read(rest, score.prompt_rows + len(score.draft.tokens))

    def _read(self, ids: tuple[int, ...], rows: int) -> Feed:
        start = len(self.ids)
        self.ids += ids
        return feed_of(ids, range(start, len(self.ids)), [[self.sequence]] * len(ids), rows)

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
