"""Programs of the system that some tests run."""

from __future__ import annotations

import shutil

import pytest

#: Name of a program -> Debian's package with it.
PACKAGES = {
    "chromium": "chromium",
    "cmake": "cmake",
    "espeak-ng": "espeak-ng",
    "nginx": "nginx-light",
    "node": "nodejs",
    "openssl": "openssl",
    "redis-server": "redis-server",
}


def program(name: str) -> str:
    """The path of a program of `PACKAGES`; skips the test, or the module, where it is not installed."""
    path = shutil.which(name) or shutil.which(f"/usr/sbin/{name}")
    if path is None:
        pytest.skip(f"needs Debian's {PACKAGES[name]}", allow_module_level=True)
    return path
