"""Cores that other processes leave free."""

from __future__ import annotations

from pathlib import Path

import pytest

from redraft.backends import threads
from redraft.backends.threads import LOOK, REST, FreeCores


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
