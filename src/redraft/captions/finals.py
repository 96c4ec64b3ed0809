"""Final captions are chosen among candidates, by one rule.

A bias towards what a reader has seen keeps captions calm, but it also keeps an early guess where the whole text says
something else.  Greedy decoding has no such memory, but is no better in general.  So a final text may be decoded in
more than one way: as the method does; by a beam with the method's bias (`redraft.decoding.methods.beam`), which looks
further ahead; and exactly, which repairs what only the bias has kept.

Whatever is empty, cut, a copy of the source, unfinished, or unchanged although the text has grown, loses.  Among the
others, the one that is most probable per token wins (`redraft.decoding.followers`).  The exact output must be more
probable by a margin, since it pays no heed to what has been shown; the beam's bias has spoken already.  Likelihood
loves copies, so a candidate must not repeat more of the source than the method's own output does.

A second look costs as much as the translation itself, so how much is searched is a question of time
(`redraft.decoding.types.Spare`).  What the bias has given up in its own pass costs nothing to know; where it is much, a
second look is worth more time (`redraft.decoding.search.DOUBTFUL`).
"""

from __future__ import annotations

import re
from enum import Enum, IntEnum

from redraft.captions.answer import echoes
from redraft.captions.sentence import ends_sentence
from redraft.captions.state import Decoded
from redraft.captions.words import bare_words, has_words

#: Fewest words without a capital of a text that is not taken for names and numbers if its translation is the same.
LEAST_REPEATED = 4
#: How much more of the source than the method's own output a candidate may repeat, as a share of its words.
_MORE_COPIED = 0.15
#: Fewest letters of a word that counts as copied.
_LEAST_LETTERS = 3
_WORDS = re.compile(r"\w+")


class Way(Enum):
    """How a final text is decoded."""

    METHOD = "as the method does"
    BEAM = "by a beam with the method's bias"
    EXACT = "without a bias"


class Flaw(IntEnum):
    """What is wrong with a candidate; the higher one loses."""

    NONE = 0
    #: The text has more words than before and the same translation.
    STILL = 1
    #: It lacks the end of a sentence that the text has.
    SHORT = 2
    COPY = 3
    CUT = 4
    EMPTY = 5


def flaw_of(decoded: Decoded, before: Decoded, own: Decoded, final_mark: str) -> Flaw:
    """Return the flaw of a candidate.

    Args:
        decoded: the candidate.
        before: the source and its output before the final text.
        own: the method's own output for the final text.
        final_mark: mark that the model expects at the end of a final text; empty if none.
    """
    if not has_words(decoded.text):
        return Flaw.EMPTY
    if decoded.output.cut:
        return Flaw.CUT
    if repeats(decoded.text, decoded.source) or copied(decoded) > copied(own) + _MORE_COPIED:
        return Flaw.COPY
    if stops_short(decoded, final_mark):
        return Flaw.SHORT
    grew = 0 < len(bare_words(before.source)) < len(bare_words(decoded.source))
    return Flaw.STILL if grew and bare_words(before.text) == bare_words(decoded.text) else Flaw.NONE


def is_better(candidate: Decoded, than: Decoded, flaws: tuple[Flaw, Flaw], margin: float) -> bool:
    """Whether a candidate wins against the best one so far.

    Args:
        flaws: of both, in order.
        margin: nats per token by which it must be more probable.
    """
    if flaws[0] != flaws[1]:
        return flaws[0] < flaws[1]
    likelihoods = candidate.output.likelihood, than.output.likelihood
    return all(likelihoods) and likelihoods[0].mean > likelihoods[1].mean + margin  # type: ignore[union-attr]


def repeats(translation: str, text: str) -> bool:
    """Whether a translation is the text itself, and the text more than names and numbers."""
    words = [word for word in text.split() if word[0].isalpha() and not word[0].isupper()]
    return len(words) >= LEAST_REPEATED and echoes(translation, text)


def copied(decoded: Decoded) -> float:
    """Return the share of a translation's words, of three letters or more, that its source has too; 0-1."""
    words = [word for word in _WORDS.findall(decoded.text.casefold()) if len(word) >= _LEAST_LETTERS]
    known = set(_WORDS.findall(decoded.source.casefold()))
    return sum(word in known for word in words) / len(words) if words else 0.0


def stops_short(decoded: Decoded, final_mark: str) -> bool:
    """Whether an output lacks the end of a sentence that the text has.

    Models that were trained on beginnings of sentences take some sentences for the beginning of one.
    """
    marked = final_mark and decoded.output.finished and ends_sentence(decoded.source)
    return bool(marked) and not ends_sentence(decoded.text)
