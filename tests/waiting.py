"""Waiting for what happens in other threads and processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def eventually(holds: Callable[..., Any]) -> None:
    """Wait until something is so; a minute is enough even on a busy machine."""
    until = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)
