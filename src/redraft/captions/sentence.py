"""Make a final text look like a complete sentence in the prompt.

Most recognisers write no full stop, and many no capitals.  A model trained on incomplete sentences takes such a text
for incomplete and translates only part of it: "I have a dog" gave an empty caption.  So the prompt of a final update
has a capital and a full stop; captions show the text as received.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping

from redraft.captions.prompt import PLAIN_KEY

#: Metadata key of the mark that the model needs at the end of a sentence, such as "."; empty if it needs none.
FINAL_MARK_KEY = "redraft.final_mark"
#: The mark for models with their own prompt format whose metadata do not specify it, as the demo models need it.
DEFAULT_MARK = "."

_ENDS = frozenset(".!?…‥。！？．｡।॥؟۔։።")
#: Unicode categories of characters allowed after the mark: closing quotes and brackets.
_CLOSING = {"Pe", "Pf", "Pi"}
#: Trailing characters that the mark replaces.
_BREAKS = " ,;:-–—、，；："


def final_mark(metadata: Mapping[str, str]) -> str:
    """Return the mark that a model needs at the end of a sentence, by its GGUF metadata; empty if it needs none."""
    return metadata.get(FINAL_MARK_KEY, DEFAULT_MARK if PLAIN_KEY in metadata else "")


def as_sentence(text: str, mark: str) -> str:
    """Return the text with an initial capital and ``mark`` at its end, where these are missing.

    A text without words is unchanged, as is every text if ``mark`` is empty.
    """
    first = next((place for place, character in enumerate(text) if character.isalnum()), None)
    if not mark or first is None:
        return text
    text = text[:first] + text[first].title() + text[first + 1 :].rstrip()
    return text if ends_sentence(text) else text.rstrip(_BREAKS) + mark


def ends_sentence(text: str) -> bool:
    """Whether a text ends with sentence-final punctuation, ignoring closing quotes and brackets."""
    for character in reversed(text):
        if character not in "\"' " and unicodedata.category(character) not in _CLOSING:
            return character in _ENDS
    return False
