"""Tokens as readers see them: their bytes as text, and how wide that is."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

from redraft.captions.formats.read import printable


def label(piece: bytes) -> str:
    """One token on its own: a space as ``_``, a line break as ``↵``, part of a character as its bytes in hex.

    A token without bytes, which is a control token, is ``·``.
    """
    try:
        text = piece.decode()
    except UnicodeDecodeError:
        return f"<{piece.hex(' ').upper()}>"
    return printable(text.replace(" ", "_").replace("\n", "↵")) or "·"


def texts(pieces: Sequence[bytes]) -> list[str]:
    """(n,) the text that each token adds, with control characters as spaces.

    A character of several tokens belongs to the one that completes it; the others add nothing.  Bytes that are no
    character become U+FFFD.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    found = [decoder.decode(piece, final=place == len(pieces)) for place, piece in enumerate(pieces, 1)]
    return [printable(text) for text in found]


def width(text: str) -> int:
    """Columns that a text takes in a fixed-width font; Chinese and Japanese characters take two."""
    return cell_len(text)


def shortened(text: str, columns: int) -> str:
    """The text, with its end replaced by an ellipsis if it is wider than ``columns``."""
    return text if width(text) <= columns else set_cell_size(text, columns - 1).rstrip() + "…"
