"""Which part of a model's output is the translation: chat models write more, before it, round it and after it.

Nothing is left out that may belong to the translation: marks that the source has too stay, and so does a line that
announces something if the source does.  `redraft.captions.markup` leaves out parts of a line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from redraft.captions.markup import TAG, TRANSLATES, Line, is_refusal, label_at, translation_in
from redraft.captions.thoughts import closes, closing_mark, has_thoughts
from redraft.decoding.lines import LineBreaks, first_line

_COLONS = (":", "：")
#: How chat models begin: "Sure! Here you go:" (SubtitleEdit/subtitleedit#8293, nextcloud/assistant#345).
_BEGINS = re.compile(r"(sure|certainly|of course|here (is|are)|here['’]s|hier ist)(?!\w)", re.IGNORECASE)
#: Fences (gettranslatebot/translatebot-django#31) and headings (koharu-rs/koharu#850) of Markdown.
_FENCE = re.compile(r"```[\w-]*")
_HEADING = re.compile(r"#+ .*|\*\*.*\*\*")
#: Most words of a heading over a translation.
_LONGEST_HEADING = 4


class _Part(NamedTuple):
    """Ids of an output: from where, up to where, and whether a line break ended them."""

    start: int
    stop: int
    ended: bool


@dataclass(frozen=True, slots=True)
class OutputReader:
    """The outputs of a model for one source.

    Sources are single lines (`redraft.captions.prompt.clean`), so a line break after text ends the output, unless the
    line only introduces the translation ("Here is the translation:", a heading, a code fence, the model's thoughts).

    Attributes:
        source: the text to translate.
        breaks: the model's tokens with a line break.
        token_bytes: returns the bytes of a token.
        target: tag of the target language.
        labels: its names, with which models label translations (`redraft.captions.languages.Language.labels`).
    """

    source: str
    breaks: LineBreaks
    token_bytes: Callable[[int], bytes]
    target: str = ""
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
        line = Line(pieces)
        if is_refusal(line.text, self.source, self.target):
            return [b""] * len(output)
        translation_in(line, self.source, self.labels)
        return line.pieces()

    def _piece(self, token: int) -> bytes:
        data = self.token_bytes(token)
        return first_line(data) if token in self.breaks.within else data

    def _text(self, ids: Sequence[int]) -> str:
        return b"".join(map(self._piece, ids)).decode(errors="replace").strip()

    def _part(self, output: Sequence[int]) -> _Part:
        """Return the line with the translation: the first one that is neither thoughts nor an introduction."""
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
            if not part.ended or not (silent or self._introduces(line)):
                return part._replace(start=part.stop) if silent else part
            start = part.stop

    def _introduces(self, line: str) -> bool:
        """Whether a line is not the translation if another one follows."""
        if TAG.fullmatch(line):
            return "<" not in self.source
        if _FENCE.fullmatch(line):
            return "```" not in self.source
        name = line.strip("*_#` ")
        if name and label_at(name, self.source, self.labels) == len(name):
            return True
        is_heading = bool(_HEADING.fullmatch(line)) and len(name.split()) <= _LONGEST_HEADING
        if TRANSLATES.search(self.source) or not (is_heading or name.endswith(_COLONS)):
            return False
        begins = bool(_BEGINS.match(name)) and not is_heading and not self.source.rstrip().endswith(_COLONS)
        return begins or bool(TRANSLATES.search(name))
