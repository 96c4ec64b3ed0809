"""The recipe that made the demo models: data, tokenizer, training, GGUF export.

Needs the ``train`` extra (torch).  ``python -m recipe --help`` teaches the commands; `docs/training.md` tells
why each choice was made.
"""
