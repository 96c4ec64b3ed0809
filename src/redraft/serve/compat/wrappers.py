"""Remove what a tool sends around the text to translate.

Tools built for chat models wrap the text in symbols (``🔤 text 🔤``), in tags, or after an instruction that ends with a
colon.  These forms are recognised directly.  Any other wrapper is found by comparing the requests of a caller: it is
the part that stays the same.
"""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from dataclasses import dataclass
from itertools import takewhile

from redraft.serve.compat.continuation import likeness

#: Number of different utterances that must share a wrapper before it is removed.
_WITNESSES = 3
#: Number of earlier requests to compare with.
_REMEMBERED = 8
#: Maximum length of a wrapper in characters.
_LONGEST = 4000
#: An instruction before the text, such as "Translate into German:".
_INSTRUCTION = re.compile(
    r"(?:(?:(?:please|now|kindly|can|could|you)\W+){0,3}translate\b[^:]{0,500}"
    r"|(?:the )?(?:text|sentence|source|input)(?: to (?:be )?translated?)?):\s*(?=\S)",
    re.IGNORECASE,
)
_TAGS = re.compile(r"\s*<(\w+)>\s*(?P<text>.*?)\s*</\1>\s*", re.DOTALL)
_FENCES = re.compile(r"\s*(```|\"\"\")\s*(?P<text>.*?)\s*\1\s*", re.DOTALL)
#: A wrapper before the text ends with one of these; a wrapper after it begins with one.
_DELIMITERS = frozenset(':\n"“”„«»‹›「」『』`<>|[](){}#*=~.!?。！？')


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A text and what was sent before and after it; concatenated, they are the original request."""

    before: str
    text: str
    after: str

    @classmethod
    def cut(cls, whole: str, begin: int, end: int) -> Wrapped:
        """Take ``whole[begin:end]``, stripped, as the text."""
        text = whole[begin:end]
        begin += len(text) - len(text.lstrip())
        end = begin + len(text.strip())
        return cls(whole[:begin], whole[begin:end], whole[end:])

    def within(self, before: str, after: str) -> Wrapped:
        """Return the same text with more around it."""
        return Wrapped(before + self.before, self.text, self.after + after)


def marked(sent: str) -> Wrapped | None:
    """Find the text in a pair of symbols (such as emoji) at the end of ``sent``; None if there is no pair."""
    end = len(sent.rstrip())
    begin = end
    while begin and _is_symbol(sent[begin - 1]):
        begin -= 1
    mark = sent[begin:end]
    opening = sent.rfind(mark, 0, begin) if mark else -1
    if opening < 0 or not sent[opening + len(mark) : begin].strip():
        return None
    return Wrapped.cut(sent, opening + len(mark), begin)


def instructed(sent: str) -> Wrapped:
    """Find the text in a request to a language model; only the known forms of wrappers are removed."""
    found = Wrapped.cut(sent, 0, len(sent))
    if instruction := _INSTRUCTION.match(found.text):
        found = Wrapped.cut(found.text, instruction.end(), len(found.text)).within(found.before, found.after)
    if pair := marked(found.text):
        return pair.within(found.before, found.after)
    for form in (_TAGS, _FENCES):
        if (match := form.fullmatch(found.text)) and match["text"]:
            return Wrapped.cut(found.text, *match.span("text")).within(found.before, found.after)
    return found


class Wrapper:
    """The part that stays the same in the requests of one caller.

    A wrapper is removed once three utterances in a row have had it.  Until then it is translated as part of the text.
    """

    def __init__(self) -> None:
        self._newest: deque[str] = deque(maxlen=_REMEMBERED)
        self._shared = "", ""
        self._witnesses = 1

    def cut(self, sent: str) -> Wrapped:
        """Separate the next request into text and wrapper."""
        self._learn(sent)
        before, after = self._shared if self._witnesses >= _WITNESSES else ("", "")
        if not (sent.startswith(before) and sent.endswith(after) and _inner(sent, before, after).strip()):
            before, after = "", ""
        return Wrapped.cut(sent, len(before), len(sent) - len(after))

    def _learn(self, sent: str) -> None:
        for place, other in reversed(list(enumerate(self._newest))):
            before, after = _common(other, sent)
            if likeness(_inner(other, before, after), _inner(sent, before, after)):  # the same utterance
                self._newest[place] = sent
                return
        before, after = self._shared
        if any(self._shared) and len(sent) > len(before + after) and sent.startswith(before) and sent.endswith(after):
            self._witnesses += 1
        elif self._newest:
            self._shared = _common(self._newest[-1], sent)
            self._witnesses = 2
        self._newest.append(sent)


def _inner(text: str, before: str, after: str) -> str:
    return text[len(before) : len(text) - len(after)]


def _common(one: str, other: str) -> tuple[str, str]:
    """Return the prefix and the suffix that two texts share and that could be a wrapper; they do not overlap."""
    before = _prefix(one, other)
    return before, _suffix(one[len(before) :], other[len(before) :])


def _prefix(one: str, other: str) -> str:
    """Return the longest common prefix that ends with a delimiter and the spaces after it."""
    same = "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))[:_LONGEST]
    last = max((place for place, character in enumerate(same) if _delimits(character)), default=-1)
    space = len(same) - last - 1 - len(same[last + 1 :].lstrip())
    return same[: last + 1 + space] if last >= 0 else ""


def _suffix(one: str, other: str) -> str:
    """Return the longest common suffix that begins with a delimiter and the spaces before it, without full stops."""
    same = _same_end(one, other)
    first = next((place for place, character in enumerate(same) if _delimits(character)), len(same))
    while first < len(same) and same[first] in ".!?。！？":
        first += 1
    head = same[:first]
    return same[len(head.rstrip()) :] if first < len(same) else ""


def _same_end(one: str, other: str) -> str:
    pairs = zip(reversed(one[-_LONGEST:]), reversed(other[-_LONGEST:]), strict=False)
    length = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return one[len(one) - length :]


def _delimits(character: str) -> bool:
    return character in _DELIMITERS or _is_symbol(character)


def _is_symbol(character: str) -> bool:
    """Whether a character is a symbol such as an emoji; the degree sign counts as text."""
    return character >= "\u2190" and unicodedata.category(character) == "So"
