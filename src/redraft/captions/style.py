"""Prompt style: an option of translators and clients."""

from __future__ import annotations

from dataclasses import dataclass

#: Names of the prompt templates (`redraft.captions.prompt`).
TEMPLATES = ("hy-mt2", "hy-mt1.5", "translategemma", "tower", "qwen3", "chat")


@dataclass(frozen=True, slots=True)
class Style:
    """How prompts are made.

    Attributes:
        source: BCP 47 tag of the source language.
        template: name of a prompt template; None chooses by the model's metadata.
        prompt: a prompt of one's own (`redraft.captions.own_prompt`), instead of a template.
        glossary: (source term, translation) pairs for the instruction.
        context: number of earlier sentences in the prompt.
    """

    source: str = "en"
    template: str | None = None
    prompt: str | None = None
    glossary: tuple[tuple[str, str], ...] = ()
    context: int = 0
