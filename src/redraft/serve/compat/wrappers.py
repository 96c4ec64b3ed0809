"""Remove what a tool sends around the text to translate.

Tools built for chat models wrap the text in symbols (``🔤 text 🔤``), in tags, or after an instruction that ends with a
colon.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

#: An instruction before the text, such as "Translate into German:".
_INSTRUCTION = re.compile(
    r"(?:(?:(?:please|now|kindly|can|could|you)\W+){0,3}translate\b[^:]{0,500}"
    r"|(?:the )?(?:text|sentence|source|input)(?: to (?:be )?translated?)?):\s*(?=\S)",
    re.IGNORECASE,
)
_TAGS = re.compile(r"\s*<(\w+)>\s*(?P<text>.*?)\s*</\1>\s*", re.DOTALL)
_FENCES = re.compile(r"\s*(```|\"\"\")\s*(?P<text>.*?)\s*\1\s*", re.DOTALL)


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


def _is_symbol(character: str) -> bool:
    """Whether a character is a symbol such as an emoji; the degree sign counts as text."""
    return character >= "\u2190" and unicodedata.category(character) == "So"
