"""How wide a text is in character cells, and where a line of it may be broken.

A line is broken between units (`redraft.captions.words.UNBREAKABLE`): words, and single characters of scripts written
without spaces.  In Thai, a model finds the words.  Lao, Burmese and Khmer are broken between syllables, as far as these
can be told without a dictionary.  Pages get the same `rules`, since browsers have dictionaries of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import accumulate

import budoux
import wcwidth

from redraft.captions.words import NO_BREAK, UNBREAKABLE

#: White space at which a line may be broken.
SPACE = re.compile(f"[^\\S{NO_BREAK}]+")
_THAI = "\u0e01-\u0e5b"
#: A run of Thai, or one of another script without spaces in which syllables have several characters.
_RUN = re.compile(f"[{_THAI}]+|[\u0e81-\u0eff\u1000-\u109f\u1780-\u17ff]+")
_thai = cache(budoux.load_default_thai_parser)
#: What belongs to the consonant after it: vowels that are written before it, and the signs that stack it.
_BEFORE_CONSONANT = re.compile("[\u0e40-\u0e44\u0ec0-\u0ec4\u1039\u17d2]")
#: What belongs to the syllable before it: signs of repetition and abbreviation, vowels, and a consonant at its end.
_BEHIND = re.compile(
    "[\u0e2f\u0e30\u0e32\u0e46\u0eaf\u0eb0\u0eb2\u0ebd\u0ec6\u17d7]|[\u1000-\u102a\u103f]\u1037?\u103a"
)


def cells(text: str) -> int:
    """Return the width of a text in character cells: 2 for wide characters and emoji, 0 for marks above and below."""
    return wcwidth.width(text, control_codes="ignore")


def broken(units: Sequence[str], width: int) -> list[list[str]]:
    """Break units into lines of at most ``width`` cells; a longer unit gets its own line."""
    lines: list[list[str]] = []
    used = 0
    for word in words(units):
        whole = cells("".join(word).rstrip()) <= width
        for part in [word] if whole else [[unit] for unit in word]:
            text = "".join(part)
            if not lines or used + cells(text.rstrip()) > width:
                lines.append([])
                used = 0
            lines[-1] += part
            used += cells(text)
    return lines


def words(units: Sequence[str]) -> Iterator[list[str]]:
    """Yield the units of each word."""
    torn = frozenset(_inside("".join(units)))
    word: list[str] = []
    for unit, end in zip(units, accumulate(map(len, units)), strict=True):
        word.append(unit)
        if end not in torn:
            yield word
            word = []


def _inside(text: str) -> Iterator[int]:
    """Yield the places inside the words of runs."""
    for run in _RUN.finditer(text):
        ends = _ends(run[0])
        yield from (run.start() + place for place in range(1, len(run[0])) if place not in ends)


@lru_cache(maxsize=256)  # a growing text has the same runs again
def _ends(run: str) -> frozenset[int]:
    """Return where the words or syllables of a run end."""
    ends = accumulate(map(len, _thai().parse(run))) if re.match(f"[{_THAI}]", run) else range(1, len(run) + 1)
    return frozenset(end for end in ends if not (_BEFORE_CONSONANT.match(run[end - 1]) or _BEHIND.match(run, end)))


def rules() -> dict[str, str | dict[str, dict[str, int]]]:
    """Return the rules as regular expressions, which JavaScript knows too, and the weights of the model of Thai."""
    return {
        "unit": UNBREAKABLE.pattern,
        "space": SPACE.pattern,
        "run": _RUN.pattern,
        "before_consonant": _BEFORE_CONSONANT.pattern,
        "behind": _BEHIND.pattern,
        "thai": _thai().model,
    }
