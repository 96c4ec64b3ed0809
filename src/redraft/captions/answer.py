"""Which part of a model's output is the translation: chat models write more, before it, round it and after it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from redraft.decoding.lines import LineBreaks, first_line

_ANNOUNCES = re.compile(
    r"translat|traduc|traduz|übersetz|oversæt|oversett|översätt|vertal|tłumacz|překlad|перев|翻译|翻譯|翻訳|訳|번역|ترجم",
    re.IGNORECASE,
)
_COLONS = (":", "：")
#: Quotation marks, by what may close them.
_CLOSING = {'"': '"', "„": '“”"', "“": '”"', "”": "”", "«": "»", "»": "«", "「": "」", "『": "』"}
_QUOTES = frozenset("".join((*_CLOSING, *_CLOSING.values())))


@dataclass(frozen=True, slots=True)
class OutputReader:
    """The outputs of a model for one source: which part is the translation.

    A chat model that was not made for translation may write "Here is the translation:" on a line of its own before it,
    and goes on after it with a line break and an explanation.  Sources are single lines
    (`redraft.captions.prompt.clean`), so a line break after text ends the output.  An announcement is left out only
    where it cannot be the translation: it ends in a colon, says that something is a translation, and the source does
    neither.  Quotation marks round the whole are left out where the source has none.

    Attributes:
        source: the text to translate.
        breaks: the model's tokens with a line break.
        token_bytes: returns the bytes of a token.
    """

    source: str
    breaks: LineBreaks
    token_bytes: Callable[[int], bytes]

    def end(self, output: Sequence[int]) -> int | None:
        """Return how many ids of an output precede the line break that ends it (`redraft.decoding.lines.LineEnd`)."""
        first = self.breaks.end(output)
        if first is None or not self._announces(output[:first]):
            return first
        second = self.breaks.end(output[first:])
        return None if second is None else first + second

    def pieces(self, output: Sequence[int]) -> list[bytes]:
        """Return the bytes of each id that belong to the translation."""
        first = self.breaks.end(output)
        announced = first if first is not None and self._announces(output[:first]) else 0
        return self._unquoted([b"" if place < announced else self._piece(token) for place, token in enumerate(output)])

    def _unquoted(self, pieces: list[bytes]) -> list[bytes]:
        """Return the pieces without quotation marks round the whole, if the source has none at all.

        The closing mark may still be missing: if the opening one were shown until then, all of the caption would move.
        """
        whole = b"".join(pieces).decode(errors="surrogateescape")
        text = whole.strip()
        closing = _CLOSING.get(text[:1], "")
        closed = len(text) > 1 and text[-1] in closing
        inner = text[1:-1] if closed else text[1:]
        if not closing or not _QUOTES.isdisjoint((*inner, *self.source)):
            return pieces
        opened = whole.index(text)
        marks = [opened, opened + len(text) - 1] if closed else [opened]
        for place in reversed(marks):
            start = len(whole[:place].encode(errors="surrogateescape"))
            pieces = _without(pieces, start, start + len(whole[place].encode()))
        return pieces

    def _piece(self, token: int) -> bytes:
        data = self.token_bytes(token)
        return first_line(data) if token in self.breaks.within else data

    def _announces(self, ids: Sequence[int]) -> bool:
        """Whether ids are a line that announces the translation."""
        line = b"".join(map(self._piece, ids)).decode(errors="replace").strip().rstrip("*_")
        if not line.endswith(_COLONS) or not _ANNOUNCES.search(line):
            return False
        return not (self.source.rstrip().endswith(_COLONS) or _ANNOUNCES.search(self.source))


def _without(pieces: Sequence[bytes], start: int, end: int) -> list[bytes]:
    """Return the pieces without the bytes of their whole from ``start`` up to, but not including, ``end``."""
    found, place = [], 0
    for piece in pieces:
        found.append(piece[: max(0, start - place)] + piece[max(0, end - place) :])
        place += len(piece)
    return found
