"""Decide which part of a partial translation is shown.

Mask-k hides the last k units of a partial translation, where most corrections happen.  *Display-only* (SSBD v2, section
3.4) hides them only from the reader; the draft keeps them. *Plain* mask-k (Arivazhagan et al. 2020, the upper half of
SSBD v2's Table 4) removes them from the draft too.

A *margin* hides everything from the first token that the model is not sure of (`redraft.decoding.accept.margins`). A
*survival* shows the beginning that is likely enough to stay (`surviving`). Doubt never hides a token again that is
already shown and still there.

Final translations are never masked, and incomplete characters are never shown.
"""

from __future__ import annotations

import codecs
import math
from collections.abc import Sequence
from dataclasses import dataclass

from redraft.captions.events import is_number, is_whole
from redraft.captions.words import WORD
from redraft.errors import OptionError

UNITS = ("tokens", "words")
_Decoder = codecs.getincrementaldecoder("utf-8")

#: The margin that hides nothing: the greatest by which a probability can be the smaller one.
OFF = -1.0

#: Weights of `surviving`, fitted on held-out sentences of the demo model (`benchmarks.displays --fit`).
_STAYS, _SURER, _DOUBTFUL, _NEW, _LATE = 4.2, 3.1, 9.7, -1.85, -1.6


@dataclass(frozen=True, slots=True)
class Mask:
    """Which part of a partial translation is hidden.

    Attributes:
        k: number of units to hide at the end.
        unit: ``tokens`` of the model or ``words`` (single characters in Chinese, Japanese, Thai, ...).
        display_only: keep the hidden part in the draft.
        margin: by how much a token must be more probable than every other one before it is shown, from -1, which hides
            nothing, to 1.  At 0 it must be the model's own choice; below 0 it may be one that a bias has kept.
        survival: show the beginning that will stay with at least this probability, above 0 and below 1; None turns this
            off.

    Raises:
        OptionError: ``k``, ``unit``, ``margin`` or ``survival`` is out of range, or both of the last are given.
    """

    k: int = 0
    unit: str = "tokens"
    display_only: bool = True
    margin: float = OFF
    survival: float | None = None

    def __post_init__(self) -> None:
        if not is_whole(self.k) or self.k < 0:
            raise OptionError(f"mask_k must be a whole number of 0 or more, not {self.k!r}")
        if self.unit not in UNITS:
            raise OptionError(f"mask unit must be one of {', '.join(UNITS)}, not {self.unit!r}")
        if not (is_number(self.margin) and OFF <= self.margin <= 1):
            raise OptionError(f"mask margin must be a number from -1 to 1, not {self.margin!r}")
        if self.survival is not None:
            if not (is_number(self.survival) and 0 < self.survival < 1):
                raise OptionError(f"mask survival must be a number above 0 and below 1, or None, not {self.survival!r}")
            if self.margin > OFF:
                raise OptionError("mask margin and mask survival exclude each other, so leave one out")

    @property
    def asks(self) -> bool:
        """Whether the model's probabilities decide about what is shown."""
        return self.margin > OFF or self.survival is not None


#: What captions show unless something else is asked for: only what is the model's own choice.
USUAL = Mask(margin=0.0)


@dataclass(frozen=True, slots=True)
class Stabilised:
    """A translation divided.

    Attributes:
        shown, hidden: texts, together the translation.
        shown_length: how many of its tokens are shown whole.
        draft_length: how many of them the next draft keeps.
    """

    shown: str
    hidden: str
    shown_length: int
    draft_length: int


def surviving(margins: Sequence[float], ages: Sequence[int], least: float) -> int:
    """How many tokens, from the first, stay together with a probability of ``least`` or more.

    A correction takes back all that stands behind it, so what counts is the product of the probabilities.  That of one
    token is logistic in its margin, in how long it has stood and in how near it is to the end.

    Args:
        margins: of the tokens of a partial translation (`redraft.decoding.accept.margins.Margins`).
        ages: how many updates each has stood in its place behind the same tokens.
        least: as `Mask.survival`.
    """
    together = 1.0
    for place, (margin, age) in enumerate(zip(margins, ages, strict=True)):
        logit = (
            _STAYS
            + _SURER * math.sqrt(max(margin, 0.0))
            + _DOUBTFUL * min(margin, 0.0)
            + _NEW / (1 + age)
            + _LATE / (len(margins) - place)
        )
        together /= 1 + math.exp(-logit)
        if together < least:
            return place
    return len(margins)


def whole_characters(data: bytes) -> str:
    """The text of UTF-8 bytes; a character whose last bytes have not come yet is left out, a broken one replaced."""
    return _Decoder("replace").decode(data)  # not final, so it keeps the beginning of a character to itself


def stabilise(
    pieces: Sequence[bytes], mask: Mask, *, final: bool, sure: int | None = None, standing: int = 0
) -> Stabilised:
    """Divide a translation, given as the bytes of each token, into what is shown and what is hidden.

    Args:
        sure: how many tokens come before the first one that the model is not sure of; None if all do.
        standing: how many of its tokens have been shown before, as its beginning.
    """
    text = _text(pieces)
    if final or (mask.k == 0 and not mask.asks):
        return Stabilised(_one_line(text), "", len(pieces), len(pieces))
    shown, kept = _without_last(pieces, text, mask)
    if mask.asks:
        if sure is not None and sure < kept:
            shown, kept = _beginning(pieces, text, sure, mask.unit)
        if kept < standing:
            shown, kept = _text(pieces[:standing]), standing
    hidden = text[len(shown) :]
    return Stabilised(_one_line(shown), _one_line(hidden), kept, len(pieces) if mask.display_only else kept)


def _text(pieces: Sequence[bytes]) -> str:
    return whole_characters(b"".join(pieces)).strip()


def _without_last(pieces: Sequence[bytes], text: str, mask: Mask) -> tuple[str, int]:
    """What mask-k leaves: text and whole tokens."""
    if mask.unit == "tokens" or mask.k == 0:
        kept = max(0, len(pieces) - mask.k)
        return _text(pieces[:kept]), kept
    words = list(WORD.finditer(text))
    shown = text[: words[-mask.k].start()].rstrip() if len(words) > mask.k else ""
    return shown, _tokens_within(pieces, text, shown)


def _beginning(pieces: Sequence[bytes], text: str, kept: int, unit: str) -> tuple[str, int]:
    """The first ``kept`` tokens, or the words that lie within them: text and whole tokens."""
    shown = _text(pieces[:kept])
    if unit == "tokens":
        return shown, kept
    ends = [word.end() for word in WORD.finditer(text) if word.end() <= len(shown)]
    shown = text[: ends[-1]] if ends else ""
    return shown, _tokens_within(pieces, text, shown)


def _tokens_within(pieces: Sequence[bytes], text: str, shown: str) -> int:
    """How many tokens lie wholly within the shown beginning of the text."""
    leading = len(b"".join(pieces)) - len(b"".join(pieces).lstrip())
    budget = leading + len(shown.encode())
    kept = used = 0
    for piece in pieces:
        used += len(piece)
        if used > budget:
            break
        kept += 1
    return kept


def _one_line(text: str) -> str:
    """Captions are single lines: line breaks of a model become spaces."""
    return text.replace("\r", "").replace("\n", " ")
