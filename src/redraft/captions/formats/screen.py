"""The output of programs that clear and redraw the screen, such as demos of recognisers.

The last line on the screen is still spoken; the lines before it have ended.  Lines may scroll away at the top.
"""

from __future__ import annotations

import re

from redraft.captions.align import similarity

#: Clears the screen, before or after the cursor moves to its beginning.
_CLEARED = re.compile(r"(?:\x1b\[[0-9;?]*[A-Za-z])*?\x1b(?:\[[0-3]?J|c)")
#: How similar two texts of a line are at least, from 0 to 1, and how many lines may scroll away at once.
_ALIKE, _SCROLLED = 0.6, 50


class Screen:
    """Finds the lines of a screen among those that were written before, once it has been cleared twice.

    Attributes:
        used: whether it has been; until then, every line is a new version of a single one.
    """

    def __init__(self) -> None:
        self.used = self._cleared = False
        self._lines: list[str] = [""]
        #: Numbers of the line at the top and of the next one.
        self._top = self._next = 0

    def see(self, text: str) -> None:
        """Check whether a text begins with clearing the screen."""
        if _CLEARED.match(text):
            self.used, self._cleared, self._next = self._cleared, True, self._top

    def begins(self, text: str) -> bool | None:
        """Return whether the next line on the screen is a new one; None if it has ended, also if its text has changed.

        Args:
            text: the line without escapes.
        """
        lines, at = self._lines, self._next if self.used else 0
        if at < len(lines) - 1 and lines[at] != text:
            alike = [similarity(text, line) for line in lines[at : at + _SCROLLED]]
            # scrolled, or another text altogether
            at = at + alike.index(max(alike)) if max(alike) >= _ALIKE else len(lines)
        if self._next == self._top:
            self._top = at
        self._next = at + 1
        if at < len(lines) - 1:
            return None
        new = at == len(lines)
        lines[at:] = [text]
        return new
