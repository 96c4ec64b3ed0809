"""The models that ship with the package, and the ones worth fetching."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path

#: Name -> file in this folder.
SHIPPED = {"demo": "redraft-demo-q8_0.gguf", "demo-tiny": "redraft-demo-tiny-q8_0.gguf"}

#: Model -> the small one of the same vocabulary that drafts for it.
SMALL_OF = {"demo": "demo-tiny"}


def shipped_path(name: str) -> Path:
    """The file of a shipped model.

    Raises:
        KeyError: no such model ships.
    """
    with as_file(files(__package__) / SHIPPED[name]) as path:
        return path
