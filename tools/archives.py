"""Unpack archives.  Standard library only."""

from __future__ import annotations

import tarfile
from pathlib import Path


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a tar archive; from Python 3.11.4 on, one that would write elsewhere raises `tarfile.FilterError`."""
    with tarfile.open(archive) as files:
        # `extractall(filter=...)` is a TypeError in Debian 12, which has Python 3.11.2.
        files.extraction_filter = getattr(tarfile, "data_filter", None)
        files.extractall(folder)
