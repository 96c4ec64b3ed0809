"""What a chat model writes in one line beside the translation: thoughts, the language's name, and quotation marks.

These are all that is left out, and only if the source has nothing like it, so that a good answer loses no word.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from redraft.captions.thoughts import has_thoughts, thoughts_at

#: What may name the language of what follows.
_LABEL = re.compile(r"\s*([^\W\d_][^:：\n]{0,40}?)\s*[:：]\s*")
#: Quotation marks, by what may close them; those that are apostrophes too are not among them.
_CLOSING = {
    '"': '"', "„": '“”"', "“": '”"', "”": "”", "«": "»", "»": "«", "‹": "›", "›": "‹", "「": "」", "『": "』",
    "＂": "＂",
}  # fmt: skip
_QUOTES = frozenset("".join((*_CLOSING, *_CLOSING.values())))
_APOSTROPHES = frozenset("'‘’‚")


def lines_before(text: str, source: str, labels: Collection[str]) -> int:
    """Return the length of the lines before the one with a translation: thoughts, and the language's name."""
    start = _behind_thoughts(text, source)
    start += label_at(text[start:], source, labels)
    rest = text[start:].lstrip()
    return text.rfind("\n", 0, len(text) - len(rest)) + 1 if rest else len(text)


def _behind_thoughts(text: str, source: str) -> int:
    start = 0
    while not has_thoughts(source) and (thoughts := thoughts_at(text[start:])):
        start += thoughts
    return start


def translation_in(text: str, source: str, labels: Collection[str]) -> tuple[int, int]:
    """Return where in a line the translation of a source, into a language with these names, starts and ends."""
    start = _behind_thoughts(text, source)
    label = start + label_at(text[start:], source, labels)
    start = label if text[label:].strip() else start
    inner = text[start:].strip()
    if not inner or not _is_quoted(inner, source):
        return start, len(text)
    opened = text.index(inner, start)
    closed = len(inner) > 1 and inner[-1] in _CLOSING[inner[0]]
    return opened + 1, opened + len(inner) - closed


def label_at(text: str, source: str, labels: Collection[str]) -> int:
    """Return the length of a label before a translation, as in "German: ..."; 0 if it has none.

    A source that names the language, by any of its names, may be about it.
    """
    found, said = _LABEL.match(text), source.casefold()
    if not found or found[1].casefold() not in labels:
        return 0
    return 0 if _LABEL.match(source) or any(name in said for name in labels) else found.end()


def echoes(text: str, source: str) -> bool:
    """Whether a text is a source, apart from case and punctuation."""
    return bool(_plain(source)) and _plain(text) == _plain(source)


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[\W_]+", " ", text).casefold().split())


def _is_quoted(text: str, source: str) -> bool:
    """Whether one pair of quotation marks is around a whole text, and not around the source, which may be a quotation.

    The closing mark may still be missing: if the opening one were shown until then, all of the caption would move.
    """
    closing = _CLOSING.get(text[0], "")
    closed = len(text) > 1 and text[-1] in closing
    said = source.strip(" .,;:!?。！？…")
    if not closing or not (_QUOTES | _APOSTROPHES).isdisjoint((said[:1], said[-1:])):
        return False
    inner = text[1:-1] if closed else text[1:]
    return {text[0], *closing}.isdisjoint(inner) and (closed or _QUOTES.isdisjoint(said))
