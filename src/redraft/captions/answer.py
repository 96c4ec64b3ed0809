"""Which part of a model's output is the translation: one line, behind thoughts and the name of its language.

`redraft.captions.markup` finds it in the line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from redraft.captions.markup import label_at, translation_in
from redraft.captions.thoughts import closes, closing_mark, has_thoughts
from redraft.decoding.lines import LineBreaks, first_line


class _Part(NamedTuple):
    """Ids of an output: from where, up to where, and whether a line break ended them."""

    start: int
    stop: int
    ended: bool


@dataclass(frozen=True, slots=True)
class OutputReader:
    """The outputs of a model for one source.

    Sources are single lines (`redraft.captions.prompt.clean`), so a line break after text ends the output, unless the
    line holds only the model's thoughts or the name of the language.

    Attributes:
        source: the text to translate.
        breaks: the model's tokens with a line break.
        token_bytes: returns the bytes of a token.
        labels: names of the target language, with which models label translations
            (`redraft.captions.languages.Language.labels`).
    """

    source: str
    breaks: LineBreaks
    token_bytes: Callable[[int], bytes]
    labels: frozenset[str] = frozenset()

    def end(self, output: Sequence[int]) -> int | None:
        """Return how many ids of an output precede the line break that ends it (`redraft.decoding.lines.LineEnd`)."""
        if self.breaks.end(output) is None:
            return None
        part = self._part(output)
        return part.stop if part.ended else None

    def pieces(self, output: Sequence[int]) -> list[bytes]:
        """Return the bytes of each id that belong to the translation."""
        start = 0 if self.breaks.end(output) is None else self._part(output).start
        pieces = [self._piece(token) if place >= start else b"" for place, token in enumerate(output)]
        text = b"".join(pieces).decode(errors="surrogateescape")
        places = [_length(text[:place]) for place in translation_in(text, self.source, self.labels)]
        found: list[bytes] = []
        begin = 0
        for piece in pieces:
            first, last = (min(max(place - begin, 0), len(piece)) for place in places)
            found.append(piece[first:last])
            begin += len(piece)
        return found

    def _piece(self, token: int) -> bytes:
        data = self.token_bytes(token)
        return first_line(data) if token in self.breaks.within else data

    def _text(self, ids: Sequence[int]) -> str:
        return b"".join(map(self._piece, ids)).decode(errors="replace").strip()

    def _part(self, output: Sequence[int]) -> _Part:
        """Return the line with the translation: the first one that is neither thoughts nor a label."""
        start, thinks = 0, not has_thoughts(self.source)
        thinking = mark = ""  # what closes thoughts that go on, and what closes thoughts in this line
        while True:
            length = self.breaks.end(output[start:])
            part = _Part(start, len(output) if length is None else start + length, length is not None)
            line = self._text(output[part.start : part.stop])
            if thinks:
                thinking = thinking or closing_mark(line)
                mark = thinking or closes(line)
            if mark in line:
                thinking = ""
            silent = bool(thinking) or (bool(mark) and not line.rpartition(mark)[2].strip())
            if not part.ended or not (silent or self._is_label(line)):
                return part._replace(start=part.stop) if silent else part
            start = part.stop

    def _is_label(self, line: str) -> bool:
        return bool(line) and label_at(line, self.source, self.labels) == len(line)


def _length(text: str) -> int:
    return len(text.encode(errors="surrogateescape"))
