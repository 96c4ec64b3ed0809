"""One slot of llama.cpp's cache: its contents, rolling back, and the branches of its draft tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from redraft.backends.llama_context import Feed, LlamaContext, leaf_paths
from redraft.decoding.types import ROOT, Score, common_prefix
from redraft.errors import CapabilityError


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

    def prepare(self, score: Score, feed: Feed, *, exact: bool) -> None:
        """Roll the cache back to the prefix it shares with the request, and add the ids to decode.

        Raises:
            CapabilityError: the model's memory cannot be rolled back.
        """
        prefix, draft = score.prefix, score.draft
        self.places = None
        if self.branches:
            self._extend_branches(score, feed)
            return
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
        feed.add(tokens, positions, sequences, score.prompt_rows + len(draft.tokens))

    def _extend_branches(self, score: Score, feed: Feed) -> None:
        """Add what the branches of the last tree lack, where only rows of leaves are read.

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
        feed.add(
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
