"""Records the input, the cached part and the time of each target pass.

Final texts may be decoded again (`redraft.captions.translation`).  The passes of the decoding whose output was kept are
recorded; those of the others are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from redraft.decoding.method import Method, Setup
from redraft.decoding.types import (
    ROOT,
    TARGET,
    Asking,
    Context,
    Draft,
    Drafter,
    Rows,
    Rule,
    Score,
    Verdict,
    common_prefix,
)
from redraft_bench.eval.record import PassRecord


@dataclass(slots=True)
class _Asked:
    """A request that was answered.

    Attributes:
        cached: number of prefix ids in the cache.
        seconds: wall time of the pass.
        accepted: number of accepted draft tokens; None for a search with several hypotheses, which are no draft.
    """

    score: Score
    cached: int
    seconds: float
    accepted: int | None = None


@dataclass(slots=True)
class _Watched(Drafter):
    """A drafter; what is accepted of its drafts is noted in the log of its decoding."""

    drafter: Drafter
    log: list[_Asked]

    def drafting(self, context: Context) -> Asking[Draft]:
        return (yield from self.drafter.drafting(context))

    def observe(self, draft: Draft, rows: Rows, verdict: Verdict) -> None:
        if self.log:
            self.log[-1].accepted = len(verdict.accepted)
        self.drafter.observe(draft, rows, verdict)


class Taken(NamedTuple):
    """What was recorded for an update.

    Attributes:
        passes: target passes of its output.
        seconds: wall time of all passes.
        second: number of passes of other decodings.
        settled: number of output tokens that came from no pass, among them the end token.
        end_drafted: whether the end token was drafted, and accepted.
        first: wall time of the first of ``passes``.
    """

    passes: tuple[PassRecord, ...]
    seconds: float
    second: int
    settled: int
    end_drafted: bool
    first: float


@dataclass(slots=True)
class Meter:
    """A watcher (`redraft.decoding.drive.Watch`) for one stream into one language.

    It computes what the cache holds by the rule that all backends follow: the longest common prefix of ids, including
    the accepted branch of the last draft.

    Attributes:
        seconds: wall time of all passes since the last `take`, including those of a draft model.
    """

    seconds: float = 0.0
    _decodings: list[list[_Asked]] = field(default_factory=list)
    _last: _Asked | None = None

    def begin(self, drafter: Drafter) -> Drafter:
        """Begin a decoding; return its drafter, of whose drafts it is recorded what is accepted."""
        self._decodings.append([])
        return _Watched(drafter, self._decodings[-1])

    def watched(self, method: Method) -> Method:
        """Return the method; each of its decodings is recorded."""

        def build(setup: Setup) -> tuple[Drafter, Rule]:
            drafter, rule = method.build(setup)
            return self.begin(drafter), rule

        return replace(method, build=build)

    def __call__(self, asked: Sequence[tuple[int, Score]], seconds: float) -> None:
        """Record a pass; of a batch, the first lane's part of it."""
        self.seconds += seconds
        for lane, score in asked:
            if score.model == TARGET and lane == 0:
                cached = min(self._cached(score.prefix), len(score.prefix) - score.prompt_rows)
                self._last = _Asked(score, cached, seconds)
                self._decodings[-1].append(self._last)

    def take(self, prompt: int, output: Sequence[int], finished: bool) -> Taken:
        """Return what was recorded since the last call.

        Args:
            prompt: number of prompt ids of the output.
            output: the output that was kept.
            finished: whether the model ended it.
        """
        kept = max(self._decodings, key=lambda log: _written(log, prompt, output), default=None)
        second = sum(len(log) for log in self._decodings if log is not kept)
        total = prompt + len(output) + finished
        ends = [*(len(asked.score.prefix) for asked in kept or ()), total]
        passes, settled = [], ends[0] - prompt if kept is not None else 0
        end_drafted = finished and settled > len(output)
        log = kept or []
        for asked, end in zip(log, ends[1:], strict=True):
            score, draft = asked.score, asked.score.draft
            new = len(score.prefix) - asked.cached + len(draft)
            added = max(0, end - len(score.prefix))
            accepted = min(asked.accepted or 0, added)
            depth = 0 if asked.accepted is None else draft.depth
            passes.append(PassRecord(asked.cached, new, len(draft), depth, accepted, score.prompt_rows))
            if asked is log[-1]:  # what follows the pass's own token needed no pass
                behind = 0 if asked.accepted is None else max(0, added - accepted - 1)
                end_drafted = finished and (behind > 0 or added == accepted > 0)
                settled += behind
        seconds, self.seconds, self._decodings = self.seconds, 0.0, []
        return Taken(tuple(passes), seconds, second, settled, end_drafted, log[0].seconds if log else 0.0)

    def _cached(self, prefix: tuple[int, ...]) -> int:
        if self._last is None:
            return 0
        held = self._last.score
        shared = common_prefix(held.prefix, prefix)
        return shared if shared < len(held.prefix) else shared + _along(held.draft, prefix[shared:])


def _written(log: Sequence[_Asked], prompt: int, output: Sequence[int]) -> int:
    """Return the length of an output before the last pass of a decoding; below 0 if it is another one's.

    A decoding without passes comes after all with some.
    """
    if not log:
        return -1
    written = log[-1].score.prefix[prompt:]
    return len(written) if written == tuple(output[: len(written)]) else -2


def _along(draft: Draft, tokens: Sequence[int]) -> int:
    """Return how many of ``tokens`` follow a path from the root of a draft tree."""
    children = {
        (parent, token): node for node, (parent, token) in enumerate(zip(draft.parents, draft.tokens, strict=True))
    }
    node = ROOT
    for depth, token in enumerate(tokens):
        if (node, token) not in children:
            return depth
        node = children[node, token]
    return len(tokens)
