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
from typing import NamedTuple

from redraft.decoding.backend import Capability
from redraft.decoding.drafters import Tree
from redraft.decoding.method import Method, Option, Setup
from redraft.decoding.search import MOST
from redraft.decoding.types import (
    ROOT,
    Context,
    Draft,
    Drafter,
    Likelihood,
    Prompt,
    Provenance,
    Rows,
    Rule,
    Verdict,
    common_prefix,
    top_k,
)

WIDTH = Option("width", 4, 2, MOST, "number of hypotheses", whole=True)


class _Hypothesis(NamedTuple):
    """An output, perhaps with its end token, and its log-probability; ``plain`` is that without the bias."""

    tokens: tuple[int, ...]
    logprob: float = 0.0
    plain: float = 0.0

    @property
    def mean(self) -> float:
        return self.logprob / len(self.tokens)


class Beam(Drafter, Rule):
    """Drafter and rule of one decoding.  The backend needs trees with ``width`` further branches.

    Args:
        width: number of unfinished hypotheses.
        end_tokens: ids that end an output.
        breaks: ids with a line break, which end it only where the decoding's ``line_end`` says so.
        towards: a rule with the bias towards the previous output; None searches without one.
    """

    def __init__(
        self,
        width: int,
        end_tokens: frozenset[int],
        breaks: frozenset[int] = frozenset(),
        towards: Rule | None = None,
    ) -> None:
        self._width, self._ends, self._breaks, self._towards = width, end_tokens, breaks, towards
        self._context = Context(Prompt(), (), (), 0)
        self._biases: tuple[float, ...] = ()
        self._live = [_Hypothesis(())]
        #: The best finished hypothesis.
        self._done: _Hypothesis | None = None
        #: For each hypothesis without its end, the nodes of its tokens behind the accepted ones.
        self._paths: dict[tuple[int, ...], list[int]] = {}
        #: The hypothesis that has been accepted.
        self._won: _Hypothesis | None = None

    def propose(self, context: Context) -> Draft:
        """Return the tree of all hypotheses."""
        self._context = context
        if self._towards and not self._biases:
            self._biases = self._towards.biases(Draft.previous(context.previous, context.shown)) or ()
        tree, accepted = Tree(self._width + 1), len(context.output)
        self._paths = {
            tokens: tree.add_path(ROOT, ((token, Provenance.MODEL) for token in tokens[accepted:]))
            for tokens in self._unended()
        }
        return tree.draft(leaves_only=True)

    def _unended(self) -> list[tuple[int, ...]]:
        return [*(each.tokens for each in self._live), *([self._done.tokens[:-1]] if self._done else [])]

    def of(self, length: int, *, finished: bool) -> Likelihood | None:
        """Return the likelihood of the output, of so many tokens, without the bias; None unless it is finished."""
        return None if self._won is None or not finished else Likelihood(self._won.plain / (length + 1))

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """Extend the hypotheses, and accept what they share, or the winner."""
        found = [longer for each in self._live for longer in self._extended(each, rows)]
        found.sort(key=lambda each: -each.logprob)
        self._live = []
        for rank, each in enumerate(found):
            if self._is_ended(each.tokens):
                if rank < self._width and (self._done is None or each.mean > self._done.mean):
                    self._done = each
            elif len(self._live) < self._width:
                self._live.append(each)
        winner, accepted = self._done, len(self._context.output)
        if winner and all(each.mean <= winner.mean for each in self._live):
            self._won = winner
        elif len(self._live[0].tokens) - accepted > self._context.room:  # the limit: the best one is cut
            winner = self._live[0]
        else:
            return self._share(accepted)
        return Verdict(tuple(self._paths[winner.tokens[:-1]]), winner.tokens[-1])

    def _extended(self, each: _Hypothesis, rows: Rows) -> list[_Hypothesis]:
        place, path, previous = len(each.tokens), self._paths[each.tokens], self._context.previous
        leaf = path[-1] if path else ROOT
        best = [(token, log, log) for token, log in top_k(rows, leaf, 2 * self._width) if log > -math.inf]
        bias = self._biases[place] if place < len(self._biases) and previous[:place] == each.tokens else 0.0
        if bias and best and not self._is_ended((*each.tokens, best[0][0])):
            drafted = previous[place]
            if (log := rows.logprob(leaf, drafted)) > -math.inf:
                best = [
                    (token, log + math.log1p(-bias), log) for token, log, _ in best if token != drafted and bias < 1
                ]
                best.append((drafted, math.log((1 - bias) * math.exp(log) + bias), log))
        return [
            _Hypothesis((*each.tokens, token), each.logprob + log, each.plain + plain) for token, log, plain in best
        ]

    def _is_ended(self, tokens: tuple[int, ...]) -> bool:
        """Whether the last token ends a hypothesis; a line break before any text, for example, does not."""
        return tokens[-1] in self._ends or (tokens[-1] in self._breaks and self._context.line_end(tokens) is not None)

    def _share(self, accepted: int) -> Verdict:
        """Accept the tokens that all hypotheses have in common, and wait for another pass."""
        first, *others = self._unended()
        shared = min((common_prefix(first, each) for each in others), default=len(first) - 1)  # all that has a node
        path = next(path for tokens, path in self._paths.items() if tokens[:shared] == first[:shared])
        return Verdict(tuple(path[: shared - accepted]), None)


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
