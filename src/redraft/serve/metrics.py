"""Metrics for Prometheus, without transcript text and without labels that clients can choose."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

from redraft.serve.engines import Engines
from redraft.serve.lanes import Answer
from redraft.serve.scheduler import PassReport, Scheduler

_LAGS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_PASSES = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1)
_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128)
_TOKENS = (1, 4, 16, 64, 256, 1024)


class Metrics:
    """All metrics of a server in a separate registry."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        made = {"registry": self.registry}
        self.started = Counter("redraft_sessions_started", "Sessions begun", **made)
        self.resumed = Counter("redraft_sessions_resumed", "Sessions gone on with after a drop", **made)
        self.refused = Counter("redraft_refusals", "What was refused, by code", ["code"], **made)
        self.slow = Counter("redraft_slow_readers", "Connections dropped since they did not read", **made)
        self.audio = Counter("redraft_audio_seconds", "Seconds of audio received", **made)
        self.lost_audio = Counter("redraft_lost_audio_seconds", "Seconds of audio dropped or never received", **made)
        self.recogniser_cpu = Counter("redraft_recogniser_cpu_seconds", "Processor time of recognisers", **made)
        self.updates = Counter("redraft_updates", "Updates received", **made)
        self.captions = Counter("redraft_captions", "Captions made, by kind", ["kind"], **made)
        self.lag = Histogram(
            "redraft_lag_seconds", "From speech, or an update of text, to its caption", buckets=_LAGS, **made
        )
        self.pass_seconds = Histogram("redraft_pass_seconds", "Time of a pass", buckets=_PASSES, **made)
        self.pass_requests = Histogram("redraft_pass_requests", "Requests of a pass", buckets=_COUNTS, **made)
        self.pass_tokens = Histogram("redraft_pass_tokens", "New tokens of a pass", buckets=_TOKENS, **made)

    def gauge(self, name: str, help: str, value: Callable[[], float]) -> None:
        """Add a gauge that calls ``value`` whenever it is read."""
        Gauge(name, help, registry=self.registry).set_function(value)

    def watch(self, engines: Engines) -> None:
        """Add metrics of the engines."""
        schedulers = [engine.scheduler for engine in engines.all]

        def total(name: str, help: str, value: Callable[[Scheduler], float]) -> None:
            self.gauge(name, help, lambda: sum(map(value, schedulers)))

        total("redraft_languages", "Target languages of all sessions", lambda each: each.lanes)
        total("redraft_slots_in_use", "Cache slots that are lent", lambda each: each.pool.lent)
        total("redraft_failed_passes", "Passes that failed", lambda each: each.failed_passes)
        total("redraft_failed_updates", "Updates given up", lambda each: each.failed_lanes)
        busy = "Share of their time that the engines work, 0-1"
        total("redraft_busy", busy, lambda each: each.load.busy(each.clock()) / len(schedulers))

    def passed(self, done: PassReport) -> None:
        """Count a pass."""
        self.pass_seconds.observe(done.seconds)
        self.pass_requests.observe(done.requests)
        self.pass_tokens.observe(done.tokens)

    def answered(self, answer: Answer) -> None:
        """Count the answer to an update."""
        for kind in _kinds(answer):
            self.captions.labels(kind).inc()
        self.lag.observe(answer.lag)

    def text(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        return bytes(generate_latest(self.registry))


def _kinds(answer: Answer) -> Iterator[str]:
    for event in answer.events:
        final = getattr(event, "final", None)
        yield "failure" if final is None else "final" if final else "partial"
