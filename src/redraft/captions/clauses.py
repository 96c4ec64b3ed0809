"""Where speech without punctuation can be cut: at a pause, or where a clause may begin.

Most recognisers that write no punctuation end utterances at pauses, but a fluent speaker makes none for minutes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from redraft.captions.ending import LONG_PAUSE
from redraft.captions.sentence import ends_sentence
from redraft.captions.words import UNSPACED, bare

#: Fewest words of each part.
SHORTEST = 5
#: What makes a place good: a sentence or a clause ends there by its mark, the next word usually begins a clause, and
#: each second of a pause, up to so many.
_END, _MARK, _BEGINS, _SECOND = 6.0, 3.0, 1.0, 1.5
#: A mark behind a word; in scripts written without spaces, a space is one.
_MARKED = re.compile(rf"[,;:،؛、，；：–—၊༌][\"'’”»)」』）]*\s*$|[{UNSPACED}]\S*\s+$")
_UNSPACED_WORD = re.compile(f"[{UNSPACED}]")
#: Words that usually begin a clause, in languages of common recognisers; in others, pauses and length decide.
_BEGINNINGS = frozenset(
    "although and because but if or since so then unless until when where whether which while who "
    "aber als bevor damit denn dass nachdem ob obwohl oder sondern sowie und weil wenn "
    "donc et lorsque mais où parce puis quand "
    "aunque cuando entonces pero porque pues y "
    "allora e ma mentre perché quando quindi "
    "embora enquanto então mas porque quando "
    "als en maar omdat terwijl "
    "ale bo gdy jeśli kiedy lub ponieważ że "
    "если и или когда но потому поэтому что чтобы".split()
)


@dataclass(frozen=True, slots=True)
class Speech:
    """Words that are too long for one caption.

    Attributes:
        words: the words without case and punctuation.
        texts: each word with its punctuation and what follows up to the next one.
        pauses: seconds between each word and the one before it.
        settled: whether each word, and those before it, no longer change.
    """

    words: Sequence[str]
    texts: Sequence[str]
    pauses: Sequence[float]
    settled: Sequence[bool]


def length(words: Sequence[str]) -> float:
    """Return the length of a text in words; in scripts written without spaces, two characters count as one."""
    return len(words) - sum(1 for word in words if _UNSPACED_WORD.match(word)) / 2


def best_cut(speech: Speech, longest: float, *, ended: bool) -> int | None:
    """Return the number of words before the best place to cut; None if the words there may still change.

    Once there are twice as many words as allowed, they are cut even if they may change.

    Args:
        speech: the words.
        longest: the most words before the place.
        ended: whether no words follow; the rest then has `SHORTEST` words, too.
    """
    whole, before = length(speech.words), 0.0
    allowed: dict[int, float] = {}
    for place, word in enumerate(speech.words[:-1], 1):
        before += length((word,))
        if SHORTEST <= before <= longest and (not ended or whole - before >= SHORTEST):
            allowed[place] = before
    settled = [place for place in allowed if speech.settled[place - 1]]
    if not settled and whole > 2 * longest:
        settled = [*allowed]
    if not settled:
        return None
    ideal = min(longest, whole) / 2

    def worth(place: int) -> float:
        pause = _SECOND * min(LONG_PAUSE, max(0.0, speech.pauses[place]))
        return goodness(speech.texts[place - 1], speech.words[place]) + pause - abs(allowed[place] - ideal) / ideal

    return max(settled, key=worth)


def goodness(before: str, after: str) -> float:
    """Return how good it is to cut between two words, by their texts alone; 0 if nothing speaks for it.

    Args:
        before: a word with its punctuation and what follows up to the next one.
        after: the next one.
    """
    marked = _END if ends_sentence(before) else _MARK if _MARKED.search(before) else 0.0
    return marked + (_BEGINS if bare(after) in _BEGINNINGS else 0.0)
