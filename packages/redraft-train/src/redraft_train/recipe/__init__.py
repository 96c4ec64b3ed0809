"""Training of the demo models: data, tokenizer, training, GGUF export.  Not part of the installed package.

Needs packages/redraft-train/recipe.txt.  ``python -m redraft_train.recipe --help`` lists the commands, and
docs/training.md explains the choices.
"""
