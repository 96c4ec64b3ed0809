"""Run the real scheduler in simulated time: talks, one engine, and no real waiting.

The duration of the engine's rounds comes from a `Stopwatch`: computed if work is replayed
(`redraft.measure.plan.simulate`), or measured if a model translates (`redraft.measure.plan.rehearse`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from redraft.captions.events import Update
from redraft.captions.session import Translation
from redraft.decoding.backend import Backend
from redraft.decoding.cost import CostCurve
from redraft.decoding.types import TARGET
from redraft.errors import MissingExtra, install
from redraft.measure.loadtest.script import Script
from redraft.serve.lanes import Answer, Lane
from redraft.serve.scheduler import Load, PassReport, Scheduler
from redraft.serve.slots import SlotPool


class Stopwatch(Protocol):
    """Measures the seconds of the engine's current round."""

    def start(self) -> None:
        """Start a round."""

    def seconds(self) -> float:
        """Return the seconds since it started."""


@dataclass(frozen=True, slots=True)
class TalkLoad:
    """A scene to play.

    Attributes:
        script: the text of every talk; each starts at another position.
        talks: number of talks, each into ``targets`` languages.
        targets: target languages per talk.
        seconds: total duration.
        warm_up: seconds before anything counts; the talks start in their first half.
        slots: cache slots.
        most: maximum lanes per pass.
        budget: maximum new tokens per pass.
        seed: random seed of the positions at which talks start.
    """

    script: Script
    talks: int
    targets: int
    seconds: float
    warm_up: float
    slots: int
    most: int
    budget: int
    seed: int = 0


@dataclass(slots=True)
class LoadResult:
    """Results of a scene after its warm-up.

    Attributes:
        seconds: duration that counted.
        lags: for every answer, seconds since its oldest unanswered words arrived.
        busy: seconds that the engine worked.
        rounds: number of passes.
        requests: number of requests that they answered.
        waiting: updates without an answer at the end; the time they have waited counts as a lag.
    """

    seconds: float
    lags: list[float] = field(default_factory=list)
    busy: float = 0.0
    rounds: int = 0
    requests: int = 0
    waiting: int = 0

    @property
    def lag(self) -> float:
        """Seconds within which 95 % of the updates were answered; 0 if there were none."""
        ordered = sorted(self.lags)
        return ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))] if ordered else 0.0


def play(
    scene: TalkLoad,
    backend: Backend,
    translation: Callable[[int, int], Translation],
    stopwatch: Stopwatch,
    watch: Callable[[PassReport], None] = lambda _: None,
) -> LoadResult:
    """Play a scene.

    Args:
        scene: the scene.
        backend: has enough slots.
        translation: makes the translation of a lane from its number and the number of its first segment.
        stopwatch: measures the engine's rounds.
        watch: called with the report of every pass that counts.

    Raises:
        MissingExtra: simpy is not installed.
    """
    return _Stage(scene, backend, translation, stopwatch, watch).play()


def need_simpy() -> Any:
    """Import simpy.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        import simpy
    except ModuleNotFoundError as error:
        raise MissingExtra(f"a simulation needs simpy, which is not installed: {install('plan')}") from error
    return simpy


class _Stage:
    """A scene in progress."""

    def __init__(
        self,
        scene: TalkLoad,
        backend: Backend,
        translation: Callable[[int, int], Translation],
        stopwatch: Stopwatch,
        watch: Callable[[PassReport], None],
    ) -> None:
        simpy = need_simpy()
        self._scene, self._stopwatch, self._watch = scene, stopwatch, watch
        self._env = simpy.Environment()
        self._inbox = simpy.Store(self._env)
        self._played = LoadResult(scene.seconds - scene.warm_up)
        self._since: dict[Lane, dict[tuple[str, int], float]] = {}
        backends: Mapping[str, Backend] = {TARGET: backend}
        load = Load(1000, CostCurve((1, 2), (0.001, 0.001)))  # admission is not used
        self._pool = SlotPool(backends, scene.slots)
        self._scheduler = Scheduler(
            backends, self._pool, load, scene.budget, self._passed, clock=self._now, most=scene.most
        )
        chance = random.Random(scene.seed)
        for number in range(scene.talks):
            first = chance.randrange(len(scene.script.stream.segments))
            lanes = [
                Lane(translation(number * scene.targets + each, first), self._answered) for each in range(scene.targets)
            ]
            for lane in lanes:
                self._scheduler.add(lane)
            self._env.process(self._talk(lanes, first, 0.5 * scene.warm_up * number / scene.talks))
        self._env.process(self._engine())

    def play(self) -> LoadResult:
        self._env.run(until=self._scene.seconds)
        self._pool.close()
        late = [self._env.now - since for waiting in self._since.values() for since in waiting.values()]
        self._played.waiting = len(late)
        self._played.lags += late
        return self._played

    @property
    def _counts(self) -> bool:
        return bool(self._env.now >= self._scene.warm_up)

    def _now(self) -> float:
        return float(self._env.now) + self._stopwatch.seconds()

    def _talk(self, lanes: Sequence[Lane], first: int, start: float) -> Iterator[Any]:
        for second, update in self._scene.script.spoken(first):
            yield self._env.timeout(max(0.0, start + second - self._env.now))
            for lane in lanes:
                yield self._inbox.put((lane, update, self._env.now))

    def _engine(self) -> Generator[Any, Any, None]:
        """Like `redraft.serve.engine.Engine`: empty the inbox between two rounds, and wait if there is no work."""
        while True:
            if not self._scheduler.working:
                self._offer((yield self._inbox.get()))
            while self._inbox.items:
                self._offer((yield self._inbox.get()))
            self._stopwatch.start()
            self._scheduler.step()
            spent = self._stopwatch.seconds()
            self._stopwatch.start()
            yield self._env.timeout(spent)
            if self._counts:
                self._played.busy += spent

    def _offer(self, offer: tuple[Lane, Update, float]) -> None:
        lane, update, since = offer
        self._since.setdefault(lane, {})[update.utterance, update.seq] = since
        lane.offer(update, since)

    def _answered(self, lane: Lane, answer: Answer) -> None:
        update, waiting = answer.update, self._since[lane]
        covered = [key for key in waiting if key[0] == update.utterance and key[1] <= update.seq]
        for key in covered:
            del waiting[key]
        if self._counts:
            self._played.lags.append(answer.lag)

    def _passed(self, report: PassReport) -> None:
        if self._counts:
            self._played.rounds += 1
            self._played.requests += report.requests
            self._watch(report)
