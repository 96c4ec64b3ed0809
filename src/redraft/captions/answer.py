"""Which part of a model's output is the translation: one line, behind thoughts and the name of its language.

`redraft.captions.markup` finds it in the line.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from redraft.captions.markup import lines_before, translation_in
from redraft.decoding.lines import LineBreaks, first_line


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
        start = self._start(output)
        length = self.breaks.end(output[start:])
        return None if length is None else start + length

    def pieces(self, output: Sequence[int]) -> list[bytes]:
        """Return the bytes of each id that belong to the translation."""
        start = self._start(output)
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

    def _start(self, output: Sequence[int]) -> int:
        """Return how many ids precede the line with the translation."""
        if self.breaks.end(output) is None:
            return 0
        pieces = [self.token_bytes(token) for token in output]
        text = b"".join(pieces).decode(errors="surrogateescape")
        skipped = _length(text[: lines_before(text, self.source, self.labels)])
        return bisect_left([0, *accumulate(map(len, pieces))], skipped, hi=len(pieces))


def _length(text: str) -> int:
    return len(text.encode(errors="surrogateescape"))
