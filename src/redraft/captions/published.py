"""The prompts of models, `prompts.toml`, as data: its tables, and which models have a language.

Publishers name the languages of translation models; chat models name too many, or none.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from typing import Any

from redraft.captions.languages import Language, closest, parse_language

#: Template -> its table.
PUBLISHED: dict[str, dict[str, Any]] = tomllib.loads((files("redraft.captions") / "prompts.toml").read_text("utf-8"))
#: Publisher -> tag of each of its languages -> the name that its prompts give it; empty if they use ours.
LANGUAGES: dict[str, dict[str, str]] = {
    publisher: {tag: name for tag, _, name in (each.partition(":") for each in languages.split())}
    for publisher, languages in PUBLISHED.pop("languages").items()
}
#: Models of the catalogue -> their languages in `LANGUAGES`, those to suggest first.
COVERED = {
    "hy-mt2-1.8b": "hunyuan",
    "translategemma-4b": "translategemma",
    "milmmt-46-4b": "milmmt",
    "hy-mt2-7b": "hunyuan",
    "hy-mt1.5-1.8b": "hunyuan",
    "translategemma-12b": "translategemma",
    "tower-plus-2b": "tower",
    "tower-plus-9b": "tower",
    "cat-translate-1.4b": "cat",
    "cat-translate-0.8b": "cat",
}
#: How many models are suggested.
_SUGGESTED = 2


@lru_cache(1024)  # finding it takes milliseconds, and every prompt needs it
def among(language: Language, tags: Iterable[str]) -> Language | None:
    """Return which of ``tags`` serves for a language; None if none does."""
    return closest(language, map(parse_language, tags))


def suggestion(language: Language) -> str:
    """Return which models support a language, as a clause, such as "translategemma-4b supports it"."""
    names = [name for name, row in COVERED.items() if among(language, tuple(LANGUAGES[row]))][:_SUGGESTED]
    if not names:
        return "`redraft models` lists models with more languages"
    return f"{' and '.join(names)} {'support' if len(names) > 1 else 'supports'} it (see `redraft models`)"
