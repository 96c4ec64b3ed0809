"""The prompts of models, `prompts.toml`, as data: its tables, and which languages its models have."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any

#: Template -> its table.
PUBLISHED: dict[str, dict[str, Any]] = tomllib.loads((files("redraft.captions") / "prompts.toml").read_text("utf-8"))
#: Publisher -> tag of each of its languages -> the name that its prompts give it; empty if they use ours.
LANGUAGES: dict[str, dict[str, str]] = {
    publisher: {tag: name for tag, _, name in (each.partition(":") for each in languages.split())}
    for publisher, languages in PUBLISHED.pop("languages").items()
}
