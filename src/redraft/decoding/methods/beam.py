"""Beam search in the decoding loop: the hypotheses are a draft tree, and a rule that waits until one of them has won.

Every pass scores the tree of all hypotheses behind the tokens that they share; a backend that keeps its branches
computes only their last tokens.  The rule extends them by the most probable tokens after their leaves, and accepts what
all of them have in common.  Once a finished hypothesis is more probable than every other one, by log-probability per
token, the rest of it is accepted.

The method `beam` searches from scratch, as the papers' baselines do (parallel decoding, Table 1: five hypotheses;
AASD, section 4.1: ten).  A search may also have the bias of SSBD (v2, equation 3): as long as a hypothesis is a
beginning of the previous output, its next token is scored by P' = (1 - beta) P + beta delta(draft), so that a final
caption changes what people have read only for a translation that is clearly better (`redraft.captions.finals`).  As in
`redraft.decoding.methods.ssbd`, the model decides on the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from redraft.decoding.backend import Capability
from redraft.decoding.drafters import Tree
from redraft.decoding.ends import NO_BREAKS, LineEnd
from redraft.decoding.method import Method, Option, Setup
from redraft.decoding.search import MOST
from redraft.decoding.types import (
    ROOT,
    Asking,
    Context,
    Draft,
    Drafter,
    Likelihood,
    Provenance,
    Rows,
    Rule,
    Verdict,
    biases_of,
    common_prefix,
    top_k,
)

WIDTH = Option("width", 4, 2, MOST, "number of hypotheses", whole=True)


class _Hypothesis(NamedTuple):
    """Tokens after the accepted output, and the log-probability of all tokens, accepted ones included.

    ``plain`` is the log-probability without the bias.
    """

    tokens: tuple[int, ...]
    logprob: float
    plain: float


class Beam(Drafter):
    """Drafter and rule of one decoding, and its follower.  The backend needs trees with ``width`` further branches.

    Args:
        width: number of unfinished hypotheses.
        end_tokens: ids that end an output.
        breaks: ids with a line break, which end it only where the decoding's ``line_end`` says so.
        towards: a rule with the bias towards the previous output; None searches without one.

    Attributes:
        stops: whether the output is to end behind what the reader sees: never.
    """

    stops = False

    def __init__(
        self,
        width: int,
        end_tokens: frozenset[int],
        breaks: frozenset[int] = frozenset(),
        towards: Rule | None = None,
    ) -> None:
        self._width, self._ends, self._breaks, self._towards = width, end_tokens, breaks, towards
        self._line_end: LineEnd = NO_BREAKS.end
        self._output: tuple[int, ...] = ()
        self._previous: tuple[int, ...] = ()
        self._biases: tuple[float, ...] = ()
        self._live = [_Hypothesis((), 0.0, 0.0)]
        #: The best finished hypothesis with its end token, and its log-probability per token.
        self._done: tuple[_Hypothesis, int, float] | None = None
        self._paths: dict[tuple[int, ...], list[int]] = {}
        self._accepted, self._room = 0, 0
        #: The log-probability without bias of the whole output, once it has been accepted.
        self._won: float | None = None

    def propose(self, context: Context) -> Asking[Draft]:
        """Return the tree of all hypotheses."""
        yield from ()
        self._output, self._previous, self._room = context.output, context.previous, context.room
        self._line_end = context.line_end
        if self._towards and not self._biases:
            self._biases = biases_of(self._towards, Draft.previous(context.previous, context.shown)) or ()
        tree = Tree(self._width + 1)
        hypotheses = [*self._live, *([self._done[0]] if self._done else [])]
        self._paths = {
            each.tokens: tree.add_path(ROOT, ((token, Provenance.MODEL) for token in each.tokens))
            for each in hypotheses
        }
        return tree.draft(leaves_only=True)

    def keep(self, tokens: Sequence[int]) -> None:
        """Do nothing: no token is added without a pass."""

    def of(self, length: int, *, finished: bool) -> Likelihood | None:
        """Return the likelihood of the output, of so many tokens, without the bias; None unless it is finished."""
        return None if self._won is None or not finished else Likelihood(self._won / (length + 1))

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """Extend the hypotheses, and accept what they share, or the winner."""
        found = [(each, *following) for each in self._live for following in self._next(each.tokens, rows)]
        found.sort(key=lambda one: -(one[0].logprob + one[2]))
        self._live = []
        for rank, (each, token, log, plain) in enumerate(found):
            logprob, plain = each.logprob + log, each.plain + plain
            if self._is_end(each.tokens, token):
                if rank < self._width:
                    self._finish(_Hypothesis(each.tokens, logprob, plain), token)
            elif len(self._live) < self._width:
                self._live.append(_Hypothesis((*each.tokens, token), logprob, plain))
        if self._done and all(self._average(each) <= self._done[2] for each in self._live):
            self._won = self._done[0].plain
            return Verdict(tuple(self._paths[self._done[0].tokens]), self._done[1])
        best = self._live[0].tokens
        if len(best) > self._room:  # the limit: the best one is cut
            return Verdict(tuple(self._paths[best[:-1]]), best[-1])
        return self._share()

    def _next(self, tokens: tuple[int, ...], rows: Rows) -> list[tuple[int, float, float]]:
        """Return the most probable tokens after a hypothesis, with log-probabilities with and without the bias."""
        leaf = self._leaf(tokens)
        best = [(token, log, log) for token, log in top_k(rows, leaf, 2 * self._width) if log > -math.inf]
        drafted, bias = self._drafted((*self._output, *tokens))
        if drafted is None or not best or self._is_end(tokens, best[0][0]):
            return best
        log = rows.logprob(leaf, drafted)
        if log == -math.inf:
            return best
        others = [(token, log + math.log1p(-bias), log) for token, log, _ in best if token != drafted and bias < 1]
        return [*others, (drafted, math.log((1 - bias) * math.exp(log) + bias), log)]

    def _drafted(self, output: tuple[int, ...]) -> tuple[int | None, float]:
        """Return the token of the previous output that a bias favours after ``output``, and the bias."""
        place = len(output)
        if place >= len(self._previous) or self._previous[:place] != output:
            return None, 0.0
        bias = self._biases[place] if place < len(self._biases) else 0.0
        return (self._previous[place], bias) if bias else (None, 0.0)

    def _is_end(self, tokens: tuple[int, ...], token: int) -> bool:
        """Whether ``token`` after a hypothesis ends it; a line break before any text, for example, does not."""
        return token in self._ends or (
            token in self._breaks and self._line_end((*self._output, *tokens, token)) is not None
        )

    def _leaf(self, tokens: tuple[int, ...]) -> int:
        path = self._paths[tokens]
        return path[-1] if path else ROOT

    def _average(self, each: _Hypothesis, more: int = 0) -> float:
        return each.logprob / (self._accepted + len(each.tokens) + more)

    def _finish(self, each: _Hypothesis, end: int) -> None:
        average = self._average(each, 1)
        if self._done is None or average > self._done[2]:
            self._done = each, end, average

    def _share(self) -> Verdict:
        """Accept the tokens that all hypotheses have in common, and wait for another pass."""
        first, *others = [each.tokens for each in self._live] + ([self._done[0].tokens] if self._done else [])
        shared = min((common_prefix(first, each) for each in others), default=len(first) - 1)  # all that has a node
        path = self._paths[next(tokens for tokens in self._paths if tokens[:shared] == first[:shared])][:shared]
        self._accepted += len(path)
        self._live = [each._replace(tokens=each.tokens[len(path) :]) for each in self._live]
        if self._done:
            each, end, average = self._done
            self._done = each._replace(tokens=each.tokens[len(path) :]), end, average
        return Verdict(tuple(path), None)


def _beam(setup: Setup) -> tuple[Drafter, Rule]:
    beam = Beam(setup[WIDTH.name], setup.end_tokens, setup.line_ends)
    return beam, beam


METHODS = (
    Method(
        "beam",
        "re-translation from scratch by beam search",
        "a baseline of Parallel decoding (Tables 1 and 2) and AASD (section 4)",
        "all hypotheses",
        "the most probable hypothesis per token",
        _beam,
        (WIDTH,),
        needs=frozenset({Capability.TREES}),
    ),
)
