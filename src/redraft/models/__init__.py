"""The models that ship with the package, and those worth downloading."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path

#: Name -> file in this folder.
SHIPPED = {"demo": "redraft-demo-q8_0.gguf", "demo-tiny": "redraft-demo-tiny-q8_0.gguf"}

#: Model -> its draft model with the same vocabulary.
SMALL_OF = {"demo": "demo-tiny"}


def shipped_path(name: str) -> Path:
    """Return the file of a shipped model.

    Raises:
        KeyError: the model does not ship.
    """
    with as_file(files(__package__) / SHIPPED[name]) as path:
        return path
