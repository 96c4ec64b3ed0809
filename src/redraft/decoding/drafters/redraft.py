"""The drafter of the method `redraft`: SSBD's draft, then guesses for every token that SSBD decodes one by one.

The first draft of an update is the previous output, followed by the tokens that the target nearly chose instead of
ending it (`redraft.decoding.drafters.continuations`).  Each later pass has a small tree:

    tokens that the model chose after the same context (`redraft.decoding.drafters.recycled`)
    tokens that followed the same context in the text  (`redraft.decoding.drafters.lookup`)

Only the part of the tree that pays off by the cost of a pass is verified (`redraft.decoding.drafters.worth`).  As
long as that cost is unknown, nothing is guessed, nor where a pass costs a request next to nothing: with a small model,
or in a server whose requests share their passes.  Then the method has SSBD's drafter.
The previous output is always verified completely, as in SSBD: each dropped token that would have been accepted costs a
pass.  So the first pass accepts as much of it as SSBD's, each later pass yields at least one token, and, with equal
outputs,

    passes of redraft  =  passes of ssbd  -  accepted guesses

in every update, whatever passes cost and whatever was learned.  (An output cut as a loop may end in the middle of a
pass, which then has accepted more than it saved.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import TypeAlias

from redraft.decoding.cost import Cost
from redraft.decoding.drafters.continuations import Continuations
from redraft.decoding.drafters.lookup import Pool
from redraft.decoding.drafters.recycled import LONGEST_KEY, Successors
from redraft.decoding.drafters.tree import Tree
from redraft.decoding.drafters.worth import DEEPEST, Acceptance, Kind, Throughput, worth_verifying
from redraft.decoding.types import (
    OF_PREVIOUS,
    ROOT,
    Asking,
    Context,
    Draft,
    Drafter,
    Provenance,
    Rows,
    Verdict,
    common_prefix,
    provenance_of_previous,
)

#: Distance from the end of the previous output beyond which tokens are not distinguished.
FARTHEST = 8

#: `Kind.known` of a token that the target nearly chose instead of an end.
BEYOND = -1

#: A guessed continuation: tokens with their kinds, computed lazily.
Guess: TypeAlias = Iterable[tuple[int, Kind]]


@dataclass(frozen=True, slots=True)
class TreeShape:
    """Limits and sources of a tree.

    Attributes:
        branches: maximum leaves; 1 gives a chain.
        length: maximum tokens per branch.
        recycle: whether to guess tokens that the model chose after the same context.
        lookup: whether to guess tokens that followed the same context in source and output.
        beyond: whether to guess tokens that the model nearly chose instead of the end.
    """

    branches: int = 1
    length: int = 8
    recycle: bool = True
    lookup: bool = True
    beyond: bool = True


@dataclass(slots=True)
class Memory:
    """What is kept for the whole stream: what was learned, and the prompt of the previous update."""

    successors: Successors = field(default_factory=Successors)
    continuations: Continuations = field(default_factory=Continuations)
    acceptance: Acceptance = field(default_factory=Acceptance)
    throughput: Throughput = field(default_factory=Throughput)
    prompt: tuple[int, ...] = ()

    def tail(self, prompt: tuple[int, ...]) -> int:
        """Return how many ids of a prompt cannot be cached, at least 1; remember the prompt."""
        shared, self.prompt = common_prefix(prompt, self.prompt), prompt
        return max(1, len(prompt) - shared)


class Redraft(Drafter):
    """Proposes the previous output, then trees of guesses.

    Args:
        shape: limits of the trees.
        memory: the stream's.
        cost: what a pass costs a request in seconds, by its tokens.
        end_tokens: ids that end an output; they are not drafted.
    """

    def __init__(self, shape: TreeShape, memory: Memory, cost: Cost, end_tokens: frozenset[int]) -> None:
        self._shape, self._memory, self._cost, self._end_tokens = shape, memory, cost, end_tokens
        self._pool = Pool(3, end_tokens)
        self._context: Context  # of the latest draft
        self._kinds: Sequence[Kind] = ()
        self._tail = 1

    def propose(self, context: Context) -> Asking[Draft]:
        """Return the next draft; no pass is needed for it."""
        yield from ()
        self._context, self._tail = context, self._memory.tail(context.prompt)
        return self._cut(self._first(context) if context.previous and not context.output else self._guessed(context))

    def _cut(self, draft: Draft) -> Draft:
        """Return the previous output with those guesses that pay off."""
        given, cost = sum(each in OF_PREVIOUS for each in draft.provenance), self._cost
        reached = self._memory.acceptance.reached(draft, self._kinds)[given:]
        pays = worth_verifying(reached, self._tail + given, cost, self._memory.throughput.per_second(cost))
        nodes = [*range(given), *(given + node for node in pays)]
        self._kinds = [self._kinds[node] for node in nodes]
        return draft if len(nodes) == len(draft) else draft.keeping(nodes)

    def _first(self, context: Context) -> Draft:
        """Return the previous output as far as there is room, then guesses."""
        shape, previous = self._shape, context.previous[: context.room]
        self._kinds = _kinds_of_previous(len(context.previous), len(previous), min(context.shown, len(previous)))
        room = context.room - len(previous)
        starts = self._memory.continuations.after(previous) if room else ()
        if not starts:
            return Draft.previous(previous, context.shown)
        tree: Tree[Kind] = Tree(shape.branches)
        last = tree.add_path(ROOT, zip(previous, self._kinds, strict=True))[-1]
        for rank, start in enumerate(starts):
            chain = self._chain(previous[-LONGEST_KEY:], start, rank, BEYOND)
            tree.add_path(last, islice(chain, min(room, shape.length)))
        self._kinds = tree.marks
        return tree.draft([kind.provenance for kind in tree.marks])

    def _guessed(self, context: Context) -> Draft:
        tree: Tree[Kind] = Tree(self._shape.branches)
        for guess in self._guesses(context):
            tree.add_path(ROOT, islice(guess, context.room))
        self._kinds = tree.marks
        return tree.draft([kind.provenance for kind in tree.marks])

    def _guesses(self, context: Context) -> Iterator[Guess]:
        """Yield continuations of the output, most probable first."""
        shape = self._shape
        if shape.recycle:
            text = _latest(context)
            starts, length = self._memory.successors.after(text)
            for rank, start in enumerate(starts):
                yield islice(self._chain(text, start, rank, length), shape.length)
        if shape.lookup:
            self._pool.read(context)
            for rank, place in enumerate(self._pool.find()[:2]):
                tokens = [token for token, _ in self._pool.ngram(place, shape.length)]
                yield zip(tokens, _kinds_of_lookup(rank, shape.length), strict=False)

    def _chain(self, text: tuple[int, ...], token: int, rank: int, known: int) -> Guess:
        """Yield ``token``, which follows ``text``, and then the latest successor of each token."""
        depth = 0
        while token not in self._end_tokens:
            yield token, Kind(Provenance.RECYCLED, min(depth, DEEPEST), rank, known)
            depth += 1
            text = (*text, token)[-LONGEST_KEY:]
            following, known = self._memory.successors.after(text)
            if not following:
                break
            token = following[0]

    def observe(self, draft: Draft, rows: Rows, verdict: Verdict) -> None:
        """Learn from the result of a draft, and from all its rows."""
        self._memory.acceptance.learn(draft, self._kinds, verdict)
        if self._tail == 1 and OF_PREVIOUS.isdisjoint(draft.provenance):
            self._memory.throughput.learn(len(verdict.accepted) + 1, 1 + len(draft), self._cost)
        if self._shape.recycle:
            self._memory.successors.learn(_latest(self._context), draft, rows)
        if self._shape.beyond:
            self._memory.continuations.learn(self._context, draft, rows, verdict, self._end_tokens)


def _latest(context: Context) -> tuple[int, ...]:
    """Return the last ids before the draft that the table of successors uses; only one of the prompt."""
    return (*context.prompt[-1:], *context.output[-LONGEST_KEY:])[-LONGEST_KEY:]


@lru_cache(maxsize=1024)
def _kinds_of_previous(left: int, drafted: int, shown: int) -> tuple[Kind, ...]:
    """Return the kinds of the first ``drafted`` of the last ``left`` tokens of the previous output.

    Corrections happen mostly where the source was incomplete: near its end.
    """
    origins = enumerate(provenance_of_previous(drafted, shown))
    return tuple([Kind(origin, min(n // 4, DEEPEST), known=min(left - n, FARTHEST)) for n, origin in origins])


@lru_cache(maxsize=64)
def _kinds_of_lookup(rank: int, length: int) -> tuple[Kind, ...]:
    """Return the kinds of an n-gram; only the depth of each token is known."""
    return tuple([Kind(Provenance.PROMPT, min(depth, DEEPEST), rank) for depth in range(length)])
