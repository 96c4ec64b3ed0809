"""Keys with which captions on a server are paused, hidden and corrected while they are made."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Protocol

from rich.cells import cell_len

from redraft.captions.events import Caption, Event
from redraft.captions.formats.live import LiveWriter
from redraft.captions.formats.read import printable
from redraft.captions.formats.write import Writer, layers
from redraft.errors import RedraftError

HELP = "keys: p pauses captions for viewers, h hides the last sentence, u shows it again, c corrects a caption"
_HOW = "type wrong=right, or a new text for this caption, and Enter; an empty line changes nothing"
#: What a terminal sends for keys that are no characters.
_NO_CHARACTERS = re.compile(r"\x1b(?:\[[0-9;]*[A-Za-z~]|O.)?")
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


class TypedLine(Protocol):
    """A line that is being typed; no captions are drawn meanwhile."""

    def begin(self) -> None:
        """Begin the line."""

    def end(self, text: str | None = None) -> None:
        """End it, given what was typed before Enter; None without Enter."""


class Keys:
    """Handles keys.

    Args:
        control: what controls the captions.
        say: called with a sentence for the person at the keyboard.
        line: the line in which corrections are typed.
    """

    def __init__(self, control: ViewerControl, say: Callable[[str], object], line: TypedLine) -> None:
        self._control, self._say, self._line = control, say, line
        #: Utterance -> language -> its newest caption.
        self._captions: dict[str, dict[str, Caption]] = {}
        self._hidden: list[str] = []
        #: Set while no line is typed.
        self._free = asyncio.Event()
        self._free.set()

    async def free(self) -> None:
        """Wait until no line is being typed, so that captions can be drawn."""
        await self._free.wait()

    def seen(self, event: Event) -> None:
        """Note what has been shown."""
        if isinstance(event, Caption) and event.text:
            self._captions.setdefault(event.utterance, {})[event.language] = event
            if len(self._captions) > _KEPT:
                del self._captions[next(iter(self._captions))]

    def press(self, data: bytes) -> None:
        """Handle what a terminal has sent: keys, or a line if one is being typed."""
        text = data.decode(errors="ignore")
        try:
            if not self._free.is_set():
                line = text.rstrip("\r\n")
                self.leave(line if line != text else None)
                self._typed(line)
                return
            for key in _NO_CHARACTERS.sub("", text):
                if key in _ACTIONS:
                    _ACTIONS[key](self)
        except RedraftError as error:
            self._say(str(error))

    def leave(self, text: str | None = None) -> None:
        """End the line that is being typed; ``text`` is what was typed before Enter."""
        if not self._free.is_set():
            self._line.end(text)
            self._free.set()

    # What keys do

    def _pause(self) -> None:
        self._control.pause(not self._control.paused)
        paused = "paused: viewers get no more captions until you press p again"
        self._say(paused if self._control.paused else "viewers get captions again, including those they missed")

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
        self._say(f"{_HOW}: {finals[-1].language}: {printable(finals[-1].text).strip()}")
        self._free.clear()
        self._line.begin()

    @property
    def _finals(self) -> list[Caption]:
        return [each for captions in self._captions.values() for each in captions.values() if each.final]

    def _with(self, words: str) -> tuple[Caption, str] | None:
        """Return the last finished caption with these words, or with part of a word, and a pattern that finds them."""
        for pattern in (rf"(?<!\w){re.escape(words)}(?!\w)", re.escape(words)):
            having = [each for each in self._finals if words and re.search(pattern, printable(each.text))]
            if having:
                return having[-1], pattern
        return None

    def _typed(self, line: str) -> None:
        if not line.strip() or "\x1b" in line:
            return
        caption, text = self._finals[-1], line.strip()
        if "=" in line:
            wrong, _, right = (part.strip() for part in line.partition("="))
            if (found := self._with(wrong)) is None:
                self._say(f"no finished caption has {wrong!r}")
                return
            caption, pattern = found
            text = re.sub(pattern, lambda _: right, printable(caption.text)).strip()
        self._control.correct(caption.utterance, caption.language, text)
        self._captions[caption.utterance][caption.language] = replace(caption, text=text)
        self._say(f"corrected for viewers: {caption.language}: {text}")


_ACTIONS: dict[str, Callable[[Keys], object]] = {
    "p": Keys._pause,
    "h": Keys._hide,
    "u": Keys._show,
    "c": Keys._correct,
    "?": lambda keys: keys._say(HELP),
}


class TerminalLine:
    """A line that the terminal of standard error edits, below the captions.

    Attributes:
        lines: called with whether the terminal is to pass on lines rather than keys.
        typing: whether a line is being typed.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer, self._held = writer, ExitStack()
        self.lines: Callable[[bool], object] = bool
        self.typing = False

    def begin(self) -> None:
        """Make room for the line."""
        self.typing = True
        for each in layers(self._writer):
            if isinstance(each, LiveWriter):
                self._held.enter_context(each.held())
        _draw("\n")
        self.lines(True)

    def end(self, text: str | None = None) -> None:
        """Erase the line and, after Enter, the rows that it has taken."""
        self.typing = False
        self.lines(False)
        rows = 0 if text is None else max(1, -(-cell_len(text) // shutil.get_terminal_size().columns))
        _draw("\r\x1b[2K" + "\x1b[1A\x1b[2K" * rows + "\x1b[1A")
        self._held.close()


def _draw(text: str) -> None:
    if (error := sys.__stderr__) is not None:
        error.write(text)
        error.flush()


@contextmanager
def from_terminal(press: Callable[[bytes], object], line: TerminalLine) -> Iterator[bool]:
    """Pass on keys of the terminal while the block runs, on the running event loop, and the lines that are typed.

    Yields:
        Whether there is one: standard input and standard error are terminals, and this program is in the foreground.
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
            data = os.read(number, 4096)
        except OSError:  # the terminal has been closed
            data = b""
        if data or line.typing:  # Ctrl-D ends a line without characters
            press(data)
        else:
            loop.remove_reader(number)

    def lines(whole: bool) -> None:
        if whole:
            termios.tcsetattr(number, termios.TCSADRAIN, before)
        else:
            tty.setcbreak(number, termios.TCSADRAIN)  # Ctrl-C stays a signal

    line.lines = lines
    lines(False)
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
