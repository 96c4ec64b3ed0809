"""Where sentences end, and how a final text becomes a complete sentence in the prompt.

Most recognisers write no full stop, and many no capitals.  A model trained on incomplete sentences takes such a text
for incomplete and translates only part of it: "I have a dog" gave an empty caption.  So the prompt of a final update
has a capital and a full stop; captions show the text as received.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping

from redraft.captions.metadata import FINAL_MARK_KEY, PLAIN_KEY
from redraft.captions.words import UNSPACED

#: The mark for models with their own prompt format whose metadata do not specify it, as the demo models need it.
DEFAULT_MARK = "."

_ENDS = frozenset(".!?…‥。！？．｡।॥؟۔։።")
#: Unicode categories of characters allowed after the mark: closing quotes and brackets.
_CLOSING = {"Pe", "Pf", "Pi"}
#: Trailing characters that the mark replaces.
_BREAKS = " ,;:-–—、，；："


def final_mark(metadata: Mapping[str, str]) -> str:
    """Return the mark that a model needs at the end of a sentence, by its GGUF metadata; empty if it needs none."""
    return metadata.get(FINAL_MARK_KEY, DEFAULT_MARK if PLAIN_KEY in metadata else "")


def as_sentence(text: str, mark: str) -> str:
    """Return the text with an initial capital and ``mark`` at its end, where these are missing.

    A text without words is unchanged, as is every text if ``mark`` is empty.
    """
    first = next((place for place, character in enumerate(text) if character.isalnum()), None)
    if not mark or first is None:
        return text
    text = text[:first] + text[first].title() + text[first + 1 :].rstrip()
    return text if ends_sentence(text) else text.rstrip(_BREAKS) + mark


def ends_sentence(text: str) -> bool:
    """Whether a text ends with sentence-final punctuation, ignoring closing quotes and brackets."""
    for character in reversed(text):
        if character not in "\"' " and unicodedata.category(character) not in _CLOSING:
            return character in _ENDS
    return False


_SPACED_ENDS = ".!?…‥؟।॥۔։።"
#: Marks that may end a sentence, with closing quotes and brackets behind them.  In spaced scripts a space follows.
#: Nothing is tried twice, or a line of dots would take the square of its length.
_END = re.compile(
    rf"(?<![{_SPACED_ENDS}])[{_SPACED_ENDS}]++[\"'’”»›)\]]*+(?=\s|$|[{UNSPACED}])|[。！？．｡]++[」』）”’\"]*+"
)
_WORD_BEFORE = re.compile(r"[\w.'’]*$")
#: Number of characters before a mark in which its word is looked for.
_LONGEST_WORD = 100
_LETTER = re.compile(r"[^\W_]")
#: Abbreviations before a name or a number, in lower case without their last full stop.
_GOES_ON = frozenset(
    "approx bzw ca capt cf col d.h dr e.g fig fr ft gen gov hon hr i.e lt mlle mme mr mrs ms mt nr pp prof rep rev sen "
    "sgt sr sra st u.a usw vol vs z.b".split()
)
#: Abbreviations before a number.
_BEFORE_NUMBER = frozenset("abs apr art aug ch dec feb jan jul jun mar no nov oct sec sep sept tel".split())
#: Abbreviations behind a name, after which a sentence may end.
_BEHIND_NAME = frozenset("bros co corp inc jr ltd".split())


def sentence_ends(text: str) -> Iterator[int]:
    """Yield the places where sentences end, after the mark and closing quotes, from the first to the last.

    The end of the text counts if it has a mark.  In doubt a sentence goes on, since two sentences in one are translated
    better than half a one: after abbreviations ("Mr.", "e.g."), an ellipsis or a word in lower case behind the mark,
    and inside the text also after initials, "Inc.", "p.m." and numbers of one or two digits, which are ordinals in
    German.
    """
    letter = -1  # the place of the first letter or number behind the mark
    for mark in _END.finditer(text):
        place = mark.end()
        if letter < place:
            found = _LETTER.search(text, place)
            letter = found.start() if found else len(text)
        first = text[letter : letter + 1]
        if not mark[0].startswith(tuple("。！？．｡")) and (first.islower() or _is_abbreviated(text, mark, first)):
            continue
        yield place


def _is_abbreviated(text: str, mark: re.Match[str], after: str) -> bool:
    """Whether a mark belongs to a word or is an ellipsis, rather than ending a sentence; ``after`` is what follows."""
    marks = mark[0].rstrip("\"'’”»›)]")
    if marks in ("…", "‥") or marks.startswith(".."):
        return not after
    if marks != ".":
        return False
    found = _WORD_BEFORE.search(text, max(0, mark.start() - _LONGEST_WORD), mark.start())
    word = found[0] if found else ""
    if word.casefold() in _GOES_ON or (word.casefold() in _BEFORE_NUMBER and after.isdigit()):
        return True
    short = (word.isdigit() and len(word) < 3) or (len(word) == 1 and word.isalpha() and word != "I") or "." in word
    return bool(after) and (short or word.casefold() in _BEHIND_NAME)
