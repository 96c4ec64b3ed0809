"""Redraft: live translation of growing, self-correcting transcripts by speculative decoding.

The names below are loaded on first use, so that importing the package loads no engine.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # typing is slower to import than all of this
if TYPE_CHECKING:
    from typing import Any

    from redraft.async_translator import AsyncTranslator
    from redraft.captions.events import Caption, Failure, Update
    from redraft.captions.style import Style
    from redraft.errors import RedraftError
    from redraft.translator import Translator

__version__ = "0.1.0"
__all__ = ["AsyncTranslator", "Caption", "Failure", "RedraftError", "Style", "Translator", "Update", "__version__"]

_HOMES = {
    "AsyncTranslator": "async_translator",
    "Caption": "captions.events",
    "Failure": "captions.events",
    "RedraftError": "errors",
    "Style": "captions.style",
    "Translator": "translator",
    "Update": "captions.events",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
