"""A transcript that keeps up with its speaker."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from itertools import count, islice
from typing import Any

import pytest

from redraft.captions.events import Update
from redraft.speech.backlog import Backlog
from redraft.speech.recogniser import transcribe
from tests.speech.recognisers import Scripted, silence


def test_newest_drops_what_is_overtaken() -> None:
    done = threading.Event()

    def all_at_once() -> Iterator[Any]:
        yield from transcribe(silence(10.1), Scripted(words=5))
        done.set()

    items = iter(Backlog(all_at_once(), live=True))
    first = next(items)
    assert done.wait(20)
    rest = [item for item in items if isinstance(item, Update)]
    assert isinstance(first, Update) and sum(item.final for item in rest) + first.final == 4
    assert len(rest) <= 5  # of what waited, only finals were left

    def broken() -> Iterator[Any]:
        yield first
        raise ValueError("torn")

    items = iter(Backlog(broken()))
    assert next(items) == first
    with pytest.raises(ValueError, match="torn"):
        next(items)


class Speech:
    """Sentences of twelve updates, ten updates a second, each of which comes when it is allowed."""

    def __init__(self, gap: float = 0.1) -> None:
        self.now, self.spoken, self._gap = 0.0, 0, gap
        self.allowed, self._came = threading.Semaphore(1), threading.Condition()

    def __iter__(self) -> Iterator[Update]:
        for number in count():
            self.allowed.acquire()
            self.now += self._gap
            yield Update(str(number // 12), number, "text", final=number % 12 == 11, time=self.now)
            with self._came:  # reached when the one before is in the backlog
                self.spoken += 1
                self._came.notify_all()

    def go_on(self, updates: int) -> None:
        """Let so many updates come, and wait until they are in the backlog."""
        with self._came:
            for _ in range(updates):
                self.allowed.release()
            wanted = self.spoken + updates
            assert self._came.wait_for(lambda: self.spoken >= wanted, 20)


@pytest.mark.parametrize("each", [3, 5, 9])
def test_lag_is_bounded(each: int) -> None:
    """A translation takes as long as ``each`` updates of speech: captions are two of these behind, finals included."""
    speech, taken = Speech(), list[Update]()
    backlog = Backlog(speech, live=True, clock=lambda: speech.now)
    for item in islice(backlog, 40):
        assert isinstance(item, Update) and item.time is not None
        taken.append(item)
        speech.go_on(each)
        assert backlog.age == pytest.approx(speech.now - item.time)
        assert backlog.age <= 2 * 0.1 * each + 0.01
    backlog.close()
    speech.allowed.release()  # lets the thread end
    finals = [int(item.utterance) for item in taken if item.final]
    assert finals == list(range(len(finals))) and len(finals) > 5
    assert backlog.passed_over > 0


def test_recording_is_not_live() -> None:
    """What can be read at once is translated whole, however slow that is."""
    now, items = [0.0], [Update("1", seq, f"{seq}") for seq in range(30)]
    backlog, taken = Backlog(items, clock=lambda: now[0]), []
    for item in backlog:
        taken.append(item)
        now[0] += 10
    assert taken == items and backlog.passed_over == 0 and not backlog.live


def test_in_a_loop() -> None:
    """All items come; a task that is cancelled while it waits for one leaves no thread for which the loop waits."""
    ended = threading.Event()

    def items() -> Iterator[Update]:
        for number in range(500):
            yield Update(str(number), 0, "a", True)
        ended.wait(60)

    async def taken(backlog: Backlog, found: list[str]) -> None:
        async for item in backlog:
            assert isinstance(item, Update)
            found.append(item.utterance)

    async def cancelled() -> list[str]:
        backlog, found = Backlog(items(), live=True), list[str]()
        task = asyncio.create_task(taken(backlog, found))
        while len(found) < 500:
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return found

    try:
        assert asyncio.run(asyncio.wait_for(cancelled(), 30)) == [str(number) for number in range(500)]
        assert not ended.is_set()
    finally:
        ended.set()
