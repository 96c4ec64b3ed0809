"""Split pasted text into sentences, to translate each separately.

Browsers can split text too (`Intl.Segmenter`), but end a sentence after "Dr.": they do not use ICU's lists of
abbreviations, even with ``en-u-ss-standard``.  So the server splits it with a library.
"""

from __future__ import annotations

from pydantic import Field
from sentencex import segment

from redraft.captions.languages import parse_language
from redraft.serve.fields import Language
from redraft.serve.protocol import Message

#: Maximum length of the page's text field in characters, each up to four bytes in UTF-8 and more in JSON escapes.
MOST_CHARACTERS = 500_000
MOST_BYTES = 6 * MOST_CHARACTERS


class Text(Message):
    """A text to split into sentences (HTTP)."""

    text: str = Field(min_length=1, max_length=MOST_CHARACTERS)
    language: Language = "en"


class Sentences(Message):
    """The sentences of a text (HTTP)."""

    sentences: tuple[str, ...]


def split(text: Text) -> Sentences:
    """Split a text into sentences, stripped of spaces.  A line break always ends a sentence.

    Raises:
        OptionError: the language is unknown.
    """
    language = parse_language(text.language, "language").canonical.partition("-")[0]
    parts = (part.strip() for line in text.text.splitlines() for part in segment(language, line))
    return Sentences(sentences=tuple(filter(None, parts)))
