"""The bindings of llama.cpp as ``lib``.

Raises:
    ModelError: on import, if llama-cpp-python or a library that it needs is missing or broken.
"""

from __future__ import annotations

from redraft.backends.library import load
from redraft.errors import ModelError

__all__ = ["lib"]

try:
    lib = load()
except (ImportError, OSError, RuntimeError) as error:
    raise ModelError(
        f"llama.cpp cannot be loaded ({error}): install it again with pip install --force-reinstall --no-cache-dir "
        "llama-cpp-python"
    ) from error
