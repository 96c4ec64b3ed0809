"""Find the languages named in a prompt such as "Translate the text into Simplified Chinese"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from redraft.captions.languages import parse_language
from redraft.errors import OptionError

#: Up to three capitalised words, or a tag.
_NAME = r"[\"'“*_\[({<]*((?:[A-Z][^\W\d_]+(?:[ -](?=[A-Z]))?){1,3}|[a-z]{2,3}(?:[-_][A-Za-z]{2,4})+)"
#: Patterns from most to least reliable.
_TARGETS = (
    re.compile(rf"\b[Ii]nto (?:the )?{_NAME}"),
    re.compile(rf"\b[Tt]arget(?: language)?(?: is)?\W{{1,4}}{_NAME}"),
    re.compile(rf"\b(?:[Tt]o|TO) {_NAME}"),
    re.compile(rf"\b(?:[Ii]n|[Aa]s) {_NAME}"),
    re.compile(rf"{_NAME} translat"),
    re.compile(r"\b(?:into|to) ([a-z]{4,20})\b"),
)
_SOURCES = (
    re.compile(rf"\b[Ff]rom (?:the )?{_NAME}"),
    re.compile(rf"\b[Ss]ource(?: language)?(?: is)?\W{{1,4}}{_NAME}"),
    re.compile(rf"\b(?:the|this|following) {_NAME} (?:text|sentence|speech|transcript|caption)"),
)


def target_of(prompt: str) -> str | None:
    """Return the canonical tag of the target language named in a prompt; None if there is none."""
    return next(_named(prompt, _TARGETS), None)


def source_of(prompt: str) -> str | None:
    """Return the canonical tag of the source language named in a prompt; None if there is none."""
    return next(_named(prompt, _SOURCES), None)


def _named(prompt: str, forms: tuple[re.Pattern[str], ...]) -> Iterator[str]:
    for form in forms:
        for match in form.finditer(prompt):
            if found := _language(match[1]):
                yield found


def _language(name: str) -> str | None:
    """Look up a language name or tag; leading words may be dropped, so "American English" is English."""
    words = name.split(" ")
    for first in range(len(words)):
        rest = " ".join(words[first:])
        if len(rest) < 4 and "-" not in rest and rest != "Thai":
            continue
        try:
            found = parse_language(rest)
        except OptionError:
            continue
        if len(found.code) == 2 or not rest.islower():  # "to even" does not mean Even, but "to german" means German
            return found.canonical
    return None
