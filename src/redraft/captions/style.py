"""How prompts are made: options of a translator, and of a client."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Style:
    """How prompts are made.

    Attributes:
        source: BCP 47 tag of the language spoken.
        template: name of a prompt template; None chooses by the model's metadata.
        glossary: (source term, translation) pairs for the instruction.
        context: how many earlier sentences a prompt carries.
    """

    source: str = "en"
    template: str | None = None
    glossary: tuple[tuple[str, str], ...] = ()
    context: int = 0
