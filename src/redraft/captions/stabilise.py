"""Decide which part of a partial translation to show.

*Agreement* shows what successive outputs agree on (`redraft.decoding.followers`), in whole words.  *Mask-k* hides the
last k tokens, where most corrections happen: from the reader only (*display-only* mask-k; SSBD v2, section 3.4), or
from the draft too (*plain* mask-k; Arivazhagan et al. 2020; upper half of Table 4 in SSBD v2).

What is shown stays until it changes.  Final translations are shown whole.  A translation that was stopped before its
end may stop within a word, which then is in the draft but not in the caption.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass
from unicodedata import category

from redraft.captions.words import WORD, bare

_Decoder = codecs.getincrementaldecoder("utf-8")


@dataclass(frozen=True, slots=True)
class Stabilised:
    """A translation divided into its shown and hidden parts.

    Attributes:
        shown: the shown text.
        hidden: the rest of the translation, in whole words.
        shown_length: number of tokens that are shown.
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
    pieces: Sequence[bytes],
    *,
    final: bool,
    mask_k: int = 0,
    plain: bool = False,
    stopped: bool = False,
    confirmed: int | None = None,
    standing: int = 0,
) -> Stabilised:
    """Divide a translation into its shown and hidden parts.

    Args:
        pieces: the bytes of each token.
        final: whether the translation is final.
        mask_k: number of tokens at the end of a partial one that are hidden.
        plain: whether these are left out of the draft too.
        stopped: whether it was stopped before its end.
        confirmed: number of tokens on which outputs agree, as `redraft.decoding.followers.Certainty` counts them; None
            if all are confirmed.
        standing: number of leading tokens that are shown already.
    """
    length = shown_length = draft_length = len(pieces)
    if stopped:
        length = shown_length = max(whole_words(pieces, length, goes_on=True), min(standing, length))
    if not final:
        most = max(0, len(pieces) - mask_k)
        draft_length = most if plain else len(pieces)
        shown_length = most = min(most, length)
        if confirmed is not None and confirmed < most:
            shown_length = max(whole_words(pieces, confirmed), min(standing, most))
    text, shown = _text(pieces[:length]), _text(pieces[:shown_length])
    return Stabilised(shown, text[len(shown) :], shown_length, draft_length)


def whole_words(pieces: Sequence[bytes], count: int, *, goes_on: bool = False) -> int:
    """Return how many of the first ``count`` tokens can be shown without tearing a word or a character.

    Args:
        pieces: the bytes of each token.
        count: number of tokens from the first one on.
        goes_on: whether unknown tokens follow the pieces.
    """
    while 0 < count < len(pieces) + goes_on and _tears(b"".join(pieces[:count]), b"".join(pieces[count:])):
        count -= 1
    return count


def _tears(before: bytes, after: bytes) -> bool:
    """Whether a character or a word goes on from one text to the next; closing punctuation may follow its word.

    If the text that follows is unknown, every word may go on that does not end in punctuation.
    """
    shown = whole_characters(before)
    if len(shown.encode()) < len(before):
        return True
    if not after:
        return shown != "" and category(shown[-1])[0] in "LMN" and WORD.fullmatch(f"{shown[-1]}a") is not None
    text, place = shown + whole_characters(after), len(shown)
    torn = next((word for word in WORD.finditer(text) if word.start() < place < word.end()), None)
    return torn is not None and bare(text[place : torn.end()]) != ""


def _text(pieces: Sequence[bytes]) -> str:
    """Return a text as one line, as captions are: a model's line breaks become spaces."""
    return whole_characters(b"".join(pieces)).strip().replace("\r", "").replace("\n", " ")
