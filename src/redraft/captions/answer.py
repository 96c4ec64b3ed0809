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
_ENDS_OPEN, _EMPTY = re.compile(rf"({_OPENING})\s*$"), re.compile(rf"({_OPENING})\s*({_CLOSING})\s*$")
_MARKED = "|".join(f"{re.escape(mark)}.*?(?:{re.escape(closing)}|\\Z)" for mark, closing in _PAIRS.items())
#: The thoughts with which a text begins, with the marks; all of it if they are not closed.
_THOUGHTS = re.compile(rf"(?:\s*(?:<({_NAMES})>.*?(?:</\1>|\Z)|{_MARKED}|{_CLOSING}))*", re.DOTALL)
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


def _closing(found: re.Match[str]) -> str:
    return f"</{found[2]}>" if found[2] else _PAIRS[found[1]]


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
        if self.breaks.end(output) is None:
            return None
        pieces = [self.token_bytes(token) for token in output]
        text = b"".join(pieces).decode(errors="surrogateescape")
        start = bisect_right([*accumulate(map(len, pieces))], _length(text[: self._line(text)]))
        length = self.breaks.end(output[start:])
        return None if length is None else start + length

    def pieces(self, output: Sequence[int]) -> list[bytes]:
        """Return the bytes of each id that belong to the translation."""
        pieces = [self.token_bytes(token) for token in output]
        if output and output[-1] in self.breaks.within:
            pieces[-1] = first_line(pieces[-1])
        text = b"".join(pieces).decode(errors="surrogateescape")
        line = 0 if self.breaks.end(output) is None else self._line(text)
        thoughts, labelled = self._begin(text[line:])
        begin, end = line + (labelled if text[line + labelled :].strip() else thoughts), len(text)
        inner = text[begin:].strip()
        if inner and _is_quoted(inner, self.source):
            begin = text.index(inner, begin) + 1
            end = begin - 1 + len(inner) - (len(inner) > 1 and inner[-1] in _CLOSED_BY[inner[0]])
        first, last = _length(text[:begin]), _length(text[:end])
        befores = accumulate(map(len, pieces[:-1]), initial=0)
        return [piece[max(0, first - at) : max(0, last - at)] for piece, at in zip(pieces, befores, strict=False)]

    def _line(self, text: str) -> int:
        """Return where the line with the translation begins in a text with a line break."""
        thoughts, begin = self._begin(text)
        rest = text[begin:].lstrip()
        return max(thoughts, text.rfind("\n", 0, len(text) - len(rest)) + 1) if rest else len(text)

    def _begin(self, text: str) -> tuple[int, int]:
        """Return the length of the thoughts with which a text begins, and that with a label, as in "German: ...".

        A source that names the language, by any of its names, may be about it.
        """
        found = None if has_thoughts(self.source) else _THOUGHTS.match(text)
        thoughts = found.end() if found else 0
        found, said = _LABEL.match(text, thoughts), self.source.casefold()
        named = _LABEL.match(self.source) or any(name in said for name in self.labels)
        labelled = found and found[1].casefold() in self.labels and not named
        return thoughts, found.end() if found and labelled else thoughts


#: Of no source.
NO_READER = OutputReader("", NO_BREAKS, lambda token: b"")


def _length(text: str) -> int:
    return len(text.encode(errors="surrogateescape"))
