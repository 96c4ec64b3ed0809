"""Decide which part of a partial translation to show.

Mask-k hides the last k units, where most corrections happen.  *Display-only* mask-k (SSBD v2, section 3.4) hides them
from the reader but keeps them in the draft.  *Plain* mask-k (Arivazhagan et al. 2020; upper half of Table 4 in SSBD v2)
removes them from the draft too.

A *margin* hides everything from the first token of which the model is not sure (`redraft.decoding.accept.margins`), but
no token that is already shown and has not changed.

Final translations are never masked, and incomplete characters are never shown.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass

from redraft.captions.events import is_number, whole
from redraft.captions.words import WORD
from redraft.errors import OptionError

UNITS = ("tokens", "words")
_Decoder = codecs.getincrementaldecoder("utf-8")

#: The margin that hides nothing, the minimum of a difference of probabilities.
OFF = -1.0


@dataclass(frozen=True, slots=True)
class Mask:
    """Which part of a partial translation to hide.

    Attributes:
        k: number of units to hide at the end.
        unit: ``tokens`` of the model or ``words`` (single characters in Chinese, Japanese, Thai, ...).
        display_only: whether to keep the hidden part in the draft.
        margin: minimum lead in probability over every other token, from -1 (hides nothing) to 1.  At 0 a token must be
            the model's own choice; below 0 it may be one that a bias has kept.

    Raises:
        OptionError: a value is out of range.
    """

    k: int = 0
    unit: str = "tokens"
    display_only: bool = True
    margin: float = OFF

    def __post_init__(self) -> None:
        whole("mask_k", self.k, 0)
        if self.unit not in UNITS:
            raise OptionError(f"mask unit must be one of {', '.join(UNITS)}, not {self.unit!r}")
        if not (is_number(self.margin) and OFF <= self.margin <= 1):
            raise OptionError(f"mask margin must be a number from -1 to 1, not {self.margin!r}")

    @property
    def asks(self) -> bool:
        """Whether the mask depends on the model's probabilities."""
        return self.margin > OFF

    @property
    def label(self) -> str:
        """The mask in words, e.g. ``3 tokens`` or ``below margin 0.02``; empty if it hides nothing."""
        parts = [f"{self.k} {self.unit}"] if self.k else []
        parts += [f"below margin {self.margin:g}"] if self.margin > OFF else []
        return ", ".join(parts + (["plain"] if parts and not self.display_only else []))


#: The default mask: show only the model's own choices.
DEFAULT_MASK = Mask(margin=0.0)


@dataclass(frozen=True, slots=True)
class Stabilised:
    """A translation divided into its shown and hidden parts.

    Attributes:
        shown: the shown text.
        hidden: the rest of the translation.
        shown_length: number of tokens shown completely.
        draft_length: number of tokens that the next draft keeps.
    """

    shown: str
    hidden: str
    shown_length: int
    draft_length: int


def whole_characters(data: bytes) -> str:
    """Decode UTF-8 bytes; an incomplete character at the end is left out, an invalid one replaced."""
    return _Decoder("replace").decode(data)  # without ``final``, the start of a character stays in the decoder


def stabilise(
    pieces: Sequence[bytes], mask: Mask, *, final: bool, sure: int | None = None, standing: int = 0
) -> Stabilised:
    """Divide a translation into its shown and hidden parts.

    Args:
        pieces: the bytes of each token.
        mask: the mask.
        final: whether the translation is final.
        sure: number of tokens before the first one of which the model is not sure; None if it is sure of all.
        standing: number of leading tokens that are shown already.
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
    """Apply mask-k; return the shown text and the number of complete tokens."""
    if mask.unit == "tokens" or mask.k == 0:
        kept = max(0, len(pieces) - mask.k)
        return _text(pieces[:kept]), kept
    words = list(WORD.finditer(text))
    shown = text[: words[-mask.k].start()].rstrip() if len(words) > mask.k else ""
    return shown, _tokens_within(pieces, shown)


def _beginning(pieces: Sequence[bytes], text: str, kept: int, unit: str) -> tuple[str, int]:
    """Return the first ``kept`` tokens, or the words within them: the text and the number of complete tokens."""
    shown = _text(pieces[:kept])
    if unit == "tokens":
        return shown, kept
    ends = [word.end() for word in WORD.finditer(text) if word.end() <= len(shown)]
    shown = text[: ends[-1]] if ends else ""
    return shown, _tokens_within(pieces, shown)


def _tokens_within(pieces: Sequence[bytes], shown: str) -> int:
    """Return how many tokens are completely within the shown text."""
    whole, decoder = whole_characters(b"".join(pieces)), _Decoder("replace")
    end = len(whole) - len(whole.lstrip()) + len(shown)
    kept = read = 0
    for piece in pieces:
        read += len(decoder.decode(piece))
        incomplete, _ = decoder.getstate()
        if read + bool(incomplete) > end:
            break
        kept += 1
    return kept


def _one_line(text: str) -> str:
    """Replace a model's line breaks by spaces; captions are single lines."""
    return text.replace("\r", "").replace("\n", " ")
