"""How to prompt a model: keys of its GGUF metadata that say so, and the prompt templates that users can name."""

from __future__ import annotations

#: A translation model's prompt, a text with the fields ``{source}`` and ``{code}``, the target language's code.
PROMPT_KEY = "redraft.prompt"
#: Tags of the languages that it was trained on, separated by commas; any language if absent.
SOURCE_LANGUAGES_KEY = "redraft.source_languages"
TARGET_LANGUAGES_KEY = "redraft.target_languages"
#: Mark that it needs at the end of a sentence, such as "."; empty if it needs none.
FINAL_MARK_KEY = "redraft.final_mark"
#: ``true`` if it writes other scripts only where the source has them (`redraft.captions.script`).
OWN_SCRIPT_KEY = "redraft.own_script"
#: Chat template, a Jinja program.
CHAT_KEY = "tokenizer.chat_template"

#: The published prompts, the tables of `prompts.toml`: `redraft.captions.prompt` takes long to import.
TEMPLATE_NAMES = ("hy-mt2", "hy-mt1.5", "milmmt", "cat-translate", "translategemma", "tower", "qwen3", "chat")
