"""The decoding dependency graph (Santilli et al. 2023, sections 3.5 and 4.3, Figures 4 and 6: DDGviz).

In every iteration of Jacobi decoding each open position is predicted from the present guess of the ones before it.
The graph shows how much of the output a token had to wait for.

* A token is *resolved* in the first iteration from which on its position holds the final token.  This is the paper's
  "correctly decoded w.r.t. the gold autoregressive reference", since the output is that reference; a token that was
  right by chance and changed again is not resolved by that.  A token that the initial guess already held is resolved
  in the iteration before its first prediction, iteration 0 for the first block.
* A guess ends at its first end token: what is predicted behind it, mostly more end tokens, counts for nothing.
* A token *depends* on those before it that were resolved in earlier iterations: only they stood in the guess from which
  it was predicted for good.  So tokens of one iteration do not depend on each other: y_6 of Figure 4 is decoded by
  p(y_6 | y_1:4, x).
* The graph *draws* one edge to a token: from the last of its dependencies to be resolved (of several the nearest one,
  of none the source).  The paper says that it omits redundant edges on tokens that are not parallel, not which; the
  last one to be resolved is the one that the token waited for.
* Tokens are *parallel* if another one is resolved in the same iteration.

The end token is a token like any other, since a pass is spent on it too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from redraft.measure.viz.trace import Trace, TracedPass

#: In place of a position: the source, on which every token depends.
SOURCE = -1


@dataclass(frozen=True, slots=True)
class Guess:
    """What an iteration predicts for a position: a token and its probability, 0-1."""

    token: int
    probability: float


@dataclass(frozen=True, slots=True)
class Resolved:
    """A token of the output.

    Attributes:
        token: its id.
        iteration: the one in which it was resolved, from 1; 0 if the first guess held it.
        probability: what its first prediction after that gave it, 0-1.
        waited_for: the position drawn as its dependency, or `SOURCE`.
        parallel: whether another token was resolved in the same iteration.
    """

    token: int
    iteration: int
    probability: float
    waited_for: int
    parallel: bool


@dataclass(frozen=True, slots=True)
class Graph:
    """The graph with its grid.

    Attributes:
        tokens: (n,) the output with its end token, by position.
        grid: (iterations, n) the guess of every iteration for every position; None where it made none.
    """

    tokens: tuple[Resolved, ...]
    grid: tuple[tuple[Guess | None, ...], ...]

    @property
    def iterations(self) -> int:
        """Target passes."""
        return len(self.grid)

    def dependencies(self, position: int) -> tuple[int, ...]:
        """All positions that a token depends on, in ascending order."""
        own = self.tokens[position].iteration
        return tuple(place for place in range(position) if self.tokens[place].iteration < own)


def graph(trace: Trace) -> Graph:
    """The graph of a decoding with exact acceptance of chains: the Jacobi family's, or autoregression's.

    Raises:
        ValueError: a draft has branches, or an output token is not the target's best one.
    """
    if not all(step.draft.is_chain for step in trace.steps):
        raise ValueError("the dependency graph is defined for drafts without branches")
    ids = [token.id for token in trace.tokens]
    grid = tuple(_row(step, len(ids), trace.end_tokens) for step in trace.steps)
    found = [_resolved(trace, grid, position, token) for position, token in enumerate(ids)]
    resolved = [iteration for iteration, _probability in found]
    together = Counter(resolved)
    return Graph(
        tuple(
            Resolved(token, iteration, probability, _waited_for(resolved, position), together[iteration] > 1)
            for position, (token, (iteration, probability)) in enumerate(zip(ids, found, strict=True))
        ),
        grid,
    )


def _row(step: TracedPass, length: int, end_tokens: frozenset[int]) -> tuple[Guess | None, ...]:
    row: list[Guess | None] = [None] * length
    for position, (token, probability) in enumerate(step.best[: max(0, length - step.start)], step.start):
        row[position] = Guess(token, probability)
        if token in end_tokens:
            break
    return tuple(row)


def _resolved(trace: Trace, grid: Sequence[Sequence[Guess | None]], position: int, token: int) -> tuple[int, float]:
    """The first iteration from which on ``position`` holds ``token``, and what its first prediction then gave it."""
    found: tuple[int, float] | None = None
    for number in reversed(range(len(grid))):
        guess, step = grid[number][position], trace.steps[number]
        node = position - step.start
        if node < 0:  # settled before this pass
            continue
        if guess is None or guess.token != token:
            break
        # What this pass has read may hold the token already: as the last pass's prediction, or as the initial guess.
        read = step.draft.tokens[: node + 1]
        held = len(read) > node and read[node] == token and trace.end_tokens.isdisjoint(read[:node])
        found = number if held else number + 1, guess.probability
    if found is None:
        raise ValueError("the dependency graph is defined for exact acceptance")
    return found


def _waited_for(resolved: Sequence[int], position: int) -> int:
    earlier = [(resolved[place], place) for place in range(position) if resolved[place] < resolved[position]]
    return max(earlier, default=(0, SOURCE))[1]
