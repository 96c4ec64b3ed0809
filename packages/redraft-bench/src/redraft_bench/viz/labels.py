"""Tokens for display: their bytes as text, and its width."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

from redraft.captions.formats.read import printable


def label(piece: bytes) -> str:
    """Return a label for a token: a space as ``_``, a line break as ``↵``, part of a character as bytes in hex.

    A token without bytes (a control token) is ``·``.
    """
    try:
        text = piece.decode()
    except UnicodeDecodeError:
        return f"<{piece.hex(' ').upper()}>"
    return printable(text.replace(" ", "_").replace("\n", "↵")) or "·"


def texts(pieces: Sequence[bytes]) -> list[str]:
    """Return the (n,) texts that the tokens add, with control characters replaced by spaces.

    A character of several tokens is assigned to the token that completes it; the others are empty.  Invalid bytes
    become U+FFFD.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    found = [decoder.decode(piece, final=place == len(pieces)) for place, piece in enumerate(pieces, 1)]
    return [printable(text) for text in found]


def width(text: str) -> int:
    """Return the columns that a text takes in a fixed-width font; Chinese and Japanese characters take two."""
    return cell_len(text)


def shortened(text: str, columns: int) -> str:
    """Return the text, truncated with an ellipsis if it is wider than ``columns``."""
    return text if width(text) <= columns else set_cell_size(text, columns - 1).rstrip() + "…"
