"""The definition of a word: for masks, for the lag of a transcript, for NE in words, and for line breaks.

A word is a run of characters without white space.  In scripts written without spaces (Chinese and Japanese with their
punctuation, Thai, Lao, Burmese, Khmer) each character is a word, together with its combining marks.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_CJK = "\u3000-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff"
#: Characters of scripts written without spaces, for a character class in a regular expression.
UNSPACED = _CJK + "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
#: Combining marks of kana, variation selectors, and those of Thai, Lao, Burmese and Khmer.
_MARKS = (
    "\u3099\u309a\ufe00-\ufe0f\U000e0100-\U000e01ef\u0e31\u0e33-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb3-\u0ebc\u0ec8-\u0ece"
    "\u102b-\u103e\u1056-\u1059\u105e-\u1060\u17b4-\u17d3\u17dd"
)

WORD = re.compile(f"[{UNSPACED}][{_MARKS}]*|[^\\s{UNSPACED}]+")
#: Spaces at which a line is not broken.
NO_BREAK = "\u00a0\u2007\u202f"
#: Signs that open and that close, and small letters: a line does not end with the former or begin with the others.
_OPENS = "「『（【〈《〔［｛“‘„‚«(\\[{"
_CLOSES = (
    "、。，．！？：；％」』）】〉》〕］｝・…‥〜ー々ゝゞヽヾぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮヵヶ.,!?:;%)\\]}”’»"
)
#: What stays on one line, unless it is a part of a longer word (`redraft.captions.breaks`): a word with the signs round
#: it and the space after it.
UNBREAKABLE = re.compile(
    f"[{_OPENS}]*(?:{WORD.pattern})[{_CLOSES}]*(?:[{NO_BREAK}]+(?:{WORD.pattern})[{_CLOSES}]*)*\\s*"
)
#: Joins that need no added space: next to white space, or to a character of a script without spaces.
_SEAM = re.compile(f"[\\s{UNSPACED}]")


def joined(before: str, after: str) -> str:
    """Join two texts, with a space between them if the script needs one and it is missing."""
    if not before or not after or _SEAM.match(before[-1]) or _SEAM.match(after[0]):
        return before + after
    return f"{before} {after}"


#: Signs of Unicode's punctuation that are read aloud or change a letter or number, also at the end of a word.
_READ_ALOUD = frozenset("%‰‱٪؉؊#&@*/\\_§¶†‡′″‴׳״")
#: Signs before a number that belong to it.
_SIGNS = "-–.,"


@lru_cache(maxsize=4096)  # every update has the words of the one before
def bare(word: str) -> str:
    """Return a word without case and the punctuation around it; empty if it is only punctuation.

    What makes another word stays: signs within it, as in ``we're`` and ``1.5``, and those that are read aloud, as in
    ``5%``, ``C#``, ``-5`` and ``&``.
    """
    word = word.casefold()
    kept = [place for place, each in enumerate(word) if not _is_mark(each)]
    if not kept:
        return ""
    start = kept[0]
    if start and word[start].isdigit() and word[start - 1] in _SIGNS:
        start -= 1
    return word[start : kept[-1] + 1]


def bare_words(text: str) -> list[str]:
    """Return the words of a text without case and punctuation."""
    return [word for each in WORD.findall(text) if (word := bare(each))]


def has_words(text: str) -> bool:
    """Whether a text has a letter or a digit."""
    return any(character.isalnum() for character in text)


#: What recognisers write round a description of sounds.
_DESCRIBED = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|（[^（）]*）|［[^［］]*］|【[^【】]*】|\*[^*]*\*")


def is_silence(text: str) -> bool:
    """Whether nothing is said in a text: no letter or digit is outside brackets, as in ``[音楽]`` and ``♪``."""
    return not has_words(_DESCRIBED.sub("", text))


def _is_mark(character: str) -> bool:
    """Whether a character is punctuation that is not read aloud."""
    if unicodedata.category(character)[0] != "P":
        return False
    return _READ_ALOUD.isdisjoint(unicodedata.normalize("NFKC", character))  # also in full width
