"""Detect changes of the terminal's size."""

from __future__ import annotations

import threading
from collections.abc import Callable

from rich.console import Console


class SizeWatch:
    """Calls a function, on a separate thread, after a terminal's size has changed.

    It polls, because a SIGWINCH handler would wait until the main thread returns from the model or the input, and
    Windows has no such signal.

    Args:
        console: the terminal.
        changed: called without arguments, never concurrently.
        seconds: polling interval.
    """

    def __init__(self, console: Console, changed: Callable[[], None], seconds: float = 0.1) -> None:
        self._console, self._changed, self._seconds = console, changed, seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="redraft-resize", daemon=True)

    def start(self) -> None:
        """Start polling."""
        self._thread.start()

    def stop(self) -> None:
        """Stop polling, and wait for a running call unless called from it."""
        self._stop.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def _watch(self) -> None:
        size = self._console.size
        while not self._stop.wait(self._seconds):
            if (now := self._console.size) != size:
                size = now
                self._changed()
