"""The sentences of a pasted text, each to be translated by itself.

Browsers split text too (`Intl.Segmenter`), but take the full stop of "Dr." for the end of a sentence: the lists of
abbreviations that ICU has are not used there, not even with ``en-u-ss-standard``.  Hence a library on the server.
"""

from __future__ import annotations

from pydantic import Field
from sentencex import segment

from redraft.captions.languages import parse_language
from redraft.serve.fields import Language
from redraft.serve.protocol import Message

#: The most characters that the page's field takes; in UTF-8 one has at most four bytes, and JSON escapes double some.
MOST_CHARACTERS = 500_000
MOST_BYTES = 6 * MOST_CHARACTERS


class Text(Message):
    """A text to be split into sentences (HTTP)."""

    text: str = Field(min_length=1, max_length=MOST_CHARACTERS)
    language: Language = "en"


class Sentences(Message):
    """The sentences of a text (HTTP)."""

    sentences: tuple[str, ...]


def split(text: Text) -> Sentences:
    """The sentences of a text, without the space around them.  A sentence ends with its line at the latest.

    Raises:
        OptionError: the language is not known.
    """
    language = parse_language(text.language, "language").canonical.partition("-")[0]
    parts = (part.strip() for line in text.text.splitlines() for part in segment(language, line))
    return Sentences(sentences=tuple(filter(None, parts)))
