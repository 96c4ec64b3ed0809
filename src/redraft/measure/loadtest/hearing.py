"""What one talk said and what came back: lags, and counts of updates and captions."""

from __future__ import annotations

from dataclasses import dataclass, field

from redraft.captions.events import Caption, Event, Update
from redraft.serve.stats import TargetCounts


@dataclass(frozen=True, slots=True)
class Lag:
    """How late a caption was.

    Attributes:
        said: when the oldest words were said that it was the first to cover, by the clock of the talk.
        caption: seconds from then to the caption.
        answer: seconds from the update that it answers to the caption; None where no caption came.
    """

    said: float
    caption: float
    answer: float | None


@dataclass(slots=True)
class Hearing:
    """One talk in one language.

    A caption covers its own update and all earlier ones of its utterance.  Times are those at which updates were due,
    not those at which they were sent: where sending is held up, readers wait all the same.

    Attributes:
        updates: sent.
        captions: received, partial and final ones.
        passed_over: updates that were covered by a caption of a newer one.
        unanswered: updates that nothing has covered by the end; of each utterance with such, the time waited so far
            counts as a lag, so that what never came does not look better than what came late.
        failures: what the server said it could not do.
        counts: words shown and taken back.
    """

    updates: int = 0
    captions: int = 0
    passed_over: int = 0
    unanswered: int = 0
    failures: int = 0
    lags: list[Lag] = field(default_factory=list)
    counts: TargetCounts = field(default_factory=TargetCounts)
    #: By utterance, ``seq`` and time of the updates that no caption has covered yet.
    _open: dict[str, list[tuple[int, float]]] = field(default_factory=dict)

    def said(self, update: Update, due: float) -> None:
        """Count an update that is to be sent."""
        self.updates += 1
        self._open.setdefault(update.utterance, []).append((update.seq, due))

    def heard(self, event: Event, now: float) -> None:
        """Count what came back."""
        if not isinstance(event, Caption):
            self.failures += 1
            return
        self.captions += 1
        self.counts.show(event)
        waiting = self._open.pop(event.utterance, [])
        covered = [due for seq, due in waiting if seq <= event.seq]
        if covered:
            self.passed_over += len(covered) - 1
            self.lags.append(Lag(covered[0], now - covered[0], now - covered[-1]))
        if len(covered) < len(waiting):
            self._open[event.utterance] = waiting[len(covered) :]

    def close(self, now: float) -> None:
        """Nothing more will come."""
        for waiting in self._open.values():
            self.unanswered += len(waiting)
            self.lags.append(Lag(waiting[0][1], now - waiting[0][1], None))
        self._open.clear()
