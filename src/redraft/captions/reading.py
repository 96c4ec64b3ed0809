"""Reading mode: captions as complete lines that never change, as television has them.

A translation that is still growing is broken into lines.  A line is complete once the text has gone on past it and it
has stood unchanged for a while, or has waited for as long as it may; then it is shown, and stays as it is.  What the
model revises behind that point is only what comes next, so nothing that was read is taken back: NE shown is 0 by
construction.  The price is lag, which ``longest`` bounds, and that an error in a complete line stays.

Lines have at most 32 to 42 character cells by custom (CEA-608 has 32, television in Europe 37, streaming services 42);
Chinese and Japanese characters take two.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from redraft.captions.events import Caption, is_number, is_whole
from redraft.captions.words import UNBREAKABLE
from redraft.errors import OptionError

NARROWEST, WIDEST = 16, 80


@dataclass(frozen=True, slots=True)
class Layout:
    """How lines are made.

    Attributes:
        width: most character cells of a line, 16 to 80.
        patience: seconds for which a line must have stood unchanged before it is shown.
        longest: seconds after which it is shown all the same, ``patience`` or more.

    Raises:
        OptionError: a number is out of its range.
    """

    width: int = 37
    patience: float = 1.0
    longest: float = 4.0

    def __post_init__(self) -> None:
        if not is_whole(self.width) or not NARROWEST <= self.width <= WIDEST:
            raise OptionError(f"line width must be a whole number from {NARROWEST} to {WIDEST}, not {self.width!r}")
        if not is_number(self.patience) or self.patience < 0:
            raise OptionError(f"line patience must be a number of seconds, 0 or more, not {self.patience!r}")
        if not is_number(self.longest) or self.longest < self.patience:
            raise OptionError(f"longest wait of a line must be at least its patience, not {self.longest!r}")


@dataclass(slots=True)
class _Waiting:
    """A line that is not shown yet: since when it stands as it is, and since when there is one in its place."""

    units: Sequence[str]
    stood: float
    waited: float


class Reading:
    """The lines of one language.

    Args:
        layout: how lines are made.
    """

    def __init__(self, layout: Layout = Layout()) -> None:
        self._layout = layout
        self._utterance: str | None = None
        self._shown: list[str] = []
        self._waiting: list[_Waiting] = []

    def read(self, caption: Caption, now: float) -> list[str]:
        """The lines that are complete now.

        Args:
            caption: the next one of the language; of a partial one only the text that is shown counts.
            now: the time in seconds, by any clock that does not run backwards.
        """
        left_over: list[str] = []
        if caption.utterance != self._utterance:
            left_over = self._all()  # of an utterance that never got its final caption
            self._utterance, self._shown, self._waiting = caption.utterance, [], []
        units = UNBREAKABLE.findall(" ".join(caption.text.split()))
        rest = units[continued(self._shown, units) :]
        lines = broken(rest, self._layout.width)
        full = lines if caption.final else lines[:-1]
        self._waiting = [self._noted(place, line, now) for place, line in enumerate(full)]
        if caption.final:
            self._utterance = None
            return [*left_over, *self._all()]
        return [*left_over, *self.due(now)]

    def due(self, now: float) -> list[str]:
        """The lines that have become complete since, though no caption has come."""
        found: list[str] = []
        while self._waiting:
            line = self._waiting[0]
            if now - line.stood < self._layout.patience and now - line.waited < self._layout.longest:
                break
            found.append(self._show(self._waiting.pop(0)))
        return found

    def _noted(self, place: int, units: Sequence[str], now: float) -> _Waiting:
        if place >= len(self._waiting):
            return _Waiting(units, now, now)
        before = self._waiting[place]
        return _Waiting(units, before.stood if before.units == units else now, before.waited)

    def _all(self) -> list[str]:
        lines = [self._show(line) for line in self._waiting]
        self._waiting = []
        return lines

    def _show(self, line: _Waiting) -> str:
        self._shown += line.units
        return "".join(line.units).strip()


def continued(shown: Sequence[str], units: Sequence[str]) -> int:
    """How many units of a text count as shown, where ``shown`` are those that were: what follows them is next.

    A revision of what was shown is passed over: the place behind the last unit that both have in common, and as many
    more as were shown behind it, is where reading goes on.
    """
    if list(units[: len(shown)]) == list(shown):
        return len(shown)
    blocks = SequenceMatcher(None, shown, units, autojunk=False).get_matching_blocks()
    last = max((block for block in blocks if block.size), key=lambda block: block.a + block.size, default=None)
    if last is None:
        return min(len(shown), len(units))
    return min(last.b + last.size + len(shown) - (last.a + last.size), len(units))


def broken(units: Sequence[str], width: int) -> list[list[str]]:
    """Units in lines of at most ``width`` cells; one that is longer than a line has a line to itself."""
    lines: list[list[str]] = []
    used = 0
    for unit in units:
        needed = cells(unit.rstrip())
        if not lines or used + needed > width:
            lines.append([])
            used = 0
        lines[-1].append(unit)
        used += cells(unit)
    return lines


def cells(text: str) -> int:
    """How many character cells a text takes; wide characters take two."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
