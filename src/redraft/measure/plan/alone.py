"""One talk alone on an engine whose passes all take the same time: its work and its lag.

Updates are skipped as in `redraft.serve.lanes`: only the newest partial update of an utterance is queued, and a running
one is cancelled in favour of a newer one if that pays off.  Final updates are never skipped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from redraft.captions.events import Update
from redraft.measure.loadtest.script import Script
from redraft.measure.plan.skipping import after_skipping
from redraft.measure.plan.trace import Work


@dataclass(frozen=True, slots=True)
class Alone:
    """Results for the whole talk.

    Attributes:
        idle: seconds without work.
        updates: number of updates answered.
        passes: number of passes for them.
        lags: for each answered update, seconds since its oldest unanswered words arrived.
    """

    idle: float
    updates: int
    passes: int
    lags: tuple[float, ...]


def alone(work: Work, script: Script, pass_seconds: float) -> Alone:
    """Play the talk once with passes of ``pass_seconds``."""
    return _Lane(work, list(_once(script)), pass_seconds).play()


class _Lane:
    """Like `redraft.serve.lanes.Lane`, with a known duration of passes."""

    def __init__(self, work: Work, talk: list[tuple[float, Update]], pass_seconds: float) -> None:
        self._work, self._talk, self._pass_seconds = work, talk, pass_seconds
        self._now, self._length = 0.0, talk[-1][0]
        self._waiting: list[tuple[Update, float]] = []
        self._done = ("", -1)
        self._gave_up_last = False
        #: Answered updates with passes; their passes, tokens, and tokens accepted from drafts.
        self._updates = self._passes = self._tokens = self._kept = 0
        #: Passes, including those of cancelled updates.
        self._asked = 0
        self._lags: list[float] = []

    def play(self) -> Alone:
        while self._talk or self._waiting:
            if not self._waiting:
                self._now = max(self._now, self._talk[0][0])
            self._hear()
            self._translate(*self._waiting.pop(0))
        # The talk repeats, so answers after its end overlap with the next round.
        idle = max(0.0, self._length - self._asked * self._pass_seconds)
        return Alone(idle, len(self._lags), self._asked, tuple(self._lags))

    def _hear(self) -> None:
        """Receive the updates that have arrived."""
        while self._talk and self._talk[0][0] <= self._now:
            second, update = self._talk.pop(0)
            self._offer(update, second)

    def _offer(self, update: Update, since: float) -> None:
        for older in [each for each in self._waiting if _superseded(each[0], update)]:
            since = min(since, older[1])
            self._waiting.remove(older)
        self._waiting.append((update, since))

    def _translate(self, update: Update, since: float) -> None:
        steps = self._work.records[int(update.utterance)].steps
        index = next(number for number, step in enumerate(steps) if step.seq == update.seq)
        before = self._done[1] if self._done[0] == update.utterance else -1
        asked = after_skipping(steps[before + 1 : index + 1], steps[before].tokens if before >= 0 else ())
        if (given_up := self._given_up(update, len(asked))) is not None:
            self._asked += given_up
            self._now = max(self._talk[0][0], self._now + given_up * self._pass_seconds)
            self._gave_up_last = True
            self._waiting.append((update, since))  # until the newer one takes its place
            self._hear()
            return
        self._asked += len(asked)
        self._now += len(asked) * self._pass_seconds
        self._gave_up_last, self._done = False, (update.utterance, index)
        self._lags.append(self._now - since)
        if asked:
            self._count(len(asked), len(steps[index].tokens), sum(each.accepted for each in asked))

    def _count(self, passes: int, tokens: int, kept: int) -> None:
        self._updates += 1
        self._passes += passes
        self._tokens += tokens
        self._kept += min(tokens, kept)

    def _given_up(self, update: Update, asked: int) -> int | None:
        """Return after how many passes the update is cancelled for the next one; None if it is not."""
        if not self._talk or not self._updates or self._gave_up_last:
            return None
        second, newer = self._talk[0]
        # The engine receives it at the end of a pass.
        over = math.ceil((second - self._now) / self._pass_seconds)
        expected = self._passes / self._updates
        kept = self._kept / self._tokens if self._tokens else 0.0
        pays = expected - over > kept * expected
        return over if _superseded(update, newer) and over < asked and pays else None


def _superseded(older: Update, newer: Update) -> bool:
    return older.utterance == newer.utterance and not older.final


def _once(script: Script) -> Iterator[tuple[float, Update]]:
    """Yield the updates of one round with their times in seconds."""
    count = len(script.stream.segments)
    for second, update in script.spoken():
        if int(update.utterance) == count:
            return
        yield second, update
