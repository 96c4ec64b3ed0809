"""Traces of decoding: the input, output and effect of each target pass.

A drafter sees both ends of a pass, so a drafter wrapped around another one can record everything.  `traced` wraps the
drafter of a method; the loop, the acceptance rule and the output do not change.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum

from redraft.decoding.method import Method, Setup
from redraft.decoding.types import ROOT, Asking, Context, Draft, Drafter, Provenance, Rows, Rule, Verdict


class Given(Enum):
    """Why an output token came from the target itself rather than from a draft."""

    CORRECTION = "correction"
    BONUS = "bonus"
    ALONE = "alone"


@dataclass(frozen=True, slots=True)
class TracedPass:
    """One target pass.

    Attributes:
        start: number of output tokens before it.
        draft: the draft that it scored, n tokens.
        drafted: (n,) the target's probability of each draft token after its parent.
        best: (n + 1,) the target's most probable token, with probability, after the prefix and after each draft token.
        verdict: the decision of the acceptance rule.
        chosen: probability of the verdict's own token; 0 if it has none.
    """

    start: int
    draft: Draft
    drafted: tuple[float, ...]
    best: tuple[tuple[int, float], ...]
    verdict: Verdict
    chosen: float

    @property
    def refused(self) -> tuple[int, ...]:
        """Draft nodes that could have followed the accepted path and were rejected."""
        last = self.verdict.accepted[-1] if self.verdict.accepted else ROOT
        return tuple(node for node, parent in enumerate(self.draft.parents) if parent == last)


@dataclass(frozen=True, slots=True)
class Token:
    """A token of the output.

    Attributes:
        id: its id.
        number: number of the target pass that settled it, from 1.
        probability: the target's probability of it, 0-1.
        origin: source of the draft that contained it, or why no draft did.
        refused: for a correction, the rejected draft tokens with their probabilities.
    """

    id: int
    number: int
    probability: float
    origin: Provenance | Given
    refused: tuple[tuple[int, float], ...] = ()


@dataclass(slots=True)
class Trace:
    """All target passes of one decoding."""

    end_tokens: frozenset[int]
    steps: list[TracedPass] = field(default_factory=list)

    @property
    def tokens(self) -> tuple[Token, ...]:
        """The output, with the end token if the model ended it."""
        tokens: list[Token] = []
        for number, step in enumerate(self.steps, 1):
            for token in _settled(step, number):
                tokens.append(token)
                if token.id in self.end_tokens:
                    return tuple(tokens)
        return tuple(tokens)

    @property
    def drafted(self) -> int:
        """Draft tokens proposed, along the longest path of each tree, as in `redraft.decoding.types.Output`."""
        return sum(step.draft.depth for step in self.steps)

    @property
    def accepted(self) -> int:
        """Draft tokens accepted, without the end token, as in `redraft.decoding.types.Output`."""
        return sum(isinstance(token.origin, Provenance) and token.id not in self.end_tokens for token in self.tokens)


def _settled(step: TracedPass, number: int) -> Iterator[Token]:
    for node in step.verdict.accepted:
        yield Token(step.draft.tokens[node], number, step.drafted[node], step.draft.provenance[node])
    if step.verdict.token is None:
        return
    refused = tuple((step.draft.tokens[node], step.drafted[node]) for node in step.refused)
    origin = Given.CORRECTION if refused else Given.BONUS if len(step.draft) else Given.ALONE
    yield Token(step.verdict.token, number, step.chosen, origin, refused)


class Traced:
    """Wraps a drafter and records its drafts and their results."""

    def __init__(self, drafter: Drafter, trace: Trace) -> None:
        self._drafter, self._trace, self._start = drafter, trace, 0

    def propose(self, context: Context) -> Asking[Draft]:
        """Return the wrapped drafter's draft."""
        self._start = len(context.output)
        return (yield from self._drafter.propose(context))

    def observe(self, draft: Draft, rows: Rows, verdict: Verdict) -> None:
        """Append a pass to the trace, then pass the result on to the wrapped drafter."""
        drafted = tuple(
            math.exp(rows.logprob(parent, token)) for parent, token in zip(draft.parents, draft.tokens, strict=True)
        )
        best = [rows.top_k(node, 1)[0] for node in range(ROOT, len(draft))]
        last = verdict.accepted[-1] if verdict.accepted else ROOT
        chosen = 0.0 if verdict.token is None else math.exp(rows.logprob(last, verdict.token))
        probable = tuple((token, math.exp(logprob)) for token, logprob in best)
        self._trace.steps.append(TracedPass(self._start, draft, drafted, probable, verdict, chosen))
        self._drafter.observe(draft, rows, verdict)


def traced(method: Method, traces: list[Trace]) -> Method:
    """Return the method with tracing; each decoding appends its trace to ``traces``."""

    def build(setup: Setup) -> tuple[Drafter, Rule]:
        drafter, rule = method.build(setup)
        traces.append(Trace(setup.end_tokens))
        return Traced(drafter, traces[-1]), rule

    return replace(method, build=build)
