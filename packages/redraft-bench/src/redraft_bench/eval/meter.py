"""Records the input, the cached part and the time of each target pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from redraft.decoding.types import ROOT, TARGET, Draft, Score, common_prefix
from redraft_bench.eval.record import PassRecord


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request that was answered, with the number of prefix ids in the cache."""

    score: Score
    cached: int


@dataclass(slots=True)
class Meter:
    """A watcher (`redraft.decoding.drive.Watch`) for one stream into one language.

    It computes what the cache holds by the rule that all backends follow: the longest common prefix of ids, including
    the accepted branch of the last draft.

    Attributes:
        seconds: wall time of all passes since the last `take`, including those of a draft model.
    """

    seconds: float = 0.0
    _log: list[_Asked] = field(default_factory=list)
    _last: _Asked | None = None

    def __call__(self, asked: Sequence[tuple[int, Score]], seconds: float) -> None:
        """Record a pass."""
        self.seconds += seconds
        for _lane, score in asked:
            if score.model == TARGET:
                cached = min(self._cached(score.prefix), len(score.prefix) - score.prompt_rows)
                self._last = _Asked(score, cached)
                self._log.append(self._last)

    def take(self, prompt: int, output: int, finished: bool) -> tuple[tuple[PassRecord, ...], float]:
        """Return the passes since the last call and their total seconds."""
        lengths = [len(asked.score.prefix) for asked in self._log]
        # Each pass adds its accepted tokens and one more; in the last one, that may be the end token.
        ends = [*(length - 1 for length in lengths[1:]), prompt + output - (not finished)]
        passes = []
        for asked, end in zip(self._log, ends, strict=False):
            score, draft = asked.score, asked.score.draft
            new = len(score.prefix) - asked.cached + len(draft)
            kept = min(max(0, end - len(score.prefix)), draft.depth)
            passes.append(PassRecord(asked.cached, new, len(draft), draft.depth, kept, score.prompt_rows))
        seconds, self.seconds, self._log = self.seconds, 0.0, []
        return tuple(passes), seconds

    def _cached(self, prefix: tuple[int, ...]) -> int:
        if self._last is None:
            return 0
        held = self._last.score
        shared = common_prefix(held.prefix, prefix)
        return shared if shared < len(held.prefix) else shared + _along(held.draft, prefix[shared:])


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
