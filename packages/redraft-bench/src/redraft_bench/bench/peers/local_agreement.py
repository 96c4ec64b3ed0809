"""LocalAgreement-n with a forced prefix, the policy of whisper_streaming and SimulStreaming, on Redraft's backend.

Liu et al. 2020, "Low-Latency Sequence-to-Sequence Speech Recognition and Translation by Partial Hypothesis Selection":
the prefix on which the last n hypotheses agree is committed.  As in SimulStreaming's translation, the committed prefix
is appended to the prompt, so later hypotheses start with it, and only the committed prefix is shown.  As there, whole
words are committed; they are compared as ids, so exactly the ids that the model chose are forced.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import reduce

from redraft.captions.events import Failure, Update
from redraft.captions.stabilise import whole_words
from redraft.decoding.backend import Backend
from redraft.decoding.decode import decode
from redraft.decoding.drafters import Nothing
from redraft.decoding.drive import run_together
from redraft.decoding.method import Option
from redraft.decoding.rules import Exact
from redraft.decoding.selection import EVERYTHING, Selection
from redraft.decoding.types import TARGET, Prompt, common_prefix
from redraft.translator import line_breaks
from redraft_bench.bench.peers.engine import Generated
from redraft_bench.bench.peers.retranslate import Retranslation, Task
from redraft_bench.eval.meter import Meter
from redraft_bench.eval.record import Step

AGREEMENT = Option("n", 2, 2, 10, "how many hypotheses in a row must agree", whole=True)


class Greedy:
    """Plain greedy decoding with Redraft, in one slot of a backend."""

    def __init__(self, backend: Backend) -> None:
        self._backend, self._meter = backend, Meter()
        self._slot = backend.open_slot()

    def generate(self, prompt: tuple[int, ...], limit: int, selection: Selection = EVERYTHING) -> Generated:
        """Decode greedily after ``prompt``, up to ``limit`` of the tokens in ``selection``."""
        ends = self._backend.end_tokens | line_breaks(self._backend).before  # a translation is one line, as everywhere
        asking = decode(
            Prompt(prompt, selection=selection),
            self._meter.begin(Nothing()),
            Exact(),
            end_tokens=ends,
            limit=limit,
        )
        started = time.perf_counter()
        (output,) = run_together([(asking, {TARGET: self._slot})], {TARGET: self._backend}, self._meter)
        seconds = time.perf_counter() - started
        taken = self._meter.take(len(prompt), output.tokens, output.finished)
        return Generated(output.tokens, output.finished, seconds, taken.seconds, taken.passes)

    def close(self) -> None:
        """Release the slot."""
        self._backend.close_slot(self._slot)


class LocalAgreement(Retranslation):
    """Commits the prefix on which n successive hypotheses agree; shown text is never retracted.

    An update with an unchanged source does not count as another hypothesis.  The final update shows its whole
    hypothesis.

    Args:
        n: number of hypotheses that must agree, within `AGREEMENT`.

    Raises:
        OptionError: ``n`` is out of range.
        CapabilityError: the backend has no free slot.
    """

    def __init__(self, task: Task, n: int = 2) -> None:
        self._n = int(AGREEMENT.check(n))
        self._greedy = Greedy(task.backend)
        super().__init__(task, self._greedy)
        self._selection = EVERYTHING

    def _translate(self, update: Update) -> tuple[Step, list[Failure]]:
        self._selection = self.task.selection(update.text)
        return super()._translate(update)

    def _forget(self) -> None:
        super()._forget()
        self._committed: tuple[int, ...] = ()
        self._hypotheses: list[tuple[int, ...]] = []

    def _decode(self, prompt: tuple[int, ...], limit: int) -> Generated:
        forced = self._committed
        if not prompt or len(forced) >= limit:  # the source became empty, or the prompt too long
            return Generated(forced, finished=not prompt)
        answer = self._greedy.generate(prompt + forced, limit - len(forced), self._selection)
        hypothesis = forced + answer.tokens
        self._hypotheses = [*self._hypotheses, hypothesis][-self._n :]
        if len(self._hypotheses) == self._n:
            agreed = reduce(_agreed, self._hypotheses)
            whole = whole_words([self.task.backend.token_bytes(token) for token in hypothesis], len(agreed))
            self._committed = agreed[: max(whole, len(forced))]
        return replace(answer, tokens=hypothesis)

    def _unstable(self) -> int:
        return len(self._latest.tokens) - len(self._committed)


def _agreed(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    return first[: common_prefix(first, second)]
