"""Which part of a model's output is the translation: chat models write more, before it, round it and after it.

Nothing is left out that a source may have asked for: marks that the source has too stay, and so does a line that
announces something if the source does.  `redraft.captions.markup` has what is left out within a line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from redraft.captions.markup import (
    LABEL,
    NOTE,
    TAG,
    TRANSLATES,
    Line,
    echoes,
    is_refusal,
    translation_in,
)
from redraft.captions.thoughts import closes, closing_mark
from redraft.captions.words import has_words
from redraft.decoding.lines import LineBreaks, first_line

_COLONS = (":", "：")
#: How chat models begin: "Sure! Here you go:".
_BEGINS = re.compile(
    r"(sure|certainly|of course|absolutely|gladly|okay|ok|here (is|are|you go)|here['’]s|hier ist|voici|aquí|ecco|"
    r"以下|好的|当然|もちろん)(?!\w)",
    re.IGNORECASE,
)
_AGREES = re.compile(r"(sure|certainly|of course|absolutely|gladly)( thing)?[.!,]*", re.IGNORECASE)
_FENCE = re.compile(r"```[\w-]*")
#: A line without words or marks that end sentences: a rule, or a bracket of JSON.
_RULE = re.compile(r"[^\w\s.,!?…。，！？]+")
_HEADING = re.compile(r"#+ .*|\*\*.*\*\*:?|__.*__:?")
#: Fewest words of a source whose repetition is not taken for its translation: names stay as they are.
_LEAST_ECHO = 3


class _Part(NamedTuple):
    """Ids of an output: from where, up to where, and whether a line break ended them."""

    start: int
    stop: int
    ended: bool


@dataclass(frozen=True, slots=True)
class OutputReader:
    """The outputs of a model for one source.

    Sources are single lines (`redraft.captions.prompt.clean`), so a line break after text ends the output, unless the
    line only introduces the translation ("Here is the translation:", a heading, a code fence, the model's thoughts, the
    source itself).

    Attributes:
        source: the text to translate.
        breaks: the model's tokens with a line break.
        token_bytes: returns the bytes of a token.
        target: tag of the target language.
    """

    source: str
    breaks: LineBreaks
    token_bytes: Callable[[int], bytes]
    target: str = ""

    def end(self, output: Sequence[int]) -> int | None:
        """Return how many ids of an output precede the line break that ends it (`redraft.decoding.lines.LineEnd`)."""
        if self.breaks.end(output) is None:
            return None
        last = self._parts(output)[-1]
        return last.stop if last.ended else None

    def pieces(self, output: Sequence[int]) -> list[bytes]:
        """Return the bytes of each id that belong to the translation."""
        start, stop, _ended = self._chosen(output)
        pieces = [self._piece(token) if start <= place < stop else b"" for place, token in enumerate(output)]
        line = Line(pieces)
        if is_refusal(line.text, self.source, self.target):
            return [b""] * len(output)
        translation_in(line, self.source)
        return line.pieces()

    def _piece(self, token: int) -> bytes:
        data = self.token_bytes(token)
        return first_line(data) if token in self.breaks.within else data

    def _text(self, ids: Sequence[int]) -> str:
        return b"".join(map(self._piece, ids)).decode(errors="replace").strip()

    def _parts(self, output: Sequence[int]) -> list[_Part]:
        """Return the lines of an output up to the one behind those that introduce it, without thoughts."""
        found: list[_Part] = []
        start, thinking = 0, ""
        while True:
            length = self.breaks.end(output[start:])
            part = _Part(start, len(output) if length is None else start + length, length is not None)
            line = self._text(output[part.start : part.stop])
            opened = thinking or closing_mark(line)
            mark = (opened if opened in line else "") if opened else closes(line)
            thinking = "" if mark else opened
            silent = bool(thinking) or (bool(mark) and not line.rpartition(mark)[2].strip())
            if not silent:
                found.append(part)
            if not part.ended or not (silent or self._introduces(line)):
                return found or [part._replace(start=part.stop)]
            start = part.stop

    def _chosen(self, output: Sequence[int]) -> _Part:
        """Return the line with the translation: the last one, if it can be that where the one before may be it."""
        if self.breaks.end(output) is None:
            return _Part(0, len(output), False)
        *before, last = self._parts(output)
        last = last._replace(stop=max(last.stop, len(output)))
        line = self._text(output[last.start : last.stop])
        for part in reversed(before):
            doubted = self._text(output[part.start : part.stop])
            if not self._is_doubtful(doubted):
                break
            ends_alike = line.endswith(_COLONS) or not doubted.endswith(_COLONS)
            if not has_words(line) or NOTE.match(line) or not ends_alike:
                last, line = part, doubted
        return last

    def _introduces(self, line: str) -> bool:
        """Whether a line is not the translation if another one follows."""
        plain = line.strip("*_#`> ")
        if TAG.fullmatch(line):
            return "<" not in self.source
        if _FENCE.fullmatch(line):
            return "```" not in self.source
        if TRANSLATES.search(self.source):
            return False
        is_heading = bool(_HEADING.fullmatch(line)) and len(plain.split()) <= 4
        if plain.endswith(_COLONS) or is_heading:
            name = plain.rstrip(":： *_")
            if LABEL.fullmatch(name) or TRANSLATES.search(name) or (_BEGINS.match(name) and not is_heading):
                return True
            if LABEL.search(name) and not LABEL.search(self.source):
                return True
        return echoes(line, self.source, labelled=True) or self._is_doubtful(line)

    def _is_doubtful(self, line: str) -> bool:
        """Whether a line that introduces the translation may also be it."""
        if _RULE.fullmatch(line):
            return has_words(self.source)
        if line.strip("*_#`> ").endswith(_COLONS):
            return self.source.rstrip().endswith(_COLONS)
        if _AGREES.fullmatch(line):
            return not self.target.startswith("en")
        return len(self.source.split()) >= _LEAST_ECHO and echoes(line, self.source)
