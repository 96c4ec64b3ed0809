"""The language of each utterance of a stream in which several are spoken.

A recogniser may know it.  Otherwise py3langid (extra ``detect``) tells it by the text: of the small libraries, it was
right most often about beginnings of sentences of two words or more, and it needs only NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import cache
from typing import Any

from redraft.captions.events import Update
from redraft.captions.languages import closest, known_language, parse_language
from redraft.captions.words import has_words
from redraft.errors import InputError, OptionError, from_extra

#: The source language of a stream in which any may be spoken.
AUTO = "auto"
#: How probable another language must be, beside the one that was spoken last, to take its place.
_SWITCHES = 0.7


class Spoken:
    """Finds the language of each update of one stream.

    Within an utterance, and from one to the next, the language stays the same until another one is clearly more
    probable: one or two words often exist in several.

    Args:
        sources: tags of the languages that may be spoken; empty for all that can be detected.
        known: tags of the languages from which the model translates; empty if it declares none.

    Attributes:
        languages: tags of the languages that may be spoken.

    Raises:
        OptionError: a language cannot be detected, or not be told from another one.
        MissingExtra: several languages may be spoken, and the extra ``detect`` is not installed.
    """

    def __init__(self, sources: Sequence[str], known: Sequence[str] = ()) -> None:
        self.languages = tuple(sources)
        self._last: str | None = None
        self._detector: Any = None
        if len(sources) == 1:
            return
        detector = _detector()
        #: The detector's code of a language -> its tag.
        self._tags = _codes(sources, detector.labels) if sources else _all(detector.labels, known)
        if not self._tags:
            raise OptionError("cannot be auto: none of the model's languages can be detected", "source language")
        self.languages = tuple(self._tags.values())
        self._detector = copy(detector)  # shares the model
        self._detector.set_languages([*self._tags])

    def named(self, update: Update) -> Update:
        """Return an update with the language that is spoken in it; one without keeps none if there is one language.

        Raises:
            InputError: its language is not one of those that may be spoken.
        """
        if update.language is not None:
            known = known_language(update.language)
            found = closest(known, map(parse_language, self.languages)) if known else None
            if found is None:
                few = ", ".join(self.languages[:8]) + (", ..." if len(self.languages) > 8 else "")
                raise InputError(f"language must be one that may be spoken ({few}), not {update.language!r}")
            self._last = found.tag
        elif self._detector is None:
            return update
        elif has_words(update.text):
            chances = {self._tags[code]: chance for code, chance in self._detector.rank(update.text)}
            new = next(iter(chances))  # the most probable one
            if not self._last or chances[new] >= _SWITCHES * (chances[new] + chances[self._last]):
                self._last = new
        return replace(update, language=self._last or self.languages[0])

    def detect(self, text: str) -> tuple[str, float]:
        """Return the language of a text that is no part of a stream, and its probability.

        Several languages must be possible, and the text must have words.
        """
        code, probability = self._detector.rank(text)[0]
        return self._tags[code], float(probability)


@cache
def _detector() -> Any:
    with from_extra("detect"):
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def _codes(sources: Sequence[str], codes: Sequence[str]) -> dict[str, str]:
    """Return the detector's code of each language -> its tag, in the order of the detector."""
    found: dict[str, str] = {}
    for tag in sources:
        code = parse_language(tag, "source language").code
        if code not in codes:
            raise OptionError(f"{tag!r} cannot be detected, so it must be the only one", "source language")
        if found.setdefault(code, tag) != tag:
            raise OptionError(f"{tag!r} cannot be told from {found[code]!r}: name one of them", "source language")
    return found


def _all(codes: Sequence[str], known: Sequence[str]) -> dict[str, str]:
    """Return the detector's code -> tag of each language that it knows, and from which the model translates."""
    theirs = [*map(parse_language, known)]
    found = [(code, language) for code in codes if (language := known_language(code)) and language.code == code]
    return {code: language.tag for code, language in found if not theirs or closest(language, theirs)}
