"""Find out which requests of a caller belong to the same utterance.

Requests to a translation API carry no utterance names.  A captioning tool sends a sentence again whenever the
recogniser extends or revises it, so a text similar to a recent one continues that utterance.  A program that translates
a document sends unrelated texts.  `Continuation` distinguishes the two by comparing texts; it uses no network, no model
and no clock of its own.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import count, takewhile

from redraft.captions.sentence import ends_sentence

#: Minimum share of the shorter text that must also be in the other one for a revision.
_SHARE = 0.6
#: A text that keeps less than this share of the earlier text's units is not a revision.
_SHRUNK = 0.5
#: Maximum number of units compared after the common prefix; the time grows with their square.
_COMPARED = 200
#: Number of units by which a revision may shift the text after it.
_MOVED = 4


def likeness(older: str, newer: str) -> float:
    """Return how likely ``newer`` continues ``older``.

    The result is the share of the shorter text's units that both texts have, or 0 if it is below the threshold for a
    revision.  Units are words, and characters in scripts without letter case.  Case, punctuation and spaces are
    ignored.
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
    """An utterance that may still grow: its newest text and the time at which that arrived."""

    name: str
    text: str
    seq: int
    touched: float
    grown: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """The utterance to which a text belongs.

    Attributes:
        line: index of the line that translates it.
        utterance: name of the utterance.
        seq: index of the text in its utterance.
        whole: whether to translate it as a complete text rather than as an incomplete sentence.
    """

    line: int
    utterance: str
    seq: int
    whole: bool


class Continuation:
    """Recent utterances of one caller in one language pair.

    Args:
        most: maximum number of open utterances; each has a line.
        quiet: after this many seconds without a text, a new utterance takes over an utterance's line even if another
            line could be opened.
    """

    def __init__(self, most: int = 4, quiet: float = 5.0) -> None:
        self._most, self._quiet = most, quiet
        self._open: dict[int, _Utterance] = {}
        self._names = map(str, count(1))
        #: Whether the caller has let a sentence grow and then ended it with sentence-final punctuation.
        self._ends_marked = False
        self._latest: _Utterance | None = None

    def place(self, text: str, now: float, besides: Collection[int] = ()) -> Place:
        """Assign a text to an utterance, and remember it as that utterance's newest text.

        A text counts as complete if it ends with sentence-final punctuation, if the caller repeats it unchanged, or if
        the caller has not been seen to punctuate the ends of its sentences.

        Args:
            text: the text, not empty.
            now: the time in seconds.
            besides: lines of other texts of the same request, which this text cannot continue.
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
        """Drop a line that the server did not admit, and open no more lines."""
        self._open.pop(line, None)
        self._most = max(1, len(self._open))

    def _continued(self, text: str, besides: Collection[int]) -> int | None:
        """Return the line of the most similar open utterance, the newest of equals; None if none is similar."""
        found = [
            (share, utterance.touched, line)
            for line, utterance in self._open.items()
            if line not in besides and (share := likeness(utterance.text, text))
        ]
        return max(found)[-1] if found else None

    def _line(self, now: float, besides: Collection[int]) -> int:
        """Return a line for a new utterance: one silent for ``quiet`` seconds, else a new one, else the oldest one."""
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
        """Record the newest text of an utterance; return whether it is unchanged."""
        repeated = utterance.text == text
        if not repeated:
            self._ends_marked = self._ends_marked or (ends_sentence(text) and not ends_sentence(utterance.text))
        # A repeated text is complete, so missing punctuation proves nothing about the caller.
        utterance.text, utterance.grown = text, not repeated
        utterance.seq += 1
        utterance.touched = now
        return repeated
