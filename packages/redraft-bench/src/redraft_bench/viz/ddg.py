"""The decoding dependency graph (DDGviz: Santilli et al. 2023, sections 3.5 and 4.3, Figures 4 and 6).

Each iteration of Jacobi decoding predicts every open position from the current guess of the positions before it.  The
graph shows how many of its predecessors a token had to wait for.

* A token is *resolved* in the first iteration from which its position keeps the final token.  This is the paper's
  "correctly decoded w.r.t. the gold autoregressive reference", since the output equals that reference.  A token that is
  right by chance and then changes is not resolved yet.  A token that the initial guess already contained is resolved in
  the iteration before its first prediction, iteration 0 for the first block.
* A guess ends at its first end token; predictions after that are ignored.
* A token *depends* on the tokens before it that were resolved in earlier iterations: only these were in the guess from
  which its final prediction was made.  So tokens of one iteration do not depend on each other: y_6 of Figure 4 is
  decoded by p(y_6 | y_1:4, x).
* The graph *draws* one edge to a token: from the dependency that was resolved last (the nearest one of several, the
  source if there is none).  The paper omits redundant edges on non-parallel tokens without saying which; this edge is
  the one the token waited for.
* Tokens are *parallel* if another token is resolved in the same iteration.

The end token is treated like any other, since it also costs a pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from redraft_bench.viz.trace import Trace, TracedPass

#: Stands for the source, on which every token depends, in place of a position.
SOURCE = -1


@dataclass(frozen=True, slots=True)
class Guess:
    """The prediction of one iteration for a position: a token and its probability, 0-1."""

    token: int
    probability: float


@dataclass(frozen=True, slots=True)
class Resolved:
    """A token of the output.

    Attributes:
        token: its id.
        iteration: iteration in which it was resolved, from 1; 0 if the initial guess contained it.
        probability: its probability in the first prediction after that, 0-1.
        waited_for: position of the dependency that is drawn, or `SOURCE`.
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
        grid: (iterations, n) the guess of each iteration for each position; None if it made none.
    """

    tokens: tuple[Resolved, ...]
    grid: tuple[tuple[Guess | None, ...], ...]

    @property
    def iterations(self) -> int:
        """Number of target passes."""
        return len(self.grid)

    def dependencies(self, position: int) -> tuple[int, ...]:
        """Return all positions that a token depends on, ascending."""
        own = self.tokens[position].iteration
        return tuple(place for place in range(position) if self.tokens[place].iteration < own)


def graph(trace: Trace) -> Graph:
    """Build the graph of a decoding that accepts chains exactly, by a method of the Jacobi family or by autoregression.

    Raises:
        ValueError: an output token is not the target's most probable one.
    """
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
    """Return the first iteration from which ``position`` keeps ``token``, and its probability in that prediction."""
    found: tuple[int, float] | None = None
    for number in reversed(range(len(grid))):
        guess, step = grid[number][position], trace.steps[number]
        node = position - step.start
        if node < 0:  # settled before this pass
            continue
        if guess is None or guess.token != token:
            break
        # The token may already be in what this pass has read: as the last pass's prediction, or in the initial guess.
        read = step.draft.tokens[: node + 1]
        held = len(read) > node and read[node] == token and trace.end_tokens.isdisjoint(read[:node])
        found = number if held else number + 1, guess.probability
    if found is None:
        raise ValueError("the dependency graph is defined for exact acceptance")
    return found


def _waited_for(resolved: Sequence[int], position: int) -> int:
    earlier = [(resolved[place], place) for place in range(position) if resolved[place] < resolved[position]]
    return max(earlier, default=(0, SOURCE))[1]
