"""Keys with which captions on a server are paused, hidden and corrected while they are made."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from typing import Protocol

from redraft.captions.events import Caption, Event
from redraft.captions.formats.live import LiveWriter
from redraft.captions.formats.read import printable
from redraft.captions.formats.write import Writer
from redraft.cli.shared.line_edit import Keyboard, LineEdit
from redraft.cli.shared.stream import layers
from redraft.errors import RedraftError

HELP = "keys: p pauses captions for viewers, h hides the last sentence, u shows it again, c corrects a caption"
_EDITING = "Enter sends the correction, Esc leaves the caption as it is, Up and Down choose another one"
#: Number of utterances that can be corrected, and of characters in which one is named.
_KEPT, _NAMED = 20, 60


class ViewerControl(Protocol):
    """What controls the captions of a session, `redraft.client.control.Control`."""

    @property
    def paused(self) -> bool:
        """Whether captions are held back."""

    def pause(self, paused: bool = True) -> None:
        """Hold captions back, or release them."""

    def hide(self, utterance: str, language: str | None = None, *, hidden: bool = True) -> None:
        """Hide the captions of an utterance, or show them again."""

    def correct(self, utterance: str, language: str, text: str) -> None:
        """Replace the text of a caption."""


class Keys:
    """Does what keys are for.

    Args:
        control: what controls the captions.
        say: called with a sentence for the person at the keyboard.
        draw: called with the line that is edited, in three parts as in `LineEdit.drawn` and with what it is; None when
            editing ends.
        hold: returns what keeps captions from being drawn while a line is edited.
    """

    def __init__(
        self,
        control: ViewerControl,
        say: Callable[[str], object],
        draw: Callable[[str, LineEdit | None], object],
        hold: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self._control, self._say, self._draw, self._hold = control, say, draw, hold
        self._keyboard = Keyboard()
        #: Utterance -> language -> its newest caption.
        self._captions: dict[str, dict[str, Caption]] = {}
        self._hidden: list[str] = []
        #: The line that is edited, the caption in it, and what holds other captions.
        self._edited: tuple[LineEdit, Caption] | None = None
        self._holding = ExitStack()
        self._free = asyncio.Event()
        self._free.set()

    async def free(self) -> None:
        """Wait until no line is being edited, so that captions can be drawn."""
        await self._free.wait()

    def seen(self, event: Event) -> None:
        """Note what has been shown."""
        if isinstance(event, Caption) and event.text:
            self._captions.setdefault(event.utterance, {})[event.language] = event
            if len(self._captions) > _KEPT:
                del self._captions[next(iter(self._captions))]

    def press(self, data: bytes) -> None:
        """Do what the keys are for that a terminal has sent."""
        for key in self._keyboard.keys(data):
            try:
                if self._edited is not None:
                    self._edit(*self._edited, key)
                elif key in _ACTIONS:
                    _ACTIONS[key](self)
            except RedraftError as error:
                self.leave()
                self._say(str(error))

    def leave(self) -> None:
        """Stop editing."""
        if self._edited is not None:
            self._edited = None
            self._draw("", None)
            self._holding.close()
            self._free.set()

    # What keys do

    def _pause(self) -> None:
        self._control.pause(not self._control.paused)
        paused = "paused: viewers get no more captions until you press p again"
        self._say(paused if self._control.paused else "viewers get captions again, and those that they have missed")

    def _hide(self) -> None:
        name = next((name for name in reversed(self._captions) if name not in self._hidden), None)
        if name is None:
            self._say("there is no sentence to hide")
            return
        self._control.hide(name)
        self._hidden.append(name)
        self._say(f"hidden from viewers: {self._named(name)}")

    def _show(self) -> None:
        if not self._hidden:
            self._say("no sentence is hidden")
            return
        name = self._hidden[-1]
        self._control.hide(name, hidden=False)
        self._hidden.pop()
        self._say(f"shown to viewers again: {self._named(name)}")

    def _named(self, name: str) -> str:
        captions = self._captions.get(name, {})
        text = printable(next((each.source or each.text for each in captions.values()), name)).strip()
        return text if len(text) <= _NAMED else f"{text[: _NAMED - 3]}..."

    def _correct(self) -> None:
        if not (finals := self._finals):
            self._say("only a finished caption can be corrected, and there is none yet")
            return
        self._say(_EDITING)
        self._free.clear()
        self._holding.enter_context(self._hold())
        self._begin(finals[-1])

    @property
    def _finals(self) -> list[Caption]:
        return [each for captions in self._captions.values() for each in captions.values() if each.final]

    def _begin(self, caption: Caption) -> None:
        self._edited = line, _ = LineEdit(printable(caption.text)), caption
        self._draw(caption.language, line)

    def _edit(self, line: LineEdit, caption: Caption, key: str) -> None:
        if key == "escape":
            self.leave()
        elif key == "enter":
            self._send(caption, line.text.strip())
        elif key in ("up", "down"):
            finals = self._finals
            place = finals.index(caption) + (1 if key == "down" else -1)
            self._begin(finals[min(max(0, place), len(finals) - 1)])
        else:
            line.press(key)
            self._draw(caption.language, line)

    def _send(self, caption: Caption, text: str) -> None:
        if text == printable(caption.text).strip():
            self.leave()
            return
        self._control.correct(caption.utterance, caption.language, text)
        self.leave()
        self._captions[caption.utterance][caption.language] = replace(caption, text=text)
        self._say(f"corrected for viewers: {caption.language}: {text}")


_ACTIONS: dict[str, Callable[[Keys], object]] = {
    "p": Keys._pause,
    "h": Keys._hide,
    "u": Keys._show,
    "c": Keys._correct,
    "?": lambda keys: keys._say(HELP),
}


def draw(title: str, line: LineEdit | None) -> None:
    """Draw a line that is edited below everything else on the terminal of standard error; None removes it."""
    if (error := sys.__stderr__) is None:
        return
    if line is None:
        error.write("\r\x1b[2K\x1b[1A")
    else:
        width = shutil.get_terminal_size().columns - len(title) - 3
        before, under, after = line.drawn(max(1, width))
        error.write(f"\r\x1b[2K\x1b[1m{title}\x1b[0m  {before}\x1b[7m{under}\x1b[0m{after}")
    error.flush()


@contextmanager
def held(writer: Writer) -> Iterator[None]:
    """Make room for a line below the captions, and draw no captions while the block runs."""
    with ExitStack() as stack:
        for each in layers(writer):
            if isinstance(each, LiveWriter):
                stack.enter_context(each.held())
        if sys.__stderr__ is not None:
            sys.__stderr__.write("\n")
        yield


@contextmanager
def from_terminal(press: Callable[[bytes], object]) -> Iterator[bool]:
    """Pass on keys of the terminal while the block runs, on the running event loop.

    Yields:
        Whether there is one: both standard input and standard error are terminals, and this program has them in front.
    """
    number = _terminal()
    if number is None:
        yield False
        return
    import termios
    import tty

    loop, before = asyncio.get_running_loop(), termios.tcgetattr(number)

    def read() -> None:
        try:
            data = os.read(number, 1024)
        except OSError:  # the terminal has been closed
            data = b""
        if data:
            press(data)
        else:
            loop.remove_reader(number)

    tty.setcbreak(number, termios.TCSADRAIN)  # Ctrl-C stays a signal
    loop.add_reader(number, read)
    try:
        yield True
    finally:
        loop.remove_reader(number)
        termios.tcsetattr(number, termios.TCSADRAIN, before)


def _terminal() -> int | None:
    """Return the descriptor of the terminal that keys come from; None if there is none, and on Windows."""
    if os.name != "posix" or sys.stdin is None or sys.stderr is None:
        return None
    try:
        number = sys.stdin.fileno()
        in_front = os.isatty(number) and sys.stderr.isatty() and os.tcgetpgrp(number) == os.getpgrp()
    except (OSError, ValueError):  # in tests, and in programs that call commands, it may be anything
        return None
    return number if in_front else None
