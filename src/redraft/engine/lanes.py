"""One target language of a session: its queue of updates and the update being translated.

Only the newest partial update of an utterance is kept in the queue, and a running one is cancelled in favour of a newer
one when that saves passes.  Final updates are never dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace

from redraft.captions.events import Event, Failure, Update
from redraft.captions.newest import Newest
from redraft.captions.state import START, State
from redraft.captions.translation import Answered, Translation
from redraft.decoding.cost import CostCurve
from redraft.decoding.drive import Searching, resumed
from redraft.decoding.types import TARGET, Asking, Rows, Score, Tally


@dataclass(slots=True)
class Waiting:
    """A queued update, with the time in seconds (engine's clock) from which the lag of its oldest words counts.

    An update that replaces an older one inherits that one's time.  With ``rest``, the rest of its translation is shown
    (`Translation.rest`); ``late`` says that another update was queued or being translated when it came.
    """

    update: Update
    since: float
    rest: bool = False
    late: bool = False

    @property
    def name(self) -> Hashable:
        """What it waits under: the rest does not replace an update that waits, but the next update replaces both."""
        return (self.update.utterance, "rest") if self.rest else self.update.utterance


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one update in one language.

    Attributes:
        lag: seconds since its oldest unanswered words were spoken or, as text, arrived.
        tally: the language's counts so far.
        rest: whether the rest of its translation was shown.
    """

    language: str
    update: Update
    events: list[Event]
    lag: float
    tally: Tally
    rest: bool = False


@dataclass(slots=True)
class Running:
    """The update being translated: its generator, its target passes so far, and its search."""

    waiting: Waiting
    asking: Asking[Answered]
    passes: int = 0
    search: Searching = field(default_factory=Searching)


class Lane:
    """The scheduler's unit of work.

    Args:
        translation: how it is translated.
        answered: called on the engine's thread with the answer to each update.
        state: what it remembers of its stream.

    Attributes:
        state: what it remembers; changes with each answer, and only then.
    """

    def __init__(self, translation: Translation, answered: Callable[[Answer], None], state: State = START) -> None:
        self.translation, self.state = translation, state
        #: The request that the current update waits for; None if there is none.
        self.score: Score | None = None
        #: When it was admitted and when it was last in a pass (None before the first), in seconds of the engine's
        #: clock.
        self.admitted = 0.0
        self.worked: float | None = None
        #: The lane with the lowest number is served first.
        self.turn = 0
        self.coalesced = self.abandoned = 0
        self._answered = answered
        self._waiting = Newest[Waiting]()
        #: The update being translated.
        self.running: Running | None = None

    @property
    def idle(self) -> bool:
        """Whether no update is queued or being translated."""
        return self.running is None and not self._waiting

    def offer(self, update: Update, now: float, *, rest: bool = False, abandon: bool = True) -> None:
        """Queue an update whose lag counts from ``now``; it replaces queued partial updates of the same utterance.

        With ``rest``, queue the rest of the newest translation (`Translation.rest`).  With ``abandon``, the update
        being translated is cancelled if that saves passes.
        """
        if rest:
            waiting = Waiting(update, now, rest)
            self._waiting.put(waiting, waiting.name, final=False)
            return
        waiting = Waiting(update, now, late=not self.idle)
        replaced = [self._waiting.pop(replace(waiting, rest=True).name, None)]
        replaced.append(self._waiting.put(waiting, waiting.name, final=update.final))
        self.coalesced += len(replaced) - replaced.count(None)
        if abandon and self.running and update.overtakes(self.running.waiting.update) and self._pays():
            replaced.append(self.running.waiting)
            self._give_up()
            self.abandoned += 1
        waiting.since = min([now, *(older.since for older in replaced if older)])

    def _pays(self) -> bool:
        """Whether cancelling the current update in favour of a newer one saves passes.

        It saves the passes that are still to come.  It loses the output, which would be the next draft: about as large
        a share of the average passes as the average share of accepted output.  An update that has waited for another
        one is never cancelled, so that the lag is at most the time of two updates, even if they come faster than they
        are translated.
        """
        tally, running = self.state.tally, self.running
        if running is None or not tally.updates or running.waiting.late:
            return False
        expected = tally.passes / tally.updates
        return expected - running.passes > tally.output_acceptance * expected

    def remember(self, source: str, translation: str, language: str | None = None) -> None:
        """Add an earlier sentence to the context.

        The update that is being translated starts again with it, or gives way to a newer one that waits.
        """
        if self.running:
            again = self.running.waiting
            self._give_up()
            if newer := self._waiting.get(again.name):
                newer.since = min(newer.since, again.since)
                self.coalesced += 1
            else:
                self._waiting.put(again, again.name, final=again.update.final)
                self._waiting.move_to_end(next(reversed(self._waiting)), last=False)
        self.state = self.translation.remember(self.state, source, translation, language)

    def begin(self, now: float) -> None:
        """Start translating the next queued update; it may complete without a pass.

        If it leaves an utterance of which not all is shown, that comes first, by itself: neither is lost if the other
        fails.
        """
        waiting, translation, state = next(iter(self._waiting.values())), self.translation, self.state
        if not waiting.rest and (left := state.left_by(waiting.update)):
            waiting = Waiting(left, waiting.since, rest=True, late=True)
        else:
            self._waiting.take()
        asking = translation.rest(state) if waiting.rest else translation.translate(state, waiting.update)
        self.running = Running(waiting, asking)
        self._send(self.running, None, now)

    def advance(self, rows: Rows, now: float) -> None:
        """Continue with the rows that the update asked for."""
        if self.running and self.score:
            self.running.passes += self.score.model == TARGET
            self._send(self.running, rows, now)

    def overdue(self, now: float, curve: CostCurve | None) -> bool:
        """Whether the current request is one of a search that ends here: another update waits, or it takes too long."""
        if not (self.running and self.score and self.score.spare):
            return False
        return bool(self._waiting) or self.running.search.is_over(self.score.spare, curve, now)

    def decline(self, now: float) -> None:
        """End the search that the current request is of; the update goes on without it."""
        if self.running:
            self._send(self.running, None, now, declined=True)

    def _send(self, running: Running, rows: Rows | None, now: float, *, declined: bool = False) -> None:
        asking = running.asking
        try:
            self.score = resumed(asking, rows, declined=declined)
        except StopIteration as stop:
            self.running = self.score = None
            events, self.state = stop.value
            self._done(running.waiting, events, now)

    def fail(self, reason: str, now: float) -> None:
        """Answer the current update with a failure; the state before it stays."""
        if self.running:
            waiting, update = self.running.waiting, self.running.waiting.update
            self._give_up()
            following = next(iter(self._waiting.values()), waiting) if waiting.rest else waiting
            if not waiting.rest or self.state.left_by(following.update):
                self.state = self.translation.failed(self.state, following.update)
            message, language = f"the update could not be translated: {reason}", self.translation.language
            failure = Failure(message, None, update.utterance, update.seq, language)
            self._done(waiting, [failure], now)

    def _done(self, waiting: Waiting, events: list[Event], now: float) -> None:
        language, tally = self.translation.language, self.state.tally
        self._answered(Answer(language, waiting.update, events, now - waiting.since, tally, waiting.rest))

    def close(self) -> None:
        """Drop all updates without answers."""
        self._waiting.clear()
        self._give_up()

    def _give_up(self) -> None:
        # Nothing to undo in the cache: the next request is compared with it id by id.
        if self.running:
            self.running.asking.close()
            self.running = self.score = None
