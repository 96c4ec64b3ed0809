"""What is shown of a translation: mask-k in its two forms, and whole characters only.

Mask-k hides the last k units of a partial translation, where most corrections happen.  *Display-only* (SSBD v2,
section 3.4) hides them from the reader alone; the draft keeps them.  *Plain* mask-k (Arivazhagan et al. 2020, the upper
half of SSBD v2's Table 4) takes them from the draft as well.  A final translation is never masked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from redraft.errors import OptionError

#: A word is a run of non-spaces; scripts written without spaces count by the character.
_NO_SPACES = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_WORD = re.compile(f"[{_NO_SPACES}]|[^\\s{_NO_SPACES}]+")
UNITS = ("tokens", "words")


@dataclass(frozen=True, slots=True)
class Mask:
    """Which part of a partial translation is hidden.

    Attributes:
        k: how many units are hidden at the end; 0 shows everything.
        unit: ``tokens`` of the model or ``words`` (single characters in Chinese, Japanese, Thai, ...).
        display_only: whether the draft keeps what is hidden.

    Raises:
        OptionError: ``k`` or ``unit`` is out of range.
    """

    k: int = 0
    unit: str = "tokens"
    display_only: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 0:
            raise OptionError(f"mask_k must be a whole number of 0 or more, not {self.k!r}")
        if self.unit not in UNITS:
            raise OptionError(f"mask unit must be one of {', '.join(UNITS)}, not {self.unit!r}")


@dataclass(frozen=True, slots=True)
class Stabilised:
    """``shown`` and ``hidden`` text, together the translation, and how many of its tokens the next draft keeps."""

    shown: str
    hidden: str
    draft_length: int


def whole_characters(data: bytes) -> str:
    """The text of UTF-8 bytes; a character whose last bytes have not come yet is left out, a broken one replaced."""
    for missing in range(min(4, len(data) + 1)):
        try:
            return data[: len(data) - missing].decode()
        except UnicodeDecodeError as error:
            if error.reason != "unexpected end of data":
                break
    return data.decode(errors="replace")


def stabilise(pieces: Sequence[bytes], mask: Mask, *, final: bool) -> Stabilised:
    """Divide a translation, given as the bytes of each token, into what is shown and what is hidden."""
    text = whole_characters(b"".join(pieces)).strip()
    if final or mask.k == 0:
        return Stabilised(_one_line(text), "", len(pieces))
    if mask.unit == "tokens":
        kept = max(0, len(pieces) - mask.k)
        shown = whole_characters(b"".join(pieces[:kept])).strip()
    else:
        words = list(_WORD.finditer(text))
        shown = text[: words[-mask.k].start()].rstrip() if len(words) > mask.k else ""
        kept = _tokens_within(pieces, text, shown)
    hidden = text[len(shown) :]
    return Stabilised(_one_line(shown), _one_line(hidden), len(pieces) if mask.display_only else kept)


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
