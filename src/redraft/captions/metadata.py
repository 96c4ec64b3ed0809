"""Keys of a model's GGUF metadata that say how to prompt it."""

from __future__ import annotations

#: Format string of a translation model's prompt, with fields ``{source}`` and ``{code}``, the target language's code.
PLAIN_KEY = "redraft.prompt"
#: Tags of the languages that it was trained on, separated by commas; any language if absent.
SOURCE_LANGUAGES_KEY = "redraft.source_languages"
TARGET_LANGUAGES_KEY = "redraft.target_languages"
#: Mark that it needs at the end of a sentence, such as "."; empty if it needs none.
FINAL_MARK_KEY = "redraft.final_mark"
#: ``true`` if it writes other scripts only where the source has them (`redraft.captions.script`).
OWN_SCRIPT_KEY = "redraft.own_script"
#: Chat template, a Jinja program.
CHAT_KEY = "tokenizer.chat_template"
