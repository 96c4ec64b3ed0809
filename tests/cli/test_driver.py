"""The loop of commands that make captions, on a translator that answers as it is told."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any, cast

import pytest

from redraft import AsyncTranslator, Style, Translator
from redraft.captions.events import Caption, Event, Failure, Update
from redraft.captions.formats.read import Item
from redraft.captions.formats.write import Writer
from redraft.cli.shared.driver import Driver, _watch_reader
from redraft.cli.shared.ending import Ending, Interrupted
from redraft.engine import stream
from redraft.errors import InputError
from redraft.speech.backlog import Backlog
from tests.fakes import RandomModel

UPDATES = [Update("1", seq, " ".join("we saw her duck".split()[: seq + 1]), final=seq == 3) for seq in range(4)]
FAILURE = Failure("line 3 is no JSON", 3)


class Echo:
    """A translator that answers every update with its text, but not while it is paused."""

    able = ""

    def __init__(self) -> None:
        self.events: asyncio.Queue[Event | None] = asyncio.Queue()

    async def __aenter__(self) -> Echo:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def send(self, update: Update) -> None:
        if "bad" in update.text:
            raise InputError("text must be better")
        self.events.put_nowait(Caption(update.utterance, update.seq, "de", update.text, final=update.final))
        await asyncio.sleep(0)

    async def end(self) -> None:
        self.events.put_nowait(None)

    async def __aiter__(self) -> AsyncIterator[Event]:
        while (event := await self.events.get()) is not None:
            yield event


class Written(Writer):
    """A writer; it is closed after some events."""

    def __init__(self, most: int = 1000) -> None:
        self.events: list[Event] = []
        self._most, self.failed = most, threading.Event()

    def write(self, event: Event) -> None:
        if len(self.events) == self._most:
            self.failed.set()
            raise BrokenPipeError
        self.events.append(event)

    def close(self) -> None:
        pass


def ran(translator: Any, items: Iterable[Item], writer: Written, seen: Any = bool, *, viewers: bool = False) -> bool:
    with Ending() as ending:
        ending.when_asked((backlog := Backlog(ending.until(items))).hurry)
        return Driver(translator, writer, seen, ending, viewers).run(backlog)


def test_failures_stay_in_order() -> None:
    writer, seen = Written(), list[Event]()
    assert not ran(Echo(), [*UPDATES[:2], FAILURE, *UPDATES[2:]], writer, seen.append)
    assert [each.seq for each in writer.events] == [0, 1, None, 2, 3] and seen == writer.events
    assert ran(Echo(), UPDATES, Written())


def test_update_that_is_refused() -> None:
    writer = Written()
    assert not ran(Echo(), [Update("1", 0, "bad"), UPDATES[1]], writer)
    assert [type(each) for each in writer.events] == [Failure, Caption]


def test_exception_of_input() -> None:
    def items() -> Iterator[Item]:
        yield UPDATES[0]
        raise InputError("torn")

    writer = Written()
    with pytest.raises(InputError, match="torn"):
        ran(Echo(), items(), writer)
    assert len(writer.events) == 1


@pytest.mark.parametrize("viewers", [False, True])
def test_closed_output(viewers: bool) -> None:
    """Viewers get the captions of all that was read, and the input ends."""
    echo, read = Echo(), list[int]()

    def items() -> Iterator[Item]:
        for number in range(10_000):
            read.append(number)
            yield Update("1", number, "we")

    with pytest.raises(BrokenPipeError):
        ran(echo, items(), Written(2), viewers=viewers)
    assert len(read) < 10_000
    assert echo.events.empty() or not viewers


def test_second_signal_while_nobody_reads() -> None:
    """The loop cannot run then, and its own handlers of signals would wait for a reader."""
    reading, writing = os.pipe()

    class Unread(Written):
        def write(self, event: Event) -> None:
            self.failed.set()
            while True:
                os.write(writing, bytes(1 << 16))

    writer = Unread()

    def press() -> None:
        assert writer.failed.wait(20)
        for _ in range(2):
            time.sleep(0.15)
            os.kill(os.getpid(), signal.SIGINT)

    before, pressing = signal.signal(signal.SIGINT, signal.default_int_handler), threading.Thread(target=press)
    pressing.start()
    try:
        with Ending() as ending, ending.by_signals(), pytest.raises(Interrupted):
            Driver(cast(Any, Echo()), writer, bool, ending).run(Backlog(UPDATES))
        assert ending.signal == signal.SIGINT
    finally:
        pressing.join()
        signal.signal(signal.SIGINT, before)
        os.close(reading)
        os.close(writing)


def opened(*to: str) -> Translator:
    return Translator(
        RandomModel(end_bias=1.0), to, method="redraft", style=Style(template="tower"), options={"max_tokens": 60}
    )


@pytest.mark.parametrize("ends", [True, False])
def test_closed_output_in_a_pause(ends: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written at the end, or in the last pause, can fail like everything else."""
    monkeypatch.setattr(stream, "LONG_PAUSE", 1000 if ends else 0.05)
    writer = Written(1)

    def items() -> Iterator[Item]:
        yield Update("1", 0, "we saw her duck")
        assert ends or writer.failed.wait(20)

    with pytest.raises(BrokenPipeError):
        ran(AsyncTranslator(opened("de"), ahead=0), items(), writer)


def test_captions_are_those_of_a_translator() -> None:
    """Without updates ahead, no update is skipped, and events come in the order of the languages."""
    updates = [Update(name, each.seq, each.text, each.final) for name in "abc" for each in UPDATES]
    with opened("ja", "de") as translator:
        expected = [event for update in updates for event in translator.translate(update)]
    writer = Written()
    ran(AsyncTranslator(opened("ja", "de"), ahead=0), updates, writer)
    assert writer.events == expected


def test_reader_that_leaves_is_noticed_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()

    async def work() -> None:
        gone = asyncio.Event()
        _watch_reader(gone.set)
        await asyncio.sleep(0.01)
        assert not gone.is_set()
        os.close(reading)
        await asyncio.wait_for(gone.wait(), 10)

    with open(writing, "w", encoding="utf-8") as out:  # noqa: PTH123 - a descriptor
        monkeypatch.setattr(sys, "stdout", out)
        asyncio.run(work())
