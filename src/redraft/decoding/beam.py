"""Beam search in the decoding loop: the hypotheses are a draft tree, and a rule that waits until one of them has won.

Every pass scores the tree of all hypotheses behind the tokens that they share; a backend that keeps its branches
computes only their last tokens.  The rule extends them by the most probable tokens after their leaves, and accepts what
all of them have in common.  Once a finished hypothesis is more
probable than every other one, by log-probability per token, the rest of it is accepted.

The search may have the bias of SSBD (v2, equation 3): as long as a hypothesis is a beginning of the previous output,
its next token is scored by P' = (1 - beta) P + beta delta(draft), so that a final caption changes what people have read
only for a translation that is clearly better.  As in `redraft.decoding.methods.ssbd`, the model decides on the end.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from redraft.decoding.backend import Capabilities
from redraft.decoding.drafters.tree import Tree
from redraft.decoding.lines import NO_BREAKS, LineEnd
from redraft.decoding.types import ROOT, Asking, Context, Draft, Drafter, Provenance, Rows, Verdict, common_prefix
from redraft.errors import CapabilityError, OptionError

BIASED, EXACT = "biased", "exact"
#: Least and most hypotheses.
LEAST, MOST = 2, 16
_BEAM = re.compile(r"beam:(\d{1,2})")


def beam_width(final: object, name: str = "final") -> int:
    """Return the number of hypotheses with which final texts are decoded: 0 for ``biased``, 1 for ``exact``.

    Raises:
        OptionError: it is not ``biased``, ``exact`` or ``beam:N``.
    """
    if final in (BIASED, EXACT):
        return int(final == EXACT)
    match = _BEAM.fullmatch(final) if isinstance(final, str) else None
    if match is None or not LEAST <= int(match[1]) <= MOST:
        raise OptionError(f"must be biased, exact, or beam:N with N from {LEAST} to {MOST}, not {final!r}", name)
    return int(match[1])


def require_trees(final: str, capabilities: Capabilities) -> None:
    """Check that a backend can decode final texts in this way.

    Raises:
        OptionError: as `beam_width`.
        CapabilityError: hypotheses need trees, which the backend lacks.
    """
    if beam_width(final) > 1 and not capabilities.trees:
        raise CapabilityError(f"final {final!r} needs a backend with trees; use exact instead")


class _Hypothesis(NamedTuple):
    """Tokens after the accepted output, and the log-probability of all tokens, accepted ones included."""

    tokens: tuple[int, ...]
    logprob: float


class Beam(Drafter):
    """Drafter and rule of one decoding.  The backend needs trees with ``width`` further branches.

    Args:
        width: number of unfinished hypotheses.
        end_tokens: ids that end an output.
        breaks: ids with a line break, which end it only where ``line_end`` says so.
        line_end: as for `redraft.decoding.decode.decode`.
        biases: bias towards each token of the previous output, 0-1; 0 and missing ones search without one.
    """

    def __init__(
        self,
        width: int,
        end_tokens: frozenset[int],
        breaks: frozenset[int] = frozenset(),
        line_end: LineEnd = NO_BREAKS.end,
        biases: tuple[float, ...] = (),
    ) -> None:
        self._width, self._ends, self._breaks, self._line_end, self._biases = (
            width,
            end_tokens,
            breaks,
            line_end,
            biases,
        )
        self._output: tuple[int, ...] = ()
        self._previous: tuple[int, ...] = ()
        self._live = [_Hypothesis((), 0.0)]
        #: The best finished hypothesis with its end token, and its log-probability per token.
        self._done: tuple[_Hypothesis, int, float] | None = None
        self._paths: dict[tuple[int, ...], list[int]] = {}
        self._accepted, self._room = 0, 0

    def propose(self, context: Context) -> Asking[Draft]:
        """Return the tree of all hypotheses."""
        yield from ()
        self._output, self._previous, self._room = context.output, context.previous, context.room
        tree = Tree(self._width + 1)
        hypotheses = [*self._live, *([self._done[0]] if self._done else [])]
        self._paths = {
            tokens: tree.add_path(ROOT, ((token, Provenance.MODEL) for token in tokens)) for tokens, _ in hypotheses
        }
        return tree.draft(leaves_only=True)

    def observe(self, draft: Draft, rows: Rows, verdict: Verdict) -> None:
        """Do nothing: `judge` has seen the rows."""

    def judge(self, draft: Draft, rows: Rows) -> Verdict:
        """Extend the hypotheses, and accept what they share, or the winner."""
        found = [
            (logprob + log, tokens, token) for tokens, logprob in self._live for token, log in self._next(tokens, rows)
        ]
        found.sort(key=lambda each: -each[0])
        self._live = []
        for rank, (logprob, tokens, token) in enumerate(found):
            if self._is_end(tokens, token):
                if rank < self._width:
                    self._finish(_Hypothesis(tokens, logprob), token)
            elif len(self._live) < self._width:
                self._live.append(_Hypothesis((*tokens, token), logprob))
        if self._done and all(self._average(each) <= self._done[2] for each in self._live):
            return Verdict(tuple(self._paths[self._done[0].tokens]), self._done[1])
        best = self._live[0].tokens
        if len(best) > self._room:  # the limit: the best one is cut
            return Verdict(tuple(self._paths[best[:-1]]), best[-1])
        return self._share()

    def _next(self, tokens: tuple[int, ...], rows: Rows) -> list[tuple[int, float]]:
        """Return the most probable tokens after a hypothesis, with log-probabilities that have the bias."""
        leaf = self._leaf(tokens)
        best = [(token, log) for token, log in rows.top_k(leaf, 2 * self._width) if log > -math.inf]
        drafted, bias = self._drafted((*self._output, *tokens))
        if drafted is None or not best or self._is_end(tokens, best[0][0]):
            return best
        log = rows.logprob(leaf, drafted)
        if log == -math.inf:
            return best
        others = [(token, log + math.log1p(-bias)) for token, log in best if token != drafted and bias < 1]
        return [*others, (drafted, math.log((1 - bias) * math.exp(log) + bias))]

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
        first, *others = [tokens for tokens, _ in self._live] + ([self._done[0].tokens] if self._done else [])
        shared = min((common_prefix(first, each) for each in others), default=len(first) - 1)  # all that has a node
        path = self._paths[next(tokens for tokens in self._paths if tokens[:shared] == first[:shared])][:shared]
        self._accepted += len(path)
        self._live = [_Hypothesis(tokens[len(path) :], logprob) for tokens, logprob in self._live]
        if self._done:
            (tokens, logprob), end, average = self._done
            self._done = _Hypothesis(tokens[len(path) :], logprob), end, average
        return Verdict(tuple(path), None)
