"""One slot of llama.cpp's cache: contents, rolling back, and branches.

Models with recurrent layers have an `AnchoredSlot`.  The state of such a layer sums up all ids that it has read, and
none can be taken out again.  So the slot goes back to an *anchor*: a copy of its sequence, with its state, at an
earlier place.  From there it reads again what it needs, in the same pass as the new ids.  Cells of attention layers are
shared between copies.

Anchors are placed where requests are likely to go back to:

* where the last prefix and this one part: the end of the source, which grows, or the beginning of a sentence;
* before a draft, which may be rejected.

The pass is cut at an anchor, which costs another one of the engine.  So there are none close to each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from redraft.backends.llama_context import Feed, LlamaContext, feed_of
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
        sequence: the number of its own sequence, which changes as branches are accepted.
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

    def prepare(self, score: Score) -> Feed:
        """Roll the cache back to the prefix it shares with the request, and return the ids to decode.

        Raises:
            CapabilityError: the model's memory cannot be rolled back.
        """
        if self.branches or not score.draft.is_chain:
            return self._branch_off(score)
        kept = min(common_prefix(self.ids, score.prefix), len(score.prefix) - score.prompt_rows)
        if len(self.ids) > kept and not self.context.remove(self.sequence, kept):
            raise CapabilityError(f"the memory of model {self.context.model.path.name!r} cannot be rolled back")
        self.ids, self.places = score.prefix + score.draft.tokens, None
        new = self.ids[kept:]
        rows = score.prompt_rows + len(score.draft.tokens)
        return feed_of(new, range(kept, len(self.ids)), [[self.sequence]] * len(new), rows)

    def _branch_off(self, score: Score) -> Feed:
        """Give a sequence to each path of a tree, and return what they lack.

        Every path continues the sequence that shares most ids with it: the slot's own, or a branch of the last tree if
        that is still held.  The first path of a sequence takes it over, and the others get their own.
        """
        prefix, draft, start = score.prefix, score.draft, len(score.prefix)
        held = {self.sequence: self.ids} | self.branches
        paths = [draft.path(node) for node in range(len(draft)) if node not in draft.parents]
        ids = [prefix + tuple([draft.tokens[node] for node in path]) for path in paths]
        found = [max((common_prefix(each, wanted), sequence) for sequence, each in held.items()) for wanted in ids]
        most = [len(wanted) - 1 if self.branches else start - score.prompt_rows for wanted in ids]
        kept = [min(shared, limit) for (shared, _), limit in zip(found, most, strict=True)]
        sources = [source for _, source in found]
        for unused in held.keys() - set(sources):
            self.context.remove(unused)
            self.spare.append(unused)
        every: list[int] = []
        for source, count in zip(sources, kept, strict=True):
            every.append(self.spare.pop() if source in every else source)
            if every[-1] != source:
                self.context.share(source, every[-1], 0, count)
        for sequence, source, count in zip(every, sources, kept, strict=True):
            if sequence == source:
                self.context.remove(sequence, count)
        self.sequence, self.ids = every[0], ids[0]
        self.branches = dict(zip(every[1:], ids[1:], strict=True))
        self.ordered = start + common_prefix(paths[0], range(len(paths[0])))
        # Negative nodes are ids of the prefix, see `redraft.decoding.types`.
        members: dict[int, list[int]] = {}
        for sequence, path, count in zip(every, paths, kept, strict=True):
            for node in [*range(count - start, 0), *path[max(0, count - start) :]]:
                members.setdefault(node, []).append(sequence)
        nodes = sorted(members)
        rows = [node for node in nodes if node >= -score.prompt_rows]
        self.places = {node: row for row, node in enumerate(rows)}
        return feed_of(
            [draft.tokens[node] if node > ROOT else prefix[node] for node in nodes],
            [start + node if node <= ROOT else start - 1 + draft.depths[node] for node in nodes],
            [members[node] for node in nodes],
            len(rows),
        )

    def adopt_branch(self, prefix: Sequence[int], *, exact: bool) -> None:
        """After a tree: continue on the accepted branch and drop the others."""
        best = max(self.branches, key=lambda branch: common_prefix(self.branches[branch], prefix))
        if exact:
            self.context.remove(self.sequence, self.ordered)
            self.ids = self.ids[: self.ordered]
        elif common_prefix(self.branches[best], prefix) > common_prefix(self.ids, prefix):
            self.branches[self.sequence] = self.ids
            self.sequence, self.ids = best, self.branches.pop(best)
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
            while len(self.anchors) >= most:
                self._drop_anchor()  # the longest one, which this one replaces
            self.anchors.append((self.spare.pop(), len(self.ids)))
            self.context.share(self.sequence, self.anchors[-1][0])

    def prepare(self, score: Score) -> Feed:
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
