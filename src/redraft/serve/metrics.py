"""Counts: of the server, as metrics for Prometheus, and of each session, for its clients.

There is no transcript text in metrics, and no label that clients can choose.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

from redraft import deadlines, protocol
from redraft.captions.events import Caption, Failure
from redraft.captions.words import WORD
from redraft.decoding.types import Tally, common_prefix
from redraft.engine.engine import Engines
from redraft.engine.lanes import Answer, Lane
from redraft.engine.scheduler import Scheduler

_LAGS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_PASSES = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1)
_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128)
_TOKENS = (1, 4, 16, 64, 256, 1024)
#: Minimum seconds between two `stats` messages.
STATS_EVERY = 2.0
#: Number of recent captions in a session's lag statistics.
_RECENT = 200


class Metrics:
    """All metrics of a server in a separate registry."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        made = {"registry": self.registry}
        self.started = Counter("redraft_sessions_started", "Sessions started", **made)
        self.resumed = Counter("redraft_sessions_resumed", "Sessions resumed after a dropped connection", **made)
        self.refused = Counter("redraft_refusals", "Refused requests, by error code", ["code"], **made)
        self.slow = Counter("redraft_slow_readers", "Connections closed because the client did not read", **made)
        self.audio = Counter("redraft_audio_seconds", "Seconds of audio received", **made)
        self.lost_audio = Counter("redraft_lost_audio_seconds", "Seconds of audio dropped or lost", **made)
        self.recogniser_cpu = Counter("redraft_recogniser_cpu_seconds", "CPU seconds used by recognisers", **made)
        self.updates = Counter("redraft_updates", "Updates received", **made)
        self.captions = Counter("redraft_captions", "Captions: partial, final or failure", ["kind"], **made)
        self.lag = Histogram(
            "redraft_lag_seconds", "Seconds from speech, or the arrival of text, to its caption", buckets=_LAGS, **made
        )
        self.pass_seconds = Histogram("redraft_pass_seconds", "Seconds per pass of the model", buckets=_PASSES, **made)
        self.pass_requests = Histogram("redraft_pass_requests", "Requests per pass", buckets=_COUNTS, **made)
        self.pass_tokens = Histogram("redraft_pass_tokens", "New tokens per pass", buckets=_TOKENS, **made)

    def gauge(self, name: str, help: str, value: Callable[[], float]) -> None:
        """Add a gauge that calls ``value`` whenever it is read."""
        Gauge(name, help, registry=self.registry).set_function(value)

    def watch(self, engines: Engines) -> None:
        """Add metrics of the engines."""
        schedulers = [engine.scheduler for engine in engines.all]

        def total(name: str, help: str, value: Callable[[Scheduler], float]) -> None:
            self.gauge(name, help, lambda: sum(map(value, schedulers)))

        total("redraft_languages", "Target languages of all sessions", lambda each: each.lanes)
        total("redraft_requests", "Texts and chats in progress, and waiting", lambda each: each.requests)
        total("redraft_slots_in_use", "Cache slots in use", lambda each: each.pool.lent)
        late = "Seconds for which a pass of the model has been late"
        self.gauge(
            "redraft_late_seconds", late, lambda: max((each.late for each in engines.all), default=0) * deadlines.LOOK
        )
        total("redraft_failed_passes", "Failed passes", lambda each: each.failed_passes)
        total("redraft_failed_updates", "Updates that could not be translated", lambda each: each.failed_lanes)
        busy = "Share of time that the engines are busy with sessions, 0 to 1"
        total("redraft_busy", busy, lambda each: each.load.busy(each.clock()) / len(schedulers))

    def count_refusal(self, code: str) -> None:
        """Count a refused request or message; ``code`` is one of `redraft.protocol.codes.CODES`."""
        self.refused.labels(code).inc()

    def passed(self, requests: int, tokens: int, seconds: float) -> None:
        """Count a pass."""
        self.pass_seconds.observe(seconds)
        self.pass_requests.observe(requests)
        self.pass_tokens.observe(tokens)

    def answered(self, answer: Answer) -> None:
        """Count the answer to an update."""
        for event in answer.events:
            kind = "failure" if isinstance(event, Failure) else "final" if event.final else "partial"
            self.captions.labels(kind).inc()
        self.lag.observe(answer.lag)

    def text(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        return bytes(generate_latest(self.registry))


@dataclass(slots=True)
class TargetCounts:
    """Statistics of one target language.

    Attributes:
        shown: words of final captions.
        erased: words that were shown and retracted; ``erased / shown`` is normalized erasure in words
            (`redraft_bench.eval.measure.Erasure` counts tokens).
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
        return protocol.TargetStats(
            **asdict(self.tally),  # of which the message ignores some
            plain_passes=self.tally.tokens + self.tally.finished,
            shown=self.shown,
            erased=self.erased,
            coalesced=lane.coalesced,
            abandoned=lane.abandoned,
        )


class SessionCounts:
    """Statistics of a session."""

    def __init__(self, targets: Sequence[str]) -> None:
        self._targets = {target: TargetCounts() for target in targets}
        self._lags: deque[float] = deque(maxlen=_RECENT)
        self._sent = 0.0
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
        if not self._news or now - self._sent < STATS_EVERY:
            return False
        self._sent, self._news = now, False
        return True

    def message(self, lanes: Mapping[str, Lane], able: str = "") -> protocol.Stats:
        """Return the statistics so far.

        Args:
            lanes: the lanes by language; empty before they are made.
            able: what the model can do, if that is not enough.
        """
        targets = {target: counts.message(lanes[target]) for target, counts in self._targets.items() if lanes}
        lag, late = np.quantile(self._lags or [0.0], (0.5, 0.95)).round(1).tolist()  # interpolated as in benchmarks
        return protocol.Stats(targets=targets, lag_ms=lag, lag_p95_ms=late, able=able or None)
