"""What goes into prompts: the style, an option of translators and clients, and the texts of a request."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Style:
    """How prompts are made.

    Attributes:
        source_language: its BCP 47 tag.
        template: name of a prompt template (`redraft.captions.templates`); None chooses by the model's metadata.
        prompt: a prompt of one's own (`redraft.captions.own_prompt`), instead of a template.
        glossary: (source term, translation) pairs for the instruction.
        context: number of earlier sentences in the prompt.
    """

    source_language: str = "en"
    template: str | None = None
    prompt: str | None = None
    glossary: tuple[tuple[str, str], ...] = ()
    context: int = 0


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
