"""Training of the demo models: data, tokenizer, training, GGUF export.  Not part of the installed package.

Needs recipe/requirements.txt.  ``python -m recipe --help`` lists the commands; `docs/training.md` explains the choices.
"""
