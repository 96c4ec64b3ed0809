"""The style of prompts, an option of translators and clients."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from redraft.captions.languages import Language, as_tags, canonical_tag, parse_languages, same_of
from redraft.captions.spoken import AUTO
from redraft.errors import OptionError

#: Target language, by tag or name -> source terms and their translations.
Glossary = Mapping[str, Sequence[tuple[str, str]]]


@dataclass(frozen=True, slots=True)
class Style:
    """How prompts are made.

    Attributes:
        source_language: its BCP 47 tag; `auto` if any language may be spoken, so that it is detected
            (`redraft.captions.spoken`).
        template: name of a prompt template (`redraft.captions.prompt`); None chooses by the model's metadata.
        prompt: your own prompt (`redraft.captions.prompt`), instead of a template.
        glossary: for each target language that has one, pairs of a source term and its translation.
        also_spoken: tags of further source languages.  Each utterance is translated from the one that it is in, and
            shown as it is where that is the target language.

    Raises:
        OptionError: the glossary has another form or an empty text, or names a language twice.
    """

    source_language: str = "en"
    template: str | None = None
    prompt: str | None = None
    glossary: Glossary = field(default_factory=dict)
    also_spoken: Sequence[str] = ()

    def __post_init__(self) -> None:
        if as_tags(self.also_spoken, "also_spoken") and self.source_language == AUTO:
            raise OptionError(": auto means any language, so name no other one", "source language")
        if not (isinstance(self.glossary, Mapping) and all(map(_are_pairs, self.glossary.values()))):
            form = ": must be pairs of a term and its translation for each target language, such as"
            example = {"de": [("hull", "Rumpf")]}
            raise OptionError(f"{form} {example}, not {reprlib.repr(self.glossary)}", "glossary")
        if len({canonical_tag(tag) for tag in self.glossary}) < len(self.glossary):
            raise OptionError(f": must name each language once, not {', '.join(self.glossary)}", "glossary")

    @property
    def sources(self) -> tuple[str, ...]:
        """Standard tags of the languages that may be spoken; empty if any may be."""
        named = [self.source_language, *self.also_spoken]
        return () if named == [AUTO] else tuple(parse_languages(named, "source language"))

    def terms(self, target: Language) -> tuple[tuple[str, str], ...]:
        """Return the glossary of a target language; empty if it has none."""
        tag = same_of(target.tag, self.glossary)
        return () if tag is None else tuple(self.glossary[tag])

    def check_targets(self, targets: Sequence[str]) -> None:
        """Check that the glossary is for these target languages.

        Raises:
            OptionError: it names another language.
        """
        for tag in self.glossary:
            if same_of(tag, targets) is None:
                raise OptionError(f"must be for one of {', '.join(targets)}, not {tag!r}", "glossary")


def _are_pairs(terms: object) -> bool:
    """Whether these are pairs of texts that are not empty."""
    pairs = terms if isinstance(terms, Sequence) else [None]
    return all(
        isinstance(pair, Sequence) and [*map(type, pair)] == [str, str] and all(map(str.strip, pair)) for pair in pairs
    )
