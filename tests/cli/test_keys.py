"""Keys that pause, hide and correct captions on a server: without a terminal, and in one."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from redraft.captions.events import Caption
from redraft.cli.shared.keys import HELP, Keys
from redraft.errors import InputError, RedraftError
from tests.cli import terminals
from tests.serve import servers, talking


class Controlled:
    """Records requests."""

    def __init__(self) -> None:
        self.paused = False
        self.asked: list[tuple[Any, ...]] = []
        self.over = False

    def pause(self, paused: bool = True) -> None:
        self.paused = paused
        self.asked.append(("pause", paused))

    def hide(self, utterance: str, language: str | None = None, *, hidden: bool = True) -> None:
        if self.over:
            raise RedraftError("the session is over")
        self.asked.append(("hide", utterance, hidden))

    def correct(self, utterance: str, language: str, text: str) -> None:
        if not text:
            raise InputError("text must be a string of 1 or more characters")
        self.asked.append(("correct", utterance, language, text))


class Desk:
    """Keys with what they say, and the line in which corrections are typed."""

    def __init__(self, *captions: Caption) -> None:
        self.control, self.said, self.typing = Controlled(), list[str](), False
        self.ended: str | None = None
        self.keys = Keys(self.control, self.said.append, self)
        for each in captions:
            self.keys.seen(each)

    def begin(self) -> None:
        assert not self.typing
        self.typing = True

    def end(self, text: str | None = None) -> None:
        assert self.typing
        self.typing, self.ended = False, text

    def press(self, *keys: str) -> list[tuple[Any, ...]]:
        """Press keys, and return everything that has been asked for since the last call."""
        before = len(self.control.asked)
        for key in keys:
            self.keys.press(key.encode())
        return self.control.asked[before:]

    @property
    def free(self) -> bool:
        async def soon() -> bool:
            waiting = asyncio.create_task(self.keys.free())
            await asyncio.sleep(0)
            free = waiting.done()
            waiting.cancel()
            return free

        return asyncio.run(soon())


def caption(utterance: str, text: str, language: str = "de", *, final: bool = True) -> Caption:
    return Caption(utterance, 0, language, text, final=final, source=f"source {utterance}")


@pytest.fixture
def desk() -> Desk:
    return Desk(caption("1", "eins"), caption("1", "一", "ja"), caption("2", "zwei"), caption("3", "dr", final=False))


def test_pause(desk: Desk) -> None:
    assert desk.press("p", "p", "x", "\x1b[A") == [("pause", True), ("pause", False)]
    assert len(desk.said) == 2


def test_hide_and_show(desk: Desk) -> None:
    assert desk.press("h", "h", "u") == [("hide", "3", True), ("hide", "2", True), ("hide", "2", False)]
    assert desk.said[0].endswith("source 3") and desk.said[2].endswith("source 2")
    assert desk.press("h", "h", "h") == [("hide", "2", True), ("hide", "1", True)]
    assert desk.press("u", "u", "u", "u") == [("hide", each, False) for each in "123"]


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ("zwo\n", ("correct", "2", "de", "zwo")),
        ("ei=wo\r", ("correct", "2", "de", "zwwo")),
        ("eins=1\r", ("correct", "1", "de", "1")),
        (" 一 = 二 ", ("correct", "1", "ja", "二")),
        ("dr=drei\n", None),
        ("=\n", None),
        ("zwei=\n", None),
        ("\n", None),
        ("", None),
        ("ph\x1b\n", None),
    ],
)
def test_correct(desk: Desk, line: str, asked: tuple[str, ...] | None) -> None:
    assert desk.press("c") == [] and desk.typing and not desk.free
    assert desk.press(line) == ([asked] if asked else []) and not desk.typing and desk.free
    assert desk.ended == (line.rstrip("\r\n") if line.endswith(("\r", "\n")) else None)
    assert desk.press("p") == [("pause", True)]


def test_whole_words_first() -> None:
    desk = Desk(caption("1", "er ist da"), caption("2", "das Nest"))
    assert desk.press("c", "da=hier\n") == [("correct", "1", "de", "er ist hier")]
    assert desk.press("c", "st=tz\n") == [("correct", "2", "de", "das Netz")]


def test_correct_twice(desk: Desk) -> None:
    desk.press("c", "zwei drei\n")
    assert desk.press("c", "drei=vier\n") == [("correct", "2", "de", "zwei vier")]


def test_left_at_the_end(desk: Desk) -> None:
    desk.press("c")
    desk.keys.leave()
    assert not desk.typing and desk.free
    desk.control.over = True
    assert desk.press("h") == [] and desk.said[-1] == "the session is over"
    assert desk.press("h") == [] and desk.said[-1] == "the session is over"


def test_nothing_yet() -> None:
    desk = Desk(caption("1", "ei", final=False))
    assert desk.press("c", "u", "?") == [] and desk.said[-1] == HELP and desk.free
    assert Desk().press("h") == []


# In a terminal


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Two minutes of audio, in which the stand-in recogniser hears words."""
    path = tmp_path / "talk.wav"
    soundfile.write(path, np.zeros(16_000 * 120, np.float32), 16_000)
    return path


@pytest.mark.parametrize("output", ["live", "lines"])
def test_terminal(output: str, recording: Path) -> None:
    with servers.running() as server:
        stand_in = [sys.executable, "-m", "tests.cli.stand_in", "0", "/dev/null"]
        chosen = ["--speed", "4", "--to", "de", "--server", server.url, "--output", output]
        with terminals.Terminal(100, 30, [*stand_in, "listen", str(recording), *chosen]) as terminal:

            def until(ready: Callable[[], bool]) -> None:
                end = time.monotonic() + terminals.PATIENCE
                while not ready():
                    assert time.monotonic() < end and terminal.read(0.05)

            terminal.wait_for(HELP.split(",")[0])  # long lines are broken
            until(lambda: any([*each.transcript.finals] for each in server.hub._sessions.values()))
            (session,) = server.hub._sessions.values()
            terminal.wait_for(next(iter(session.transcript.finals)).text.split()[0])
            terminal.type("p")
            terminal.wait_for("paused: ")
            until(lambda: session.transcript.paused)
            terminal.type("ph")
            terminal.wait_for("hidden from viewers: ")
            until(lambda: bool(talking.hidden_in(session)) and not session.transcript.paused)
            terminal.type("uc")
            terminal.wait_for("type wrong=right")
            until(lambda: not talking.hidden_in(session))
            terminal.type("Helo\x7f\x7f\x7fallo!\r")
            terminal.wait_for("corrected for viewers: de: Hallo!")
            until(lambda: any(each.text == "Hallo!" for each in session.transcript.finals))
            terminal.type("c\x03")
            assert terminal.ended() == 130


def test_typed_input_is_left_alone(tmp_path: Path) -> None:
    with servers.running() as server:
        command = terminals.program("translate", "--to", "de", "--server", server.url, "--output", "lines")
        with terminals.Terminal(100, 30, command) as terminal:
            terminal.wait_for("Ctrl-D ends the input")
            terminal.type("please help\n\n\x04")
            terminal.wait_for("final\tde")
            assert terminal.ended() == 0 and HELP.split(",")[0] not in terminal.output
