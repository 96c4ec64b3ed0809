"""Measuring T(n) on machines with clocks of their own."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from redraft.backends import stopwatch
from redraft.backends.stopwatch import MOST_ROUNDS, ROUNDS, Measured, best_of, doubt, measure, thread_counts
from redraft.decoding import cost
from redraft.decoding.cost import CostCurve
from redraft.decoding.types import Rows, Score
from tests.fakes import RandomModel


class Clocks:
    """What `time` shows: wall time, and processor time of the process and of its first thread."""

    def __init__(self) -> None:
        self.wall = self.process = self.thread = 0.0

    def perf_counter(self) -> float:
        return self.wall

    monotonic = perf_counter

    def process_time(self) -> float:
        return self.process

    def thread_time(self) -> float:
        return self.thread


class Timed(RandomModel):
    """A model that takes 1 ms, and 0.1 ms for every new token, and shares its cores with others.

    Attributes:
        waits: for a pass on so many threads, how many times as long it takes by the wall.
        faster: how many times as fast it is on two threads.
    """

    def __init__(self, clocks: Clocks, waits: Callable[[int], float] = lambda _threads: 1.0) -> None:
        super().__init__()
        self.clocks, self.waits, self.threads, self.faster = clocks, waits, 1, 1.6
        self.rounds = 0

    def thread_counts(self) -> tuple[int, ...]:
        return (1, 2)

    @contextmanager
    def fixed_threads(self, count: int) -> Iterator[None]:
        before, self.threads = self.threads, count
        try:
            yield
        finally:
            self.threads = before

    def seconds(self, new: int) -> float:
        return 1e-3 + 1e-4 * new

    def score(self, requests: Sequence[tuple[int, Score]]) -> list[Rows]:
        (_slot, score), *_ = requests
        alone = self.seconds(len(score.draft) + 1) / (self.faster if self.threads == 2 else 1.0)
        wall = alone * self.waits(self.threads)
        self.clocks.wall += wall
        # While one thread has no core, the other one spins.
        self.clocks.thread += alone if self.threads == 1 else wall
        self.clocks.process += alone if self.threads == 1 else wall + alone
        return super().score(requests)


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    made = Clocks()
    monkeypatch.setattr(stopwatch, "time", made)
    monkeypatch.setattr("time.perf_counter", made.perf_counter)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    return made


def expected(model: Timed, threads: int) -> list[float]:
    return [model.seconds(size) / (model.faster if threads == 2 else 1.0) for size in cost.SIZES]


def test_one_thread_ignores_other_processes(clocks: Clocks) -> None:
    drawn = random.Random(0)
    model = Timed(clocks, lambda _threads: drawn.uniform(1, 40))
    found = measure(model, 1)
    assert found.curve.seconds == pytest.approx(expected(model, 1))
    assert (found.problem, found.threads) == ("", 1)
    assert max(found.spread) == pytest.approx(0.0, abs=1e-6)


def test_several_threads_need_their_cores(clocks: Clocks) -> None:
    drawn = random.Random(0)
    model = Timed(clocks, lambda _threads: drawn.choice((1.0, 5.0)))
    found = measure(model, 2)
    assert found.curve.seconds == pytest.approx(expected(model, 2))
    assert not found.problem


def test_where_cores_are_taken_all_time_it_says_so(clocks: Clocks) -> None:
    found = measure(Timed(clocks, lambda _threads: 5.0), 2)
    assert "other processes took the cores" in found.problem
    assert found.curve(1) > 0


def test_rounds_go_on_until_times_agree(clocks: Clocks) -> None:
    def rounds(model: Timed) -> int:
        seen: list[int] = []

        def show(numbers: object) -> Iterator[int]:
            for number in numbers:  # type: ignore[attr-defined]
                seen.append(number)
                yield number

        measure(model, 1, show)
        return len(seen)

    assert rounds(Timed(clocks)) == ROUNDS

    class Shaking(Timed):
        def seconds(self, new: int) -> float:
            self.rounds += 1
            return super().seconds(new) / 1.3 ** (self.rounds // (2 * len(cost.SIZES)))

    assert rounds(Shaking(clocks)) == MOST_ROUNDS


def test_slow_model(clocks: Clocks) -> None:
    class Slow(Timed):
        def seconds(self, new: int) -> float:
            return 10.0 * (1 + 0.1 * new)

    model = Slow(clocks)
    found = measure(model, 1)
    assert not found.problem
    assert len(model.requests) == 3 * 2 * len(cost.SIZES), "one round as a warm-up, and two that count"


def test_backend_without_threads_is_measured_by_wall(clocks: Clocks) -> None:
    class Plain(RandomModel):
        def score(self, requests: Sequence[tuple[int, Score]]) -> list[Rows]:
            clocks.wall += 0.01
            return super().score(requests)

    model = Plain()
    assert thread_counts(model) == (0,)
    assert measure(model, 0).curve(1) == pytest.approx(0.01)
    assert not model._slots


def test_unpadded(clocks: Clocks) -> None:
    """Passes are not padded while they are measured, also on a GPU, where the backend chooses the threads."""

    class Padded(Timed):
        padded = True

        @contextmanager
        def fixed_threads(self, count: int) -> Iterator[None]:
            self.padded = False
            yield
            self.padded = True

        def seconds(self, new: int) -> float:
            return 1.0 if self.padded else super().seconds(new)

    for threads in (0, 1, 2):
        assert measure(Padded(clocks), threads).curve(1) < 0.5


def test_best_of_several_numbers_of_threads(clocks: Clocks) -> None:
    def found(*seconds: float, problem: str = "") -> Measured:
        return Measured(CostCurve((1, 2, 4)[: len(seconds)], seconds), (0.0,) * len(seconds), 1, problem)

    assert best_of([found(1.0, 4.0, 6.0), found(2.0, 3.0)]).seconds == (1.0, 3.0, 5.0)
    assert best_of([found(1.0, 4.0), found(0.1, 0.2, problem="no")]).seconds == (1.0, 4.0)
    assert best_of([found(0.1, 0.2, problem="no")]).seconds == (0.1, 0.2)


SURE, SHAKY = 1.02, 1.2


@pytest.mark.parametrize(
    ("least", "second", "words"),
    [
        ((1.0, 1.5, 2.0), SHAKY, ""),
        ((1.0, 1.0, 0.95), SURE, ""),
        ((1.0, 0.42, 2.0), SURE, "over 2 tokens seems to take 0.42 of the time of one over 1"),
        ((1.0, 1.5, 0.5), SURE, "over 4 tokens seems to take 0.50 of the time of one over 1"),
        # Other kernels for many tokens may be faster, if there is no doubt about it.
        ((1.0, 5.0, 2.0), SURE, ""),
        ((1.0, 5.0, 2.0), SHAKY, "over 4 tokens seems to take 0.40 of the time of one over 2"),
        ((1.0, 1.5, 2.0), 1.4, "fastest passes over 1 tokens differ by 40%"),
    ],
)
def test_what_is_no_curve_to_go_by(least: Sequence[float], second: float, words: str) -> None:
    found = doubt((1, 2, 4), [[each * second, each, each * 3] for each in least])
    assert words in found
    assert bool(found) == bool(words)


def test_one_pass_of_size_is_too_few() -> None:
    assert "over 2 tokens" in doubt((1, 2), [[1.0, 1.0], [2.0]])
