"""Choose the part of a growing source that is translated.

The end of an unfinished text is a recogniser's guess: it is often revised, and has a full stop that is taken back.  A
translation of it is closed, wrong at the end, and a poor draft for the next one.  So new words are translated as far as
the chance that all of them stay is at least `LEAST_CHANCE`, and punctuation at the end is left out.  Words that were
also in the text before are always translated, and so are all words in front of them.

Texts are compared word by word without case and punctuation, aligned where words were inserted or removed.  The chance
that a word stays depends on its place: it is the last one, with or without punctuation, or another word follows it.
These chances are counted from each text to the next, so a recogniser that never revises is soon translated at once.

A text that differs only in case and punctuation is not translated again.  A final text is always translated whole, and
so is a very long one.  No word is held back for longer than `LONGEST`.

An utterance may be the beginning of what was one text before, when `redraft.speech.sentences` cuts off a sentence.  The
words behind it are those of the text before the next utterance's first one.  If several are cut off together, the first
text of each lacks the words behind it too.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from difflib import Match, SequenceMatcher

from redraft.captions.words import WORD, bare, behind

#: Longest time in seconds for which a word is held back; without times, the number of updates.
LONGEST, LONGEST_UPDATES = 2.0, 4

#: The least chance with which words are translated at once, chosen on streams that no benchmark reports (`TRIED.md` of
#: redraft-bench).
LEAST_CHANCE = 0.5
#: Places of a new word: last in its text, last with punctuation, or before another word.
_OPEN, _CLOSED, _INNER = "open", "closed", "inner"
#: Rough chance that a word at such a place is also in the next text, until a stream has shown its own.  The shares in
#: these streams (0.58, 0.64 and 0.83 of 53, 212 and 303 words) retract as much.
_CHANCES = {_OPEN: 0.45, _CLOSED: 0.7, _INNER: 0.85}
#: Number of words for which these chances count.
_WEIGHT = 5
#: Longest text, in words, of which any are held back: aligning two takes up to the square of their length.
_MOST_WORDS = 1000
#: Punctuation that is left out at the end.
_MARKS = r"[\s.,;:!?…‥。、，！？；：．｡।॥؟،۔։።–—-]"
_END = re.compile(rf"(?<!{_MARKS}){_MARKS}++$")


@dataclass(frozen=True, slots=True)
class _Text:
    """A text of an utterance.

    Attributes:
        text: the text.
        time: its time in seconds.
        words: its words without case and punctuation.
        ends: the place in the text where each word ends.
        places: the place of each word that the text before did not have; empty for the others.
        count: number of words that are translated.
        since: time since which no more words are translated, and number of texts.
    """

    text: str = ""
    time: float | None = None
    words: tuple[str, ...] = ()
    ends: tuple[int, ...] = ()
    places: tuple[str, ...] = ()
    count: int = 0
    since: tuple[float | None, int] = (None, 0)

    @classmethod
    def of(cls, text: str, time: float | None = None) -> _Text:
        """Find the words of a text."""
        found = [(word, match.end()) for match in WORD.finditer(text) if (word := bare(match[0]))]
        return cls(text, time, tuple(word for word, _ in found), tuple(end for _, end in found))


class HoldBack:
    """Holds back words of one utterance after the other.

    Args:
        enabled: False translates everything as it comes.
        least: the least chance with which words are translated at once, from 0 to 1.
    """

    def __init__(self, enabled: bool = True, least: float | None = None) -> None:
        self._enabled, self._least = enabled, LEAST_CHANCE if least is None else least
        #: Place -> number of words that stayed there, and of all words.
        self._counts = {place: [chance * _WEIGHT, float(_WEIGHT)] for place, chance in _CHANCES.items()}
        #: Words behind the last text in the one before, if it was cut off that.
        self._left: tuple[str, ...] = ()
        self.begin()

    def begin(self, text: str = "") -> bool:
        """Begin another utterance.

        Args:
            text: its first text.

        Returns:
            Whether it goes on with the words behind the last final text, which then count as its text before.
        """
        first = _Text.of(text).words[:1] if self._left else ()
        left = self._left[self._left.index(first[0]) :] if first and first[0] in self._left else ()
        self._last, self._left = _Text(words=left), ()
        #: The last result, and its words.
        self._part: tuple[str, tuple[str, ...]] = "", ()
        return bool(left)

    @property
    def cut(self) -> bool:
        """Whether the last text was cut off the one before: it is final, or the first one of its utterance."""
        return bool(self._left)

    @property
    def held(self) -> bool:
        """Whether words of the last text are held back."""
        return self._last.count < len(self._last.words)

    def part(self, text: str, time: float | None = None, *, final: bool = False) -> str:
        """Return the part of an utterance's text that is to be translated.

        Args:
            text: all of the utterance so far.
            time: its time in seconds; None if unknown.
            final: whether the text is final.
        """
        last = self._last
        if text == last.text and time is not None and time == last.time and not final and self._enabled:
            return self._part[0]  # sent twice, which confirms nothing
        new = _Text.of(text, time)
        if max(len(last.words), len(new.words)) > _MOST_WORDS:
            self._left, self._last = (), replace(new, count=len(new.words))
            return text
        if text != last.text:
            end = behind(new.words, last.words) if final or not last.text else len(last.words)
            self._left, last = last.words[end:], replace(last, places=last.places[:end])
        if not self._enabled:
            self._last = replace(new, count=len(new.words))
            return text
        same = SequenceMatcher(None, last.words, new.words, autojunk=False).get_matching_blocks()
        self._count(last, {each.a + offset for each in same for offset in range(each.size)})
        if final:
            self._last = replace(new, count=len(new.words))
            return text
        known = {each.b + offset for each in same for offset in range(each.size)}
        places = ["" if number in known else _INNER for number in range(len(new.words))]
        if places and places[-1]:
            places[-1] = _CLOSED if _END.search(text) else _OPEN
        self._last = self._shortened(last, replace(new, places=tuple(places)), same)
        return self._changed(self._last)

    def whole(self) -> str:
        """Return all words of the last text, because no other one has come for a while."""
        return self._changed(replace(self._last, count=len(self._last.words)))

    def release(self) -> None:
        """Record that all words of the last text were translated."""
        self._last = replace(self._last, count=len(self._last.words))

    def _changed(self, text: _Text) -> str:
        """Return the words of a text that are to be translated or, if the last result has the same words, that one."""
        words = text.words[: text.count]
        if words != self._part[1]:
            beginning = text.text[: text.ends[text.count - 1]] if words else ""
            self._part = _END.sub("", beginning), words
        return self._part[0]

    def _count(self, last: _Text, stayed: Container[int]) -> None:
        """Count which new words of the last text are in the next one."""
        for number, place in enumerate(last.places):
            if place:
                self._counts[place][0] += number in stayed
                self._counts[place][1] += 1

    def _shortened(self, last: _Text, new: _Text, same: Sequence[Match]) -> _Text:
        """Return the new text with the number of its words that are to be translated."""
        count = max((each.b + each.size for each in same if each.size), default=0)
        chance = 1.0
        for place in new.places[count:]:
            stayed, all_ = self._counts[place]
            chance *= stayed / all_
            if chance < self._least:
                break
            count += 1
        moved = not last.ends or count > last.count or count == len(new.words)
        since, texts = (new.time, 1) if moved else (last.since[0], last.since[1] + 1)
        waited = None if since is None or new.time is None else new.time - since
        late = texts >= LONGEST_UPDATES if waited is None else waited >= LONGEST
        return replace(new, count=len(new.words) if late else count, since=(since, texts))
