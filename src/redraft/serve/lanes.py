"""One target language of a session: the updates that wait, and the one that is being translated.

The newest update wins.  Of an utterance only the newest partial update waits, and one under way is given up for a newer
one when that pays.  Final updates are never dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from redraft.captions.events import Event, Failure, Update
from redraft.captions.session import Translation
from redraft.decoding.types import TARGET, Asking, Rows, Score


@dataclass(frozen=True, slots=True)
class Waiting:
    """An update and when its oldest news came in, in seconds of the engine's clock.

    An update that takes the place of an older one inherits its time: the words of that one have waited since then.
    """

    update: Update
    since: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one update.

    Attributes:
        update: the update.
        events: the captions and failures to show.
        lag: seconds for which the oldest news in it have waited.
    """

    update: Update
    events: list[Event]
    lag: float


@dataclass(slots=True)
class _Running:
    """An update under way: its generator, the request that it waits for, and the target passes so far."""

    waiting: Waiting
    asking: Asking[list[Event]]
    score: Score | None = None
    passes: int = 0


class Lane:
    """The unit of scheduling.

    Args:
        translation: the target language with its previous output.
        tell: told of every update that has been translated, with the lane, on the engine's thread.
    """

    def __init__(self, translation: Translation, tell: Callable[[Lane, Answer], None]) -> None:
        self.translation = translation
        #: When it was admitted and when it last took part in a pass (None before the first), by the engine's clock.
        self.admitted = 0.0
        self.worked: float | None = None
        self.coalesced = self.abandoned = 0
        self._tell = tell
        self._waiting: list[Waiting] = []
        self._running: _Running | None = None
        self._gave_up_last = False

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""
        return self._running is None and not self._waiting

    @property
    def running(self) -> bool:
        """Whether an update is under way."""
        return self._running is not None

    @property
    def score(self) -> Score | None:
        """The request that the update under way waits for."""
        return self._running.score if self._running else None

    def offer(self, update: Update, now: float) -> None:
        """Take an update that came in at ``now``; earlier partial ones of the same utterance make room for it."""
        since = now
        for older in [each for each in self._waiting if _superseded(each.update, update)]:
            since = min(since, older.since)
            self._waiting.remove(older)
            self.coalesced += 1
        if self._running and _superseded(self._running.waiting.update, update) and self._pays():
            since = min(since, self._running.waiting.since)
            self._give_up()
            self._gave_up_last = True
            self.abandoned += 1
        self._waiting.append(Waiting(update, since))

    def _pays(self) -> bool:
        """Whether to give the update under way up for a newer one.

        That saves the passes still to come.  It costs those which the output, as the next draft, would save: of all
        passes about as large a part as drafts have been of all output.  Never twice in a row, so that something is
        shown even if updates come faster than they are translated.
        """
        tally, running = self.translation.tally, self._running
        if running is None or not tally.updates or self._gave_up_last:
            return False
        expected = tally.passes / tally.updates
        return expected - running.passes > tally.output_acceptance * expected

    def begin(self, now: float) -> None:
        """Begin with the next update that waits; it may be done at once."""
        waiting = self._waiting.pop(0)
        self._running = _Running(waiting, self.translation.translate(waiting.update))
        self._send(None, now)

    def advance(self, rows: Rows | None, now: float) -> None:
        """Go on with the rows that were asked for."""
        if self._running and self._running.score and self._running.score.model == TARGET:
            self._running.passes += 1
        self._send(rows, now)

    def _send(self, rows: Rows | None, now: float) -> None:
        running = self._running
        if running is None:
            return
        try:
            running.score = running.asking.send(rows)  # type: ignore[arg-type]  # it starts by being sent None
        except StopIteration as stop:
            self._running = None
            self._done(Answer(running.waiting.update, stop.value, now - running.waiting.since))

    def fail(self, message: str, now: float) -> None:
        """Answer the update under way with a failure; the translation goes on after it as if it had not come."""
        if self._running:
            waiting, update = self._running.waiting, self._running.waiting.update
            self._give_up()
            failure = Failure(message, None, update.utterance, update.seq, self.translation.language)
            self._done(Answer(update, [failure], now - waiting.since))

    def _done(self, answer: Answer) -> None:
        self._gave_up_last = False
        self._tell(self, answer)

    def close(self) -> None:
        """Forget everything that waits or is under way; nothing is answered."""
        self._waiting.clear()
        self._give_up()

    def _give_up(self) -> None:
        # What the cache holds of it is compared with the next request, id by id, so nothing needs to be put right.
        if self._running:
            self._running.asking.close()
            self._running = None


def _superseded(older: Update, newer: Update) -> bool:
    return older.utterance == newer.utterance and not older.final
