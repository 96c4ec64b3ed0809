"""Which part of an output is the translation: one line, without thoughts, the language's name and quotation marks.

These are all that is left out, and only if the source has nothing like it, so that a good answer loses no word.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from redraft.decoding.ends import NO_BREAKS, LineBreaks, first_line

_NAMES = r"(?:\w+:)?(?:think|thinking|thoughts?|reasoning|reflection)(?::\w+)?"
#: Marks that are not tags, by what closes them: of Magistral, Kimi-VL, Command A, Gemma 4, gpt-oss, Apriel and Granite.
_PAIRS = {
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|channel>thought": "<channel|>",
    "<|channel|>analysis<|message|>": "<|end|><|start|>assistant<|channel|>final<|message|>",
    "Here are my reasoning steps:": "[BEGIN FINAL RESPONSE]",
    "Here is my thought process:": "Here is my response:",
}
_OPENING = rf"<({_NAMES})>|{'|'.join(map(re.escape, _PAIRS))}"
_CLOSING = rf"</{_NAMES}>|{'|'.join(map(re.escape, _PAIRS.values()))}"
_OPENS, _ENDS_OPEN = re.compile(rf"\s*({_OPENING})"), re.compile(rf"({_OPENING})\s*$")
_CLOSES, _EMPTY = re.compile(rf"\s*({_CLOSING})"), re.compile(rf"({_OPENING})\s*({_CLOSING})\s*$")
#: Characters of a prompt's end in which a mark is searched.
_END = 200


def closed(prompt: str) -> str:
    """Return a prompt without open thoughts at its end."""
    found = _ENDS_OPEN.search(prompt, max(0, len(prompt) - _END))
    return f"{prompt.rstrip()}\n\n{_closing(found)}\n\n" if found else prompt


def without_thoughts(prompt: str) -> str:
    """Return a prompt without an empty block of thoughts at its end."""
    found = _EMPTY.search(prompt, max(0, len(prompt) - _END))
    return prompt[: found.start()] if found and found[3] == _closing(found) else prompt


def has_thoughts(text: str) -> bool:
    """Whether a text has marks of thoughts."""
    return bool(re.search(f"{_OPENING}|{_CLOSING}", text))


def thoughts_at(text: str) -> int:
    """Return the length of the thoughts with which a text begins, with the marks; all of it if they are not closed."""
    mark = _closing(_OPENS.match(text))
    if not mark:
        found = _CLOSES.match(text)
        return found.end() if found else 0
    end = text.find(mark)
    return end + len(mark) if end >= 0 else len(text)


def _closing(found: re.Match[str] | None) -> str:
    if found is None:
        return ""
    tag = found[2]
    return f"</{tag}>" if tag else _PAIRS[found[1]]


#: What may name the language of what follows.
_LABEL = re.compile(r"\s*([^\W\d_][^:：\n]{0,40}?)\s*[:：]\s*")
#: Quotation marks, by what may close them; those that are apostrophes too are not among them.
_CLOSED_BY = {
    '"': '"', "„": '“”"', "“": '”"', "”": "”", "«": "»", "»": "«", "‹": "›", "›": "‹", "「": "」", "『": "』",
    "＂": "＂",
}  # fmt: skip
_QUOTES = frozenset("".join((*_CLOSED_BY, *_CLOSED_BY.values())))
_APOSTROPHES = frozenset("'‘’‚")


def echoes(text: str, source: str) -> bool:
    """Whether a text is a source, apart from case and punctuation."""
    return bool(_plain(source)) and _plain(text) == _plain(source)


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[\W_]+", " ", text).casefold().split())


def _is_quoted(text: str, source: str) -> bool:
    """Whether one pair of quotation marks is around a whole text, and not around the source, which may be a quotation.

    The closing mark may still be missing: if the opening one were shown until then, all of the caption would move.
    """
    closing = _CLOSED_BY.get(text[0], "")
    closed = len(text) > 1 and text[-1] in closing
    said = source.strip(" .,;:!?。！？…")
    if not closing or not (_QUOTES | _APOSTROPHES).isdisjoint((said[:1], said[-1:])):
        return False
    inner = text[1:-1] if closed else text[1:]
    return {text[0], *closing}.isdisjoint(inner) and (closed or _QUOTES.isdisjoint(said))


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
        """Return how many ids of an output precede the line break that ends it (`redraft.decoding.ends.LineEnd`)."""
        start, _ = self._start(output)
        length = self.breaks.end(output[start:])
        return None if length is None else start + length

    def pieces(self, output: Sequence[int]) -> list[bytes]:
        """Return the bytes of each id that belong to the translation."""
        start, skipped = self._start(output)
        pieces = [self._piece(token) if place >= start else b"" for place, token in enumerate(output)]
        if skipped:
            pieces[start] = pieces[start][skipped:]
        text = b"".join(pieces).decode(errors="surrogateescape")
        thoughts, begin = self._begin(text)
        begin, end = begin if text[begin:].strip() else thoughts, len(text)
        inner = text[begin:].strip()
        if inner and _is_quoted(inner, self.source):
            begin = text.index(inner, begin) + 1
            end = begin - 1 + len(inner) - (len(inner) > 1 and inner[-1] in _CLOSED_BY[inner[0]])
        first, last = _length(text[:begin]), _length(text[:end])
        befores = [0, *accumulate(map(len, pieces))][:-1]
        places = [(max(0, first - before), max(0, last - before)) for before in befores]
        return [piece[start:end] for piece, (start, end) in zip(pieces, places, strict=True)]

    def _piece(self, token: int) -> bytes:
        data = self.token_bytes(token)
        return first_line(data) if token in self.breaks.within else data

    def _start(self, output: Sequence[int]) -> tuple[int, int]:
        """Return how many ids precede the line with the translation, and how many bytes of the next id do."""
        if self.breaks.end(output) is None:
            return 0, 0
        pieces = [self.token_bytes(token) for token in output]
        text = b"".join(pieces).decode(errors="surrogateescape")
        thoughts, begin = self._begin(text)
        rest = text[begin:].lstrip()
        line = max(thoughts, text.rfind("\n", 0, len(text) - len(rest)) + 1) if rest else len(text)
        skipped = _length(text[:line])
        places = [0, *accumulate(map(len, pieces))]
        start = bisect_right(places, skipped) - 1
        return start, skipped - places[start]

    def _begin(self, text: str) -> tuple[int, int]:
        """Return the length of the thoughts with which a text begins, and that with a label, as in "German: ...".

        A source that names the language, by any of its names, may be about it.
        """
        thoughts = 0
        while not has_thoughts(self.source) and (length := thoughts_at(text[thoughts:])):
            thoughts += length
        found, said = _LABEL.match(text, thoughts), self.source.casefold()
        named = _LABEL.match(self.source) or any(name in said for name in self.labels)
        labelled = found and found[1].casefold() in self.labels and not named
        return thoughts, found.end() if found and labelled else thoughts


#: Of no source.
NO_READER = OutputReader("", NO_BREAKS, lambda token: b"")


def _length(text: str) -> int:
    return len(text.encode(errors="surrogateescape"))
