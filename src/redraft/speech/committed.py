"""Find what is new in the committed words that a recognition server repeats with every message.

Only the words themselves are reliable: from message to message, the server adds words at the end, forgets some at the
beginning, and splits, joins and renumbers its lines.  So the words of a message are aligned with those of the last one;
if they fit in several places, the times of the lines decide.  Texts are compared without white space (`squeezed`), and
places count such characters from the first word of the connection.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from redraft.captions.align import in_common, seam
from redraft.captions.words import WORD, bare

#: Characters that two messages must share to be aligned against the times of their lines.
_SURE = 20
_VISIBLE = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Span:
    """A line of committed words.

    Attributes:
        text: its words.
        start: its start in seconds.
        end: its end in seconds.
        speaker: number of its speaker; None if unknown.
        exact: whether the times have fractions of a second.
    """

    text: str
    start: float
    end: float
    speaker: int | None = None
    exact: bool = True


class Committed:
    """The committed words of one connection.

    Attributes:
        begin: place of the first word of the last message.
        done: place behind the last word that is in a final text.
        spans: the lines of the last message with the places of their beginning and end.
    """

    def __init__(self) -> None:
        self.begin = self.done = 0
        #: The words of the last message with white space, and squeezed.
        self._text, self._squeezed = "", ""
        self.spans: list[tuple[Span, int, int]] = []
        #: Places with the times at which a line began or ended there; both increase.
        self._places: list[int] = []
        self._times: list[float] = []

    @property
    def end(self) -> int:
        """Place behind the last word."""
        return self.begin + len(self._squeezed)

    def update(self, spans: Sequence[Span], more: str = "") -> str:
        """Take the lines of a message; return words that the server has forgotten before they were in a final text.

        Args:
            spans: the lines.
            more: committed words behind them.
        """
        text = " ".join((*(span.text for span in spans), more))
        new = squeezed(text)
        self.spans = []
        if not new:
            return ""
        overlap = self._overlap(text, new, spans[0] if spans else None)
        if overlap is None:  # revised
            ended = unsqueezed(self._text, self.done - self.begin)
            place = seam(_words(self._text[:ended]), _words(self._text[ended:]), _words(text))
            again = _words_end(text, place)
            begin = self.done - len(squeezed(text[:again]))
            self._places, self._times = [], []
            lost = ""
        else:
            begin = self.begin + overlap
            lost = self._text[unsqueezed(self._text, self.done - self.begin) :] if begin > self.done else ""
            if lost:
                self.done = self.end
        if overlap is None or begin + len(new) > self.end:
            self._text, self._squeezed, self.begin = text, new, begin
        else:  # words at the end are missing, and may come again
            cut = unsqueezed(self._text, begin - self.begin)
            self._text, self._squeezed, self.begin = self._text[cut:], self._squeezed[begin - self.begin :], begin
        for span in spans:
            end = begin + len(squeezed(span.text))
            self.spans.append((span, begin, end))
            self._stamp(begin, span.start)
            self._stamp(end, span.end)
            begin = end
        gone = max(0, bisect_right(self._places, self.begin) - 1)
        del self._places[:gone], self._times[:gone]
        return lost

    def time(self, place: int, *, begins: bool = False) -> float | None:
        """Return the time in seconds at a place; None if no line has one there.

        Args:
            begins: whether the start of the next word is asked for, rather than the end of the last one.
        """
        if not self._places:
            return None
        exact = bisect_right(self._places, place) - 1 if begins else bisect_left(self._places, place)
        if 0 <= exact < len(self._places) and self._places[exact] == place:
            return self._times[exact]
        after = min(bisect_left(self._places, place), len(self._places) - 1)
        before = max(0, after - 1)
        length = self._places[after] - self._places[before]
        share = min(1.0, max(0.0, (place - self._places[before]) / length)) if length else 1.0
        return round(self._times[before] + share * (self._times[after] - self._times[before]), 3)

    def _stamp(self, place: int, time: float) -> None:
        """Record a time, unless a later place has one already."""
        if self._places and (place < self._places[-1] or time < self._times[-1]):
            return
        if self._places[-2:] == [place, place]:
            self._times[-1] = time
        else:
            self._places.append(place)
            self._times.append(time)

    def _overlap(self, text: str, new: str, first: Span | None) -> int | None:
        """Return how many characters of the last message the new one has forgotten; None if the texts do not fit."""
        old = self._squeezed
        first_time = None if first is None else first.start
        if not old or (new.startswith(old) and (first_time is None or first_time == self._began)):
            return 0
        low, high = self._range(first)
        found: list[tuple[bool, bool, int]] = []
        for place in _word_starts(self._text):
            if not (old.startswith(new[:_SURE], place) or new.startswith(old[place : place + _SURE])):
                continue  # most places, before long texts are compared
            shared, timely = min(len(old) - place, len(new)), low <= place <= high
            if old[place : place + shared] == new[:shared] and (timely or shared >= _SURE):
                reaches_end = shared == len(old) - place
                found.append((not timely, not (timely and reaches_end), place))
        if found:
            *_, place = min(found)
            return place
        unmoved = first_time is None or first_time == self._began
        return None if unmoved and _are_similar(_words(self._text), _words(text)) else len(old)

    @property
    def _began(self) -> float | None:
        return self._times[0] if self._places and self._places[0] == self.begin else None

    def _range(self, first: Span | None) -> tuple[int, int]:
        """Return between which characters of the last message a line begins, by its time."""
        if first is None or not self._places:
            return 0, len(self._squeezed)
        slack = 0.005 if first.exact else 1.0
        low = bisect_right(self._times, first.start - (0 if first.exact else slack)) - 1
        high = bisect_right(self._times, first.start + slack)
        return (
            0 if low < 0 else self._places[low] - self.begin,
            len(self._squeezed) if high >= len(self._places) else self._places[high] - self.begin,
        )


def squeezed(text: str) -> str:
    """Return a text without white space."""
    return "".join(text.split())


def unsqueezed(text: str, count: int) -> int:
    """Return the place in a text behind its first ``count`` characters that are no white space."""
    if count <= 0:
        return 0
    for word in _VISIBLE.finditer(text):
        if count <= len(word[0]):
            return word.start() + count
        count -= len(word[0])
    return len(text)


def _word_starts(text: str) -> Iterator[int]:
    """Yield where the words of a text begin in its squeezed form."""
    place, last = 0, 0
    for word in WORD.finditer(text):
        place += len(squeezed(text[last : word.start()]))
        yield place
        place, last = place + len(word[0]), word.end()


def _are_similar(words: Sequence[str], others: Sequence[str]) -> bool:
    """Whether most words of the shorter text are in the other one, in order."""
    return 2 * in_common(words, others) > min(len(words), len(others))


def _words(text: str) -> list[str]:
    return [bare(word) or word for word in WORD.findall(text)]


def _words_end(text: str, count: int) -> int:
    """Return where the first ``count`` words of a text end."""
    ends = [word.end() for word in WORD.finditer(text)]
    return ends[min(count, len(ends)) - 1] if count and ends else 0
