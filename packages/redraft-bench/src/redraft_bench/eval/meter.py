"""Records the input, the cached part and the time of each target pass.

Final texts may be decoded again (`redraft.captions.translation`).  The passes of the decoding whose output was kept are
recorded; those of the others are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from redraft.decoding.types import ROOT, TARGET, Draft, Score, common_prefix
from redraft_bench.eval.record import PassRecord


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request that was answered, with the number of prefix ids in the cache."""

    score: Score
    cached: int


class Taken(NamedTuple):
    """What was recorded for an update.

    Attributes:
        passes: target passes of its output.
        seconds: wall time of all passes.
        second: number of passes of other decodings.
        settled: number of output tokens that came from no pass.
    """

    passes: tuple[PassRecord, ...]
    seconds: float
    second: int
    settled: int


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

    def begin(self) -> None:
        """Note that another decoding begins."""
        self._decodings.append([])

    def __call__(self, asked: Sequence[tuple[int, Score]], seconds: float) -> None:
        """Record a pass; of a batch, the first lane's part of it."""
        self.seconds += seconds
        for lane, score in asked:
            if score.model == TARGET and lane == 0:
                cached = min(self._cached(score.prefix), len(score.prefix) - score.prompt_rows)
                self._last = _Asked(score, cached)
                if not self._decodings:
                    self.begin()
                self._decodings[-1].append(self._last)

    def take(self, prompt: int, output: Sequence[int], finished: bool) -> Taken:
        """Return what was recorded since the last call.

        Args:
            prompt: number of prompt ids of the output.
            output: the output that was kept.
            finished: whether the model ended it.
        """
        kept = max(self._decodings, key=lambda log: _written(log, prompt, output), default=[])
        second = sum(len(log) for log in self._decodings if log is not kept)
        lengths = [len(asked.score.prefix) for asked in kept]
        # Each pass adds its accepted tokens and one more; in the last one, that may be the end token.
        ends = [*lengths[1:], prompt + len(output) + finished]
        passes, settled = [], lengths[0] - prompt if lengths else 0
        for asked, end in zip(kept, ends, strict=False):
            score, draft = asked.score, asked.score.draft
            new = len(score.prefix) - asked.cached + len(draft)
            accepted = min(max(0, end - 1 - len(score.prefix)), draft.depth)
            settled += max(0, end - 1 - len(score.prefix) - accepted)
            passes.append(PassRecord(asked.cached, new, len(draft), draft.depth, accepted, score.prompt_rows))
        seconds, self.seconds, self._decodings = self.seconds, 0.0, []
        return Taken(tuple(passes), seconds, second, settled)

    def _cached(self, prefix: tuple[int, ...]) -> int:
        if self._last is None:
            return 0
        held = self._last.score
        shared = common_prefix(held.prefix, prefix)
        return shared if shared < len(held.prefix) else shared + _along(held.draft, prefix[shared:])


def _written(log: Sequence[_Asked], prompt: int, output: Sequence[int]) -> int:
    """Return the length of an output before the last pass of a decoding; -1 if it is another one's."""
    written = log[-1].score.prefix[prompt:] if log else None
    return len(written) if written is not None and written == tuple(output[: len(written)]) else -1


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
