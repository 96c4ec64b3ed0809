"""What a chat model writes in one line beside the translation: announcements, notes, quotation marks and mark-up.

It is left out only if the source has nothing like it, so that a good answer loses no word.  There are patterns for what
models that we ran have written (labels, quotation marks, code, notes in brackets), and for what users of other programs
have reported, with the report beside the pattern; none for what a model might write.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import accumulate

from redraft.captions.thoughts import has_thoughts, thoughts_at

#: Words for "translation", with which models announce one.
TRANSLATES = re.compile(r"translat|übersetz|traduc|traduz|翻译|翻譯|翻訳", re.IGNORECASE)
#: A colon, except in times and proportions.
COLON = re.compile(r"[:：](?![0-9/])")
_BEFORE_COLON = re.compile(r"[^:：\n]{0,100}[:：]\s*")
_BRACKETED = re.compile(r"\s*[(\[（【]([^()\[\]（）【】]*)[)\]）】]?\s*([.。!！?？]?)$")
#: How a note begins, such as "Note:", "注：" or "English:".
_NOTED = re.compile(r"\s*[^\W\d_][\w .]{0,30}[:：]")
_BRACKETS = re.compile(r"[(\[（【]")
#: Pairs of emphasis and code in Markdown (nextcloud/assistant#345).
_MARKED = re.compile(r"(?<![A-Za-z0-9*])(\*\*\*?|`{1,3})(?=[^\s*`])(.+?)(?<=[^\s*`])\1(?![A-Za-z0-9*])")
_OPENED = re.compile(r"\*\*(?=[^\s*])|`+(?=[^\s`])")
#: An answer as reasoning models write it to mathematical and other problems (theworldofagents/Agentic-Reasoning#6).
_BOXED = re.compile(r"\s*\$*\\boxed\{(?:\\text\{(.*?)\}{0,2}|(.*?)\}?)\$*\s*$")
#: What may name the language of what follows.
_LABEL = re.compile(r"\s*([^\W\d_][^:：*\n]{0,40}?)[\s*]*[:：]\s*")
#: Mark-up, and control tokens as text (ufal/SimulStreaming#36, yelog/SnapTraTranslator#26).
TAG = re.compile(r"<(/?[A-Za-z][\w-]*(\s+[\w-]+=\"[^\"<>]*\")*\s*/?|\|[^|<>]*\|)>")
#: Quotation marks, by what may close them, and those that are apostrophes too.
_CLOSING = {
    '"': '"', "„": '“”"', "“": '”"', "”": "”", "‟": "”", "«": "»", "»": "«", "‹": "›", "›": "‹", "「": "」", "『": "』",
    "﹁": "﹂", "﹃": "﹄", "〝": "〟〞", "＂": "＂", "'": "'", "‘": "’", "‚": "‘’'", "״": "״",
}  # fmt: skip
_APOSTROPHES = frozenset("'‘’‚״")
_QUOTES = frozenset("".join((*_CLOSING, *_CLOSING.values())))
_WITHIN_WORD = re.compile(r"(?<=\w)['’״](?=\w)")
_ENDS = ".。!！?？"
#: Characters without which, anywhere or at the beginning, nothing is left out.
_TELLING = frozenset(":：*`<([（【◁\\") | (_QUOTES - _APOSTROPHES)
#: Refusals (rockbenben/subtitle-translator#68): an apology or "I", that something is not done, and what.
_NOT_DONE = r"(?:can['’]?t|cannot|won['’]?t|will not|unable|not (?:able|going|willing|comfortable)|decline|refuse)"
_REFUSES = re.compile(
    rf"(?:(?:i['’]?m|i am) (?:very |so )?sorry|sorry|i apologi[sz]e|unfortunately)\b.{{0,40}}\b{_NOT_DONE}\b.{{0,30}}"
    r"\b(?:assist|help|fulfill?|provid(?:e|ing)|translat(?:e|ing)|comply|answer|do (?:that|this))\b"
    rf"|i(?:['’]?m| am| must| have to)? {_NOT_DONE}(?: to| with| be)? "
    r"(?:assist|help (?:you|with)|fulfill?|provid(?:e|ing)|translat(?:e|ing)|comply)\b"
    r"|as an? (?:ai|artificial intelligence|large language model|language model)\b",
    re.IGNORECASE,
)


class Line:
    """A text in pieces, of which parts are left out.

    Attributes:
        text: what is left.
    """

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = list(pieces)
        self.text = b"".join(pieces).decode(errors="surrogateescape")
        #: For each character of ``text``, the place of its first byte.
        self._places = [*accumulate((len(_bytes(each)) for each in self.text[:-1]), initial=0)]
        self._whole = len(self.text)

    def cut(self, start: int, end: int) -> None:
        """Leave out a part of the text."""
        self.text = self.text[:start] + self.text[end:]
        del self._places[start:end]

    def pieces(self) -> list[bytes]:
        """Return the bytes of what is left, piece by piece."""
        if len(self.text) == self._whole:
            return self._pieces
        found = [bytearray() for _ in self._pieces]
        owners = [number for number, piece in enumerate(self._pieces) for _ in piece]
        for start, character in zip(self._places, self.text, strict=False):
            for place, byte in enumerate(_bytes(character), start):
                found[owners[place]].append(byte)
        return [bytes(each) for each in found]


def _bytes(character: str) -> bytes:
    return character.encode(errors="surrogateescape")


def translation_in(line: Line, source: str, labels: Collection[str]) -> None:
    """Leave out all that is not the translation of a source into a language with these names."""
    if _TELLING.isdisjoint(line.text) and line.text.strip()[:1] not in _APOSTROPHES:
        return
    _without_thoughts(line, source)
    _without_markup(line, source)
    while True:
        before = line.text
        if line.text[(label := label_at(line.text, source, labels)) :].strip():
            line.cut(0, label)
        _without_announcement(line, source)
        _without_note(line, source)
        _without_quotes(line, source)
        if line.text == before:
            return


def echoes(text: str, source: str) -> bool:
    """Whether a text is a source, apart from case and punctuation."""
    return bool(_plain(source)) and _plain(text) == _plain(source)


def is_refusal(text: str, source: str, target: str) -> bool:
    """Whether a model answers in English that it does not translate; into English, that may be the translation."""
    english = target.partition("-")[0] in ("", "en")
    return not english and bool(_REFUSES.match(text.strip())) and not _REFUSES.search(source)


def label_at(text: str, source: str, labels: Collection[str]) -> int:
    """Return the length of a label before a translation, as in "German: ..."; 0 if it has none.

    A source that names the language, by any of its names, may be about it.
    """
    found, said = _LABEL.match(text), source.casefold()
    if not found or found[1].casefold() not in labels:
        return 0
    return 0 if _LABEL.match(source) or any(name in said for name in labels) else found.end()


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[\W_]+", " ", text).casefold().split())


def _without_thoughts(line: Line, source: str) -> None:
    while not has_thoughts(source) and (end := thoughts_at(line.text)):
        line.cut(0, end + len(line.text[end:]) - len(line.text[end:].lstrip()))


def _without_markup(line: Line, source: str) -> None:
    if "<" not in source:
        while found := TAG.search(line.text):
            line.cut(*found.span())
    if "\\boxed" not in source and (boxed := _BOXED.match(line.text)):
        start, end = boxed.span(boxed.lastindex or 0)
        line.cut(end, len(line.text))
        line.cut(0, start)
    if "*" not in source and "`" not in source:
        while found := _MARKED.search(line.text):
            line.cut(*found.span(2)[1:], found.end())
            line.cut(found.start(), found.start(2))
        start = len(line.text) - len(line.text.lstrip())
        if opened := _OPENED.match(line.text, start):
            line.cut(*opened.span())


def _without_announcement(line: Line, source: str) -> None:
    """Leave out what announces the translation, up to a colon.

    If nothing follows, it may be a guess how a text such as "Sure! Here is the" goes on.
    """
    if COLON.search(source) or TRANSLATES.search(source):
        return
    found = _BEFORE_COLON.match(line.text)
    if found and TRANSLATES.search(found[0]) and line.text[found.end() :].strip():
        line.cut(0, found.end())


def _without_note(line: Line, source: str) -> None:
    """Leave out a note in brackets at the end: the model's, or the source."""
    found = _BRACKETED.search(line.text)
    if not found or _BRACKETS.search(source) or not line.text[: found.start()].strip():
        return
    note, before = found[1], line.text[: found.start()]
    if _NOTED.match(note) or echoes(note, source):
        ends = before.rstrip()[-1] in _ENDS
        line.cut(found.start(), found.end() if ends else found.start(2))


def _without_quotes(line: Line, source: str) -> None:
    """Leave out quotation marks round the whole, if the source has none, or none at its ends.

    The closing mark may still be missing: if the opening one were shown until then, all of the caption would move.
    """
    text = line.text.strip()
    closing = _CLOSING.get(text[:1], "")
    if not closing:
        return
    after = text[-1] if text[-1] in _ENDS and text[-2:-1] in closing else ""
    end = len(text) - len(after)
    closed = end > 1 and text[end - 1] in closing
    inner = _WITHIN_WORD.sub("", text[1 : end - 1] if closed else text[1:])
    quoting = _WITHIN_WORD.sub("", source).strip(" .,;:!?。！？…")
    if not _QUOTES.isdisjoint(quoting):
        if not closed or quoting[0] in _QUOTES or quoting[-1] in _QUOTES or not {text[0], *closing}.isdisjoint(inner):
            return
    elif not _QUOTES.isdisjoint(inner.strip("".join(_QUOTES)) if closed else inner):
        return
    if text[0] in _APOSTROPHES and not closed:
        return
    opened = line.text.index(text)
    if closed:
        twice = after and text[end - 2 : end - 1] in _ENDS
        line.cut(opened + end - 1, opened + end + bool(twice))
    line.cut(opened, opened + 1)
