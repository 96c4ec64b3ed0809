"""Running statistics of a session."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from redraft.captions.events import Caption
from redraft.captions.words import WORD
from redraft.decoding.tally import Tally
from redraft.decoding.types import common_prefix
from redraft.serve import protocol
from redraft.serve.lanes import Lane

#: Minimum seconds between two `stats` messages.
STATS_EVERY = 2.0
#: Number of recent captions in the lag statistics.
_LAGS = 200


@dataclass(slots=True)
class TargetCounts:
    """Statistics of one target language.

    Attributes:
        tally: the decoder's counts.
        shown: words of final captions.
        erased: words that were shown and retracted; ``erased / shown`` is normalized erasure in words
            (`redraft.measure.eval.metrics.Erasure` counts tokens).
    """

    tally: Tally = field(default_factory=Tally)
    shown: int = 0
    erased: int = 0
    _utterance: str = ""
    _words: list[str] = field(default_factory=list)

    def show(self, caption: Caption) -> None:
        """Count the changes from the previous caption to this one."""
        words = WORD.findall(caption.text)
        if caption.utterance == self._utterance:
            self.erased += len(self._words) - common_prefix(self._words, words)
        self._utterance, self._words = caption.utterance, words
        self.shown += len(words) if caption.final else 0

    def message(self, lane: Lane) -> protocol.TargetStats:
        """Return the statistics as a message, with the lane's count of skipped updates."""
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


class SessionCounts:
    """Statistics of a session.

    Args:
        targets: the target languages.
    """

    def __init__(self, targets: Sequence[str]) -> None:
        self._targets = {target: TargetCounts() for target in targets}
        self._lags: deque[float] = deque(maxlen=_LAGS)
        self._told = 0.0
        #: Whether anything was counted since the last message.
        self._news = False

    def add(self, target: str, tally: Tally, captions: Sequence[Caption], lag: float) -> None:
        """Count the result of an update; ``lag`` is in seconds."""
        self._targets[target].tally = tally
        for caption in captions:
            self._lags.append(lag * 1000)
            self._targets[target].show(caption)
        self._news = True

    def due(self) -> bool:
        """Whether a message is due: there are new counts and `STATS_EVERY` seconds have passed.  Marks them as sent."""
        now = time.monotonic()
        if not self._news or now - self._told < STATS_EVERY:
            return False
        self._told, self._news = now, False
        return True

    def message(self, lanes: Mapping[str, Lane]) -> protocol.Stats:
        """Return the statistics so far; ``lanes`` maps languages to lanes and is empty before they are made."""
        return protocol.Stats(
            targets={target: counts.message(lanes[target]) for target, counts in self._targets.items() if lanes},
            lag_ms=_quantile(self._lags, 0.5),
            lag_p95_ms=_quantile(self._lags, 0.95),
        )


def _quantile(values: Collection[float], share: float) -> float:
    """Return the ``share`` quantile of the values, interpolated as in the benchmarks; 0 if there are none."""
    return round(float(np.quantile(list(values), share)), 1) if values else 0.0
