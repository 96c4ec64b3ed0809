"""Keys that pause, hide and correct captions on a server: without a terminal, and in one."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.cells import cell_len

from redraft.captions.events import Caption
from redraft.cli.shared.keys import HELP, Keys
from redraft.cli.shared.line_edit import Keyboard, LineEdit
from redraft.errors import InputError, RedraftError

pytest.importorskip("websockets")


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
    """Keys with what they say and draw."""

    def __init__(self, *captions: Caption) -> None:
        self.control, self.said, self.drawn, self.held = Controlled(), list[str](), list[str](), 0
        self.keys = Keys(self.control, self.said.append, self._draw, self._hold)
        for each in captions:
            self.keys.seen(each)

    def _draw(self, title: str, line: LineEdit | None) -> None:
        self.drawn.append(f"{title}: {line.text}" if line else "")

    @contextmanager
    def _hold(self) -> Iterator[None]:
        self.held += 1
        yield
        self.held -= 1

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


def test_correct(desk: Desk) -> None:
    assert desk.press("c", "\x7f", "ö", "\r") == [("correct", "2", "de", "zweö")]
    assert desk.drawn == ["de: zwei", "de: zwe", "de: zweö", ""] and not desk.held and desk.free
    assert desk.press("c", "\x1b[A", "二", "\n") == [("correct", "1", "ja", "一二")]
    desk.press("c", "\x1b[A", "\x1b[A", "\x1b[A")
    assert desk.drawn[-1] == "de: eins" and desk.held and not desk.free
    assert desk.press("\x1b") == [] and desk.drawn[-1] == "" and not desk.held and desk.free
    assert desk.press("c", "p", "\x15", "\r") == [] and desk.said[-1].startswith("text must be") and desk.free
    desk.press("c")
    assert desk.drawn[-1] == "de: zweö"
    assert desk.press("\r") == []


def test_left_at_the_end(desk: Desk) -> None:
    desk.press("c")
    desk.keys.leave()
    assert not desk.held and desk.free
    desk.control.over = True
    assert desk.press("h") == [] and desk.said[-1] == "the session is over"
    assert desk.press("h") == [] and desk.said[-1] == "the session is over"


def test_nothing_yet() -> None:
    desk = Desk(caption("1", "ei", final=False))
    assert desk.press("c", "u", "?") == [] and desk.said[-1] == HELP and desk.free
    assert Desk().press("h") == []


@pytest.mark.parametrize(
    ("keys", "text", "place"),
    [
        (["left", "left", "x"], "axbc", 2),
        (["home", "delete", "delete", "right"], "c", 1),
        (["home", "backspace", "end", "delete"], "abc", 3),
        (["clear", "ß", "backspace", "backspace", "左"], "左", 1),
        (["up", "escape", "enter"], "abc", 3),
    ],
)
def test_line(keys: list[str], text: str, place: int) -> None:
    line = LineEdit("abc")
    for key in keys:
        line.press(key)
    assert (line.text, line.place) == (text, place)


@pytest.mark.parametrize("text", ["eins zwei drei vier", "一二三四五六七八九十", ""])
@pytest.mark.parametrize("width", [2, 7, 100])
def test_line_fits(text: str, width: int) -> None:
    line = LineEdit(text)
    for place in range(len(text) + 1):
        line.place = place
        before, under, after = line.drawn(width)
        assert cell_len(before + under + after) <= max(width, 2) + 1
        assert (text + " ").find(before + under + after.rstrip()) >= 0
        assert under == (text + " ")[place]


def test_keys_in_pieces() -> None:
    keyboard = Keyboard()
    data = "ä\x1b[D\x1bOA\x1b[5~\x1b\x00".encode()
    assert [key for byte in (data[:1], data[1:]) for key in keyboard.keys(byte)] == ["ä", "left", "up", "escape"]


# In a terminal


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Two minutes of audio, in which the stand-in recogniser hears words."""
    soundfile = pytest.importorskip("soundfile")
    path = tmp_path / "talk.wav"
    soundfile.write(path, np.zeros(16_000 * 120, np.float32), 16_000)
    return path


@pytest.mark.parametrize("output", ["live", "lines"])
def test_terminal(output: str, recording: Path) -> None:
    terminals, servers = pytest.importorskip("tests.cli.terminals"), pytest.importorskip("tests.serve.servers")
    talking = pytest.importorskip("tests.serve.talking")
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
            terminal.wait_for("Enter sends the correction")
            until(lambda: not talking.hidden_in(session))
            before = len(terminal.output)
            terminal.type("\x15Hallo")
            terminal.wait_for("Hallo", before)
            terminal.type("!\r")
            terminal.wait_for("corrected for viewers: de: Hallo!")
            until(lambda: any(each.text == "Hallo!" for each in session.transcript.finals))
            terminal.type("c\x03")
            assert terminal.ended() == 130


def test_typed_input_is_left_alone(tmp_path: Path) -> None:
    terminals, servers = pytest.importorskip("tests.cli.terminals"), pytest.importorskip("tests.serve.servers")
    with servers.running() as server:
        command = terminals.program("translate", "--to", "de", "--server", server.url, "--output", "lines")
        with terminals.Terminal(100, 30, command) as terminal:
            terminal.wait_for("Ctrl-D ends the input")
            terminal.type("please help\n\n\x04")
            terminal.wait_for("final\tde")
            assert terminal.ended() == 0 and HELP.split(",")[0] not in terminal.output
