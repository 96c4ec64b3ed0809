"""Which requests of a caller belong together.  Knows neither HTTP nor models, and reads no clock.

A translation service gets texts without names.  A captioning tool sends a sentence again whenever the recogniser has
added to it or changed it, so a text that extends or revises a recent one continues that one's utterance.  A program
that translates a document sends texts of which each stands for itself.  `Continuation` tells the two apart by what has
come so far.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import count, takewhile

from redraft.captions.sentence import ends_sentence

#: A text is a revision of another if this much of the shorter one is also in the beginning of the other.
_SHARE = 0.6
#: A text that lost more than this part of its words is another one.
_SHRUNK = 0.5
#: Units compared behind the common beginning; comparing takes time that grows with their square.
_COMPARED = 200
#: By how many units a revision may move what follows it.
_MOVED = 4


def likeness(older: str, newer: str) -> float:
    """How likely ``newer`` continues ``older``: the shared part of the shorter one, 0 where it does not continue it.

    Case, punctuation and space do not count.  In scripts without spaces, and in others of one case, characters are
    compared in place of words.
    """
    before, after = list(_units(older)), list(_units(newer))
    shorter = min(len(before), len(after))
    if not shorter or len(after) < _SHRUNK * len(before):
        return float(older.strip() == newer.strip())
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))
    end = min(shorter + _MOVED, same + _COMPARED)
    matcher = SequenceMatcher(None, before[same:end], after[same:end], autojunk=False)
    moved = sum(block.size for block in matcher.get_matching_blocks())
    compared = min(shorter, same + _COMPARED)
    share = min(1.0, (same + moved) / compared)
    return share if share >= _SHARE else 0.0


def _units(text: str) -> Iterator[str]:
    word = ""
    for character in text.casefold():
        category = unicodedata.category(character)
        if category[0] in "LNM" and category != "Lo":
            word += character
            continue
        if word and character in "'’":
            continue
        if word:
            yield word
            word = ""
        if category == "Lo":
            yield character
    if word:
        yield word


@dataclass(slots=True)
class _Utterance:
    """An utterance that may still grow: its newest text, and when that came."""

    name: str
    text: str
    seq: int
    touched: float
    grown: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where a text belongs.

    Attributes:
        line: number of the line that translates it, from 0.
        utterance: name of its utterance.
        seq: number of the text in its utterance.
        whole: whether it is to be translated as a finished text, rather than as the beginning of one.
    """

    line: int
    utterance: str
    seq: int
    whole: bool


class Continuation:
    """The recent utterances of one caller into one language.

    Args:
        most: how many utterances are kept open side by side, each on a line of its own.
        quiet: seconds of silence after which an utterance makes room for a new one, although there is a free line.
    """

    def __init__(self, most: int = 4, quiet: float = 5.0) -> None:
        self._most, self._quiet = most, quiet
        self._open: dict[int, _Utterance] = {}
        self._names = map(str, count(1))
        #: Whether the caller has been seen to let a sentence grow and to end it with a full stop or the like.
        self._ends_marked = False
        self._latest: _Utterance | None = None

    def place(self, text: str, now: float, besides: Collection[int] = ()) -> Place:
        """Where a text belongs; the text is remembered as the newest one of its utterance.

        A text counts as finished if it ends like a sentence, if the caller repeats it unchanged, or if the caller is
        not known to end its sentences with a mark: then it may be the last that comes of it.

        Args:
            text: what is to be translated, not empty.
            now: the time in seconds.
            besides: lines of utterances that the text cannot continue, since they are those of the same request.
        """
        line = self._continued(text, besides)
        if line is None:
            line = self._line(now, besides)
            self._begin(line, text, now)
            repeated = False
        else:
            repeated = self._grow(self._open[line], text, now)
        utterance = self._latest = self._open[line]
        whole = repeated or not self._ends_marked or ends_sentence(text)
        return Place(line, utterance.name, utterance.seq, whole)

    def without(self, line: int) -> None:
        """Take a line away that there cannot be, with its utterance; no others are added then."""
        self._open.pop(line, None)
        self._most = max(1, len(self._open))

    def _continued(self, text: str, besides: Collection[int]) -> int | None:
        """The line of the utterance that a text continues best, the newest of equals."""
        found = [
            (share, utterance.touched, line)
            for line, utterance in self._open.items()
            if line not in besides and (share := likeness(utterance.text, text))
        ]
        return max(found)[-1] if found else None

    def _line(self, now: float, besides: Collection[int]) -> int:
        """The line for a new utterance: that of one long silent, or else a new one, or else that of the oldest."""
        by_age = sorted(self._open, key=lambda line: (line in besides, self._open[line].touched))
        if by_age and (len(by_age) == self._most or self._open[by_age[0]].touched < now - self._quiet):
            return by_age[0]
        return len(self._open)

    def _begin(self, line: int, text: str, now: float) -> None:
        last = self._latest
        if last is not None and last.grown and not ends_sentence(last.text):
            self._ends_marked = False
        self._open[line] = _Utterance(next(self._names), text, 0, now)

    def _grow(self, utterance: _Utterance, text: str, now: float) -> bool:
        """Take the newest text of an utterance; whether it is the same as before."""
        repeated = utterance.text == text
        if not repeated:
            self._ends_marked = self._ends_marked or (ends_sentence(text) and not ends_sentence(utterance.text))
        # One that is repeated is over: nothing is concluded from its lack of a mark.
        utterance.text, utterance.grown = text, not repeated
        utterance.seq += 1
        utterance.touched = now
        return repeated
