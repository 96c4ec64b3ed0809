"""The languages that a prompt asks for, in plain words: "Translate the text into Simplified Chinese"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from redraft.captions.languages import parse_language
from redraft.errors import OptionError

#: Up to three capitalised words, or a tag.
_NAME = r"[\"'“*_\[({<]*((?:[A-Z][^\W\d_]+(?:[ -](?=[A-Z]))?){1,3}|[a-z]{2,3}(?:[-_][A-Za-z]{2,4})+)"
#: From the surest to the least sure.
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
    """The language that a prompt asks a translation into, by its canonical tag; None where it names none."""
    return next(_named(prompt, _TARGETS), None)


def source_of(prompt: str) -> str | None:
    """The language that a prompt says the text is in, by its canonical tag; None where it names none."""
    return next(_named(prompt, _SOURCES), None)


def _named(prompt: str, forms: tuple[re.Pattern[str], ...]) -> Iterator[str]:
    for form in forms:
        for match in form.finditer(prompt):
            if found := _language(match[1]):
                yield found


def _language(name: str) -> str | None:
    """The language of a name or tag, if need be without its first words: "American English" is English."""
    words = name.split(" ")
    for first in range(len(words)):
        rest = " ".join(words[first:])
        if len(rest) < 4 and "-" not in rest and rest != "Thai":
            continue
        try:
            found = parse_language(rest)
        except OptionError:
            continue
        if len(found.code) == 2 or not rest.islower():  # "to even" asks for no Even, "to german" for German
            return found.canonical
    return None
