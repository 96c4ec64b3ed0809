"""Reading mode: captions as complete lines that never change, as on television.

The growing translation is broken into lines.  A line is complete when more text follows it and it has been unchanged
for ``patience`` seconds, or when it has waited for ``longest`` seconds; then it is shown and never changes.  Later
revisions only affect the lines after it, so NE of the display is 0 by construction.  The price is lag, bounded by
``longest``, and that errors in complete lines stay.  Where the shown lines end in a revised text, the units on both
sides of that place decide (`redraft.captions.align.seam`).

By convention, lines have at most 32 to 42 character cells (CEA-608 has 32, European television 37, streaming services
42); see `redraft.captions.breaks`.

The pages' ``reading.js`` does the same in a browser; ``tests/captions/reading.json`` has cases for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from redraft.captions.align import seam
from redraft.captions.breaks import SPACE, broken
from redraft.captions.events import Caption
from redraft.captions.words import UNBREAKABLE
from redraft.errors import whole

NARROWEST, WIDEST = 16, 80


@dataclass(slots=True)
class _Waiting:
    """A line not shown yet: its units, when they last changed, and when the line was started."""

    units: Sequence[str]
    stood: float
    waited: float


class Reading:
    """The lines of one language.

    Args:
        width: maximum character cells per line, 16 to 80.
        patience: seconds for which a line must be unchanged before it is shown.
        longest: seconds after which it is shown in any case, at least ``patience``.

    Raises:
        OptionError: the width is out of range.
    """

    def __init__(self, width: int = 37, patience: float = 1.0, longest: float = 4.0) -> None:
        self._width = whole("line width", width, NARROWEST, WIDEST)
        self._patience, self._longest = patience, longest
        self._utterance: str | None = None
        #: The units of the last text that stand for the shown lines, and those behind them, without space.
        self._begun: list[str] = []
        self._behind: list[str] = []
        self._waiting: list[_Waiting] = []

    def read(self, caption: Caption, now: float) -> list[str]:
        """Add a caption; return the lines that are now complete.

        Args:
            caption: the next caption of the language; of a partial one only the shown text is used.
            now: the time in seconds, by a monotonic clock.
        """
        left_over: list[str] = []
        if caption.utterance != self._utterance:
            left_over = self.end()  # the previous utterance had no final caption
            self._utterance, self._begun, self._behind, self._waiting = caption.utterance, [], [], []
        units = UNBREAKABLE.findall(SPACE.sub(" ", caption.text).strip())
        bare = [unit.rstrip(" ") for unit in units]
        place = seam(self._begun, self._behind, bare)
        if place < len(units):  # else what is missing may come back
            self._behind = bare[place:]
            if place >= len(self._begun):
                self._begun = bare[:place]
        lines = broken(units[place:], self._width)
        full = lines if caption.final else lines[:-1]
        self._waiting = [self._noted(place, line, now) for place, line in enumerate(full)]
        if caption.final:
            self._utterance = None
            return [*left_over, *self.end()]
        return [*left_over, *self.due(now)]

    def due(self, now: float) -> list[str]:
        """Return the lines that have become complete since the last caption."""
        found: list[str] = []
        while self._waiting:
            line = self._waiting[0]
            if now - line.stood < self._patience and now - line.waited < self._longest:
                break
            found.append(self._show(self._waiting.pop(0)))
        return found

    @property
    def deadline(self) -> float | None:
        """When the next line becomes complete if nothing changes; None if no line waits."""
        if not self._waiting:
            return None
        return min(self._waiting[0].stood + self._patience, self._waiting[0].waited + self._longest)

    def end(self) -> list[str]:
        """Return the lines that still wait, because the utterance has no further captions."""
        lines = [self._show(line) for line in self._waiting]
        self._waiting = []
        return lines

    def _noted(self, place: int, units: Sequence[str], now: float) -> _Waiting:
        if place >= len(self._waiting):
            return _Waiting(units, now, now)
        before = self._waiting[place]
        return _Waiting(units, before.stood if before.units == units else now, before.waited)

    def _show(self, line: _Waiting) -> str:
        self._begun += self._behind[: len(line.units)]
        del self._behind[: len(line.units)]
        return "".join(line.units).strip()
