"""What one talk sent and received: lags, and counts of updates and captions."""

from __future__ import annotations

from dataclasses import dataclass, field

from redraft.captions.events import Caption, Event, Update
from redraft.serve.metrics import TargetCounts


@dataclass(frozen=True, slots=True)
class Lag:
    """The lag of a caption.

    Attributes:
        spoken: when the oldest words first covered by it were spoken, in seconds of the talk.
        caption: seconds from then to the caption.
        answer: seconds from its update to the caption; None if there was no caption.
    """

    spoken: float
    caption: float
    answer: float | None


@dataclass(slots=True)
class Hearing:
    """One talk in one language.

    A caption covers its own update and all earlier updates of its utterance.  Times of updates are those at which they
    were due, not those at which they were sent: readers wait for a delayed sender too.

    Attributes:
        updates: number of updates sent.
        captions: number of captions that answer updates; one with the rest of a translation answers none.
        passed_over: number of updates covered by the caption of a newer one.
        unanswered: number of updates not covered by the end.  For each utterance with such updates, the wait until the
            end counts as a lag, so that a missing caption is not better than a late one.
        failures: the server's error messages.
        counts: words shown and retracted.
    """

    updates: int = 0
    captions: int = 0
    passed_over: int = 0
    unanswered: int = 0
    failures: int = 0
    lags: list[Lag] = field(default_factory=list)
    counts: TargetCounts = field(default_factory=TargetCounts)
    #: Utterance -> ``seq`` and time of its updates that are not covered yet.
    _open: dict[str, list[tuple[int, float]]] = field(default_factory=dict)

    def sent(self, update: Update, due: float) -> None:
        """Count an update that is about to be sent."""
        self.updates += 1
        self._open.setdefault(update.utterance, []).append((update.seq, due))

    def received(self, event: Event, now: float) -> None:
        """Count an event from the server."""
        if not isinstance(event, Caption):
            self.failures += 1
            return
        self.counts.show(event)
        waiting = self._open.pop(event.utterance, [])
        covered = [due for seq, due in waiting if seq <= event.seq]
        if covered:  # otherwise, the caption has the rest of the last update's translation
            self.captions += 1
            self.passed_over += len(covered) - 1
            self.lags.append(Lag(covered[0], now - covered[0], now - covered[-1]))
        if len(covered) < len(waiting):
            self._open[event.utterance] = waiting[len(covered) :]

    def close(self, now: float) -> None:
        """End the talk."""
        for waiting in self._open.values():
            self.unanswered += len(waiting)
            self.lags.append(Lag(waiting[0][1], now - waiting[0][1], None))
        self._open.clear()
