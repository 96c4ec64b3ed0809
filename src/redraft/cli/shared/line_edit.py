"""Edit one line of text by keys, without a terminal: keys in, the line to draw out."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

from rich.cells import cell_len

#: An escape sequence of a terminal, or a character.
_KEY = re.compile(r"\x1b(?:\[[0-9;]*[A-Za-z~]|O[A-Z])|.", re.DOTALL)
#: What terminals send for keys that are no characters.
_NAMES = {
    "\x1b[A": "up",
    "\x1bOA": "up",
    "\x1b[B": "down",
    "\x1bOB": "down",
    "\x1b[C": "right",
    "\x1bOC": "right",
    "\x1b[D": "left",
    "\x1bOD": "left",
    "\x1b[H": "home",
    "\x1bOH": "home",
    "\x1b[1~": "home",
    "\x01": "home",
    "\x1b[F": "end",
    "\x1bOF": "end",
    "\x1b[4~": "end",
    "\x05": "end",
    "\x1b[3~": "delete",
    "\x7f": "backspace",
    "\b": "backspace",
    "\x15": "clear",
    "\r": "enter",
    "\n": "enter",
    "\x1b": "escape",
}


class Keyboard:
    """Tells keys apart in what a terminal sends."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("ignore")

    def keys(self, data: bytes) -> Iterator[str]:
        """Yield characters, and names such as ``left``; unknown keys are left out."""
        for found in _KEY.findall(self._decoder.decode(data)):
            if found in _NAMES:
                yield _NAMES[found]
            elif found.isprintable():
                yield found


class LineEdit:
    """A line of text with a cursor.

    Attributes:
        text: the text.
        place: number of characters before the cursor.
    """

    def __init__(self, text: str = "") -> None:
        self.text, self.place = text, len(text)

    def press(self, key: str) -> None:
        """Insert a character, or do what a key is for."""
        before, after = self.text[: self.place], self.text[self.place :]
        if key in ("left", "right"):
            self.place = max(0, self.place - 1) if key == "left" else min(len(self.text), self.place + 1)
        elif key in ("home", "end"):
            self.place = 0 if key == "home" else len(self.text)
        elif key == "clear":
            self.text, self.place = "", 0
        elif key == "backspace":
            self.text, self.place = before[:-1] + after, max(0, self.place - 1)
        elif key == "delete":
            self.text = before + after[1:]
        elif len(key) == 1:
            self.text, self.place = before + key + after, self.place + 1

    def drawn(self, width: int) -> tuple[str, str, str]:
        """Return what is shown in ``width`` cells: before the cursor, the character under it, and behind it."""
        under = self.text[self.place : self.place + 1] or " "
        before, after = self.text[: self.place], self.text[self.place + 1 :]
        room = max(0, width - cell_len(under))
        while before and cell_len(before) > room - min(cell_len(after), room // 4):
            before = before[1:]
        while after and cell_len(before) + cell_len(after) > room:
            after = after[:-1]
        return before, under, after
