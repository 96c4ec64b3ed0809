"""Threads for each pass, on machines that exist as a formula only."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from redraft.backends import threads
from redraft.backends.threads import LOOK, REST, AdaptiveThreads, FixedThreads, FreeCores

#: (threads, new tokens) -> seconds of a pass.
Machine = Callable[[int, int], float]


def tiny(threads: int, new: int) -> float:
    """A model on two cores that a second thread makes faster by a third."""
    return (0.4e-3 + 0.08e-3 * new) / (1.35 if threads == 2 else 1.0)


def beside_a_loop(threads: int, new: int) -> float:
    """The same model where a second thread has to share its core."""
    return tiny(1, new) * (60.0 if threads == 2 else 1.0)


def large(threads: int, new: int) -> float:
    """A model that memory bounds: one token gains nothing from a second thread, many gain a fifth."""
    return (0.049, 0.052)[threads - 1] if new == 1 else (0.045 + 0.0036 * new) / (1.0, 1.22)[threads - 1]


def eight_cores(threads: int, new: int) -> float:
    """Four threads are the best; more get in each other's way."""
    return {1: 1.0, 2: 0.6, 4: 0.4, 8: 0.5}[threads] * 0.01 * (new + 10)


class Runner:
    """Runs passes of a live translation, with noise."""

    def __init__(self, cores: int, start: int, free: Callable[[], int] | None = None) -> None:
        self.threads = AdaptiveThreads(cores, start, free or (lambda: cores))
        self.random = random.Random(0)

    def run(self, machine: Machine, passes: int) -> float:
        """Seconds in all, without the noise."""
        spent = 0.0
        for _ in range(passes):
            new = self.random.choice((1, 1, 1, 1, self.random.randint(12, 30)))
            seconds = machine(self.threads.choose(new), new)
            spent += seconds
            self.threads.took(new, seconds * self.random.uniform(1.0, 1.1))
        return spent

    def least(self, machine: Machine, passes: int, *counts: int) -> float:
        """Seconds of as many passes on the best of some numbers of threads, each pass on its own best."""
        drawn = random.Random(0)
        news = [drawn.choice((1, 1, 1, 1, drawn.randint(12, 30))) for _ in range(passes)]
        return sum(min(machine(count, new) for count in counts) for new in news)


@pytest.mark.parametrize(("machine", "start"), [(tiny, 1), (tiny, 2), (large, 1), (large, 2)])
def test_quiet_machine_is_used_almost_as_well_as_can_be(machine: Machine, start: int) -> None:
    runner = Runner(2, start)
    assert runner.least(machine, 2000, 1, 2) / runner.run(machine, 2000) > 0.95


@pytest.mark.parametrize("start", [1, 8])
def test_best_of_many_numbers_is_found(start: int) -> None:
    runner = Runner(8, start)
    runner.run(eight_cores, 1000)
    assert [runner.threads.choose(new) for new in (1, 16)] == [4, 4]


def test_lengths_have_numbers_of_their_own() -> None:
    runner = Runner(2, 1)
    runner.run(large, 2000)
    assert [runner.threads.choose(new) for new in (1, 16)] == [1, 2]


def test_busy_process_without_clocks() -> None:
    runner = Runner(2, 1)
    runner.run(tiny, 2000)
    assert runner.threads.choose(16) == 2
    assert runner.least(tiny, 5000, 1) / runner.run(beside_a_loop, 5000) > 0.8


def test_machine_that_is_quiet_again_is_used_again() -> None:
    runner = Runner(2, 1)
    runner.run(beside_a_loop, 3000)
    runner.run(tiny, 60_000)
    assert runner.least(tiny, 3000, 1, 2) / runner.run(tiny, 3000) > 0.95


def test_no_more_threads_run_than_cores_are_free() -> None:
    free = 2
    runner = Runner(2, 2, lambda: free)
    runner.run(tiny, 500)
    assert runner.threads.choose(16) == 2
    free = 1
    assert {runner.threads.choose(new) for new in range(1, 100)} == {1}
    assert runner.run(beside_a_loop, 500) < 1.01 * runner.least(tiny, 500, 1) * 1.05


def test_what_was_learnt_is_kept_while_cores_are_taken() -> None:
    free = 2
    runner = Runner(2, 1, lambda: free)
    runner.run(tiny, 500)
    free = 1
    runner.run(beside_a_loop, 500)
    free = 2
    assert runner.threads.choose(1) == 2


@pytest.mark.parametrize("cores", [1, 2, 3, 6, 12, 16])
def test_all_numbers_are_within_cores(cores: int) -> None:
    runner = Runner(cores, cores)
    assert runner.threads.choose(1) == cores

    def machine(count: int, new: int) -> float:
        assert 1 <= count <= cores
        return new / count

    runner.run(machine, 300)


@pytest.mark.parametrize(("free", "expected"), [(8, (1, 8)), (7, (1,))])
def test_measurement_takes_one_thread_and_all_that_are_free(free: int, expected: tuple[int, ...]) -> None:
    slept: list[float] = []
    adaptive = AdaptiveThreads(8, 1, lambda: free if slept else 8, slept.append)
    assert adaptive.counts() == expected
    assert slept == [LOOK]


def test_fixed_number_stays() -> None:
    fixed = FixedThreads(3)
    fixed.took(1, 100.0)
    assert fixed.choose(1) == 3
    assert fixed.counts() == (3,)


class Clock:
    """A machine of two cores on which this process uses ``own`` and others ``others`` of them."""

    def __init__(self) -> None:
        self.now = self.idle = self.spent = 0.0
        self.own, self.others = 1.0, 0.0
        self.free = FreeCores(2, lambda: (self.idle, self.spent), lambda: self.now)

    def wait(self, seconds: float) -> int:
        self.now += seconds
        self.idle += seconds * (2 - self.own - self.others)
        self.spent += seconds * self.own
        return self.free()


def test_what_this_process_uses_itself_is_free() -> None:
    clock = Clock()
    assert clock.wait(LOOK) == 2
    clock.own = 2.0
    assert clock.wait(LOOK) == 2


def test_core_is_given_up_at_once_and_taken_back_later() -> None:
    clock = Clock()
    clock.others = 1.0
    assert clock.wait(LOOK / 2) == 2, "not seen yet"
    assert clock.wait(LOOK / 2) == 1
    clock.others = 0.0
    assert clock.wait(LOOK) == 1
    assert [clock.wait(LOOK) for _ in range(int(REST / LOOK) + 1)][-1] == 2


def test_little_use_takes_no_core() -> None:
    clock = Clock()
    clock.others = 0.1
    assert clock.wait(LOOK) == 2


def test_there_is_always_one() -> None:
    clock = Clock()
    clock.own, clock.others = 0.5, 1.5
    assert clock.wait(1.0) == 1


def test_without_clocks_all_cores_count_as_free() -> None:
    now = 0.0
    free = FreeCores(4, lambda: None, lambda: now)
    now = 10.0
    assert free() == 4


def test_clocks_of_linux(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  9 9 9 900 90 0\ncpu0 1 0 1 100 20 0\ncpu1 1 0 1 300 4 0\ncpu2 1 0 1 500 6 0\nintr 5\n")
    monkeypatch.setattr(threads, "STAT", stat)
    monkeypatch.setattr("os.sched_getaffinity", lambda _process: {0, 2}, raising=False)
    monkeypatch.setattr("os.sysconf", lambda _name: 100)
    found = threads.system_clocks()
    assert found is not None
    assert found[0] == pytest.approx(6.26)
    monkeypatch.setattr(threads, "STAT", tmp_path / "none")
    assert threads.system_clocks() is None
