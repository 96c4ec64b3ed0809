"""A final text as the finished sentence that it is.

Most recognisers write no full stop, and many no capitals.  A model that was trained on the beginnings of sentences
takes such a text for one and translates a part of it: "I have a dog" became an empty caption.  So the prompt of a final
update has a capital and a full stop, which are not shown; captions carry the text as it came.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping

from redraft.captions.prompt import PLAIN_KEY

#: Metadata key: the mark that the model needs at the end of a finished sentence, such as "."; empty if it needs none.
FINAL_MARK_KEY = "redraft.final_mark"
#: What models with a prompt layout of their own need where their metadata do not say it: the demo models do.
DEFAULT_MARK = "."

_ENDS = frozenset(".!?…‥。！？．｡।॥؟۔։።")
#: Categories of what may stand behind the mark: closing quotes and brackets.
_CLOSING = {"Pe", "Pf", "Pi"}
#: What a text may break off with; the mark stands in its place.
_BREAKS = " ,;:-–—、，；："


def final_mark(metadata: Mapping[str, str]) -> str:
    """The mark that a model needs at the end of a finished sentence, by its GGUF metadata; empty if it needs none."""
    return metadata.get(FINAL_MARK_KEY, DEFAULT_MARK if PLAIN_KEY in metadata else "")


def as_sentence(text: str, mark: str) -> str:
    """The text with a capital at its beginning and ``mark`` at its end, as far as these are missing.

    A text without words stays as it is, and so does every text if ``mark`` is empty.
    """
    first = next((place for place, character in enumerate(text) if character.isalnum()), None)
    if not mark or first is None:
        return text
    text = text[:first] + text[first].title() + text[first + 1 :].rstrip()
    return text if ends_sentence(text) else text.rstrip(_BREAKS) + mark


def ends_sentence(text: str) -> bool:
    """Whether a text ends with the mark of a sentence, be it before closing quotes and brackets."""
    for character in reversed(text):
        if character not in "\"' " and unicodedata.category(character) not in _CLOSING:
            return character in _ENDS
    return False
