"""LocalAgreement-n with a forced prefix, the policy of whisper_streaming and SimulStreaming, on Redraft's own backend.

Liu et al. 2020, "Low-Latency Sequence-to-Sequence Speech Recognition and Translation by Partial Hypothesis Selection":
what the last n hypotheses agree on is committed.  As in SimulStreaming's translation, what is committed is put behind
the prompt, so that later hypotheses begin with it, and it is all that counts as shown.  SimulStreaming compares words;
here ids are compared, so that exactly those that the model has chosen are forced.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import reduce

from redraft.decoding.accept.exact import Exact
from redraft.decoding.backend import Backend
from redraft.decoding.decode import decode
from redraft.decoding.draft.nothing import Nothing
from redraft.decoding.drive import Decoding, run_together
from redraft.decoding.method import Option
from redraft.decoding.types import TARGET, common_prefix
from redraft.measure.bench.peers.engine import Generated
from redraft.measure.bench.peers.retranslate import Retranslation, Task
from redraft.measure.eval.meter import Meter

AGREEMENT = Option("n", 2, 2, 10, "how many hypotheses in a row must agree", whole=True)


class Greedy:
    """Plain decoding by Redraft, in a slot of a backend that others may share."""

    def __init__(self, backend: Backend) -> None:
        self._backend, self._meter = backend, Meter()
        self._slot = backend.open_slot()

    def generate(self, prompt: tuple[int, ...], limit: int) -> Generated:
        """Decode greedily at most ``limit`` tokens after ``prompt``."""
        asking = decode(prompt, Nothing(), Exact(), end_tokens=self._backend.end_tokens, limit=limit)
        started = time.perf_counter()
        (output,) = run_together([Decoding(asking, {TARGET: self._slot})], {TARGET: self._backend}, self._meter)
        seconds = time.perf_counter() - started
        passes, model_seconds = self._meter.take(len(prompt), len(output.tokens), output.finished)
        return Generated(output.tokens, output.finished, seconds, model_seconds, passes)

    def close(self) -> None:
        """Give the slot back."""
        self._backend.close_slot(self._slot)


class LocalAgreement(Retranslation):
    """Commits what n hypotheses in a row agree on; what is shown only ever grows.

    An update that leaves the source as it was is no further hypothesis.  The final one shows its whole hypothesis.

    Args:
        n: how many hypotheses must agree, in the range of `AGREEMENT`.

    Raises:
        OptionError: ``n`` is out of its range.
        CapabilityError: no slot of the backend is free.
    """

    def __init__(self, task: Task, n: int = 2) -> None:
        self._n = int(AGREEMENT.check(n))
        super().__init__(task, Greedy(task.backend))

    def _forget(self) -> None:
        super()._forget()
        self._committed: tuple[int, ...] = ()
        self._hypotheses: list[tuple[int, ...]] = []

    def _decode(self, prompt: tuple[int, ...], limit: int) -> Generated:
        forced = self._committed
        if not prompt or len(forced) >= limit:  # the source was taken back, or so much of it that the rest is too long
            return Generated(forced, finished=not prompt)
        answer = self.engine.generate(prompt + forced, limit - len(forced))
        hypothesis = forced + answer.tokens
        self._hypotheses = [*self._hypotheses, hypothesis][-self._n :]
        if len(self._hypotheses) == self._n:
            self._committed = reduce(_agreed, self._hypotheses)
        return replace(answer, tokens=hypothesis)

    def _unstable(self) -> int:
        return len(self._latest.tokens) - len(self._committed)


def _agreed(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    return first[: common_prefix(first, second)]
