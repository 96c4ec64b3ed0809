"""What is counted of a session while it lasts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from redraft.events import Caption
from redraft.serve import protocol
from redraft.serve.lanes import Lane
from redraft.streams.read import WORD
from redraft.types import Tally, common_prefix


@dataclass(slots=True)
class TargetCounts:
    """Counts of one target language.

    Attributes:
        tally: those of the decoder.
        shown: words of final captions.
        erased: words that were shown and taken back; over ``shown`` this is NE (`redraft.eval.metrics.Erasure`), in
            words instead of tokens.
    """

    tally: Tally = field(default_factory=Tally)
    shown: int = 0
    erased: int = 0
    _utterance: str = ""
    _words: list[str] = field(default_factory=list)

    def show(self, caption: Caption) -> None:
        """Count a caption after the one before it."""
        words = WORD.findall(caption.text)
        if caption.utterance == self._utterance:
            self.erased += len(self._words) - common_prefix(self._words, words)
        self._utterance, self._words = caption.utterance, words
        self.shown += len(words) if caption.final else 0

    def message(self, lane: Lane) -> protocol.TargetStats:
        """The same as a message, with what the lane has passed over."""
        tally = self.tally
        return protocol.TargetStats(
            updates=tally.updates,
            tokens=tally.tokens,
            passes=tally.passes,
            plain_passes=tally.tokens + tally.finished,
            drafted=tally.drafted,
            accepted=tally.accepted,
            shown=self.shown,
            erased=self.erased,
            coalesced=lane.coalesced,
            abandoned=lane.abandoned,
        )


def quantile(values: Collection[float], share: float) -> float:
    """The value below which this share of the values lies; 0 if there is none."""
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 1) if ordered else 0.0
