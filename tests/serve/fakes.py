"""A table model with a cache that is checked, and the parts of a server around it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np

from redraft.captions.events import Caption, Update
from redraft.decoding.backend import CostCurve
from redraft.decoding.drive import open_slots, run
from redraft.decoding.method import Value
from redraft.decoding.types import TARGET, Rows, Score, common_prefix
from redraft.engine.engine import Engine
from redraft.engine.lanes import Answer, Lane
from redraft.engine.scheduler import Load, Scheduler
from redraft.errors import CapabilityError
from redraft.protocol import Begin, Wanted
from redraft.serve.metrics import Metrics
from redraft.serve.service import Service
from redraft.serve.sessions.folder import Folder
from redraft.serve.sessions.live import LiveSession
from redraft.serve.settings import ServeSettings
from tests.fakes import RandomModel

#: A pass costs a millisecond, and a tenth of that for each token more.
CURVE = CostCurve((1, 101), (0.001, 0.011))
METHODS = ("ssbd", "ar", "redraft", "pld", "bild")


@cache
def drawn(seed: int, vocabulary: int, ids: tuple[int, ...]) -> np.ndarray:
    """What a table model draws for some ids, kept, since sessions ask for the same again and again."""
    return RandomModel(seed, vocabulary)._draw(*ids)


class CachedModel(RandomModel):
    """Keeps the ids of every slot, and says how many of a pass were new.

    Args:
        slots: how many there are.
        broken: whether a pass with these requests fails.
    """

    metadata: Mapping[str, str] = {"redraft.prompt": "{source}<2{code}>", "redraft.final_mark": ""}

    def __init__(
        self, seed: int = 0, *, slots: int = 64, broken: Callable[[Sequence[Score]], bool] = lambda _: False
    ) -> None:
        super().__init__(seed, shift=0.5, end_bias=1.0)
        self.number, self.broken = slots, broken
        self.cache: dict[int, tuple[int, ...]] = {}
        self.new: list[int] = []

    def _draw(self, *ids: int) -> np.ndarray:
        return drawn(self.seed, self.vocabulary, ids)

    def open_slot(self) -> int:
        free = [slot for slot in range(self.number) if slot not in self.cache]
        if not free:
            raise CapabilityError("all slots are in use")
        self.cache[free[0]] = ()
        return free[0]

    def close_slot(self, slot: int) -> None:
        del self.cache[slot]

    def score(self, requests: Sequence[tuple[int, Score]]) -> list[Rows]:
        assert len({slot for slot, _ in requests}) == len(requests)
        assert {slot for slot, _ in requests} <= self.cache.keys()
        if self.broken([score for _, score in requests]):
            raise ZeroDivisionError("the table is broken")
        new = 0
        for slot, score in requests:
            held = min(common_prefix(self.cache[slot], score.prefix), len(score.prefix) - score.prompt_rows)
            new += len(score.prefix) - held + len(score.draft)
            self.cache[slot] = score.prefix + score.draft.tokens
        self.new.append(new)
        return super().score(requests)


def slow(_: Sequence[Score]) -> bool:
    """For `CachedModel`: no pass fails, but each takes a while."""
    time.sleep(0.02)
    return False


def offline(*targets: str, folder: Folder | None = None, engine: Engine | None = None) -> LiveSession:
    """A session without connections, and without lanes."""
    begin = Begin(targets=targets or ("de",))
    return LiveSession("t" * 32, "", begin, folder or Folder(None), Metrics(), engine=engine)


class Clock:
    """Time that stands still unless it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class PassReport(NamedTuple):
    """A pass of a scheduler."""

    requests: int
    tokens: int
    seconds: float


@dataclass
class Rig:
    """A scheduler on a table model, with everything that was answered."""

    model: CachedModel
    slots: int = 8
    budget: int = 1000
    most: int = 256
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        backends = {TARGET: self.model}
        self.passes: list[PassReport] = []
        self.answers: list[tuple[Lane, Answer]] = []
        self.service = Service(backends, ServeSettings(methods=METHODS[:4]))
        slots = open_slots(backends, self.slots)
        self.scheduler = Scheduler(
            backends,
            slots,
            1.0,
            self.budget,
            lambda *done: self.passes.append(PassReport(*done)),
            self.clock,
            self.most,
        )
        self.scheduler.load = Load(1.0, lambda: CURVE)

    def lanes(self, *targets: str, method: str = "ssbd", **options: Value) -> list[Lane]:
        """The lanes of a new session, without a bias towards earlier outputs."""
        biases = {"ssbd": ["beta"], "redraft": ["beta", "hidden_beta"]}
        zero: dict[str, Value] = dict.fromkeys(biases.get(method, []), 0.0)
        values = {**zero, **options}
        made: dict[str, Lane] = {}
        wanted = Wanted(targets=targets or ("de",), method=method, options=values)
        lanes = [
            Lane(each, lambda answer: self.answers.append((made[answer.language], answer)))
            for each in self.service.translations(wanted)
        ]
        for lane in lanes:
            made[lane.translation.language] = lane
            self.scheduler.add(lane)
        return lanes

    def offer(self, lane: Lane, update: Update) -> None:
        """Give a lane an update that comes in now."""
        self.scheduler.offer(lane, update, self.clock())

    def run(self) -> int:
        """Go on until there is nothing to do; how many rounds that took."""
        rounds = 0
        while self.scheduler.step():
            rounds += 1
            assert rounds < 100_000
        return rounds

    def captions(self, lane: Lane) -> list[Caption]:
        """Everything that was shown of a lane."""
        events = [event for each, answer in self.answers if each is lane for event in answer.events]
        return [event for event in events if isinstance(event, Caption)]


def alone(seed: int, updates: Sequence[Update], target: str = "de", method: str = "ar") -> list[Caption]:
    """The captions that a stream gets when nobody else is there."""
    model = CachedModel(seed)
    (lane,) = Rig(model).lanes(target, method=method)
    slot, shown = model.open_slot(), []
    for update in updates:
        events, lane.state = run(lane.translation.translate(lane.state, update), model, slot)
        shown += [event for event in events if isinstance(event, Caption)]
    return shown
