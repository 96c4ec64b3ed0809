"""Write a transcript in capitals in lower case: models take capitals for names, headlines or noise.

Some recognisers know no other letters.  Any text may be in capitals, such as "OK", but a source that has ever written a
small letter knows both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

#: The first letter of a text, and of a sentence in it, behind few signs; the word "I" in English, and its contractions.
_FIRST = re.compile(r"(?:^|[.!?…]['\"’”»)]*\s)\W{0,20}\w")
_I = re.compile(r"\bi(?=\s|$|[.,;:!?…]|['’](?:m|d|ll|ve|s)\b)")
#: Notes of recognisers, such as <unk> and [laughter], which are in lower case even among capitals.
_NOTES = re.compile(r"<\w+>|\[\w+\]")
_ENDS = re.compile(r"\w[.!?…]+['\"’”»)]*(?:\s|$)")


@dataclass(frozen=True, slots=True)
class Capitals:
    """What is known of the letters of one source.

    Attributes:
        mixed: whether it has written a small letter.
    """

    mixed: bool = False

    def lowered(self, text: str) -> tuple[Capitals, str]:
        """Return what is known after a text, and the text, in lower case if the source knows only capitals.

        With punctuation, sentences keep their capital.
        """
        if not self.mixed and any(map(_is_small, _NOTES.sub("", text))):
            return Capitals(True), text
        if self.mixed or sum(map(str.isupper, text)) < 2:  # "I" and "A" are capitals everywhere
            return self, text
        lower = _I.sub("I", text.lower().replace("i\u0307", "i"))  # of a Turkish capital with a dot
        return self, _FIRST.sub(lambda found: found[0].upper(), lower) if _ENDS.search(lower) else lower


def _is_small(letter: str) -> bool:
    """Whether a letter has a capital that is a single letter; others, such as ß, also occur among capitals."""
    capital = letter.upper()
    return capital != letter and len(capital) == 1
