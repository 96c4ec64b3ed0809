"""Folders of the user: home and cache.  Uses only the standard library, since tools/setup_env.py needs it too."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path


def home() -> Path | None:
    """Return the home directory; None for users without one, such as an unknown uid in a container."""
    with suppress(RuntimeError):
        return Path.home()
    return None


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the folder for data that can be made again: $XDG_CACHE_HOME/redraft, or ~/.cache/redraft.

    None if there is neither this variable nor a home directory: then nothing is kept.
    """
    if given := environment.get("XDG_CACHE_HOME"):
        return Path(given).expanduser() / "redraft"
    return None if (own := home()) is None else own / ".cache" / "redraft"
