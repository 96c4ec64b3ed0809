"""The texts that go into a prompt."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Request:
    """The contents of a prompt; all texts are the user's and pass through `redraft.captions.prompt.clean`.

    Attributes:
        source: the text to translate.
        context: earlier sentences as (source, translation), oldest first; pairs with an empty side are left out.
        glossary: required translations as (source term, target term).
    """

    source: str
    context: tuple[tuple[str, str], ...] = ()
    glossary: tuple[tuple[str, str], ...] = ()
