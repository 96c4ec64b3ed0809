"""One target language of a session: its queue of updates and the update being translated.

Only the newest partial update of an utterance is kept in the queue, and a running one is cancelled in favour of a newer
one when that saves passes.  Final updates are never dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace

from redraft.captions.events import Event, Failure, Update
from redraft.captions.newest import Newest
from redraft.captions.state import START, State
from redraft.captions.translation import Answered, Translation
from redraft.decoding.cost import CostCurve
from redraft.decoding.types import TARGET, Rows, Tally
from redraft.engine.work import Ids, Work


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


class Lane(Work):
    """The translation of a stream into one language.

    Args:
        translation: how it is translated.
        answered: called on the engine's thread with the answer to each update.
        state: what it remembers of its stream.

    Attributes:
        state: what it remembers; changes with each answer, and only then.
        admitted: when it was added to the scheduler, in seconds of the engine's clock.
        current: the update being translated, or that was translated last.
        passes: number of target passes for it so far.
    """

    current: Waiting

    def __init__(self, translation: Translation, answered: Callable[[Answer], None], state: State = START) -> None:
        super().__init__()
        self.translation, self.state, self.admitted, self.passes = translation, state, 0.0, 0
        self.coalesced = self.abandoned = 0
        self._answered = answered
        self._waiting = Newest[Waiting]()

    @property
    def idle(self) -> bool:
        """Whether no update is queued or being translated."""
        return not self.running and not self._waiting

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
        if abandon and self.running and update.overtakes(self.current.update) and self._pays():
            replaced.append(self.current)
            self.give_up()
            self.abandoned += 1
        waiting.since = min([now, *(older.since for older in replaced if older)])

    def _pays(self) -> bool:
        """Whether cancelling the current update in favour of a newer one saves passes.

        It saves the passes that are still to come.  It loses the output, which would be the next draft: about as large
        a share of the average passes as the average share of accepted output.  An update that has waited for another
        one is never cancelled, so that the lag is at most the time of two updates, even if they come faster than they
        are translated.
        """
        tally = self.state.tally
        if not tally.updates or self.current.late:
            return False
        expected = tally.passes / tally.updates
        return expected - self.passes > tally.output_acceptance * expected

    def remember(self, source: str, translation: str, language: str | None = None) -> None:
        """Add an earlier sentence to the context.

        The update that is being translated starts again with it, or gives way to a newer one that waits.
        """
        if self.running:
            again = self.current
            self.give_up()
            if newer := self._waiting.put_back(again, again.name, final=again.update.final and not again.rest):
                newer.since = min(newer.since, again.since)
                self.coalesced += 1
        self.state = self.translation.remember(self.state, source, translation, language)

    def begin(self, draft: Ids, now: float) -> None:
        """Start translating the next queued update; its draft is in the state.

        If it leaves an utterance of which not all is shown, that comes first, by itself: neither is lost if the other
        fails.
        """
        waiting, translation, state = next(iter(self._waiting.values())), self.translation, self.state
        if not waiting.rest and (left := state.left_by(waiting.update)):
            waiting = Waiting(left, waiting.since, rest=True, late=True)
        else:
            self._waiting.take()
        self.current, self.passes = waiting, 0
        self.run(translation.rest(state) if waiting.rest else translation.translate(state, waiting.update), now)

    def advance(self, rows: Rows | None, now: float, *, declined: bool = False) -> None:
        """Continue, and count the pass."""
        self.passes += rows is not None and self.score is not None and self.score.model == TARGET
        super().advance(rows, now, declined=declined)

    def overdue(self, now: float, curve: CostCurve | None) -> bool:
        """Whether the current request is one of a search that ends here: another update waits, or it takes too long."""
        late = super().overdue(now, curve)
        return late or bool(self._waiting and self.score and self.score.spare)

    def ended(self, result: Answered, now: float) -> None:
        """Keep the next state, and answer the update."""
        events, self.state = result
        self._answer(events, now)

    def fail(self, reason: str, now: float) -> None:
        """Answer the current update with a failure; the state before it stays."""
        if self.running:
            waiting, update = self.current, self.current.update
            self.give_up()
            following = next(iter(self._waiting.values()), waiting) if waiting.rest else waiting
            if not waiting.rest or self.state.left_by(following.update):
                self.state = self.translation.failed(self.state, following.update)
            message, language = f"the update could not be translated: {reason}", self.translation.language
            failure = Failure(message, None, update.utterance, update.seq, language)
            self._answer([failure], now)

    def _answer(self, events: list[Event], now: float) -> None:
        language, tally, of = self.translation.language, self.state.tally, self.current
        self._answered(Answer(language, of.update, events, now - of.since, tally, of.rest))

    def close(self) -> None:
        """Drop all updates without answers."""
        self._waiting.clear()
        self.give_up()
