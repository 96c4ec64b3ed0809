"""The models that ship with the package, and those worth downloading."""

from __future__ import annotations

from pathlib import Path

#: Name -> file in this folder.
SHIPPED = {"demo": "redraft-demo-q8_0.gguf", "demo-tiny": "redraft-demo-tiny-q8_0.gguf"}

#: Model -> its draft model with the same vocabulary.
SMALL_OF = {"demo": "demo-tiny"}


def shipped_path(name: str) -> Path:
    """Return the file of one of the `SHIPPED` models."""
    return Path(__file__).with_name(SHIPPED[name])
