"""Types of the decoding core: drafts, requests for scores, rows, verdicts, and protocols.

The decoding loop (`redraft.decoding.decode`) asks a *target model* to score a draft, which a *drafter* proposes and an
*acceptance rule* judges.  This module knows nothing about engines, threads or clocks.

Positions are named by *node*: node ``i >= 0`` is the i-th draft token, node ``-1`` the last token of the prefix, node
``-2`` the one before it, and so on.  The row of a node is the model's distribution over the token that follows it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias, TypeVar

from redraft.decoding.selection import EVERYTHING, Selection

T = TypeVar("T")

#: The node of the last prefix token: its row predicts the first draft token.
ROOT = -1

#: The model of a request: the target, or the drafter's (a small model, or the target's first layers).
TARGET = "target"
DRAFT_MODEL = "draft"

#: Token -> probability, without tokens of probability zero.
Distribution: TypeAlias = Mapping[int, float]


class WholeDistribution(Mapping[int, float]):
    """The distribution over all tokens of a row (`Rows.distribution`), which would be slow as a dictionary.

    The probabilities add up to 1.
    """

    @abstractmethod
    def draw(self, uniform: float) -> int:
        """Return the token that a number in [0, 1) selects, as often as it is probable."""

    @abstractmethod
    def minus(self, other: Distribution) -> Distribution:
        """Return max(0, p - q), scaled; this distribution if nothing is left."""

    @abstractmethod
    def nucleus(self, mass: float) -> Distribution:
        """Return the smallest set of most probable tokens with a mass in [0, 1], at least one, scaled."""

    @abstractmethod
    def without(self, tokens: frozenset[int] | None, but: frozenset[int] = frozenset()) -> WholeDistribution:
        """Return the distribution without some tokens, or all (None), except those in ``but``, scaled."""


#: Position in the output -> ids that must not stand there.
Barred: TypeAlias = Mapping[int, frozenset[int]]
NOTHING_BARRED: Barred = {}


class Provenance:
    """Origins of a draft token, for legends; acceptance rules may depend on them, as in AASD.

    A plug-in has names of its own for others.
    """

    SHOWN = "what was shown"
    PREVIOUS = "what was hidden"
    PROMPT = "the prompt"
    GENERATED = "generated text"
    MODEL = "the small model's draft"
    ITERATION = "the last iteration"


#: Both parts of the previous output.
OF_PREVIOUS = frozenset({Provenance.SHOWN, Provenance.PREVIOUS})


@dataclass(frozen=True, slots=True)
class Draft:
    """A draft tree in topological order: every node comes after its parent.

    Attributes:
        tokens: (n,) token ids.
        parents: (n,) node of each token's parent, `ROOT` for those that follow the prefix directly.
        provenance: (n,) origin of each token (`Provenance`).
        distributions: (n,) distribution from which each token was sampled; empty if nothing was sampled.
        prompt_rows: number of rows of the prefix that the drafter requests from the same pass (see `Score`).
        leaves_only: whether only rows of leaves are read if there are several; a backend may leave out nodes that it
            has computed before.
        settled: whether the chain is part of the output as it is, without a pass that verifies it.
        depths: (n,) number of tokens on the path from the root to each node, including itself.
        depth: length of the longest path.
    """

    tokens: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()
    provenance: tuple[str, ...] = ()
    distributions: tuple[Distribution, ...] = ()
    prompt_rows: int = 1
    leaves_only: bool = False
    settled: bool = False
    depths: tuple[int, ...] = field(init=False, repr=False, compare=False)
    depth: int = field(init=False, repr=False, compare=False)

    @classmethod
    def of(cls, steps: Sequence[tuple[int, str]]) -> Draft:
        """Make a draft without branches of tokens with their provenances."""
        return cls(tuple(token for token, _ in steps), tuple(range(ROOT, len(steps) - 1)), tuple(of for _, of in steps))

    @classmethod
    def chain(cls, tokens: Sequence[int], provenance: str) -> Draft:
        """Make a draft without branches."""
        return cls.of([(token, provenance) for token in tokens])

    @classmethod
    def previous(cls, tokens: Sequence[int], shown: int) -> Draft:
        """Make a draft of the previous output, of which the reader sees the first ``shown`` tokens."""
        seen = Provenance.SHOWN, Provenance.PREVIOUS
        return cls.of([(token, seen[place >= shown]) for place, token in enumerate(tokens)])

    def __post_init__(self) -> None:
        size = len(self.tokens)
        if not size == len(self.parents) == len(self.provenance) or len(self.distributions) not in (0, size):
            raise ValueError("a draft needs one parent and one provenance for every token")
        depths = [0]  # the root's
        for node, parent in enumerate(self.parents):
            if not ROOT <= parent < node:
                raise ValueError("the parent of a draft token must stand before it")
            depths.append(depths[parent + 1] + 1)
        object.__setattr__(self, "depths", tuple(depths[1:]))
        object.__setattr__(self, "depth", max(depths))

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def is_chain(self) -> bool:
        """Whether no node has two children."""
        return self.depth == len(self.tokens)

    def path(self, node: int) -> list[int]:
        """Return the nodes from the root, which is not among them, to ``node``."""
        path: list[int] = []
        while node > ROOT:
            path.append(node)
            node = self.parents[node]
        return path[::-1]

    def truncated(self, depth: int) -> Draft:
        """Return this draft without nodes deeper than ``depth`` tokens."""
        if self.depth <= depth:
            return self
        return self.keeping([node for node, d in enumerate(self.depths) if d <= depth])

    def keeping(self, nodes: Sequence[int]) -> Draft:
        """Return this draft with only some of its nodes, given in order and each with its parent."""
        if len(nodes) == len(self):
            return self
        renumbered = {ROOT: ROOT} | {old: new for new, old in enumerate(nodes)}
        return replace(
            self,
            tokens=tuple([self.tokens[node] for node in nodes]),
            parents=tuple([renumbered[self.parents[node]] for node in nodes]),
            provenance=tuple([self.provenance[node] for node in nodes]),
            distributions=tuple([self.distributions[node] for node in nodes]) if self.distributions else (),
        )


EMPTY_DRAFT = Draft()


def common_prefix(first: Sequence[object], second: Sequence[object]) -> int:
    """Return the length of the common prefix of two sequences."""
    if type(first) is not type(second):
        first, second = tuple(first), tuple(second)
    shared, most = 0, min(len(first), len(second))
    middle = most  # usually they share everything
    while shared < most:  # comparing slices is faster than comparing items
        if first[shared:middle] == second[shared:middle]:
            shared = middle
        else:
            most = middle - 1
        middle = (shared + most + 1) // 2
    return shared


class Declined(Exception):
    """Thrown into a generator instead of the rows of a `Spare` request; the generator goes on without them."""


@dataclass(frozen=True, slots=True)
class Spare:
    """What a search for a better output may cost; a driver declines its requests when there is less time.

    Attributes:
        seconds: most seconds of the search.
        passes: number of its passes, as far as can be foreseen.
        tokens: new tokens of each pass.
    """

    seconds: float
    passes: int
    tokens: int = 1


@dataclass(frozen=True, slots=True)
class Score:
    """A request to run ``model`` over ``prefix`` and ``draft`` in one pass and return rows.

    Attributes:
        prefix: prompt and output so far, at least one id; for an encoder-decoder model, the decoder's input.
        draft: what to score after it; may be empty.
        prompt_rows: number of rows at the end of the prefix to return; 1 is the row of `ROOT`, AASD needs all.
        model: `TARGET` or `DRAFT_MODEL`.
        encoder: encoder input; empty for decoder-only models.
        biases: bias of the acceptance rule for each draft token (`Rule`), for servers that verify drafts; None if the
            rule has none.
        spare: what the search may cost to which the request belongs; None if the request must be answered.
    """

    prefix: tuple[int, ...]
    draft: Draft = EMPTY_DRAFT
    prompt_rows: int = 1
    model: str = TARGET
    encoder: tuple[int, ...] = ()
    biases: tuple[float, ...] | None = field(default=None, compare=False)
    spare: Spare | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not 1 <= self.prompt_rows <= len(self.prefix):
            raise ValueError("a request needs at least one id of prefix, and at most all of its rows")

    @property
    def is_aside(self) -> bool:
        """Whether it is of a search with hypotheses, which has a cache of its own until it ends, beside the slot's."""
        return self.spare is not None and self.draft.leaves_only


class Rows(Protocol):
    """The answer to a `Score`: distributions by node; valid until the same backend scores again."""

    def argmax(self, node: int) -> int:
        """Return the most probable token after ``node``, the lowest id among equals."""

    def best(self, node: int, k: int) -> list[int]:
        """Return the ``k`` most probable tokens after ``node``, or all possible ones, lower ids first among equals."""

    def logprob(self, node: int, token: int) -> float:
        """Return the natural log of the probability of ``token`` after ``node``."""

    def entropy(self, node: int) -> float:
        """Return the entropy of the distribution after ``node`` in nats."""

    def distribution(self, node: int, temperature: float) -> WholeDistribution:
        """Return the distribution after ``node`` at a temperature above 0; it stays valid."""


def top_k(rows: Rows, node: int, k: int) -> list[tuple[int, float]]:
    """Return the ``k`` most probable tokens after ``node`` with their log-probabilities, best first."""
    return [(token, rows.logprob(node, token)) for token in rows.best(node, k)]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision of an acceptance rule about a draft.

    Attributes:
        accepted: the accepted nodes, a path from the root of the draft tree.
        token: the token after them (correction or bonus); None if the rule needs another pass (a beam), or takes
            the draft's token alone (BiLD, Figure 2).
    """

    accepted: tuple[int, ...]
    token: int | None

    def added(self, draft: Draft) -> list[tuple[int, int]]:
        """Return the tokens that it adds to the output, each with the node that it follows."""
        new = [draft.tokens[node] for node in self.accepted]
        new += () if self.token is None else (self.token,)
        return list(zip((ROOT, *self.accepted), new, strict=False))


@dataclass(frozen=True, slots=True)
class Prompt:
    """A model's input for one update.

    Attributes:
        ids: input of the (decoder of the) model, at least one id unless the source is empty.
        source_ids: ids of the source text alone, without a template, if known, for drafters that copy from it.
        encoder: input of the encoder; empty for decoder-only models.
        selection: which tokens the output may contain, which follows from the source (`redraft.captions.script`).
    """

    ids: tuple[int, ...] = ()
    source_ids: tuple[int, ...] = ()
    encoder: tuple[int, ...] = ()
    selection: Selection = field(default=EVERYTHING, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Context:
    """What a drafter can see.

    Attributes:
        prompt: what the model reads.
        output: ids decoded so far.
        previous: ids of the output for the previous update of the same utterance, without the end token.
        shown: how many of these, from the first on, the reader sees.
        room: number of draft tokens that can still be useful.
        line_end: returns how many ids of an output precede the line break that ends it; None if none does.
    """

    prompt: Prompt
    output: tuple[int, ...]
    previous: tuple[int, ...]
    room: int
    shown: int = 0
    line_end: Callable[[Sequence[int]], int | None] = field(default=lambda _output: None, repr=False, compare=False)


#: A generator that yields `Score` requests and is sent `Rows`.
Asking: TypeAlias = Generator[Score, Rows, T]


def counted(asking: Asking[T], spare: Spare | None = None) -> Asking[tuple[T, int]]:
    """Run a generator; return its result, and how many scores it has asked for.

    Args:
        asking: the generator.
        spare: if not None, its requests are those of a search, which a driver may decline.

    Raises:
        Declined: the driver did.
    """
    rows: Rows | None = None
    asked = 0
    try:
        while True:
            try:
                score = asking.send(rows)  # type: ignore[arg-type]  # a generator starts by being sent None
            except StopIteration as stop:
                return stop.value, asked
            asked += 1
            rows = yield replace(score, spare=spare) if spare else score
    finally:
        asking.close()


class Drafter(Protocol):
    """Proposes drafts for one decoding. Every update gets a new one, so it may keep state."""

    def propose(self, context: Context) -> Draft:
        """Return the next draft; by default an empty one, for plain autoregression."""
        return EMPTY_DRAFT

    def drafting(self, context: Context) -> Asking[Draft]:
        """Return the next draft; may request scores from a draft model, but by default only calls `propose`."""
        yield from ()
        return self.propose(context)

    def observe(self, draft: Draft, rows: Rows, verdict: Verdict) -> None:
        """Called after every target pass with its result; does nothing by default.

        The rows are valid during the call.
        """
        return  # so that it is not abstract


class Rule(Protocol):
    """Decides which part of a draft is accepted; to be subclassed."""

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """Return the accepted path and the token after it."""

    def biases(self, draft: Draft) -> tuple[float, ...] | None:
        """Return b for each draft token if the rule accepts the argmax of (1 - b) P + b delta(draft), or fewer tokens.

        This is equation 3 of SSBD v2: 0 is exact acceptance, and 1 accepts everything.  By default, return None, for
        another rule.
        """
        return None


#: ``follow(draft, rows, verdict)`` takes note of tokens that are added to an output, and returns whether it is to end
#: there; the rows are those of the pass, None if they were added without one.
Follow: TypeAlias = Callable[[Draft, Rows | None, Verdict], bool]


@dataclass(frozen=True, slots=True)
class Likelihood:
    """How probable an output is to the model.

    Attributes:
        mean: log-probability per token in nats, end included, at most 0.
        given_up: by how many nats its tokens together are less probable than the most probable ones in their places.
        first: number of tokens before the first that is not the most probable one.
    """

    mean: float
    given_up: float = 0.0
    first: int = 0


@dataclass(frozen=True, slots=True)
class Output:
    """The result of one decoding.

    Attributes:
        tokens: output ids, without the end token.
        finished: whether the model ended it; False if it was stopped, or cut at the limit or at a loop.
        passes: target forward passes.
        drafted: draft tokens proposed, along the longest path of each tree.
        accepted: draft tokens accepted, among them a drafted end token.
        draft_passes: passes of the drafter's own model.
        end_drafted: whether the end token was drafted, and accepted.
        loop: token that would begin a loop after the output (`redraft.decoding.ends`); None if it was not cut there.
        stopped: whether it ends where the rest would be a guess (`redraft.decoding.followers`).
        likelihood: how probable it is, if that was followed.
    """

    tokens: tuple[int, ...]
    finished: bool
    passes: int = 0
    drafted: int = 0
    accepted: int = 0
    draft_passes: int = 0
    end_drafted: bool = False
    loop: int | None = None
    stopped: bool = False
    likelihood: Likelihood | None = None

    @property
    def cut(self) -> bool:
        """Whether it was cut at the limit or at a loop, so that its end is missing."""
        return not (self.finished or self.stopped)


@dataclass(frozen=True, slots=True)
class Tally:
    """Totals over several outputs, for the papers' acceptance figures.

    ``reopened`` counts further candidates for final texts (`redraft.captions.finals`).
    """

    updates: int = 0
    tokens: int = 0
    finished: int = 0
    passes: int = 0
    drafted: int = 0
    accepted: int = 0
    draft_passes: int = 0
    ends_drafted: int = 0
    reopened: int = 0

    def plus(self, output: Output) -> Tally:
        """Return the totals with one more output."""
        return replace(
            self,
            updates=self.updates + 1,
            tokens=self.tokens + len(output.tokens),
            finished=self.finished + output.finished,
            passes=self.passes + output.passes,
            drafted=self.drafted + output.drafted,
            accepted=self.accepted + output.accepted,
            draft_passes=self.draft_passes + output.draft_passes,
            ends_drafted=self.ends_drafted + output.end_drafted,
        )

    def searched(self, output: Output) -> Tally:
        """Return the totals with the passes of a further candidate; its tokens are not those of an update."""
        return replace(self, passes=self.passes + output.passes, draft_passes=self.draft_passes + output.draft_passes)

    @property
    def output_acceptance(self) -> float:
        """A/O: accepted draft tokens divided by output tokens, both without end tokens, 0-1."""
        return (self.accepted - self.ends_drafted) / self.tokens if self.tokens else 0.0
