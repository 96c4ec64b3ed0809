"""Where speech without punctuation can be cut: at a pause, or where a clause may begin.

Most recognisers that write no punctuation end utterances at pauses, but a fluent speaker makes none for minutes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

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


def length(words: Sequence[str]) -> float:
    """Return the length of a text in words; in scripts written without spaces, two characters count as one."""
    return len(words) - sum(1 for word in words if _UNSPACED_WORD.match(word)) / 2


def goodness(before: str, after: str, pause: float = 0.0) -> float:
    """Return how good it is to cut between two words; 0 if nothing speaks for it.

    Args:
        before: a word with its punctuation and what follows up to the next one.
        after: the next one.
        pause: seconds between them.
    """
    marked = _END if ends_sentence(before) else _MARK if _MARKED.search(before) else 0.0
    begins = _BEGINS if bare(after) in _BEGINNINGS else 0.0
    return marked + begins + _SECOND * min(LONG_PAUSE, max(0.0, pause))
