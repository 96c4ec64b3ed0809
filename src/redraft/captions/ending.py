"""What is known of a growing text: whether its last word stays, since when it is unchanged, and its capitals.

The last word of an unfinished text is a recogniser's guess, which the next text often replaces; so is its translation.
`TextEnd` counts how often that happens in a stream.  Its trust is the first factor of the probability with which new
words of the translation are shown at first sight (`redraft.decoding.followers`): a recogniser that never revises is
trusted at once, and one that often does is not.  A word that the recogniser has committed is trusted, and not counted.

An utterance may be the beginning of what was one text before, when `redraft.speech.sentences` cuts off a sentence and
says so (``goes_on``).  The next utterance then goes on with the words behind it.

A text that stays for `LONG_PAUSE` is taken for said: speakers pause for so long between sentences, and recognisers
rarely revise words that they have kept for so long.

Some recognisers know capitals only.  Any text may be in capitals, such as "OK", but a source that has ever written a
small letter knows both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from redraft.captions.align import seam
from redraft.captions.words import WORD, bare_words

#: Chance that a last word stays until a stream has shown its own, and the number of words for which this one counts.
CHANCE, WEIGHT = 0.7, 5
#: A word that is still within this many places of its own has stayed: others were inserted or removed before it.
NEAR = 2


@dataclass(frozen=True, slots=True)
class TextEnd:
    """What is known of a stream's texts after each of them.

    Attributes:
        stayed: number of last words that stayed.
        seen: number of last words.
        words: the words of the latest text of the utterance, without case and punctuation.
        is_new: whether its last word was not there in the text before.
        is_open: whether that word is still to be looked for in another text; repeating the text changes nothing.
        left: words at the end of the text before that were cut off from the latest one.
    """

    stayed: float = CHANCE * WEIGHT
    seen: float = float(WEIGHT)
    words: tuple[str, ...] = ()
    is_new: bool = False
    is_open: bool = False
    left: tuple[str, ...] = ()

    @property
    def trust(self) -> float:
        """The trust in the end of the latest text, from 0 to 1: the square root of the chance that it stays.

        The chance itself asks too much, since many revisions leave the translation as it is.
        """
        return math.sqrt(self.stayed / self.seen) if self.is_new else 1.0

    def begun(self) -> TextEnd:
        """Return what is known when another utterance begins; its `words` are those that were left over for it."""
        return replace(self, words=self.left, is_new=False, is_open=False, left=())

    def after(self, text: str, *, committed: int | None = None, goes_on: bool = False) -> TextEnd:
        """Return what is known after the next text of the utterance, of which so many words stay (`Update`)."""
        words, last = tuple(bare_words(text)), self.words
        if words == last:
            return replace(self, is_new=False)
        left = last[seam(words, (), last) :] if goes_on else ()
        counts = self.is_open and bool(words) and not left  # what was cut off was not taken back
        is_new = bool(words) and not is_committed(text, committed) and not _is_near(words[-1], len(words) - 1, last)
        return TextEnd(
            self.stayed + (counts and _is_near(last[-1], len(last) - 1, words)),
            self.seen + counts,
            words,
            is_new,
            is_new,
            left,
        )


def is_committed(text: str, committed: int | None) -> bool:
    """Whether a recogniser that has committed this many words of a text will not change any of it."""
    return committed is not None and len(WORD.findall(text)) <= committed


def _is_near(word: str, place: int, words: Sequence[str]) -> bool:
    """Whether a word is in a text at about the same place."""
    return word in words[max(0, place - NEAR) : place + NEAR + 1]


#: Seconds after which what is unchanged counts as settled; without times, the number of updates.
LONG_PAUSE, UPDATES = 2.0, 4


@dataclass(frozen=True, slots=True)
class Since:
    """Since when something is unchanged.

    Attributes:
        time: time of the first update that has it, in seconds; None if unknown.
        updates: number of updates that have it.
    """

    time: float | None
    updates: int = 1

    def again(self, time: float | None = None) -> Since:
        """Return this after one more update, at ``time``: a clock may go back."""
        known = self.time is not None and time is not None
        return Since(min(self.time, time) if known else self.time, self.updates + 1)  # type: ignore[type-var]

    def is_settled(self, time: float | None) -> bool:
        """Whether it has been unchanged for long enough, at the time of an update that has it."""
        if self.time is None or time is None:
            return self.updates >= UPDATES
        return time - self.time >= LONG_PAUSE


#: Nothing has been unchanged yet.
NEVER = Since(None, 0)

#: The first letter of a text, and of a sentence in it, behind few signs; the word "I" in English, and its contractions.
_FIRST = re.compile(r"(?:^|[.!?…]['\"’”»)]*\s)\W{0,20}\w")
_I = re.compile(r"\bi(?=\s|$|[.,;:!?…]|['’](?:m|d|ll|ve|s)\b)")
#: Notes of recognisers, such as <unk> and [laughter], which are in lower case even among capitals.
_NOTES = re.compile(r"<\w+>|\[\w+\]")
_ENDS = re.compile(r"\w[.!?…]+['\"’”»)]*(?:\s|$)")


def lowered(text: str, *, mixed: bool) -> tuple[str, bool]:
    """Return a text, in lower case if its source knows only capitals, and whether that has written a small letter.

    With punctuation, sentences keep their capital.

    Args:
        text: the next text of the source.
        mixed: whether it has written a small letter before.
    """
    if mixed or any(map(_is_small, _NOTES.sub("", text))):
        return text, True
    if sum(map(str.isupper, text)) < 2:  # "I" and "A" are capitals everywhere
        return text, False
    lower = _I.sub("I", text.lower().replace("i\u0307", "i"))  # of a Turkish capital with a dot
    return _FIRST.sub(lambda found: found[0].upper(), lower) if _ENDS.search(lower) else lower, False


def _is_small(letter: str) -> bool:
    """Whether a letter has a capital that is a single letter; others, such as ß, also occur among capitals."""
    capital = letter.upper()
    return capital != letter and len(capital) == 1
