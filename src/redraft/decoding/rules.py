"""The way through a draft tree, exact acceptance, and sampling, which several papers share.

A sampling drafter and its rule share one `Sampler`.  Two generators with the same seed would draw the same numbers, and
the draft would not be independent of the acceptance test.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import partial
from itertools import accumulate

from redraft.decoding.method import Option, Setup
from redraft.decoding.types import ROOT, Distribution, Draft, Rows, Rule, Verdict, WholeDistribution, top_k

#: ``choose(node, children)`` returns the accepted one of at least one child of ``node``, or None to stop.
ChooseChild = Callable[[int, list[int]], int | None]


def walk(draft: Draft, rows: Rows, choose: ChooseChild, sampler: Sampler | None = None) -> Verdict:
    """Accept tokens from the root down while ``choose`` returns a child, and one of the target's own after them.

    A sampler draws that token; without one, it is the most probable.
    """
    children: dict[int, list[int]] = {}
    for child, parent in enumerate(draft.parents):
        children.setdefault(parent, []).append(child)
    path: list[int] = []
    node = ROOT
    while node in children:
        chosen = choose(node, children[node])
        if chosen is None:
            break
        path.append(chosen)
        node = chosen
    token = sampler.draw(sampler.distribution(rows, node)) if sampler else rows.argmax(node)
    return Verdict(tuple(path), token)


def argmax_child(draft: Draft, rows: Rows, node: int, children: list[int]) -> int | None:
    """Return the child of ``node`` that is the target's most probable token; None if it was not drafted."""
    best = rows.argmax(node)
    return next((child for child in children if draft.tokens[child] == best), None)


class Exact(Rule):
    """Accepts a draft token only if it is the target's argmax, so the output equals greedy decoding."""

    def biases(self, draft: Draft) -> tuple[float, ...]:
        """Return a bias of 0 for every token."""
        return (0.0,) * len(draft)

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """Accept the path of argmaxes through the draft tree."""
        return walk(draft, rows, partial(argmax_child, draft, rows))


class Sampler:
    """Temperature, nucleus and a random number generator.

    Args:
        temperature: divides the log-probabilities, at least 0; 0 always selects the most probable token.
        top_p: probability mass of the nucleus, in [0, 1]: the smallest set of most probable tokens with this mass
            (Holtzman et al. 2020, "The curious case of neural text degeneration").  It has at least one token; 1 means
            all.
        seed: random seed.
        top_k: number of most probable tokens to sample from (Fan et al. 2018, "Hierarchical neural story generation"),
            of which the nucleus is taken; 0 means all.
    """

    def __init__(self, temperature: float = 0.0, top_p: float = 1.0, seed: int = 0, top_k: int = 0) -> None:
        self._temperature, self._top_p, self._top_k = temperature, top_p, top_k
        self._random = random.Random(seed)

    def distribution(self, rows: Rows, node: int) -> Distribution:
        """Return the distribution of the token after ``node``: probabilities that sum to 1, without zeros."""
        if self._temperature == 0:
            return {rows.argmax(node): 1.0}
        if not self._top_k:
            whole = rows.distribution(node, self._temperature)
            return whole if self._top_p == 1 else whole.nucleus(self._top_p)
        best = top_k(rows, node, self._top_k)
        weights = [math.exp((log - best[0][1]) / self._temperature) for _token, log in best]
        if self._top_p < 1:  # otherwise all, whatever the rounding of their sum
            wanted = self._top_p * math.fsum(weights)
            size = next((size for size, mass in enumerate(accumulate(weights), 1) if mass >= wanted), None)
            best, weights = best[:size], weights[:size]
        total = math.fsum(weights)
        return {token: weight / total for (token, _log), weight in zip(best, weights, strict=True) if weight}

    def draw(self, distribution: Distribution) -> int:
        """Draw a token; weights need not sum to 1."""
        if isinstance(distribution, WholeDistribution):
            return distribution.draw(self.uniform())
        return self._random.choices(list(distribution), weights=list(distribution.values()))[0]

    def uniform(self) -> float:
        """Draw a number in [0, 1)."""
        return self._random.random()


WINDOW = Option("window", 10, 1, 10, "maximum tokens that the small model drafts at a time", whole=True)
TOP_P = Option(
    "top_p", 1.0, 0.0, 1.0, "with a temperature above 0, sample only from the most probable tokens with this total mass"
)
TOP_K = Option(
    "top_k",
    0,
    0,
    1000,
    "with a temperature above 0, sample only from so many most probable tokens; 0 for all",
    whole=True,
)
SEED = Option("seed", 0, 0, 999_999, "random seed, the same for every update", whole=True)


def sampling(temperature: float) -> tuple[Option, ...]:
    """Return the options of `sampler`, with this temperature by default."""
    return Option("temperature", temperature, 0.0, 2.0, "sampling temperature; 0 is greedy"), TOP_P, TOP_K, SEED


def sampler(setup: Setup) -> Sampler:
    """Return the sampler that the options of `sampling` describe."""
    return Sampler(setup["temperature"], setup["top_p"], setup["seed"], setup["top_k"])
