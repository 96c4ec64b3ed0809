"""What the scheduler runs: lanes of streams, and one-shot requests.

A one-shot request waits until a slot is free, takes the one that holds the longest
beginning of its prompt, and drafts the answer that was given there; what it computes is not changed by either.

Only the newest partial update of an utterance is kept in the queue, and a running one is cancelled in favour of a newer
one when that saves passes.  Final updates are never dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any

from redraft.captions.events import Event, Failure, Newest, Update
from redraft.captions.state import START, State
from redraft.captions.translation import Answered, Translation
from redraft.decoding.backend import CostCurve
from redraft.decoding.drive import Searching, resumed
from redraft.decoding.types import TARGET, Asking, Rows, Score, Tally
from redraft.errors import RedraftError

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Wish:
    """What a one-shot request reads, by which it finds the slot that holds most of it.

    Attributes:
        kind: answers of the same kind may be drafts for each other.
        prompt: ids of the prompt.
        source: ids of the text.
    """

    kind: str = ""
    prompt: Ids = ()
    source: Ids = ()


class Work:
    """A generator of requests for scores, and what the scheduler knows of it.

    Attributes:
        score: the request that waits for rows; None if there is none.
        worked: when it was last in a pass, in seconds of the engine's clock; None before the first.
        turn: the work with the lowest number is served first.
        wish: what it reads, if that is known before it begins.
    """

    def __init__(self) -> None:
        self.score: Score | None = None
        self.worked: float | None = None
        self.turn, self.wish = 0, Wish()
        self._asking: Asking[Any] | None = None
        self._search = Searching()

    @property
    def running(self) -> bool:
        """Whether it has begun, and has no result yet."""
        return self._asking is not None

    @property
    def idle(self) -> bool:
        """Whether nothing is left to do."""
        raise NotImplementedError

    def begin(self, draft: Ids, now: float) -> None:
        """Start; it may complete without a pass.

        Args:
            draft: an earlier answer that may be the beginning of this one.
            now: the time in seconds of the engine's clock, as for all methods.
        """
        raise NotImplementedError

    def ended(self, result: Any, now: float) -> None:
        """Take the result of the generator."""
        raise NotImplementedError

    def fail(self, reason: str, now: float) -> None:
        """Answer with a failure."""
        raise NotImplementedError

    def run(self, asking: Asking[Any], now: float) -> None:
        """Start a generator."""
        self._asking, self._search = asking, Searching()
        self.advance(None, now)

    def advance(self, rows: Rows | None, now: float, *, declined: bool = False) -> None:
        """Continue with the rows that were asked for; with ``declined``, the search that asks for them ends instead."""
        if self._asking is None:
            return
        try:
            self.score = resumed(self._asking, rows, declined=declined)
        except StopIteration as stop:
            self._asking = self.score = None
            self.ended(stop.value, now)

    def overdue(self, now: float, curve: CostCurve | None) -> bool:
        """Whether the current request is one of a search that takes too long."""
        return bool(self.score and self.score.spare and self._search.is_over(self.score.spare, curve, now))

    def give_up(self) -> None:
        """End the generator without a result."""
        # Nothing to undo in the cache: the next request is compared with it id by id.
        if self._asking is not None:
            self._asking.close()
            self._asking = self.score = None


log = logging.getLogger(__name__)


class Failed(RedraftError):
    """A pass has failed."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a one-shot request computes.

    Attributes:
        wish: what it reads.
        run: given a draft, asks for scores; returns the result, and the ids of the answer, which may be a draft.
    """

    wish: Wish
    run: Callable[[Ids], Asking[tuple[Any, Ids]]]


class Once(Work):
    """A one-shot request.

    Args:
        make: makes the task; called once, on the engine's thread, where tokenizers may be used.
        done: called on the engine's thread with the result, or with what has gone wrong.
        grown: called there with the ids of the answer so far, after every pass.

    Attributes:
        begun: whether it has had its turn, or needs none any more.
        answer: ids of the answer, once that is complete.
    """

    def __init__(
        self,
        make: Callable[[], Task],
        done: Callable[[Any], object],
        grown: Callable[[Ids], None] | None = None,
    ) -> None:
        super().__init__()
        self._make, self._done, self._grown = make, done, grown
        self._task: Task | None = None
        self.begun, self.answer = False, Ids()

    @property
    def idle(self) -> bool:
        """Whether it has been answered."""
        return self.begun and not self.running

    def prepare(self) -> None:
        """Make the task; whatever is wrong with the request is its result."""
        try:
            self._task = self._make()
            self.wish = self._task.wish
        except Exception as error:
            if not isinstance(error, RedraftError):
                log.exception("a request could not be read")
            self.begun = True
            self._done(error)

    def begin(self, draft: Ids, now: float) -> None:
        """Start with the answer to an earlier request as the draft."""
        if self._task is not None:
            self.begun = True
            self.run(self._task.run(draft), now)

    def advance(self, rows: Rows | None, now: float, *, declined: bool = False) -> None:
        """Continue, and report how far the answer has grown."""
        super().advance(rows, now, declined=declined)
        if rows is not None and self._grown and self.score is not None:
            self._grown(self.score.prefix[len(self.wish.prompt) :])

    def ended(self, result: tuple[Any, Ids], now: float) -> None:
        """Pass on the result."""
        value, self.answer = result
        self._done(value)

    def fail(self, reason: str, now: float) -> None:
        """Answer with a failure."""
        if self.running:
            self.give_up()
            self._done(Failed(f"the text could not be translated: {reason}"))

    def close(self) -> None:
        """Drop it without an answer."""
        self.begun = True
        self.give_up()


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
        #: Sentences for the context, with their translations and languages, that are not in the state yet.
        self._earlier: list[tuple[str, str, str | None]] = []

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
        """Add an earlier sentence to the context of updates that are not being translated yet."""
        self._earlier.append((source, translation, language))

    def begin(self, draft: Ids, now: float) -> None:
        """Start translating the next queued update; its draft is in the state.

        If it leaves an utterance of which not all is shown, that comes first, by itself: neither is lost if the other
        fails.
        """
        while self._earlier:
            self.state = self.translation.remember(self.state, *self._earlier.pop(0))
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
